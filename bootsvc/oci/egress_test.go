package oci

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func TestOnlyNamedRegistriesAreInside(t *testing.T) {
	f := egress{
		inside: func(a netip.Addr) bool { return netip.MustParsePrefix("10.1.0.0/16").Contains(a) },
		named:  []string{"registry.example:5000", "10.1.0.9:5000", "plain.example", "[::1]:5000"},
	}
	for name, c := range map[string]struct {
		addr, address string
		want          error
	}{
		"a registry elsewhere":                        {"192.0.2.1", "other.example:443", nil},
		"this machine":                                {"127.0.0.1", "127.0.0.1:5000", errInside},
		"this machine, named":                         {"::1", "[::1]:5000", nil},
		"this machine, named with another port":       {"::1", "[::1]:5001", errInside},
		"this machine in IPv6's spelling":             {"::ffff:127.0.0.1", "x.example:5000", errInside},
		"a BMC by a name":                             {"10.1.0.1", "evil.example:443", errInside},
		"a BMC with a zone":                           {"::ffff:10.1.0.1", "evil.example:443", errInside},
		"a name that is named":                        {"10.1.0.1", "registry.example:5000", nil},
		"a name that is named, with another port":     {"10.1.0.1", "registry.example:443", errInside},
		"an address that is named":                    {"10.1.0.9", "10.1.0.9:5000", nil},
		"a name that is named without port, with TLS": {"10.1.0.1", "plain.example:443", nil},
		"and without":                                 {"10.1.0.1", "plain.example:80", nil},
		"and at another port":                         {"10.1.0.1", "plain.example:8080", errInside},
	} {
		if err := f.check(netip.MustParseAddr(c.addr), c.address); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// A listed host may redirect a URL to a storage on the Internet.
func TestAListClosesPrivateNetworksToURLs(t *testing.T) {
	f := egress{named: []string{"registry.example"}, closed: true}
	for name, c := range map[string]struct {
		addr, address string
		want          error
	}{
		"a listed host with a private address": {"10.0.0.1", "registry.example:443", nil},
		"a listed host on the Internet":        {"192.0.2.1", "registry.example:443", nil},
		"a storage on the Internet":            {"2001:db8::1", "bucket.example:443", nil},
		"a private address by another name":    {"10.0.0.1", "rebound.example:443", errInside},
		"a unique local address":               {"fd00::1", "rebound.example:443", errInside},
		"an address of a carrier's network":    {"100.64.0.1", "rebound.example:443", errInside},
		"a private address behind NAT64":       {"64:ff9b::a00:1", "rebound.example:443", errInside},
		"this machine by another name":         {"127.0.0.1", "rebound.example:443", errInside},
	} {
		if err := f.check(netip.MustParseAddr(c.addr), c.address); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// A claim is no way to find out what listens on this machine or on the networks of BMCs.
func TestWhatIsInsideIsNotAsked(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "teapot", http.StatusTeapot)
	}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := net.SplitHostPort(at)
	images := newImages(t, Options{Inside: func(netip.Addr) bool { return false }, Timeout: 5 * time.Second})
	for _, ref := range []string{at + "/os:1", "localhost:" + port + "/os:1"} {
		_, err := images.Resolve(t.Context(), ref, "amd64")
		var e *Error
		if !errors.As(err, &e) || e.Reason != model.ReasonRegistryNotAllowed || !strings.Contains(e.Message, "boot.registries") {
			t.Errorf("%s: got %v", ref, err)
		}
	}
	t.Run("nor by a name that leads there", func(t *testing.T) {
		conn, err := images.egress.dial(t.Context(), "tcp", "localhost:"+port)
		if !errors.Is(err, errInside) {
			t.Errorf("got %v, %v", conn, err)
		}
	})
	t.Run("the operator's proxy may be there", func(t *testing.T) {
		conn := must.Get(images.egress.dial(context.WithValue(t.Context(), proxyKey{}, at), "tcp", at))(t)
		conn.Close()
	})
	if n := asked.Load(); n > 0 {
		t.Errorf("it was asked %d times", n)
	}
	for what, o := range map[string]Options{
		"in the list":                    {Registries: listed(true, at)},
		"by the configuration's own use": {Own: []string{at + "/probe:1"}, Inside: func(netip.Addr) bool { return false }},
	} {
		_, err := newImages(t, o).Resolve(t.Context(), at+"/os:1", "amd64")
		if err == nil || !strings.Contains(err.Error(), "418") {
			t.Errorf("named %s: got %v", what, err)
		}
	}
}

// What nobody named is told to be no registry, whatever it is.
func TestWhatIsNoRegistryIsToldNothingOf(t *testing.T) {
	const quietly = "no registry answered; Ingot's log says more"
	page := func(code int, header, value, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		})
	}
	token := httptest.NewServer(page(http.StatusTeapot, "A", "b", "internal"))
	defer token.Close()
	for name, c := range map[string]struct {
		answer http.Handler
		want   string
	}{
		"a page":                {page(200, "Content-Type", "text/html", "<html>"), quietly},
		"an error":              {page(500, "Content-Type", "text/html", "internal"), quietly},
		"a password prompt":     {page(401, "Www-Authenticate", `Basic realm="admin"`, ""), quietly},
		"a token server's page": {page(401, "Www-Authenticate", `Bearer realm="`+token.URL+`"`, ""), quietly},
		"a registry's word": {
			answer: page(404, "Content-Type", "application/json", `{"errors":[{"code":"NAME_UNKNOWN"}]}`),
			want:   "the registry answered NAME_UNKNOWN; Ingot's log says more",
		},
		"a registry that wants a password": {
			answer: page(401, "Www-Authenticate", `Basic realm="x"`, `{"errors":[{"code":"UNAUTHORIZED"}]}`),
			want:   "the registry asks for credentials, and there are none that it takes; Ingot's log says more",
		},
		"a registry's token server": {
			answer: page(401, "Www-Authenticate", `Bearer realm="`+token.URL+`"`, `{"errors":[{"code":"UNAUTHORIZED"}]}`),
			want:   "the registry asks for credentials, and there are none that it takes; Ingot's log says more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			images := newImages(t, Options{})
			_, err := images.Resolve(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/os:1", "amd64")
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if got := quiet(e).Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("nobody who answers", func(t *testing.T) {
		images := newImages(t, Options{Inside: func(netip.Addr) bool { return false }, Timeout: 50 * time.Millisecond})
		_, err := images.Resolve(t.Context(), "registry.invalid:5000/os:1", "amd64")
		var e *Error
		if !errors.As(err, &e) || e.Message != quietly {
			t.Errorf("got %v", err)
		}
	})
}

func TestOnThisMachine(t *testing.T) {
	for registry, want := range map[string]bool{
		"127.0.0.1:5000": true, "localhost:5000": true, "[::1]:5000": true, "localhost": true,
		"registry.example.com": false, "192.0.2.1:5000": false, "localhost.example.com:5000": false,
	} {
		if got := OnThisMachine(registry); got != want {
			t.Errorf("%s: %v", registry, got)
		}
	}
}
