package registry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

// boltWith makes a file of many pages, some of which others flow over to, and returns
// its bytes and what is in it.
func boltWith(t *testing.T, dir string) ([]byte, *model.Observed) {
	t.Helper()
	r := lead(t, Options{Dir: dir})
	var c Changes
	for i := range 300 {
		c.Servers = append(c.Servers, serverRecord(i, model.PurposeClaim))
	}
	c.Fleet = everything().Fleet
	save(t, r, c)
	must.Do(t, r.SavePayload(t.Context(), "t1", model.NewSensitive(large)))
	want := r.Observed()
	_ = r.Close()
	raw := must.Get(os.ReadFile(filepath.Join(dir, store.FileName)))(t)
	return raw, want
}

func rootOf(raw []byte) int {
	first, second := raw[16:], raw[4096+16:]
	if binary.NativeEndian.Uint64(second[48:]) > binary.NativeEndian.Uint64(first[48:]) {
		first = second
	}
	return int(binary.NativeEndian.Uint64(first[16:]))
}

func writeBolt(t *testing.T, dir string, raw []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, store.FileName), raw, 0o600))
}

func damagedFiles(t *testing.T, dir string) []string {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(dir, store.FileName+".damaged-*")))(t)
	slices.Sort(names)
	return names
}

func TestADamagedFileIsMovedAside(t *testing.T) {
	dir := t.TempDir()
	raw, _ := boltWith(t, dir)
	changed := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(raw)) }
	zeroed := func(page int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[page*4096 : (page+1)*4096]); return b }
	}
	for name, damaged := range map[string][]byte{
		"something else":       bytes.Repeat([]byte("no database "), 4096),
		"a byte":               []byte("x"),
		"cut off":              changed(func(b []byte) []byte { return b[:len(b)/2] }),
		"cut off in a page":    changed(func(b []byte) []byte { return b[:4096*3+100] }),
		"both beginnings gone": changed(func(b []byte) []byte { clear(b[:2*4096]); return b }),
		"all but them gone":    changed(func(b []byte) []byte { clear(b[2*4096:]); return b }),
		"a page of another":    changed(func(b []byte) []byte { copy(b[len(b)/2/4096*4096:], b[:4096]); return b }),
		"its root gone": changed(func(b []byte) []byte {
			return zeroed(rootOf(b))(b)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeBolt(t, dir, damaged)
			r := lead(t, Options{Dir: dir})
			if got := r.Damage(); len(got) != 1 || got[0].Bucket != "" || !errors.Is(got[0], store.ErrDamagedFile) || !isEmpty(r) {
				t.Errorf("damage %v, empty %v", got, isEmpty(r))
			}
			files := damagedFiles(t, dir)
			if len(files) != 1 {
				t.Fatalf("moved aside: %v", files)
			}
			if kept, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("what was moved aside differs, %v", err)
			}
			adopt(t, r, &observed(everything()).Records, true)
			if r.Damage() != nil {
				t.Errorf("after Adopt: %v", r.Damage())
			}
			_ = r.Close()
			if again := lead(t, Options{Dir: dir}); again.Damage() != nil || isEmpty(again) {
				t.Errorf("damage %v, empty %v", again.Damage(), isEmpty(again))
			}
		})
	}
}

// However a file is damaged, opening it neither panics nor fails: a panic of bbolt's
// goroutine would end this test.
func TestNoDamageKeepsIngotFromStarting(t *testing.T) {
	whole, _ := boltWith(t, t.TempDir())
	random := rand.New(rand.NewPCG(9, 9))
	found := 0
	for range 150 {
		raw := bytes.Clone(whole)
		switch random.IntN(4) {
		case 0:
			raw = raw[:random.IntN(len(raw))]
		case 1:
			page := random.IntN(len(raw)/4096) * 4096
			for i := range 24 { // its header, and the first entry
				raw[page+i] = byte(random.Uint32())
			}
		case 2:
			for range 1 + random.IntN(64) {
				raw[random.IntN(len(raw))] ^= 1 << random.IntN(8)
			}
		case 3:
			from := random.IntN(len(raw))
			clear(raw[from:min(len(raw), from+random.IntN(3*4096))])
		}
		dir := t.TempDir()
		writeBolt(t, dir, raw)
		o := testOptions(t, Options{Dir: dir})
		o.Log = nil
		r := must.Get(Open(t.Context(), o))(t)
		if len(r.Damage()) > 0 {
			found++
		}
		save(t, r, everything())
		_ = r.Close()
	}
	if found < 30 {
		t.Errorf("of 150 files %d were damaged", found)
	}
}

func TestNotMoreThanThreeDamagedFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	var last []string
	for i := range 5 {
		writeBolt(t, dir, []byte(strings.Repeat("x", i+1)))
		r := lead(t, Options{Dir: dir, Clock: func() time.Time { return now.Add(time.Duration(i/2) * time.Second) }})
		_ = r.Close()
		last = append(last, strings.Repeat("x", i+1))
	}
	var kept []string
	for _, name := range damagedFiles(t, dir) {
		raw := must.Get(os.ReadFile(name))(t)
		kept = append(kept, string(raw))
	}
	if !slices.Equal(kept, last[2:]) {
		t.Errorf("kept %v, want %v", kept, last[2:])
	}
}

// A file in use is not to be read: who uses it is writing.
func TestAFileInUseIsNotDamaged(t *testing.T) {
	dir := t.TempDir()
	lead(t, Options{Dir: dir})
	f := must.Get(os.OpenFile(filepath.Join(dir, store.FileName), os.O_WRONLY, 0))(t)
	defer f.Close()
	must.Get(f.WriteAt(make([]byte, 4096), 2*4096))(t)
	if _, err := Open(t.Context(), testOptions(t, Options{Dir: dir})); err == nil || !strings.Contains(err.Error(), "another ingot uses") {
		t.Errorf("got %v", err)
	}
	if files := damagedFiles(t, dir); len(files) > 0 {
		t.Errorf("moved aside: %v", files)
	}
}
