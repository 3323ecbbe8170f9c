package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// user is who Ingot is in the container: nobody's account on the machine, as in other images.
const user = 65532

// stateDir is state.dir, the one folder that Ingot writes to.
const stateDir = "/var/lib/ingot"

// ports are those of the listeners that are on by default, and of DHCP and TFTP.
var ports = []string{"8082/tcp", "10000/tcp", "67/udp", "69/udp", "547/udp", "4011/udp"}

// configOf is what a runtime is told of a container.
func configOf(version string) v1.ImageConfig {
	exposed := make(map[string]struct{})
	for _, port := range ports {
		exposed[port] = struct{}{}
	}
	return v1.ImageConfig{
		User: fmt.Sprintf("%d:%d", user, user), ExposedPorts: exposed, Env: []string{"PATH=/usr/bin"},
		Entrypoint: []string{"/usr/bin/ingot"}, Cmd: []string{"run"}, Volumes: map[string]struct{}{stateDir: {}}, WorkingDir: "/",
		Labels: map[string]string{
			v1.AnnotationTitle: "ingot", v1.AnnotationVersion: version, v1.AnnotationLicenses: "Apache-2.0",
			v1.AnnotationDescription: "Runs bare-metal servers from a Git repository",
		},
	}
}

// layout is an OCI image layout that is written.
type layout struct {
	dir     string
	version string
	made    time.Time
}

// write writes one image for each of the architectures, and an index of them under the version.
func (l layout) write(roots []root) error {
	if err := os.MkdirAll(filepath.Join(l.dir, v1.ImageBlobsDir, digest.SHA256.String()), 0o755); err != nil {
		return err
	}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, r := range roots {
		manifest, err := l.image(r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.architecture, err)
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	all, err := l.document(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{v1.AnnotationRefName: l.version}
	top := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{all}}
	return writeJSON(map[string]any{
		filepath.Join(l.dir, v1.ImageIndexFile):  top,
		filepath.Join(l.dir, v1.ImageLayoutFile): v1.ImageLayout{Version: v1.ImageLayoutVersion},
	})
}

func (l layout) image(r root) (v1.Descriptor, error) {
	packed, plain, err := r.layer(l.made)
	if err != nil {
		return v1.Descriptor{}, err
	}
	layer, err := l.blob(v1.MediaTypeImageLayerGzip, packed)
	if err != nil {
		return v1.Descriptor{}, err
	}
	platform := v1.Platform{OS: "linux", Architecture: r.architecture}
	config, err := l.document(v1.MediaTypeImageConfig, v1.Image{
		Created: &l.made, Platform: platform, Config: configOf(l.version),
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{plain}},
		History: []v1.History{{Created: &l.made, CreatedBy: "make dist"}},
	})
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest, err := l.document(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer},
	})
	manifest.Platform = &platform
	return manifest, err
}

func (l layout) document(mediaType string, of any) (v1.Descriptor, error) {
	content, err := json.Marshal(of)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.blob(mediaType, content)
}

func (l layout) blob(mediaType string, content []byte) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	return d, os.WriteFile(filepath.Join(l.dir, v1.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded()), content, 0o644)
}

func writeJSON(files map[string]any) error {
	for name, of := range files {
		content, err := json.Marshal(of)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
