package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"ingot/model/must"
)

func write(t *testing.T, made time.Time) string {
	t.Helper()
	out := t.TempDir()
	args := []string{out, "1.2.3", fmt.Sprint(made.Unix())}
	for _, architecture := range []string{"amd64", "arm64"} {
		dir := t.TempDir()
		for _, name := range programs {
			file := filepath.Join(dir, name)
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name+" for "+architecture), 0o700)))
		}
		args = append(args, architecture+"="+dir)
	}
	must.Do(t, run(args))
	return out
}

func read(t *testing.T, layout string, d v1.Descriptor, into any) []byte {
	t.Helper()
	content := must.Get(os.ReadFile(filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded())))(t)
	if int64(len(content)) != d.Size || digest.FromBytes(content) != d.Digest {
		t.Errorf("%s is not what its descriptor says", d.Digest)
	}
	if into != nil {
		must.Do(t, json.Unmarshal(content, into))
	}
	return content
}

func TestTheImageHasBothArchitecturesAndRunsAsNobody(t *testing.T) {
	layout := write(t, time.Unix(1_800_000_000, 0))
	var top, index v1.Index
	content, err := os.ReadFile(filepath.Join(layout, "index.json"))
	must.Do(t, errors.Join(err, json.Unmarshal(content, &top)))
	if got := top.Manifests[0].Annotations[v1.AnnotationRefName]; got != "1.2.3" {
		t.Errorf("the image is called %q", got)
	}
	read(t, layout, top.Manifests[0], &index)
	var architectures []string
	for _, m := range index.Manifests {
		architectures = append(architectures, m.Platform.Architecture)
		var manifest v1.Manifest
		var image v1.Image
		read(t, layout, m, &manifest)
		read(t, layout, manifest.Config, &image)
		if image.Config.User != "65532:65532" || image.Architecture != m.Platform.Architecture || image.OS != "linux" {
			t.Errorf("%s: the container runs as %q on %s/%s", m.Platform.Architecture, image.Config.User, image.OS, image.Architecture)
		}
		plain := unpack(t, read(t, layout, manifest.Layers[0], nil))
		if got := digest.FromBytes(plain); got != image.RootFS.DiffIDs[0] {
			t.Errorf("%s: the layer is %s, its configuration says %s", image.Architecture, got, image.RootFS.DiffIDs[0])
		}
		checkRoot(t, plain, image.Architecture)
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, architectures); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	return must.Get(io.ReadAll(z))(t)
}

// checkRoot holds a root to this: nothing but the folder of state belongs to Ingot's user or can be
// written to by it, no file has privileges, and the program is that of its architecture.
func checkRoot(t *testing.T, plain []byte, architecture string) {
	t.Helper()
	archive, seen := tar.NewReader(bytes.NewReader(plain)), []string{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content := must.Get(io.ReadAll(archive))(t)
		seen = append(seen, h.Name)
		switch {
		case h.Name == "var/lib/ingot/":
			if h.Uid != user || h.Mode != 0o700 {
				t.Errorf("%s belongs to %d with mode %o", h.Name, h.Uid, h.Mode)
			}
		case h.Name != "tmp/" && (h.Uid != 0 || h.Mode&0o7022 != 0) || len(h.PAXRecords) > 0:
			t.Errorf("%s belongs to %d with mode %o and %v", h.Name, h.Uid, h.Mode, h.PAXRecords)
		case h.Name == "usr/bin/ingot" && string(content) != "usr/bin/ingot for "+architecture:
			t.Errorf("%s is %q", h.Name, content)
		case h.Name == "etc/ssl/certs/ca-certificates.crt":
			if !x509.NewCertPool().AppendCertsFromPEM(content) {
				t.Errorf("%s has no certificates", h.Name)
			}
		}
	}
	for _, want := range []string{"usr/bin/ingot", "usr/bin/metalprobe", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "tmp/", "var/lib/ingot/"} {
		if !slices.Contains(seen, want) {
			t.Errorf("the root lacks %s", want)
		}
	}
}

func TestTheSameProgramsMakeTheSameBytes(t *testing.T) {
	made := time.Unix(1_800_000_000, 0)
	first, second := write(t, made), write(t, made)
	for _, name := range []string{"index.json", "oci-layout"} {
		a, err := os.ReadFile(filepath.Join(first, name))
		b, err2 := os.ReadFile(filepath.Join(second, name))
		must.Do(t, errors.Join(err, err2))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs:\n%s\n%s", name, a, b)
		}
	}
}
