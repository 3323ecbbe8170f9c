package bmc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func TestCertificate(t *testing.T) {
	ctx := context.Background()
	fingerprint := func(f *fake) string {
		sum := sha256.Sum256(f.Certificate().Raw)
		return hex.EncodeToString(sum[:])
	}
	t.Run("is pinned on first contact and shown (B24)", func(t *testing.T) {
		f := newFake(t, secure)
		p := newPool(t, Options{})
		got := must.Get(p.Discover(ctx, f.target()))(t)
		if got.Fingerprint != fingerprint(f) || p.Fingerprint("bmc-1") != fingerprint(f) {
			t.Errorf("got %s and %s, want %s", got.Fingerprint, p.Fingerprint("bmc-1"), fingerprint(f))
		}
		s := f.system1()
		s.BMC.Fingerprint = got.Fingerprint
		if _, err := p.Power(ctx, s); err != nil || f.opened != 1 {
			t.Errorf("with the pin: %v, %d connections; want 1", err, f.opened)
		}
	})
	t.Run("that is another than the pinned one gets no credentials (B24)", func(t *testing.T) {
		f := newFake(t, secure)
		s := f.system1()
		s.BMC.Fingerprint = strings.Repeat("ab", 32)
		_, err := newPool(t, Options{}).Power(ctx, s)
		if !errors.Is(err, ErrCertificateChanged) {
			t.Fatalf("got %v, want ErrCertificateChanged", err)
		}
		for _, want := range []string{s.BMC.Fingerprint, fingerprint(f)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not show %s: %v", want, err)
			}
		}
		if asked := f.requests(); len(asked) != 0 {
			t.Errorf("it was asked %v", asked)
		}
	})
	t.Run("that changes under way is refused, and accepted when the pin is removed (B24)", func(t *testing.T) {
		f := newFake(t, secure)
		p := newPool(t, Options{})
		s := f.system1()
		must.Get(p.Power(ctx, s))(t)
		s.BMC.Fingerprint = strings.Repeat("ab", 32) // as if that had been pinned
		if _, err := p.Power(ctx, s); !errors.Is(err, ErrCertificateChanged) {
			t.Errorf("got %v, want ErrCertificateChanged", err)
		}
		s.BMC.Fingerprint = ""
		if _, err := p.Power(ctx, s); err != nil {
			t.Errorf("without pin: %v", err)
		}
	})
	t.Run("is verified by the CA if there is one", func(t *testing.T) {
		f := newFake(t, secure)
		pool := x509.NewCertPool()
		pool.AddCert(f.Certificate())
		s := f.system1()
		s.BMC.Fingerprint = strings.Repeat("ab", 32) // of before the CA
		if _, err := newPool(t, Options{CA: pool}).Power(ctx, s); err != nil {
			t.Errorf("got %v", err)
		}
		_, err := newPool(t, Options{CA: x509.NewCertPool()}).Power(ctx, s)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("an empty CA pool: got %v", err)
		}
	})
	t.Run("that a CA signed is for the hostname in Git, or else for the address", func(t *testing.T) {
		cert, ca := certificateFor(t, "bmc.example.com")
		f := newFake(t, func(s *httptest.Server) {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			s.StartTLS()
		})
		p, s := newPool(t, Options{CA: ca}), f.system1()
		for _, step := range []struct{ hostname, want string }{
			{"", "write the name that it is for as spec.hostname of the BMC"},
			{"other.example.com", "valid for bmc.example.com, not other.example.com"},
			{"BMC.example.com", ""},
			{"other.example.com", "valid for bmc.example.com, not other.example.com"}, // no connection of before is used
		} {
			s.BMC.Hostname = step.hostname
			_, err := p.Power(ctx, s)
			if step.want == "" && err != nil || step.want != "" && (!errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), step.want)) {
				t.Errorf("hostname %q: got %v, want %q", step.hostname, err, step.want)
			}
		}
	})
	t.Run("that is pinned is for whatever it says", func(t *testing.T) {
		f := newFake(t, secure)
		s := f.system1()
		s.BMC.Hostname = "other.example.com"
		if _, err := newPool(t, Options{}).Power(ctx, s); err != nil {
			t.Error(err)
		}
	})
	if http.DefaultTransport.(*http.Transport).TLSClientConfig != nil &&
		http.DefaultTransport.(*http.Transport).TLSClientConfig.InsecureSkipVerify {
		t.Error("certificate checks are off for the whole process")
	}
}

// certificateFor makes a certificate that is for a name alone, and the CA to verify it by.
func certificateFor(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	cert := must.Get(x509.ParseCertificate(der))(t)
	ca := x509.NewCertPool()
	ca.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca
}

func TestNoAnswer(t *testing.T) {
	arrived := make(chan struct{}, 1)
	hang := func(f *fake) func() {
		release := make(chan struct{})
		f.answer = func(http.ResponseWriter, *http.Request) bool {
			select {
			case arrived <- struct{}{}:
			default:
			}
			<-release
			return true
		}
		return func() { close(release) }
	}
	t.Run("a BMC that hangs is left when the context ends", func(t *testing.T) {
		f := newFake(t, plain)
		defer hang(f)()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-arrived
			cancel()
		}()
		_, err := newPool(t, Options{}).Power(ctx, f.system1())
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	t.Run("a BMC that hangs is given up after the timeout", func(t *testing.T) {
		f := newFake(t, plain)
		defer hang(f)()
		_, err := newPool(t, Options{Timeout: 20 * time.Millisecond}).Power(context.Background(), f.system1())
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "no answer within 20ms") {
			t.Errorf("got %v, want ErrUnreachable and not the caller's deadline", err)
		}
	})
	t.Run("the caller's deadline is told from the BMC's", func(t *testing.T) {
		f := newFake(t, plain)
		defer hang(f)()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := newPool(t, Options{}).Power(ctx, f.system1())
		if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnreachable and context.DeadlineExceeded", err)
		}
	})
	t.Run("a closed port is unreachable", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		target := model.BMCTarget{
			Name: "bmc-1", Scheme: "https", Address: l.Addr().String(), Username: user, Password: model.NewSensitive(password),
		}
		_, err = newPool(t, Options{}).Discover(context.Background(), target)
		const want = "bmc bmc-1: GET /redfish/v1/: the BMC does not answer: dial tcp"
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an endless answer is cut off", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			for block := make([]byte, 1<<20); r.Context().Err() == nil; {
				if _, err := w.Write(block); err != nil {
					break
				}
			}
			return true
		}
		_, err := newPool(t, Options{}).Power(context.Background(), f.system1())
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "more than 16777216 bytes") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRedirect(t *testing.T) {
	t.Run("to another host is refused, and gets no token", func(t *testing.T) {
		var stolen []string
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			stolen = append(stolen, r.Header.Get("X-Auth-Token")+r.Header.Get("Authorization"))
		}))
		defer thief.Close()
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != sysURI {
				return false
			}
			http.Redirect(w, r, thief.URL+sysURI, http.StatusTemporaryRedirect)
			return true
		}
		_, err := newPool(t, Options{}).Power(context.Background(), f.system1())
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "another host") || len(stolen) != 0 {
			t.Errorf("got %v, stolen %q", err, stolen)
		}
	})
	t.Run("within the BMC is followed", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != sysURI+"/" {
				return false
			}
			http.Redirect(w, r, sysURI, http.StatusPermanentRedirect)
			return true
		}
		s := f.system1()
		s.URI += "/"
		if _, err := newPool(t, Options{}).Power(context.Background(), s); err != nil {
			t.Error(err)
		}
	})
	t.Run("from http to https is followed once, for the password goes there only (B25)", func(t *testing.T) {
		f := newFake(t, secure)
		var asked []string
		old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			http.Redirect(w, r, f.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
		}))
		defer old.Close()
		s := f.system1()
		s.BMC.Scheme, s.BMC.Address = "http", strings.TrimPrefix(old.URL, "http://")
		p := newPool(t, Options{})
		must.Do(t, errOf(p.Reset(context.Background(), s, model.ResetOn, "")))
		if len(asked) != 1 || asked[0] != "GET /redfish/v1/" {
			t.Errorf("over http: %v", asked)
		}
	})
}

func TestTargetsAreChecked(t *testing.T) {
	good := model.BMCTarget{Name: "b", Scheme: "https", Address: "127.0.0.1:1"}
	for name, change := range map[string]func(*model.SystemTarget){
		"no name":                       func(s *model.SystemTarget) { s.BMC.Name = "" },
		"a foreign scheme":              func(s *model.SystemTarget) { s.BMC.Scheme = "ftp" },
		"no address":                    func(s *model.SystemTarget) { s.BMC.Address = "" },
		"a URI that names a host":       func(s *model.SystemTarget) { s.URI = "@evil.example/" },
		"a URI with control characters": func(s *model.SystemTarget) { s.URI = "/\n" },
	} {
		t.Run(name, func(t *testing.T) {
			s := model.SystemTarget{BMC: good, URI: "/redfish/v1/Systems/1"}
			change(&s)
			if _, err := newPool(t, Options{}).Power(context.Background(), s); err == nil || errors.Is(err, ErrUnreachable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestInFlight(t *testing.T) {
	c := newClient(NewPool(Options{MaxInFlight: 2}), model.BMCTarget{Name: "bmc-1", Scheme: "http", Address: "127.0.0.1:1"})
	req := httptest.NewRequest(http.MethodGet, sysURI, nil)
	for range 2 {
		must.Do(t, c.turn(context.Background(), req))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.turn(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("a third request at once: %v, want it to wait", err)
	}
	<-c.slots
	if err := c.turn(context.Background(), req); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(p *pace, n int) time.Duration {
			began := time.Now()
			for range n {
				must.Do(t, p.wait(t.Context()))
			}
			return time.Since(began)
		}
		p := newPace(5)
		if d := took(p, 10); d != 0 {
			t.Errorf("two seconds' worth took %s, want it at once", d)
		}
		if d := took(p, 10); d != 2*time.Second {
			t.Errorf("10 requests took %s, want 2s", d)
		}
		for range 40 {
			p.answered(2 * time.Second)
		}
		if d := took(p, 10); d < 19*time.Second || d > 21*time.Second {
			t.Errorf("10 requests of a BMC that takes 2 s took %s, want 20s", d)
		}
		for range 60 {
			p.answered(time.Millisecond)
		}
		took(p, 1)
		if d := took(p, 10); d != 2*time.Second {
			t.Errorf("10 requests after it is well again took %s, want 2s", d)
		}
		if newPace(0).wait(t.Context()) != nil || took(newPace(0), 1000) != 0 {
			t.Error("unlimited waits")
		}
	})
}

func TestBusyBMCIsLeftAlone(t *testing.T) {
	f, now := newFake(t, plain), newClock()
	p := newPool(t, Options{Clock: now.Now})
	must.Get(p.Power(context.Background(), f.system1()))(t)
	f.change(func() {
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", now.Now().Add(20*time.Second).Format(http.TimeFormat))
			fail(w, http.StatusServiceUnavailable, "Base.1.0.ServiceTemporarilyUnavailable")
			return true
		}
	})
	_, err := p.Power(context.Background(), f.system1())
	if after, ok := RetryAfter(err); !errors.Is(err, ErrBusy) || !ok || after != 20*time.Second {
		t.Fatalf("got %v, want ErrBusy for 20 s", err)
	}
	f.requests()
	if _, err := p.Power(context.Background(), f.system1()); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if asked := f.requests(); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
	now.add(20 * time.Second)
	f.change(func() { f.answer = nil })
	if _, err := p.Power(context.Background(), f.system1()); err != nil {
		t.Error(err)
	}
}
