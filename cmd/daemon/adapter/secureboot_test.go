package adapter

import (
	"errors"
	"strings"
	"testing"

	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot/netboottest"
	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/plan/proposal"
)

func TestWhatFirmwareWithSecureBootIsKnownToRefuse(t *testing.T) {
	served := must.Get(ociserver.New())(t)
	defer served.Close()
	images := must.Get(oci.New(oci.Options{Own: []string{served.Host() + "/probe"}}))(t)
	defer images.Close()
	cache := must.Get(imagecache.Open(imagecache.Options{Dir: must.Get(cachedir.Open(cachedir.Options{Path: t.TempDir()}))(t)}))(t)
	defer cache.Close()
	withoutSignature := func(string, model.ServerName) string { return "ipxe.efi" }
	signed := func(string, model.ServerName) string { return "" }
	kernel := ociserver.Image{Architecture: "amd64", Kernel: []byte("kernel"), Initrd: []byte("initrd")}
	uki := func(program []byte) ociserver.Image { return ociserver.Image{Architecture: "amd64", UKI: program} }
	for title, tc := range map[string]struct {
		image  ociserver.Image
		off    bool
		loader func(string, model.ServerName) string
		says   string // "" = it is not refused
	}{
		"a boot loader with no UKI beside it":        {image: kernel, loader: withoutSignature, says: "boot loader ipxe.efi has none, and image"},
		"a boot loader and a UKI":                    {image: uki(netboottest.Program(false)), loader: withoutSignature, says: "has a UKI without one"},
		"not where the UKI is signed":                {image: uki(netboottest.Program(true)), loader: withoutSignature},
		"not where it cannot be told of the UKI":     {image: uki([]byte("what is no program")), loader: withoutSignature},
		"not where the boot loader is signed":        {image: kernel, loader: signed},
		"not where others tell which loader to take": {image: kernel},
		"not where Secure Boot is off":               {image: kernel, loader: withoutSignature, off: true},
	} {
		t.Run(title, func(t *testing.T) {
			ref, _, err := served.Push("probe", strings.ReplaceAll(title, " ", "-"), tc.image)
			if err != nil {
				t.Fatal(err)
			}
			b := &Boots{Images: images, Cache: cache, UnsignedLoader: tc.loader}
			ticket := model.Ticket{Server: "s1"}
			ticket.Image = must.Get(images.Resolve(t.Context(), ref, "amd64"))(t)
			err = b.checkSecureBoot(t.Context(), &ticket, &proposal.Boot{Architecture: "amd64", SecureBoot: !tc.off})
			refused, is := errors.AsType[*because](err)
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.says != "" && (!is || refused.reason != model.ReasonSecureBootBlocksProbe || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want SecureBootBlocksProbe with %q", err, tc.says)
			}
		})
	}
}
