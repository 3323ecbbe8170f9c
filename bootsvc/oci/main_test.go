package oci

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"ingot/bootsvc/oci/ociserver"
	"ingot/model/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newImages returns Images for which a registry on this machine is one like others,
// unless the configuration names registries.
func newImages(t *testing.T, o Options) *Images {
	t.Helper()
	o.open = len(o.Registries) == 0 && o.Inside == nil
	i := must.Get(New(o))(t)
	t.Cleanup(i.Close)
	return i
}

var sumA = "sha256:" + strings.Repeat("a", 64)

// listed lists registries, with TLS or without.
func listed(plain bool, hosts ...string) (all []Registry) {
	for _, host := range hosts {
		all = append(all, Registry{host, plain})
	}
	return all
}

func newRegistry(t *testing.T) *ociserver.Registry {
	t.Helper()
	r := must.Get(ociserver.New())(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// front serves a registry through wrap, on an address of its own, which it
// returns as host:port.
func front(t *testing.T, r *ociserver.Registry, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(wrap(r.Handler()))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}
