package oci

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

const tarLayer = "application/vnd.oci.image.layer.v1.tar"

func titled(d ociserver.Descriptor, title string) ociserver.Descriptor {
	d.Annotations = map[string]string{titleAnnotation: title}
	return d
}

func diskEntry(d ociserver.Descriptor, architecture, diskType string) ociserver.Descriptor {
	d.Platform = &ociserver.Platform{Architecture: architecture, OS: "linux"}
	d.Annotations = map[string]string{diskTypeAnnotation: diskType}
	return d
}

func TestDiskLayerIsFound(t *testing.T) {
	reg := newRegistry(t)
	images := newImages(t, Options{})
	disk := func(mediaType string) *model.Layer { return layer(mediaType, "disk") }
	kernel, initrd := descriptorOf(MediaKernel, "k"), descriptorOf(MediaInitramfs, "i")
	ours := pushManifest(t, reg, descriptorOf(MediaDiskQcow2, "disk"))
	for title, tc := range map[string]struct {
		image ociserver.Descriptor
		arch  string
		want  model.PinnedImage
	}{
		"by our media type":                 {image: ours, want: model.PinnedImage{Disk: disk(MediaDiskQcow2)}},
		"by our media type with a packing":  {image: pushManifest(t, reg, descriptorOf(MediaDiskRaw+"+zstd", "disk")), want: model.PinnedImage{Disk: disk(MediaDiskRaw + "+zstd")}},
		"by KubeVirt's media type":          {image: pushManifest(t, reg, descriptorOf("application/vnd.kubevirt.disk.raw+gzip", "disk")), want: model.PinnedImage{Disk: disk("application/vnd.kubevirt.disk.raw+gzip")}},
		"by the name of its file":           {image: pushManifest(t, reg, titled(descriptorOf("application/octet-stream", "disk"), "debian-13-genericcloud-amd64.qcow2")), want: model.PinnedImage{Disk: disk(MediaDiskQcow2)}},
		"by the name of its packed file":    {image: pushManifest(t, reg, descriptorOf("text/plain", "notes"), titled(descriptorOf("application/zstd", "disk"), "out/Disk.RAW.zst")), want: model.PinnedImage{Disk: disk(MediaDiskRaw + "+zstd")}},
		"by its file's name, called a tar":  {image: pushManifest(t, reg, titled(descriptorOf(tarLayer, "disk"), "ubuntu.img.gz")), want: model.PinnedImage{Disk: disk(MediaDiskRaw + "+gzip")}},
		"in a container image of one layer": {image: pushManifest(t, reg, descriptorOf(tarLayer+"+gzip", "disk")), want: model.PinnedImage{Disk: disk(tarLayer + "+gzip")}},
		"by an index, as Podman marks it": {
			image: pushIndex(t, reg, mediaOCIIndex, on(pushManifest(t, reg, kernel, initrd), "amd64", ""),
				diskEntry(pushManifest(t, reg, descriptorOf("application/zstd", "hyperv")), "x86_64", "hyperv"),
				diskEntry(pushManifest(t, reg, descriptorOf("application/zstd", "arm")), "aarch64", "qemu"),
				diskEntry(pushManifest(t, reg, descriptorOf("application/zstd", "disk")), "x86_64", "qemu")),
			want: model.PinnedImage{Disk: disk(mediaDisk)},
		},
		"by an index, for another architecture": {
			image: pushIndex(t, reg, mediaOCIIndex, diskEntry(pushManifest(t, reg, descriptorOf("application/zstd", "other")), "x86_64", "raw"),
				diskEntry(pushManifest(t, reg, descriptorOf("application/zstd", "disk")), "aarch64", "raw")),
			arch: "arm64", want: model.PinnedImage{Disk: disk(mediaDisk)},
		},
		"beside layers that boot": {
			image: pushManifest(t, reg, kernel, initrd, descriptorOf(MediaDiskRaw, "disk")),
			want:  model.PinnedImage{Kernel: layer(MediaKernel, "k"), Initrd: layer(MediaInitramfs, "i"), Disk: disk(MediaDiskRaw)},
		},
		"not: a kernel that was pushed from vmlinuz.bin": {
			image: pushManifest(t, reg, titled(kernel, "vmlinuz.bin"), titled(initrd, "initrd.img")),
			want:  model.PinnedImage{Kernel: layer(MediaKernel, "k"), Initrd: layer(MediaInitramfs, "i")},
		},
	} {
		t.Run(title, func(t *testing.T) {
			arch := tc.arch
			if arch == "" {
				arch = "amd64"
			}
			ref := reg.Host() + "/os@" + tc.image.Digest
			got := must.Get(images.Resolve(t.Context(), ref, arch))(t)
			tc.want.Ref, tc.want.Repository, tc.want.Architecture, tc.want.Digest = ref, reg.Host()+"/os", arch, got.Digest
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if container := got.Disk != nil && InContainer(got.Disk); container != strings.Contains(title, "container image") {
				t.Errorf("it is in a container: %v", container)
			}
			if err := CheckNetworkBoot(&got); (err == nil) != (got.Kernel != nil) {
				t.Errorf("it boots from the network: %v", err)
			}
		})
	}
	if got, err := images.Resolve(t.Context(), "oci://"+reg.Host()+"/os@"+ours.Digest, "amd64"); err != nil || got.Disk == nil {
		t.Errorf("with oci:// before it: %v", err)
	}
}

func TestImageWithTwoDisksIsRefused(t *testing.T) {
	reg := newRegistry(t)
	images := newImages(t, Options{})
	for title, tc := range map[string]struct {
		image ociserver.Descriptor
		want  string
	}{
		"by their types": {pushManifest(t, reg, descriptorOf(MediaDiskRaw, "a"), descriptorOf(MediaDiskQcow2, "b")), "2 disk layers (application/vnd.ingot.disk.raw, application/vnd.ingot.disk.qcow2)"},
		"by their names": {pushManifest(t, reg, titled(descriptorOf("a/b", "a"), "a.raw"), titled(descriptorOf("a/b", "b"), "b.img")), "2 disk layers (a.raw, b.img)"},
		"N10 an index without the server's architecture": {
			pushIndex(t, reg, mediaOCIIndex, diskEntry(pushManifest(t, reg, descriptorOf(MediaDiskRaw, "a")), "aarch64", "raw")),
			"there is no image for architecture amd64; the index has aarch64",
		},
		"a disk that is kept elsewhere": {pushManifest(t, reg, ociserver.Descriptor{MediaType: MediaDiskRaw, Digest: sumA, Size: 0}), "the disk layer: a size of 0 bytes"},
	} {
		_, err := images.Resolve(t.Context(), reg.Host()+"/os@"+tc.image.Digest, "amd64")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", title, err, tc.want)
		}
	}
}

var errNotListed = errors.New("boot.registries does not list the host")

func TestClientOfURLsGoesWhereImagesMayComeFrom(t *testing.T) {
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "disk")
	}))
	defer here.Close()
	host := strings.TrimPrefix(here.URL, "http://")
	_, port, _ := net.SplitHostPort(host)
	named := newImages(t, Options{Registries: listed(true, host, "mirror.example")})
	alone := Options{Inside: func(netip.Addr) bool { return false }} // no list: any host, as by default
	for title, tc := range map[string]struct {
		images  *Images
		url     string
		refused error
	}{
		"this machine, which the configuration names": {named, here.URL, nil},
		"this machine, by a name that is not listed":  {named, "http://localhost:" + port, errNotListed},
		"a host that is not listed":                   {named, "https://images.example/disk", errNotListed},
		"a listed host at another port":               {named, "https://mirror.example:8443/disk", errNotListed},
		"a private address that is not listed":        {named, "http://10.0.0.1/disk", errNotListed},
		"this machine, without a list":                {newImages(t, alone), here.URL, errInside},
		"this machine as localhost, without a list":   {newImages(t, alone), "http://localhost:" + port, errInside},
		"this machine in IPv6, without a list":        {newImages(t, alone), "http://[::1]/disk", errInside},
		"this machine, mapped to IPv6":                {newImages(t, alone), "http://[::ffff:127.0.0.1]/disk", errInside},
		"no address":                                  {newImages(t, alone), "http://0.0.0.0/disk", errForbiddenAddress},
		"a metadata address, mapped to IPv6":          {newImages(t, alone), "http://[::ffff:a9fe:a9fe]/disk", errForbiddenAddress},
		"a metadata address behind NAT64":             {newImages(t, alone), "http://[64:ff9b::a9fe:a9fe]/disk", errForbiddenAddress},
		"a redirect to a private address":             {named, here.URL + "/?to=http://10.0.0.1/", errInside},
		"a redirect to a port that is not listed":     {named, here.URL + "/?to=http://127.0.0.1:1/", errInside},
		"a redirect within this machine":              {named, here.URL + "/?to=" + here.URL, nil},
		"a redirect to a metadata address":            {named, here.URL + "/?to=http://169.254.169.254/", errForbiddenAddress},
		"a metadata address":                          {newImages(t, alone), "http://169.254.169.254/latest", errForbiddenAddress},
		"a link-local address":                        {newImages(t, alone), "https://[fe80::1]/disk", errForbiddenAddress},
	} {
		t.Run(title, func(t *testing.T) {
			client, isNamed, err := tc.images.Client(model.ImageURL{URL: tc.url})
			if err == nil {
				var resp *http.Response
				if resp, err = client.Get(tc.url); err == nil {
					resp.Body.Close()
				}
				var told interface{ AddressRefused() bool }
				if !isNamed || (tc.refused != nil) != errors.As(err, &told) {
					t.Errorf("named %t; that the address is refused is told: %v", isNamed, err)
				}
			} else if own, ok := errors.AsType[*Error](err); !ok || own.Reason != model.ReasonRegistryNotAllowed {
				t.Errorf("got %v", err)
			} else if errors.Is(tc.refused, errNotListed) && strings.HasSuffix(own.Message, " is not allowed; boot.registries has "+host+", mirror.example") {
				err = errNotListed
			}
			if !errors.Is(err, tc.refused) {
				t.Errorf("got %v, want %v", err, tc.refused)
			}
		})
	}
	// What a host that is not this machine redirects to is not this machine either.
	req := httptest.NewRequest(http.MethodGet, here.URL, nil)
	req.Response = &http.Response{Request: httptest.NewRequest(http.MethodGet, "https://images.example/disk", nil)}
	client, _, err := named.Client(model.ImageURL{URL: here.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Transport.RoundTrip(req); !errors.Is(err, errForbiddenAddress) { //nolint:bodyclose // there is none
		t.Errorf("a redirect from elsewhere to this machine: %v", err)
	}
}

func TestWhatTheMediaTypeOfADiskSays(t *testing.T) {
	for media, want := range map[string]string{
		MediaDiskQcow2:                                     "qcow2",
		MediaDiskRaw + "+zstd":                             "raw+zstd",
		"application/vnd.kubevirt.disk.raw+gzip":           "raw+gzip",
		"application/vnd.oci.image.layer.v1.tar+gzip":      "",
		"application/vnd.oci.image.layer.v1.tar.raw+qcow2": "",
		mediaDisk: "",
	} {
		if got := DiskKind(&model.Layer{MediaType: media}); got != want {
			t.Errorf("%s: got %q, want %q", media, got, want)
		}
	}
}
