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

	"ingot/model/must"
)

// write writes a file that everybody may read, and the folders above it.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
}

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
	must.Do(t, os.Symlink("..data/zone.cfg", filepath.Join(dir, "zone.cfg")))
	f := New(dir, nil)
	for name, want := range map[string]string{"switches/leaf 1.cfg": "hostname leaf1", "zone.cfg": "by a link"} {
		if got := read(t, f, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	moved := dir + "-old"
	must.Do(t, os.Rename(dir, moved))
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
	must.Do(t, os.Chmod(filepath.Join(dir, "private"), 0o640))
	links := map[string]string{
		"out": "../outside", "absolute": filepath.Join(above, "outside"), "up": "..", "loop": "loop",
		"passwd": "/etc/passwd", "null": "/dev/null", "toprivate": "private",
	}
	for name, to := range links {
		must.Do(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
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
	must.Do(t, os.Chmod(filepath.Join(dir, "key"), 0o600))
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

func link(t *testing.T, dir string, targets map[string]string) {
	t.Helper()
	for name, to := range targets {
		must.Do(t, os.Symlink(to, filepath.Join(dir, name)))
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	must.Do(t, os.Chmod(path, mode))
}

func TestAFileInAFolderThatIsNotForEverybodyIsNotServed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "keys/key", "s")
	write(t, dir, "keys/open/key", "s")
	write(t, dir, "open/file", "x")
	link(t, dir, map[string]string{
		"link": "keys/key", "open/link": "../keys/key", "hops": "open/link", "folder": "keys", "through": "keys/../open/file", "deep": "keys/open",
	})
	chmod(t, filepath.Join(dir, "keys"), 0o700)
	f := New(dir, nil)
	for _, name := range []string{"keys/key", "keys/open/key", "link", "open/link", "hops", "folder/key", "through", "deep/key"} {
		if file, _, err := f.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, %v", name, file, err)
		}
	}
	if got := read(t, f, "open/file"); got != "x" {
		t.Errorf("beside it: %q", got)
	}
}

func TestNoFileIsServedOfAFolderThatIsNotForEverybody(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "leaf1.cfg", "x")
	write(t, dir, "sub/leaf2.cfg", "x")
	chmod(t, dir, 0o700)
	f := New(dir, nil)
	for _, name := range []string{"leaf1.cfg", "sub/leaf2.cfg"} {
		if file, _, err := f.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, %v", name, file, err)
		}
	}
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "chmod o+x") {
		t.Errorf("the check says %v", err)
	}
	chmod(t, dir, 0o711)
	if got := read(t, f, "leaf1.cfg"); got != "x" || f.Check() != nil {
		t.Errorf("once everybody may enter it: %q, %v", got, f.Check())
	}
}

func TestRelativeLinksWithinTheFolderAreFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "releases/5/sub/leaf1.cfg", "of release 5")
	link(t, dir, map[string]string{
		"current": "releases/5/", "releases/latest": "./5", "up": "releases/latest/../../current/sub//leaf1.cfg", "releases/leaf1.cfg": "latest/sub/leaf1.cfg",
	})
	f := New(dir, nil)
	for _, name := range []string{"current/sub/leaf1.cfg", "releases/latest/sub/leaf1.cfg", "up", "releases/leaf1.cfg"} {
		if got := read(t, f, name); got != "of release 5" {
			t.Errorf("%s: %q", name, got)
		}
	}
	link(t, dir, map[string]string{"wrong": "current/sub/leaf1.cfg/", "worse": "current/sub/leaf1.cfg/.."})
	for _, name := range []string{"wrong", "worse", "worse/leaf1.cfg"} {
		if file, _, err := f.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, in a file that is no folder: %v, %v", name, file, err)
		}
	}
}

func TestAFileThatIsNotServedForItsFolderOrALinkIsNamedInTheLog(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "leaf1.cfg", "x")
	write(t, dir, "keys/key", "x")
	chmod(t, filepath.Join(dir, "keys"), 0o700)
	link(t, dir, map[string]string{"absolute": filepath.Join(dir, "leaf1.cfg"), "out": "../leaf1.cfg", "tokeys": "keys/key"})
	for name, want := range map[string][]string{
		"keys/key": {"file=keys/key", "folder=keys", "chmod o+x"}, "tokeys": {"file=tokeys", "folder=keys"},
		"absolute": {"file=absolute", "make the link relative"}, "out": {"file=out", "leads out of the folder"}, "missing": nil,
	} {
		var log bytes.Buffer
		f := New(dir, slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 {
			if _, _, err := f.Open(name); err == nil {
				t.Errorf("%s is served", name)
			}
		}
		if got := strings.Count(log.String(), "\n"); got != min(len(want), 1) {
			t.Errorf("%s: %d lines in the log, want %d", name, got, min(len(want), 1))
		}
		for _, part := range want {
			if !strings.Contains(log.String(), part) {
				t.Errorf("%s: the log says %q, want %q in it", name, log.String(), part)
			}
		}
	}
}
