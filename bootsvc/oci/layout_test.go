package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

// layoutFiles are the files of a layout, by their names.
type layoutFiles map[string][]byte

func (f layoutFiles) blob(mediaType, content string) descriptor {
	sum := digest.FromString(content).String()
	f[blobPath(sum)] = []byte(content)
	return descriptor{MediaType: mediaType, Digest: sum, Size: int64(len(content))}
}

func (f layoutFiles) image(layers ...descriptor) descriptor {
	raw, _ := json.Marshal(object{"schemaVersion": 2, "mediaType": mediaOCIManifest, "layers": layers})
	return f.blob(mediaOCIManifest, string(raw))
}

func (f layoutFiles) index(entries ...descriptor) {
	f["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	f["index.json"], _ = json.Marshal(object{"schemaVersion": 2, "manifests": entries})
}

func tagged(d descriptor, tag string) descriptor {
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag}
	return d
}

func forArchitecture(d descriptor, architecture string) descriptor {
	d.Platform = &platform{Architecture: architecture, OS: "linux"}
	return d
}

func (f layoutFiles) writeTo(t *testing.T, dir string) {
	t.Helper()
	for name, content := range f {
		file := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)))
	}
}

func (f layoutFiles) archive(t *testing.T, file string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range f {
		_ = w.WriteHeader(&tar.Header{Name: "./" + name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
		_, _ = w.Write(content)
	}
	must.Do(t, errors.Join(w.Close(), os.WriteFile(file, b.Bytes(), 0o644)))
}

func (f layoutFiles) wholeImage(name string) descriptor {
	return f.image(f.blob(ociserver.MediaKernel, name+" kernel"), f.blob(ociserver.MediaInitrd, name+" initrd"))
}

func TestResolveLayout(t *testing.T) {
	dir := t.TempDir()
	one := layoutFiles{}
	oneSum := one.wholeImage("one")
	one.index(tagged(oneSum, "v1"))
	one.writeTo(t, filepath.Join(dir, "one"))
	one.archive(t, filepath.Join(dir, "one.tar"))

	many := layoutFiles{}
	latest, older := many.wholeImage("latest"), many.wholeImage("older")
	many.index(older, tagged(latest, "latest"), tagged(older, "v0"))
	many.writeTo(t, filepath.Join(dir, "many"))

	platforms := layoutFiles{}
	arm := platforms.wholeImage("arm")
	platforms.index(forArchitecture(platforms.wholeImage("x86"), "amd64"), forArchitecture(arm, "arm64"))
	platforms.writeTo(t, filepath.Join(dir, "platforms"))

	nested := layoutFiles{}
	inner, _ := json.Marshal(object{"schemaVersion": 2, "mediaType": mediaOCIIndex, "manifests": []descriptor{
		forArchitecture(nested.wholeImage("arm"), "arm64"),
	}})
	nested.index(tagged(nested.blob(mediaOCIIndex, string(inner)), "latest"), nested.wholeImage("arm"))
	nested.writeTo(t, filepath.Join(dir, "nested"))

	lone := layoutFiles{}
	kept := lone.wholeImage("tagged")
	lone.index(lone.wholeImage("untagged"), tagged(kept, "v1"))
	lone.writeTo(t, filepath.Join(dir, "lone"))

	images := newImages(t, Options{ImageDirs: []string{"/nonexistent", dir}, Registries: listed(false, "registry.example.com")})
	for title, tc := range map[string]struct {
		ref, arch, name, digest string
	}{
		"the only image needs no tag":                  {"one", "amd64", "one", oneSum.Digest},
		"an image by its tag":                          {"one:v1", "amd64", "one", oneSum.Digest},
		"an image by its digest":                       {"many@" + older.Digest, "amd64", "older", older.Digest},
		"the digest wins over a tag":                   {"many:latest@" + older.Digest, "amd64", "older", older.Digest},
		"an archive is as good as a folder":            {"one.tar:v1", "amd64", "one", oneSum.Digest},
		"among several without a tag latest is meant":  {"many", "amd64", "latest", latest.Digest},
		"among several the only one with a tag":        {"lone", "amd64", "tagged", kept.Digest},
		"a layout that lists platforms is their index": {"platforms", "arm64", "arm", arm.Digest},
		"an index behind a tag, as oras writes it":     {"nested", "arm64", "arm", arm.Digest},
	} {
		t.Run(title, func(t *testing.T) {
			ref := "oci:" + dir + "/" + tc.ref
			got := must.Get(images.Resolve(t.Context(), ref, tc.arch))(t)
			path, _, _ := strings.Cut(tc.ref, "@")
			path, _, _ = strings.Cut(path, ":")
			want := model.PinnedImage{
				Ref: ref, Repository: "oci:" + dir + "/" + path, Digest: tc.digest, Architecture: tc.arch,
				Kernel: layer(ociserver.MediaKernel, tc.name+" kernel"), Initrd: layer(ociserver.MediaInitrd, tc.name+" initrd"),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !model.IsImageName(got.Repository) {
				t.Errorf("repository %q cannot stand in a script", got.Repository)
			}
			pinned := must.Get(model.ParseImageReference(got.Repository + "@" + got.Kernel.Digest))(t)
			body := must.Get(images.Fetch(pinned, got.Kernel)(t.Context(), 2))(t)
			defer body.Close()
			if content, err := io.ReadAll(body); err != nil || string(content) != (tc.name + " kernel")[2:] {
				t.Errorf("layer from byte 2 on: got %q, %v", content, err)
			}
		})
	}
}

func TestLayoutIsRefused(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	whole := layoutFiles{}
	image := whole.wholeImage("os")
	whole.index(tagged(image, "v1"))
	whole.writeTo(t, filepath.Join(dir, "whole"))
	whole.writeTo(t, outside)

	change := func(name string, do func(layoutFiles)) {
		f := maps.Clone(whole)
		do(f)
		f.writeTo(t, filepath.Join(dir, name))
	}
	change("version", func(f layoutFiles) { f["oci-layout"] = []byte(`{"imageLayoutVersion":"2.0.0"}`) })
	change("noindex", func(f layoutFiles) { delete(f, "index.json") })
	change("corrupt", func(f layoutFiles) { f[blobPath(image.Digest)] = []byte(strings.Repeat(" ", int(image.Size))) })
	change("noblob", func(f layoutFiles) { delete(f, blobPath(image.Digest)) })
	change("two", func(f layoutFiles) { f.index(tagged(image, "v1"), tagged(image, "v2")) })
	change("none", func(f layoutFiles) { f.index() })
	change("nokernel", func(f layoutFiles) { f.index(f.image(f.blob(ociserver.MediaInitrd, "initrd"))) })
	change("large", func(f layoutFiles) { f["index.json"] = make([]byte, maxManifest+1) })
	change("manifest", func(f layoutFiles) { f["index.json"] = f[blobPath(image.Digest)] })
	must.Do(t, errors.Join(
		os.Mkdir(filepath.Join(dir, "empty"), 0o755),
		os.WriteFile(filepath.Join(dir, "file"), []byte("no archive"), 0o644),
		os.WriteFile(filepath.Join(dir, "empty.tar"), make([]byte, 1024), 0o644),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink("whole", filepath.Join(dir, "inside")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
	))

	images := newImages(t, Options{ImageDirs: []string{dir, "/nonexistent"}})
	if _, err := images.Resolve(t.Context(), "oci:"+dir+"/inside:v1", "amd64"); err != nil {
		t.Errorf("a link within the folder: %v", err)
	}
	for title, tc := range map[string]struct {
		path, reason, message string
	}{
		"a folder that is not there":           {dir + "/missing", model.ReasonNotFound, "there is no folder or file " + dir + "/missing"},
		"a folder that is no layout":           {dir + "/empty", model.ReasonValidationFailed, "no file oci-layout"},
		"a file that is no archive":            {dir + "/file", model.ReasonRegistryUnreachable, "neither a folder nor a tar archive"},
		"an archive of nothing":                {dir + "/empty.tar", model.ReasonValidationFailed, "no file oci-layout"},
		"a named pipe":                         {dir + "/pipe", model.ReasonRegistryUnreachable, "neither a folder nor a tar archive"},
		"a version that is not known":          {dir + "/version", model.ReasonValidationFailed, `version "2.0.0"`},
		"a layout without index":               {dir + "/noindex", model.ReasonValidationFailed, "no file index.json"},
		"an index that is a manifest":          {dir + "/manifest", model.ReasonValidationFailed, "is not an image index"},
		"an index that is too large":           {dir + "/large", model.ReasonValidationFailed, "larger than"},
		"a tag that is not there":              {dir + "/two:v3", model.ReasonNotFound, "no tag v3; its tags are v1, v2"},
		"several images and no tag":            {dir + "/two", model.ReasonNotFound, "its tags are v1, v2"},
		"a layout without images":              {dir + "/none", model.ReasonNotFound, "has no image"},
		"a digest that is not there":           {dir + "/whole@sha256:" + strings.Repeat("0", 64), model.ReasonNotFound, "has no sha256:000"},
		"a manifest that is not there":         {dir + "/noblob:v1", model.ReasonNotFound, "has no sha256:"},
		"a manifest with another digest":       {dir + "/corrupt:v1", model.ReasonValidationFailed, "does not have its digest"},
		"an image that cannot be booted":       {dir + "/nokernel", model.ReasonValidationFailed, "no kernel layer"},
		"a folder outside":                     {outside, model.ReasonRegistryNotAllowed, "boot.imageDirs"},
		"a folder whose name begins like one":  {dir + "-other/os", model.ReasonRegistryNotAllowed, "boot.imageDirs"},
		"a link that leads out":                {dir + "/link", model.ReasonRegistryUnreachable, "escapes"},
		"a folder of images that is not there": {"/nonexistent/os", model.ReasonRegistryUnreachable, "/nonexistent"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := images.Resolve(t.Context(), "oci:"+tc.path, "amd64")
			var e *Error
			if !errors.As(err, &e) || e.Reason != tc.reason || !strings.Contains(e.Message, tc.message) {
				t.Errorf("got %v (%+v), want %s: … %s …", err, e, tc.reason, tc.message)
			}
		})
	}
}

// A layout on a file system that is not mounted any more means what it meant.
func TestLayoutThatIsGoneMeansWhatItMeant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	f := layoutFiles{}
	f.index(f.wholeImage("os"))
	f.writeTo(t, filepath.Join(dir, "os"))
	images := newImages(t, Options{ImageDirs: []string{dir}})
	ref := "oci:" + dir + "/os"
	want := must.Get(images.Resolve(t.Context(), ref, "amd64"))(t)
	must.Do(t, os.RemoveAll(dir))
	if got, err := images.Resolve(t.Context(), ref, "amd64"); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLayoutIsCachedAndVerified(t *testing.T) {
	dir := t.TempDir()
	f := layoutFiles{}
	f.index(f.wholeImage("os"))
	f.writeTo(t, filepath.Join(dir, "os"))
	images := newImages(t, Options{ImageDirs: []string{dir}})
	img := must.Get(images.Resolve(t.Context(), "oci:"+dir+"/os", "amd64"))(t)
	cache := must.Get(imagecache.Open(imagecache.Options{Dir: must.Get(cachedir.Open(cachedir.Options{Path: t.TempDir()}))(t)}))(t)
	defer cache.Close()
	kernel := filepath.Join(dir, "os", blobPath(img.Kernel.Digest))
	for _, tc := range []struct{ content, message string }{
		{"OS KERNEL", "other bytes than"},
		{"os", "has 2 bytes of layer"},
		{"os kernel", ""},
	} {
		must.Do(t, os.WriteFile(kernel, []byte(tc.content), 0o644))
		err := images.Prefetch(t.Context(), cache, img)
		if got := errorText(err); tc.message == "" && err != nil || !strings.Contains(got, tc.message) {
			t.Errorf("%s: got %q, want %q", tc.content, got, tc.message)
		}
	}
	must.Do(t, os.RemoveAll(dir))
	if err := images.Prefetch(t.Context(), cache, img); err != nil {
		t.Errorf("what is cached needs its folder: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
