package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

func layer(mediaType, content string) *model.Layer {
	return &model.Layer{Digest: digest.FromString(content).String(), Size: int64(len(content)), MediaType: mediaType}
}

func TestResolve(t *testing.T) {
	reg := newRegistry(t)
	images := newImages(t, Options{})
	name := reg.Host() + "/os"
	plain, plainSum, _ := reg.PushBootImage("os", "1", []byte("kernel"), []byte("initrd"), []byte("squashfs"))
	_, _, _ = reg.Push("os", "live", ociserver.Image{Kernel: []byte("kernel"), Initrd: []byte("initrd")})
	_, _, _ = reg.Push("os", "uki", ociserver.Image{UKI: []byte("uki")})
	_, _, _ = reg.Push("os", "multi",
		ociserver.Image{Architecture: "amd64", Kernel: []byte("k64"), Initrd: []byte("i64")},
		ociserver.Image{Architecture: "arm64", Kernel: []byte("karm"), Initrd: []byte("iarm")})
	kernel, initrd := layer(ociserver.MediaKernel, "kernel"), layer(ociserver.MediaInitrd, "initrd")

	for title, tc := range map[string]struct {
		ref, arch string
		want      model.PinnedImage
	}{
		"a tag is pinned by digest": {plain, "amd64", model.PinnedImage{
			Digest: plainSum, Kernel: kernel, Initrd: initrd, Squashfs: layer(ociserver.MediaSquashfs, "squashfs")}},
		"I01: the digest wins over a tag that is elsewhere": {name + ":live@" + plainSum, "amd64", model.PinnedImage{
			Digest: plainSum, Kernel: kernel, Initrd: initrd, Squashfs: layer(ociserver.MediaSquashfs, "squashfs")}},
		"I05: squashfs may be absent": {name + ":live", "amd64", model.PinnedImage{Kernel: kernel, Initrd: initrd}},
		"a UKI alone is an image":     {name + ":uki", "amd64", model.PinnedImage{UKI: layer(ociserver.MediaUKI, "uki")}},
		"I03: an index is read by architecture": {
			ref: name + ":multi", arch: "arm64",
			want: model.PinnedImage{Kernel: layer(ociserver.MediaKernel, "karm"), Initrd: layer(ociserver.MediaInitrd, "iarm")},
		},
		"I03: the plain variant may be named": {
			ref: name + ":multi", arch: "arm64/v8",
			want: model.PinnedImage{Kernel: layer(ociserver.MediaKernel, "karm"), Initrd: layer(ociserver.MediaInitrd, "iarm")},
		},
	} {
		t.Run(title, func(t *testing.T) {
			got := must.Get(images.Resolve(t.Context(), tc.ref, tc.arch))(t)
			tc.want.Ref, tc.want.Repository, tc.want.Architecture = tc.ref, name, tc.arch
			if tc.want.Digest == "" {
				tc.want.Digest = got.Digest // of the manifest of the architecture; checked to be one
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !model.IsImageDigest(got.Digest) {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type object = map[string]any

func pushLayers(t *testing.T, reg *ociserver.Registry, manifestType string, mediaTypes ...string) ociserver.Descriptor {
	t.Helper()
	var layers []ociserver.Descriptor
	for n, mt := range mediaTypes {
		layers = append(layers, reg.PushBlob("os", mt, fmt.Appendf(nil, "%s %d", mt, n)))
	}
	return must.Get(reg.PushManifest("os", manifestType, object{"schemaVersion": 2, "mediaType": manifestType, "layers": layers}))(t)
}

func pushIndex(t *testing.T, reg *ociserver.Registry, mediaType string, entries ...ociserver.Descriptor) ociserver.Descriptor {
	t.Helper()
	return must.Get(reg.PushManifest("os", mediaType, object{"schemaVersion": 2, "mediaType": mediaType, "manifests": entries}))(t)
}

// descriptorOf describes a layer that is not pushed.
func descriptorOf(mediaType, content string) ociserver.Descriptor {
	l := layer(mediaType, content)
	return ociserver.Descriptor{MediaType: mediaType, Digest: l.Digest, Size: l.Size}
}

func pushManifest(t *testing.T, reg *ociserver.Registry, layers ...ociserver.Descriptor) ociserver.Descriptor {
	t.Helper()
	return must.Get(reg.PushManifest("os", mediaOCIManifest, object{"schemaVersion": 2, "mediaType": mediaOCIManifest, "layers": layers}))(t)
}

func onSystem(d ociserver.Descriptor, architecture, system string) ociserver.Descriptor {
	d.Platform = &ociserver.Platform{Architecture: architecture, OS: system}
	return d
}

func on(d ociserver.Descriptor, architecture, variant string) ociserver.Descriptor {
	d.Platform = &ociserver.Platform{Architecture: architecture, OS: "linux", Variant: variant}
	return d
}

func TestResolveChoosesFromIndexes(t *testing.T) {
	reg := newRegistry(t)
	images := newImages(t, Options{})
	oci := pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel, ociserver.MediaInitrd)
	docker := pushLayers(
		t, reg, mediaDockerManifest, "application/io.gardenlinux.kernel", "application/io.gardenlinux.initrd",
		"application/io.gardenlinux.squashfs",
	)
	annotated := docker
	annotated.Annotations = map[string]string{"cname": "metal_pxe-amd64", "architecture": "amd64"}
	cloud := oci
	cloud.Annotations = map[string]string{"cname": "aws-amd64", "architecture": "amd64"}
	inner := pushIndex(t, reg, mediaOCIIndex, on(oci, "amd64", ""))

	for title, tc := range map[string]struct {
		index ociserver.Descriptor
		arch  string
		want  string // digest, or a part of the error
	}{
		"I03: a Docker manifest list is an index": {
			index: pushIndex(t, reg, mediaDockerList, on(docker, "amd64", "")), arch: "amd64", want: docker.Digest,
		},
		"I03: another variant is another architecture": {
			index: pushIndex(t, reg, mediaOCIIndex, on(oci, "arm", "v6"), on(docker, "arm", "v7")), arch: "arm/v7", want: docker.Digest,
		},
		"the legacy annotations choose where no platform is": {pushIndex(t, reg, mediaOCIIndex, cloud, annotated), "amd64", docker.Digest},
		"of two flavours the one for metal is chosen": {
			index: pushIndex(t, reg, mediaOCIIndex, on(cloud, "amd64", ""), on(annotated, "amd64", "")), arch: "amd64", want: docker.Digest,
		},
		"an index in an index is followed": {pushIndex(t, reg, mediaOCIIndex, on(inner, "amd64", "")), "amd64", oci.Digest},
		"I13: a third index is too deep": {
			index: pushIndex(t, reg, mediaOCIIndex, on(pushIndex(t, reg, mediaOCIIndex, on(inner, "amd64", "")), "amd64", "")),
			arch:  "amd64", want: "more than 2 deep",
		},
		"I03: a missing architecture is told, with what is": {
			index: pushIndex(t, reg, mediaOCIIndex, on(oci, "amd64", ""), on(oci, "arm64", "v8")), arch: "riscv64",
			want: "no image for architecture riscv64; the index has amd64, arm64/v8",
		},
		"an empty index has no architecture": {pushIndex(t, reg, mediaOCIIndex), "amd64", "the index has none"},
		"an attestation is no image": {
			index: pushIndex(t, reg, mediaOCIIndex, on(oci, "unknown", "")), arch: "amd64", want: "the index has none",
		},
		"an entry that the registry lacks is told": {
			index: pushIndex(t, reg, mediaOCIIndex, on(ociserver.Descriptor{Digest: sumA, Size: 3}, "amd64", "")), arch: "amd64",
			want: "no such repository, tag or digest",
		},
		"an entry with a weak digest is refused": {
			index: pushIndex(t, reg, mediaOCIIndex, on(ociserver.Descriptor{Digest: "md5:abc", Size: 3}, "amd64", "")), arch: "amd64",
			want: "is not sha256 or sha512",
		},
		"an entry larger than any manifest is refused": {
			index: pushIndex(t, reg, mediaOCIIndex, on(ociserver.Descriptor{Digest: sumA, Size: 5 << 20}, "amd64", "")), arch: "amd64",
			want: "a size of 5242880 bytes",
		},
		"I04: an initramfs that is missing is named": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel), arch: "amd64", want: "no initramfs layer",
		},
		"I04: a kernel that is missing is named": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaInitrd), arch: "amd64", want: "no kernel layer",
		},
		"I04: what an ordinary container image lacks is said": {
			index: pushLayers(t, reg, mediaDockerManifest, "application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip"), arch: "amd64",
			want: "it is a container image of 2 layers, and what a container holds does not boot by itself. Of a bootable container (bootc) bootc-image-builder makes a disk image",
		},
		"I04: two kernels are one too many": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel, ociserver.MediaKernel, ociserver.MediaInitrd), arch: "amd64",
			want: "two kernel layers",
		},
		"I13: a kernel packed with zstd is refused": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel+"+zstd", ociserver.MediaInitrd), arch: "amd64",
			want: "the kernel layer is packed with zstd",
		},
		"I13: a layer that is not booted may be packed": {
			index: pushLayers(
				t, reg, mediaOCIManifest, ociserver.MediaKernel, ociserver.MediaInitrd, "application/vnd.oci.image.layer.v1.tar+zstd",
			),
			arch: "amd64", want: "sha256:",
		},
		"I04: what is there is told": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel, ociserver.MediaSquashfs), arch: "amd64",
			want: "no initramfs layer (application/vnd.ironcore.image.initramfs); it has kernel, squashfs",
		},
		"I04: a squashfs alone is no image": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaSquashfs), arch: "amd64",
			want: "no kernel layer (application/vnd.ironcore.image.kernel) and no initramfs layer " +
				"(application/vnd.ironcore.image.initramfs), nor a UKI (application/vnd.ironcore.image.uki), nor a disk (application/vnd.ingot.disk.raw); it has squashfs",
		},
		"I04: a kernel beside a UKI is half an image": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel, ociserver.MediaUKI), arch: "amd64",
			want: "no initramfs layer (application/vnd.ironcore.image.initramfs); it has kernel, UKI",
		},
		"I04: the same kernel twice is one too many": {
			index: pushManifest(
				t, reg, descriptorOf(ociserver.MediaKernel, "k"), descriptorOf(ociserver.MediaKernel, "k"),
				descriptorOf(ociserver.MediaInitrd, "i"),
			),
			arch: "amd64", want: "two kernel layers",
		},
		"I04: a kernel of each vocabulary is one too many": {
			index: pushLayers(t, reg, mediaOCIManifest, ociserver.MediaKernel, "application/io.gardenlinux.kernel", ociserver.MediaInitrd),
			arch:  "amd64", want: "two kernel layers",
		},
		"I03: of two entries alike the first is meant": {
			index: pushIndex(t, reg, mediaOCIIndex, on(oci, "amd64", ""), on(docker, "amd64", "")), arch: "amd64", want: oci.Digest,
		},
		"I03: arm64 is arm64/v8": {pushIndex(t, reg, mediaOCIIndex, on(oci, "arm64", "v8")), "arm64", oci.Digest},
		"I03: arm64/v8 is arm64": {pushIndex(t, reg, mediaOCIIndex, on(oci, "arm64", "")), "arm64/v8", oci.Digest},
		"I03: arm64/v9 is not": {
			index: pushIndex(t, reg, mediaOCIIndex, on(oci, "arm64", "v9")), arch: "arm64", want: "the index has arm64/v9",
		},
		"I03: another system is not what is booted": {
			index: pushIndex(t, reg, mediaOCIIndex, onSystem(oci, "amd64", "windows")), arch: "amd64",
			want: "no image for architecture amd64; the index has windows/amd64",
		},
		"I03: entries without a platform are told": {
			index: pushIndex(t, reg, mediaOCIIndex, oci, docker), arch: "amd64", want: "the index has an entry without a platform",
		},
		"a foreign media type is refused": {
			index: pushLayers(t, reg, "application/vnd.docker.distribution.manifest.v1+json", ociserver.MediaKernel), arch: "amd64",
			want: "neither an image manifest nor an index",
		},
	} {
		t.Run(title, func(t *testing.T) {
			img, err := images.Resolve(t.Context(), reg.Host()+"/os@"+tc.index.Digest, tc.arch)
			got := img.Digest
			if err != nil {
				got = err.Error()
				var e *Error
				if !errors.As(err, &e) || e.Reason == "" || !strings.HasPrefix(got, "image "+reg.Host()+"/os@") {
					t.Errorf("%v is no Error that names the image", err)
				}
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestResolveRefusesForeignAndHugeLayers(t *testing.T) {
	for title, tc := range map[string]struct {
		manifest string
		want     string
	}{
		"a layer outside the registry": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"` + sumA +
				`","size":1,"urls":["http://x"]}]}`,
			want: "foreign layer",
		},
		"a layer beyond 32 GiB": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"` + sumA +
				`","size":34359738369}]}`,
			want: "the kernel layer: a size of",
		},
		"a layer of no size": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"` + sumA +
				`"}]}`,
			want: "a size of 0",
		},
		"a manifest that is two things": {`{"mediaType":"` + mediaOCIManifest + `","layers":[{}],"manifests":[{}]}`, "read in two ways"},
		"what is not JSON":              {`<html>`, "not JSON"},
		"a layer of less than nothing": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"` + sumA +
				`","size":-1}]}`,
			want: "a size of -1",
		},
		"a layer of an absurd size": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"` + sumA +
				`","size":99999999999999999999}]}`,
			want: "not JSON of the expected form",
		},
		"an algorithm that is not known": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel + `","digest":"sha384:` +
				strings.Repeat("a", 96) + `","size":1}]}`,
			want: "the kernel layer: digest",
		},
		"a digest that is a path": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[{"mediaType":"` + ociserver.MediaKernel +
				`","digest":"sha256:../../x","size":1}]}`,
			want: "the kernel layer: digest",
		},
		"more entries than any image": {
			manifest: `{"mediaType":"` + mediaOCIManifest + `","layers":[` + strings.Repeat("{},", 1000) + `{}]}`,
			want:     "more than 1000 entries",
		},
	} {
		t.Run(title, func(t *testing.T) {
			m, err := parseManifest([]byte(tc.manifest), mediaOCIManifest)
			if err == nil {
				_, err = m.pin(false)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestListedRegistries(t *testing.T) {
	for title, tc := range map[string]struct {
		allowed []string
		ref     string
		want    string // reason, "" = asked
	}{
		"what is on the list is asked":              {[]string{"127.0.0.1:1"}, "127.0.0.1:1/a", model.ReasonRegistryUnreachable},
		"case does not matter":                      {[]string{"LocalHost:1"}, "localhost:1/a", model.ReasonRegistryUnreachable},
		"what is not on the list is not":            {[]string{"ghcr.io"}, "127.0.0.1:1/a", model.ReasonRegistryNotAllowed},
		"I08: a look-alike at the end is not":       {[]string{"ghcr.io"}, "ghcr.io.evil.example/a", model.ReasonRegistryNotAllowed},
		"I08: a look-alike at the front is not":     {[]string{"ghcr.io"}, "evilghcr.io/a", model.ReasonRegistryNotAllowed},
		"I08: another port is another registry":     {[]string{"ghcr.io"}, "ghcr.io:8443/a", model.ReasonRegistryNotAllowed},
		"Y05: metadata is never a registry":         {nil, "169.254.169.254/a", model.ReasonRegistryNotAllowed},
		"Y05: metadata is never a registry, listed": {[]string{"169.254.169.254"}, "169.254.169.254/a", model.ReasonRegistryNotAllowed},
		"Y05: nor by IPv6":                          {nil, "[fe80::1]/a", model.ReasonRegistryNotAllowed},
		"Y05: nor by IPv4 within IPv6":              {nil, "[::ffff:169.254.169.254]/a", model.ReasonRegistryNotAllowed},
		"Y05: nor the metadata of other clouds":     {nil, "[fd00:ec2::254]/a", model.ReasonRegistryNotAllowed},
		"Y05: nor no address at all":                {nil, "0.0.0.0:80/a", model.ReasonRegistryNotAllowed},
		"no reference is told":                      {nil, "::", model.ReasonInvalidReference},
	} {
		t.Run(title, func(t *testing.T) {
			images := newImages(t, Options{Registries: listed(false, tc.allowed...), Timeout: 5 * time.Second})
			_, err := images.Resolve(t.Context(), tc.ref, "amd64")
			var e *Error
			if !errors.As(err, &e) || e.Reason != tc.want {
				t.Errorf("got %v, want reason %s", err, tc.want)
			}
		})
	}
	hub := newImages(t, Options{Registries: listed(false, "Index.Docker.io")})
	r, _ := model.ParseImageReference("registry-1.docker.io/library/a")
	if err := hub.allow(r); err != nil {
		t.Errorf("I08: Docker Hub under another name: %v", err)
	}
	if _, err := New(Options{Registries: listed(false, "https://ghcr.io")}); err == nil {
		t.Error("an allow list with a URL is accepted")
	}
}

func TestForbiddenAddresses(t *testing.T) {
	for title, tc := range map[string]struct {
		host, resolved string
		local          bool // the image reference names this machine
		want           error
	}{
		"a registry elsewhere":                        {"10.0.0.1", "10.0.0.1:443", false, nil},
		"this machine, if the reference says so":      {"127.0.0.1", "127.0.0.1:5000", true, nil},
		"this machine by IPv6, if it says so":         {"::1", "[::1]:5000", true, nil},
		"this machine, if the reference does not":     {"127.0.0.1", "127.0.0.1:5000", false, errForbiddenAddress},
		"this machine by another of its addresses":    {"127.9.9.9", "127.9.9.9:5000", false, errForbiddenAddress},
		"this machine by IPv4 within IPv6":            {"::ffff:127.0.0.1", "[::ffff:127.0.0.1]:5000", false, errForbiddenAddress},
		"Y05: metadata":                               {"169.254.169.254", "169.254.169.254:80", false, errForbiddenAddress},
		"Y05: metadata, even if this machine may":     {"169.254.169.254", "169.254.169.254:80", true, errForbiddenAddress},
		"Y05: link-local with a zone":                 {"fe80::1%eth0", "[fe80::1%eth0]:80", false, errForbiddenAddress},
		"Y05: the metadata of another cloud":          {"100.100.100.200", "100.100.100.200:80", false, errForbiddenAddress},
		"Y05: no address, which is this machine also": {"0.0.0.0", "0.0.0.0:80", true, errForbiddenAddress},
	} {
		if err := checkHost(tc.host, tc.local); !errors.Is(err, tc.want) {
			t.Errorf("%s, in a URL: got %v, want %v", title, err, tc.want)
		}
		if err := checkResolved(tc.resolved, tc.local); !errors.Is(err, tc.want) {
			t.Errorf("%s, behind a name: got %v, want %v", title, err, tc.want)
		}
	}
	// localhost. is a name for the resolver, not the word that says this machine.
	if loopbackHost("localhost.") || loopbackHost("localhost.evil.example") {
		t.Error("a name is taken for this machine")
	}
	if c, err := (egress{}).dial(t.Context(), "tcp", "169.254.169.254:80"); !errors.Is(err, errForbiddenAddress) {
		if err == nil {
			c.Close()
		}
		t.Errorf("Y05: metadata was dialled: %v", err)
	}
}

func TestResolveSharesAndRemembers(t *testing.T) {
	reg := newRegistry(t)
	_, sum, _ := reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	var asked atomic.Int32
	first, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	host := front(t, reg, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			once.Do(func() { close(first) })
			<-release
			next.ServeHTTP(w, r)
		})
	})
	images := newImages(t, Options{})
	var wg sync.WaitGroup
	impatient, leave := context.WithCancel(t.Context())
	var left sync.WaitGroup
	left.Go(func() {
		if _, err := images.Resolve(impatient, host+"/os:1", "amd64"); !errors.Is(err, context.Canceled) {
			t.Errorf("who left before the answer got %v", err)
		}
	})
	resolve := func() {
		wg.Go(func() {
			if _, err := images.Resolve(t.Context(), host+"/os:1", "amd64"); err != nil {
				t.Error(err)
			}
		})
	}
	<-first
	for range 9 {
		resolve()
	}
	leave()
	left.Wait()
	close(release)
	wg.Wait()
	// Those that came after the first had been answered asked again, once each at
	// most; how many did is up to the scheduler, but the first was shared or over.
	if n := asked.Load(); n < 1 || n > 10 {
		t.Errorf("the registry was asked %d times", n)
	}
	for range 3 {
		must.Get(images.Resolve(t.Context(), host+"/os:1@"+sum, "amd64"))(t)
	}
	before := asked.Load()
	if _, err := images.Resolve(t.Context(), host+"/os@"+sum, "amd64"); err != nil || asked.Load() != before {
		t.Errorf("a reference by digest was asked for again: %v", err)
	}
	if _, err := images.Resolve(t.Context(), host+"/os:1", "amd64"); err != nil || asked.Load() == before {
		t.Errorf("I02: a tag was not asked for again: %v", err)
	}
}

func TestResolveSaysWhatTheRegistryDid(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	answer := func(code int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		}
	}
	redirect := func(to string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler { return http.RedirectHandler(to, http.StatusTemporaryRedirect) }
	}
	same := func(next http.Handler) http.Handler { return next }
	for title, tc := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		tag    string
		reason string
		want   string
	}{
		"a tag that is missing":              {same, "2", model.ReasonNotFound, "no such repository, tag or digest"},
		"credentials that are missing":       {answer(401), "1", model.ReasonUnauthorized, "credentials"},
		"access that is denied":              {answer(403), "1", model.ReasonUnauthorized, "credentials"},
		"a registry that is down":            {answer(500), "1", model.ReasonRegistryUnreachable, "500 Internal Server Error"},
		"a registry that leads to metadata":  {redirect("http://169.254.169.254/latest"), "1", model.ReasonRegistryNotAllowed, "refused"},
		"a registry that leads to no scheme": {redirect("file:///etc/passwd"), "1", model.ReasonRegistryUnreachable, "cannot be reached"},
		"a manifest that never ends": {func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", mediaOCIManifest)
				w.Header().Set("Docker-Content-Digest", sumA)
				w.Header().Set("Content-Length", fmt.Sprint(maxManifest+100))
				for range maxManifest + 100 {
					_, _ = w.Write([]byte(" "))
				}
			})
		}, "1", model.ReasonValidationFailed, "larger than"},
		"a manifest that is another": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", mediaOCIManifest)
				w.Header().Set("Docker-Content-Digest", sumA)
				_, _ = w.Write([]byte("{}"))
			})
		}, "1", model.ReasonValidationFailed, "does not have its digest"},
		"a registry that hangs": {func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, "1", model.ReasonRegistryUnreachable, ""},
	} {
		t.Run(title, func(t *testing.T) {
			timeout := 20 * time.Second
			if strings.HasSuffix(title, "hangs") {
				timeout = 200 * time.Millisecond
			}
			images := newImages(t, Options{Timeout: timeout})
			_, err := images.Resolve(t.Context(), front(t, reg, tc.wrap)+"/os:"+tc.tag, "amd64")
			var e *Error
			if !errors.As(err, &e) || e.Reason != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s: %s", err, tc.reason, tc.want)
			}
		})
	}
}
