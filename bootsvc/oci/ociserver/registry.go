// Package ociserver is a small OCI registry in memory that serves boot images, for
// the demo and for tests. It hashes a blob when it is pushed and never again.
package ociserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Media types of boot images.
const (
	MediaIndex    = "application/vnd.oci.image.index.v1+json"
	MediaManifest = "application/vnd.oci.image.manifest.v1+json"
	MediaKernel   = "application/vnd.ironcore.image.kernel"
	MediaInitrd   = "application/vnd.ironcore.image.initramfs"
	MediaSquashfs = "application/vnd.ironcore.image.squashfs"
	MediaUKI      = "application/vnd.ironcore.image.uki"

	mediaConfig = "application/vnd.oci.image.config.v1+json"
)

// Registry is a read-only registry with what was pushed into it. It is safe for
// concurrent use.
type Registry struct {
	mu    sync.RWMutex
	blobs map[string]blob   // by repository@digest
	tags  map[string]string // repository:tag to digest
	wrong map[string][]byte // what is sent instead, by repository@digest

	listener net.Listener
	server   *http.Server
	served   chan error
}

type blob struct {
	mediaType string // of manifests
	bytes     []byte
}

// Image is a boot image for one architecture. Parts that are nil are left out.
type Image struct {
	Architecture                  string // amd64; empty makes an image without an index
	Kernel, Initrd, Squashfs, UKI []byte
	// Disk is a disk image, and DiskType its media type.
	Disk     []byte
	DiskType string
}

// Descriptor is what an OCI manifest says of a blob.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *Platform         `json:"platform,omitempty"`
}

// Platform is what an index says of a manifest.
type Platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant,omitempty"`
}

// New starts a registry on a free port of 127.0.0.1. Close ends it.
func New() (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the registry: %w", err)
	}
	r := &Registry{
		blobs:    make(map[string]blob),
		tags:     make(map[string]string),
		wrong:    make(map[string][]byte),
		listener: l,
		served:   make(chan error, 1),
	}
	r.server = &http.Server{
		Handler:           r.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { r.served <- r.server.Serve(l) }()
	return r, nil
}

// Host is where the registry is: 127.0.0.1:port, the first part of references.
func (r *Registry) Host() string { return r.listener.Addr().String() }

// Close ends the registry and waits for it.
func (r *Registry) Close() error {
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// PushBootImage keeps an image of any architecture. It returns the reference to
// boot it by and the digest of its manifest.
func (r *Registry) PushBootImage(name, tag string, kernel, initrd, squashfs []byte) (ref, digest string, err error) {
	return r.Push(name, tag, Image{Kernel: kernel, Initrd: initrd, Squashfs: squashfs})
}

// PushDisk keeps a disk image under a tag, as an artifact of one layer with a media type. It
// returns the reference to install it by.
func (r *Registry) PushDisk(name, tag, mediaType string, file []byte) (ref string, err error) {
	d, err := r.PushManifest(name, MediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": MediaManifest,
		"config": r.PushBlob(name, "application/vnd.oci.empty.v1+json", []byte("{}")),
		"layers": []Descriptor{r.PushBlob(name, mediaType, file)},
	})
	r.Tag(name, tag, d.Digest)
	return r.Host() + "/" + name + ":" + tag, err
}

// Push keeps images under a tag: one without an architecture as a manifest, others
// as an index of manifests. It returns the reference to boot by and the digest of
// what the tag points to.
func (r *Registry) Push(name, tag string, images ...Image) (ref, digest string, err error) {
	var entries []Descriptor
	for _, img := range images {
		d, err := r.pushImage(name, img)
		if err != nil {
			return "", "", err
		}
		if img.Architecture == "" && len(images) > 1 {
			return "", "", errors.New("push: an image among several needs an architecture")
		}
		if img.Architecture != "" {
			d.Platform = &Platform{Architecture: img.Architecture, OS: "linux"}
		}
		entries = append(entries, d)
	}
	if len(entries) == 0 {
		return "", "", errors.New("push: no image")
	}
	top := entries[0]
	if top.Platform != nil {
		top, err = r.PushManifest(name, MediaIndex, map[string]any{
			"schemaVersion": 2, "mediaType": MediaIndex, "manifests": entries,
		})
	}
	if err != nil {
		return "", "", err
	}
	r.Tag(name, tag, top.Digest)
	return r.Host() + "/" + name + ":" + tag, top.Digest, nil
}

func (r *Registry) pushImage(name string, img Image) (Descriptor, error) {
	var layers []Descriptor
	for _, l := range []struct {
		mediaType string
		bytes     []byte
	}{{MediaKernel, img.Kernel}, {MediaInitrd, img.Initrd}, {MediaSquashfs, img.Squashfs}, {MediaUKI, img.UKI}, {img.DiskType, img.Disk}} {
		if l.bytes != nil {
			layers = append(layers, r.PushBlob(name, l.mediaType, l.bytes))
		}
	}
	return r.PushManifest(name, MediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": MediaManifest,
		"config": r.PushBlob(name, mediaConfig, []byte("{}")), "layers": layers,
	})
}

// PushManifest keeps any manifest or index.
func (r *Registry) PushManifest(name, mediaType string, manifest any) (Descriptor, error) {
	raw, err := json.Marshal(manifest)
	if err != nil {
		return Descriptor{}, fmt.Errorf("push manifest: %w", err)
	}
	return r.PushBlob(name, mediaType, raw), nil
}

// PushBlob keeps a blob, which must not be changed from then on.
func (r *Registry) PushBlob(name, mediaType string, content []byte) Descriptor {
	d := Descriptor{MediaType: mediaType, Digest: digestOf(content), Size: int64(len(content))}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[name+"@"+d.Digest] = blob{mediaType, content}
	return d
}

// Tag points a tag to a digest.
func (r *Registry) Tag(name, tag, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[name+":"+tag] = digest
}

// Corrupt makes the registry send other bytes in the place of content, whether that is
// pushed already or later.
func (r *Registry) Corrupt(name string, content, instead []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong[name+"@"+digestOf(content)] = instead
}

// Handler serves the pull half of the distribution specification (v1.1, "Pull").
func (r *Registry) Handler() http.Handler { return http.HandlerFunc(r.serve) }

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	path, ok := strings.CutPrefix(req.URL.Path, "/v2/")
	switch {
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case ok && path == "":
		w.WriteHeader(http.StatusOK)
	case ok:
		r.serveContent(w, req, path)
	default:
		http.NotFound(w, req)
	}
}

// serveContent answers <name>/manifests/<tag or digest> and <name>/blobs/<digest>.
func (r *Registry) serveContent(w http.ResponseWriter, req *http.Request, path string) {
	rest, last, _ := cutLast(path)
	name, kind, _ := cutLast(rest)
	if kind != "manifests" && kind != "blobs" {
		http.NotFound(w, req)
		return
	}
	digest, b, ok := r.find(name, last)
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Type", "application/octet-stream")
	if kind == "manifests" {
		w.Header().Set("Content-Type", b.mediaType)
	}
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(b.bytes))
}

func (r *Registry) find(name, reference string) (digest string, b blob, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	digest = reference
	if tagged, ok := r.tags[name+":"+reference]; ok {
		digest = tagged
	}
	b, ok = r.blobs[name+"@"+digest]
	if instead, wrong := r.wrong[name+"@"+digest]; wrong {
		b.bytes = instead
	}
	return digest, b, ok
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
