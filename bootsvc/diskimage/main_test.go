package diskimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/bootsvc/imagecache"
	"ingot/model/must"
	"ingot/model/testtool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// settings are the options of a store and of its folder.
type settings struct {
	Options
	Path     string
	MaxBytes int64
	Pinned   func(digest string) bool
}

func storeFor(t *testing.T, change func(*settings)) *Store {
	t.Helper()
	o := settings{Path: filepath.Join(t.TempDir(), "images"), Options: Options{Patience: waitLong}}
	if change != nil {
		change(&o)
	}
	o.Dir = must.Get(cachedir.Open(cachedir.Options{Path: o.Path, MaxBytes: o.MaxBytes, Pinned: o.Pinned}))(t)
	s := must.Get(Open(o.Options))(t)
	t.Cleanup(func() { shut(s) })
	return s
}

// shut closes a store and its folder.
func shut(s *Store) {
	s.Close()
	s.dir.Close()
}

func pathOf(s *Store, digest string) string { return s.dir.New(s.kind, digest).Path() }

func dirOf(s *Store) string { return filepath.Dir(pathOf(s, "x")) }

const waitLong = 1 << 40

func sourceOf(raw []byte) Source {
	return Source{Ref: "registry.example/os:1", Digest: diskimagetest.SHA256(raw), Bytes: int64(len(raw)), Fetch: fetchOf(raw)}
}

func fetchOf(raw []byte) func(context.Context, int64) (io.ReadCloser, error) {
	return func(_ context.Context, from int64) (io.ReadCloser, error) {
		if from > int64(len(raw)) {
			return nil, imagecache.ErrNoOffset
		}
		return io.NopCloser(bytes.NewReader(raw[from:])), nil
	}
}

func prepared(t *testing.T, s *Store, raw []byte) Image {
	t.Helper()
	return must.Get(s.Prepare(t.Context(), sourceOf(raw)))(t)
}

func reasonOf(err error) string {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	return runWith(t, nil, name, args...)
}

func runWith(t testing.TB, in io.Reader, name string, args ...string) []byte {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(testtool.Path(t, name), args...)
	cmd.Stdin, cmd.Stderr = in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return out
}

func fileWith(t testing.TB, name string, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, raw, 0o600))
	return path
}

// qcow2Of makes a qcow2 of a raw disk.
func qcow2Of(t testing.TB, raw []byte, args ...string) []byte {
	t.Helper()
	from := fileWith(t, "disk.raw", raw)
	to := from + ".qcow2"
	run(t, "qemu-img", append(append([]string{"convert", "-f", "raw", "-O", "qcow2"}, args...), from, to)...)
	return must.Get(os.ReadFile(to))(t)
}

func gzipOf(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw)
	_ = w.Close()
	return b.Bytes()
}

func zstdOf(raw []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	return w.EncodeAll(raw, nil)
}

func diskOf(t *testing.T, s *Store, digest string) []byte {
	t.Helper()
	o := must.Get(s.Open(digest))(t)
	defer o.Close()
	raw := must.Get(io.ReadAll(o.Table))(t)
	if got := diskimagetest.SHA256(raw); got != o.Image.TableDigest {
		t.Fatalf("the table has digest %s, and %s is said", got, o.Image.TableDigest)
	}
	table := parseTable(t, raw)
	r := must.Get(newChunkReader(table, o.Chunks))(t)
	defer r.Close()
	disk := make([]byte, table.Bytes)
	must.Do(t, readFull(r, disk, 0))
	return disk
}

func tarOf(files map[string][]byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))})
		_, _ = w.Write(files[name])
	}
	_ = w.Close()
	return b.Bytes()
}
