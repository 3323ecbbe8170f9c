package rig

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ingot/bootsvc/oci/ociserver"
	"ingot/cmd/probeimage/image"
)

// NewImages makes an OCI registry on the loopback of the namespace.
func NewImages(t testing.TB, on *Namespace) *ociserver.Registry {
	t.Helper()
	var images *ociserver.Registry
	err := on.Do(func() (err error) {
		images, err = ociserver.New()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	return images
}

// probeImage is the image that servers are discovered with, as users make it.
var probeImage = sync.OnceValues(func() (image.Result, error) {
	return image.Build(sweptContext, image.Options{Out: filepath.Join(scratch, "probe"), Flavour: image.FlavourCloud})
})

// PushProbe pushes the image that servers are discovered and wiped with. It is built
// once for all tests.
func PushProbe(t testing.TB, on *Namespace) (reference string) {
	t.Helper()
	built, err := probeImage()
	if err != nil {
		Missing(t, "the probe's image cannot be built here: "+err.Error())
	}
	return PushImage(t, on, built, nil)
}

// PushProbeAs is PushProbe with a UKI that is made of the probe's.
func PushProbeAs(t testing.TB, on *Namespace, change func(uki string) string) (reference string) {
	t.Helper()
	built, err := probeImage()
	if err != nil {
		Missing(t, "the probe's image cannot be built here: "+err.Error())
	}
	built.UKI = change(built.UKI)
	return PushImage(t, on, built, nil)
}

// PushImage pushes an image to a registry of its own. What it has for a root file
// system may be nil.
func PushImage(t testing.TB, on *Namespace, built image.Result, root []byte) (reference string) {
	t.Helper()
	parts := ociserver.Image{Squashfs: root}
	for path, into := range map[string]*[]byte{built.Kernel: &parts.Kernel, built.Initramfs: &parts.Initrd, built.UKI: &parts.UKI} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		*into = data
	}
	reference, _, err := NewImages(t, on).Push("image", "1", parts)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}
