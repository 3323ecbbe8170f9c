package bootfiles

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// write writes a file that everybody may read, and the folders above it.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
}

// read returns what a file holds.
func read(t *testing.T, f *Folder, name string) string {
	t.Helper()
	file, size, err := f.Open(name)
	if err != nil {
		t.Fatalf("open %q: %v", name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil || int64(len(text)) != size {
		t.Errorf("%s: %d bytes of %d, %v", name, len(text), size, err)
	}
	return string(text)
}

func TestFilesBelowTheFolderAreServed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "switches/leaf 1.cfg", "hostname leaf1")
	write(t, dir, "..data/zone.cfg", "by a link") // as Kubernetes mounts a ConfigMap
	if err := os.Symlink("..data/zone.cfg", filepath.Join(dir, "zone.cfg")); err != nil {
		t.Fatal(err)
	}
	f := New(dir, nil)
	for name, want := range map[string]string{"switches/leaf 1.cfg": "hostname leaf1", "zone.cfg": "by a link"} {
		if got := read(t, f, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	moved := dir + "-old"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "zone.cfg", "of the new folder")
	if got := read(t, f, "zone.cfg"); got != "of the new folder" {
		t.Errorf("after the folder was replaced: %q", got)
	}
}

func TestNothingElseIsServed(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "files")
	write(t, above, "outside", "secret")
	write(t, dir, "sub/inside", "x")
	write(t, dir, ".hidden", "x")
	write(t, dir, "sub/.git/config", "x")
	write(t, dir, "private", "x")
	write(t, dir, `back\slash`, "x")
	deep := strings.Repeat("d/", maxDepth) + "file"
	write(t, dir, deep, "x")
	if err := os.Chmod(filepath.Join(dir, "private"), 0o640); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{
		"out": "../outside", "absolute": filepath.Join(above, "outside"), "up": "..", "loop": "loop",
		"passwd": "/etc/passwd", "null": "/dev/null", "toprivate": "private",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := New(dir, nil)
	for _, name := range []string{
		"", ".", "..", "/", "missing", "sub", "sub/", "/sub/inside", "sub//inside", "./sub/inside", "sub/../sub/inside", "../outside",
		"../files/sub/inside", ".hidden", "sub/.git/config", "private", `back\slash`, "sub/inside\x00", "sub/in\nside", deep,
		strings.Repeat("n", maxName+1), "out", "absolute", "up/outside", "loop", "passwd", "null", "toprivate", "fifo",
	} {
		if file, _, err := f.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.80q is opened: %v, %v", name, file, err)
		}
	}
	var none *Folder
	if _, _, err := none.Open("sub/inside"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

func TestAFileThatIsNotForEverybodyIsNamedInTheLog(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "key", "x")
	if err := os.Chmod(filepath.Join(dir, "key"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	f := New(dir, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if _, _, err := f.Open("key"); err == nil {
			t.Error("it is served")
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "file=key") || !strings.Contains(got, "chmod o+r") {
		t.Errorf("the log says %q", got)
	}
}

func TestAFolderThatComesLaterIsServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", "x")
	for _, dir := range []string{file, file + "-missing"} {
		if New(dir, nil).Check() == nil {
			t.Errorf("%s is taken for a folder", dir)
		}
	}
	later := New(file+"-missing", nil)
	if _, _, err := later.Open("leaf1.cfg"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a folder that is not there: %v", err)
	}
	write(t, file+"-missing", "leaf1.cfg", "x")
	if got := read(t, later, "leaf1.cfg"); got != "x" || later.Check() != nil {
		t.Errorf("once it is there: %q, %v", got, later.Check())
	}
}

func TestAFileInAFolderThatIsNotForEverybodyIsNotServed(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{os.Mkdir(filepath.Join(dir, "keys"), 0o700), os.WriteFile(filepath.Join(dir, "keys", "key"), []byte("s"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "keys", "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := New(dir, nil)
	if file, _, err := f.Find("keys/key"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, %v", file, err)
	}
}
