package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ingot/model/must"
)

func TestLoadSealKey(t *testing.T) {
	want := testSealKey()
	cases := map[string]struct {
		file string
		mode os.FileMode
		says string // part of the error, "" for none
	}{
		"raw bytes":             {string(want), 0o600, ""},
		"hexadecimal":           {hex.EncodeToString(want) + "\n", 0o600, ""},
		"base64":                {base64.StdEncoding.EncodeToString(want) + "\n", 0o400, ""},
		"base64 for URLs":       {base64.RawURLEncoding.EncodeToString(want), 0o600, ""},
		"too short":             {"abc\n", 0o600, "must hold 32 bytes"},
		"empty":                 {"", 0o600, "must hold 32 bytes"},
		"readable by its group": {string(want), 0o640, "chmod 600"},
		"readable by everybody": {string(want), 0o644, "chmod 600"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seal.key")
			must.Do(t, os.WriteFile(path, []byte(c.file), c.mode))
			got, err := LoadSealKey(path, true)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), string(want)) {
					t.Errorf("got %v, want %q", err, c.says)
				}
				return
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestSealKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "seal.key")
	if _, err := LoadSealKey(path, false); err == nil {
		t.Fatal("made without being told to")
	}
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadSealKey(path, true); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if !bytes.Equal(k, keys[0]) || len(k) != SealKeySize {
			t.Error("two keys were made")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".seal-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
