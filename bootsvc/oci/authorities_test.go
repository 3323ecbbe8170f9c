package oci

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"ingot/model/must"
)

// A registry on this machine is spoken to with TLS if the configuration says so, and trusted
// by the certificates of a file, whatever that holds by then.
func TestTLSOnThisMachine(t *testing.T) {
	reg := newRegistry(t)
	for _, tag := range []string{"1", "2", "3", "4"} {
		_, _, _ = reg.PushBootImage("os", tag, []byte("k"), []byte("i"), nil)
	}
	srv := httptest.NewTLSServer(reg.Handler())
	t.Cleanup(srv.Close)
	at := strings.TrimPrefix(srv.URL, "https://")
	ours := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})

	file := writeFile(t, string(ours))
	for name, tt := range map[string]struct {
		o    Options
		want string // part of the error, "" = the image comes
	}{
		"named, and trusted":     {o: Options{Registries: listed(false, at), CAFile: file}},
		"named, and not trusted": {o: Options{Registries: listed(false, at)}, want: "certificate"},
		"named as one without":   {o: Options{CAFile: file, Registries: listed(true, at)}, want: "if it wants TLS, list it in boot.registries without plain: true"},
	} {
		_, err := newImages(t, tt.o).Resolve(t.Context(), at+"/os:1", "amd64")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}

	images := newImages(t, Options{Registries: listed(false, at), CAFile: file})
	resolve := func(tag string) error { // another one each time, or what it meant last is as good
		_, err := images.Resolve(t.Context(), at+"/os:"+tag, "amd64")
		return err
	}
	change := func(text string, seconds int) {
		t.Helper()
		later := time.Now().Add(time.Duration(seconds) * time.Second)
		must.Do(t, errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, later, later)))
	}
	if err := resolve("1"); err != nil {
		t.Error(err)
	}
	change("nothing", 10)
	if err := resolve("2"); err != nil {
		t.Errorf("what was trusted is no more, though the file is broken: %v", err)
	}
	change(selfSigned(t), 20)
	if err := resolve("3"); err == nil {
		t.Error("a certificate is trusted that is in the file no more")
	}
	change(string(ours), 30)
	if err := resolve("4"); err != nil {
		t.Errorf("a certificate that came to the file is not trusted: %v", err)
	}
	for _, wrong := range []Options{{CAFile: "/nowhere"}, {CAFile: writeFile(t, "nothing")}} {
		if _, err := New(wrong); err == nil || !strings.HasPrefix(err.Error(), "boot.caFile: ") {
			t.Errorf("got %v", err)
		}
	}
}

// A name may lead to this machine if the configuration says that the registry is here, with
// that port.
func TestANameOfThisMachine(t *testing.T) {
	f := egress{here: []string{"registry.example:5000", "other.example"}}
	for address, want := range map[string]bool{
		"registry.example:5000": true, "Registry.Example:5000": true, "other.example:443": true,
		"registry.example:443": false, "evil.example:5000": false, "other.example:80": false,
	} {
		if got := f.isHere(address); got != want {
			t.Errorf("%s: got %v", address, got)
		}
	}
}

// selfSigned is a certificate of nobody.
func selfSigned(t *testing.T) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
