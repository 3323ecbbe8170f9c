package bmc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// A thousand kept connections must not keep a certificate each.
func TestKeptConnectionsForgetCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for name, ca := range map[string]*x509.CertPool{"pinned": nil, "verified by a CA": trusted} {
		t.Run(name, func(t *testing.T) {
			var p pin
			address := server.Listener.Addr().String()
			conn := must.Get(dialTLS(new(net.Dialer).DialContext, p.tlsConfig(ca, model.BMCTarget{Address: address}), time.Minute)(t.Context(), "tcp", address))(t)
			defer conn.Close()
			if p.fingerprint() == "" {
				t.Error("the pin has not seen the certificate")
			}
			state := conn.(*tls.Conn).ConnectionState()
			for _, cert := range state.PeerCertificates {
				if cert != nil {
					t.Error("the certificate is kept")
				}
			}
			for _, chain := range state.VerifiedChains {
				if chain != nil {
					t.Error("what verifies the certificate is kept")
				}
			}
		})
	}
}

// A BMC that accepts connections and says nothing is given up, and told from a
// caller who gives up.
func TestHandshakeWithoutAnAnswer(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	connect := func(ctx context.Context, within time.Duration) error {
		_, err := dialTLS(new(net.Dialer).DialContext, new(pin).tlsConfig(nil, model.BMCTarget{Address: l.Addr().String()}), within)(ctx, "tcp", l.Addr().String())
		return err
	}
	if err := connect(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "no TLS handshake within 1ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := connect(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's error", err)
	}
}

// A BMC given without a port is asked for by its name, as one with a port is.
func TestServerNameOfAnAddressWithoutPort(t *testing.T) {
	for target, want := range map[string]string{
		"bmc.example.com":      "bmc.example.com",
		"bmc.example.com:8443": "bmc.example.com",
		"[2001:db8::1]":        "2001:db8::1",
	} {
		dialled := target
		if !strings.HasSuffix(target, ":8443") {
			dialled += ":443"
		}
		if got := named(new(pin).tlsConfig(nil, model.BMCTarget{Address: target}), dialled).ServerName; got != want {
			t.Errorf("%s: server name %q, want %q", target, got, want)
		}
	}
}

// A BMC is asked for nothing at an address that BMCs do not have, whatever name leads
// there, and no password is shown where everybody can read it.
func TestNothingIsSentToOtherAddresses(t *testing.T) {
	f := newFake(t, plain)
	_, port, err := net.SplitHostPort(f.target().Address)
	if err != nil {
		t.Fatal(err)
	}
	silent := model.BMCNetworks{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")}}
	for name, c := range map[string]struct {
		networks model.BMCNetworks
		host     string
	}{
		"this machine, which nothing names": {model.BMCNetworks{}, "127.0.0.1"},
		"this machine by a name":            {model.BMCNetworks{}, "localhost"},
		"http, where it is not said":        {silent, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := f.system1()
			s.BMC.Address = net.JoinHostPort(c.host, port)
			_, err := newPool(t, Options{Networks: c.networks}).Reset(t.Context(), s, model.ResetOn, "")
			if !errors.Is(err, ErrNotAllowed) || !NotCarriedOut(err) || !strings.Contains(err.Error(), "bmc.networks") {
				t.Errorf("got %v", err)
			}
		})
	}
	if asked := f.requests(); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
}
