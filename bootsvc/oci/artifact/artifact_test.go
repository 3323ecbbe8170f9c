package artifact

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	layout "oras.land/oras-go/v2/content/oci"

	"ingot/bootsvc/oci"
	"ingot/model"
	"ingot/model/must"
)

func testImage(architecture, content string) Image {
	return Image{Architecture: architecture, Layers: []Layer{
		{oci.MediaKernel, strings.NewReader(content + " kernel")}, {oci.MediaInitramfs, strings.NewReader(content + " initramfs")},
	}}
}

func add(t *testing.T, folder, tag string, img Image) ocispec.Descriptor {
	t.Helper()
	store := must.Get(layout.NewWithContext(t.Context(), folder))(t)
	return must.Get(Add(t.Context(), store, tag, img))(t)
}

func resolve(t *testing.T, ref, architecture, dir string) (model.PinnedImage, error) {
	t.Helper()
	images := must.Get(oci.New(oci.Options{ImageDirs: []string{dir}, Own: []string{ref}}))(t)
	defer images.Close()
	return images.Resolve(t.Context(), ref, architecture)
}

func blobs(t *testing.T, folder string) int {
	t.Helper()
	files := must.Get(os.ReadDir(filepath.Join(folder, "blobs", "sha256")))(t)
	return len(files)
}

func TestAdd(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "os")
	add(t, folder, "v1", testImage("amd64", "x86"))
	add(t, folder, "v1", testImage("arm64", "arm"))
	before := blobs(t, folder)
	for range 2 {
		add(t, folder, "v1", testImage("amd64", "newer x86"))
	}
	if after := blobs(t, folder); after != before {
		t.Errorf("the layout has %d blobs, and had %d: what nothing refers to was kept", after, before)
	}
	for architecture, content := range map[string]string{"amd64": "newer x86", "arm64": "arm"} {
		img, err := resolve(t, "oci:"+folder, architecture, folder)
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		want := len(content + " kernel")
		if img.Kernel.Size != int64(want) {
			t.Errorf("%s: the kernel has %d bytes, want %d", architecture, img.Kernel.Size, want)
		}
	}
	if _, err := resolve(t, "oci:"+folder+":v2", "amd64", folder); err == nil {
		t.Error("a tag that was never made means something")
	}
}

func TestATagOfAnEqualImageStays(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "os")
	for _, tag := range []string{"v1", "latest"} {
		add(t, folder, tag, testImage("amd64", "first"))
	}
	add(t, folder, "latest", testImage("amd64", "second"))
	for _, tag := range []string{"v1", "latest"} {
		if _, err := resolve(t, "oci:"+folder+":"+tag, "amd64", folder); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// uploads is a registry that takes images and gives them out (distribution specification v1.1,
// "Push" and "Pull").
type uploads struct {
	mu    sync.Mutex
	blobs map[string]blob // by digest or tag
}

type blob struct {
	mediaType string
	content   []byte
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	name := path.Base(r.URL.Path)
	switch r.Method {
	case http.MethodPost:
		w.Header().Set("Location", r.URL.Path+"upload")
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		kept := blob{r.Header.Get("Content-Type"), body}
		u.blobs[digest.FromBytes(body).String()] = kept
		u.blobs[name] = kept
		w.WriteHeader(http.StatusCreated)
	default:
		kept, ok := u.blobs[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kept.mediaType)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(kept.content).String())
		w.Header().Set("Content-Length", strconv.Itoa(len(kept.content)))
		_, _ = w.Write(kept.content)
	}
}

func TestCopy(t *testing.T) {
	var credentials atomic.Value
	reg := &uploads{blobs: make(map[string]blob)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		credentials.Store(user + ":" + password)
		reg.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	config := `{"auths":{"` + host + `":{"auth":"dXNlcjpwYXNz"}}}`
	must.Do(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	first := filepath.Join(dir, "first")
	made := add(t, first, "v1", testImage("amd64", "x86"))
	add(t, first, "v1", testImage("arm64", "arm"))

	var mu sync.Mutex
	var began []string
	var copied atomic.Int64
	o := Options{Copied: &copied, Began: func(d ocispec.Descriptor) {
		mu.Lock()
		defer mu.Unlock()
		began = append(began, d.MediaType)
	}}
	pushed := must.Get(Copy(t.Context(), "oci:"+first, host+"/os/test:1", o))(t)
	if pushed.Digest == made.Digest || credentials.Load() != "user:pass" {
		t.Errorf("pushed %s with the credentials %v", pushed.Digest, credentials.Load())
	}
	if !slices.Contains(began, oci.MediaKernel) || copied.Load() == 0 {
		t.Errorf("progress: %d bytes of %v", copied.Load(), began)
	}
	second := filepath.Join(dir, "second")
	pulled, err := Copy(t.Context(), host+"/os/test:1", "oci:"+second+":copy", Options{})
	if err != nil || pulled.Digest != pushed.Digest {
		t.Fatalf("pulled %s, %v; want %s", pulled.Digest, err, pushed.Digest)
	}
	archive := filepath.Join(dir, "second.tar")
	if out, err := exec.Command("tar", "-cf", archive, "-C", second, ".").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	third := filepath.Join(dir, "third")
	must.Get(Copy(t.Context(), "oci:"+archive, "oci:"+third, Options{}))(t)
	for _, ref := range []string{"oci:" + second, "oci:" + archive, "oci:" + third} {
		for _, architecture := range []string{"amd64", "arm64"} {
			if _, err := resolve(t, ref, architecture, dir); err != nil {
				t.Errorf("the daemon cannot boot the copy on %s: %v", architecture, err)
			}
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "os")
	add(t, folder, "v1", testImage("amd64", "x86"))
	add(t, folder, "v2", testImage("amd64", "x86"))
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct{ from, to, want string }{
		"a folder that is not there":   {"oci:" + dir + "/missing", "oci:" + dir + "/new", "no such file"},
		"several images and no tag":    {"oci:" + folder, "oci:" + dir + "/new", "name one by its tag: v1, v2"},
		"a tag that is not there":      {"oci:" + folder + ":v3", "oci:" + dir + "/new", "v3"},
		"a digest to copy to":          {"oci:" + folder + ":v1", "oci:" + dir + "/new@sha256:" + strings.Repeat("0", 64), "not by a digest"},
		"a file to copy to":            {"oci:" + folder + ":v1", "oci:" + file, "written as folders"},
		"a reference that is none":     {"no reference", "oci:" + dir + "/new", "no spaces"},
		"a reference to no repository": {"oci:" + folder + ":v1", "https://ghcr.io/os", "no scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Copy(t.Context(), tc.from, tc.to, Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLocalReference(t *testing.T) {
	t.Chdir(t.TempDir())
	here := must.Get(os.Getwd())(t)
	for ref, want := range map[string]string{
		"oci:images/os:v1":  "oci:" + here + "/images/os:v1",
		"oci:./os@sha256:0": "oci:" + here + "/os@sha256:0",
		"oci:/srv/os":       "oci:/srv/os",
		"ghcr.io/os:v1":     "ghcr.io/os:v1",
	} {
		if got, err := LocalReference(ref); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", ref, got, err, want)
		}
	}
	if _, err := LocalReference("oci::v1"); err == nil {
		t.Error("no folder is taken for one")
	}
}
