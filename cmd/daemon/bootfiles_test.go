package daemon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// TestAFileNeverStandsInForALoader asks by TFTP for what a folder of files has under the
// names of Ingot's own.
func TestAFileNeverStandsInForALoader(t *testing.T) {
	own, folder := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // everybody may read it
			t.Fatal(err)
		}
	}
	write(own, "ipxe.efi", "loader")
	for _, name := range []string{"ipxe.efi", "snponly.efi", "autoexec.ipxe", "leaf1.cfg"} {
		write(folder, name, "file")
	}
	files := bootfiles.New(folder, nil)
	served := tftpFiles{netboot.OpenLoaders([]string{own}), files}
	for name, want := range map[string]string{"ipxe.efi": "loader", "snponly.efi": "", "autoexec.ipxe": "", "leaf1.cfg": "file", "missing": ""} {
		f, _, err := served.Open(name)
		if want == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is served: %v, %v", name, f, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := io.ReadAll(f)
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		f.Close()
	}
	if _, _, err := (tftpFiles{loaders: served.loaders}).Open("leaf1.cfg"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

func TestServersInGitAreNoStrangers(t *testing.T) {
	var d *model.Desired
	n := namedServers{desired: func() *model.Desired { return d }}
	if n.has("02:00:00:00:00:01") {
		t.Error("something is named before Git was read")
	}
	d = &model.Desired{Servers: map[model.ServerName]*model.Server{
		"s1": {Spec: model.ServerSpec{SystemUUID: "4c4c4544-0011-2233-8044-b4c04f565931"}},
		"s2": {Meta: model.Meta{Annotations: map[string]string{model.AnnotationMACAddresses: "02:00:00:00:00:01, 02-00-00-00-00-02"}}},
	}}
	for id, want := range map[string]bool{
		"4c4c4544-0011-2233-8044-b4c04f565931": true, "44454c4c-1100-3322-8044-b4c04f565931": true,
		"02:00:00:00:00:01": true, "02:00:00:00:00:02": true, "02:00:00:00:00:03": false, "": false,
		"4c4c4544-0011-2233-8044-b4c04f565932": false,
	} {
		if got := n.has(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}
