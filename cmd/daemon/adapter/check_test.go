package adapter

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/plan/proposal"
)

func TestCheck(t *testing.T) {
	served := must.Get(ociserver.New())(t)
	defer served.Close()
	var requests atomic.Int64
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			requests.Add(1)
		}
		served.Handler().ServeHTTP(w, r)
	}))
	host := strings.TrimPrefix(counted.URL, "http://")
	_, digest, err := served.Push("os", "1", ociserver.Image{Kernel: []byte("kernel"), Initrd: []byte("initrd")})
	must.Do(t, err)
	_, _, err = served.Push("os", "broken", ociserver.Image{Kernel: []byte("kernel")})
	must.Do(t, err)
	b := process(t, t.TempDir())
	b.Images = must.Get(oci.New(oci.Options{Registries: []oci.Registry{{Host: host, Plain: true}}}))(t)
	defer b.Images.Close()

	const fine = "variant: fcos\nversion: 1.4.0\nstorage: {files: [{path: /n}]}\n"
	check := func(image, ignition string) string {
		err := b.Check(t.Context(), proposal.Boot{
			Image: image, Architecture: "amd64", Secret: map[string]model.Sensitive{"ignition": model.NewSensitive(ignition), "format": model.NewSensitive("fcos")},
		})
		if why, is := errors.AsType[*because](err); is {
			return why.reason
		}
		must.Do(t, err)
		return ""
	}
	for i := range 100 {
		if got := check(host+"/os:1", strings.ReplaceAll(fine, "/n", fmt.Sprint("/", i))); got != "" {
			t.Fatalf("an image and a Secret that are correct: %s", got)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests for one image of 100 claims", n)
	}
	for name, tc := range map[string]struct{ image, ignition, want string }{
		"no such image":               {host + "/os:2", fine, model.ReasonNotFound},
		"an image without initramfs":  {host + "/os:broken", fine, model.ReasonValidationFailed},
		"an error in the Secret":      {host + "/os:1", "variant: fcos\nversion: 1.4.0\nstorag: {}\n", model.ReasonSourceInvalid},
		"a registry that is not open": {"127.0.0.9:1/os:1", fine, model.ReasonRegistryNotAllowed},
		"an image with a digest":      {host + "/os@" + digest, fine, ""},
	} {
		if got := check(tc.image, tc.ignition); got != tc.want {
			t.Errorf("%s: reason %q, want %q", name, got, tc.want)
		}
	}
	counted.Close()
	clear(b.answers.of)
	for image, want := range map[string]string{host + "/os@" + digest: "", host + "/os:1": "", host + "/os:3": model.ReasonRegistryUnreachable} {
		if got := check(image, fine); got != want {
			t.Errorf("%s while its registry is down: reason %q, want %q", image, got, want)
		}
	}
}
