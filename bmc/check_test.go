package bmc

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func checked(t *testing.T, f *fake, o CheckOptions) *CheckReport {
	t.Helper()
	if o.Target.Address == "" {
		o.Target = f.target()
	}
	if o.ipmiPort == "" {
		o.ipmiPort = "9" // where nothing listens
	}
	r := Check(t.Context(), o.Hasty())
	if n := len(f.sessions); n > 0 {
		t.Errorf("%d sessions are left open", n)
	}
	return r
}

func (r *CheckReport) row(check string) CheckItem {
	i := slices.IndexFunc(r.Checks, func(item CheckItem) bool { return item.Check == check })
	if i < 0 {
		return CheckItem{}
	}
	return r.Checks[i]
}

func TestACheckThatOnlyReads(t *testing.T) {
	f := newFake(t, secure)
	r := checked(t, f, CheckOptions{})
	if !r.Usable() {
		t.Errorf("not usable: %+v", r.Checks)
	}
	var got []string
	for _, item := range r.Checks {
		got = append(got, item.Check+": "+string(item.Result))
	}
	want := []string{
		"connection: works", "TLS: works", "Redfish: works", "login: works", "systems: works", "manager: works",
		"identity: works", "inventory: works", "power state: works", "reset types: works", "boot override: works", "boot order: none", "indicator LED: works",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if tls := r.row("TLS").Detail; !strings.Contains(tls, "TLS 1.3") || !strings.Contains(tls, r.BMC.Fingerprint) || r.BMC.Fingerprint == "" {
		t.Errorf("TLS: %s, fingerprint %q", tls, r.BMC.Fingerprint)
	}
	asked := f.requests()
	for _, request := range asked {
		if !strings.HasPrefix(request, "GET ") && request != login && !strings.HasPrefix(request, "DELETE /redfish/v1/SessionService/Sessions/") {
			t.Errorf("it was asked %s", request)
		}
	}
	if int(r.Requests) != len(asked) || r.Slowest == "" {
		t.Errorf("it says %d requests, the slowest %q, of %d", r.Requests, r.Slowest, len(asked))
	}
}

// What is written is read back and put back, and power is left alone.
func TestACheckThatWrites(t *testing.T) {
	f := newFake(t, secure)
	before := maps.Clone(f.resources[sysURI])
	before["Boot"] = maps.Clone(before["Boot"].(object))
	var set []string
	keep, indicator := f.store, f.set
	f.store = func(path string, b object) int {
		set = append(set, b["BootSourceOverrideEnabled"].(string))
		return keep(path, b)
	}
	f.set = func(path, name string, value any) int {
		set = append(set, value.(string))
		return indicator(path, name, value)
	}
	r := checked(t, f, CheckOptions{Write: true})
	if !r.Usable() || r.row("write indicator LED").Result != CheckWorks || r.row("write boot override").Result != CheckWorks {
		t.Errorf("not usable: %+v", r.Checks)
	}
	if diff := cmp.Diff([]string{"Lit", "Off", "Once", "Disabled"}, set); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if !reflect.DeepEqual(before, f.resources[sysURI]) {
		t.Errorf("left as %v, was %v", f.resources[sysURI], before)
	}
}

func TestACheckLeavesAnOverrideThatSomebodySet(t *testing.T) {
	f := newFake(t, secure)
	maps.Copy(f.resources[sysURI]["Boot"].(object), object{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Hdd"})
	r := checked(t, f, CheckOptions{Write: true})
	if row := r.row("write boot override"); row.Result != CheckPartly || !strings.Contains(row.Detail, "Once Hdd") {
		t.Errorf("got %+v", row)
	}
	if boot := f.resources[sysURI]["Boot"].(object); boot["BootSourceOverrideTarget"] != "Hdd" {
		t.Errorf("it is %v", boot)
	}
}

func TestACheckSaysWhatDoesNotWork(t *testing.T) {
	old := func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificateOf(t, big.NewInt(1), false)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}
		s.StartTLS()
	}
	sys := func(change func(object)) func(*fake, *CheckOptions) {
		return func(f *fake, _ *CheckOptions) { change(f.resources[sysURI]) }
	}
	answer := func(path string, with http.HandlerFunc) func(*fake, *CheckOptions) {
		return func(f *fake, _ *CheckOptions) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, path) || r.Method == http.MethodDelete {
					return false
				}
				with(w, r)
				return true
			}
		}
	}
	tests := map[string]struct {
		start  func(*httptest.Server) // nil = secure
		change func(*fake, *CheckOptions)
		check  string
		result CheckResult
		advice string
		usable bool
	}{
		"a wrong password": {
			change: func(f *fake, _ *CheckOptions) { f.password = "changed" },
			check:  "login", result: CheckFails, advice: "correct user name and password",
		},
		"no free session": {
			change: answer("/redfish/v1/SessionService", failing(http.StatusServiceUnavailable)),
			check:  "login", result: CheckFails, advice: "all of its sessions are taken",
		},
		"a password that is sent with each request": {
			change: func(f *fake, _ *CheckOptions) { f.basic = true; delete(f.resources["/redfish/v1/"], "Links") },
			check:  "login", result: CheckPartly, advice: "every request carries the password", usable: true,
		},
		"a wrong password that is sent with each request": {
			change: func(f *fake, _ *CheckOptions) {
				f.basic, f.password = true, "changed"
				delete(f.resources["/redfish/v1/"], "Links")
			},
			check: "login", result: CheckFails, advice: "correct user name and password",
		},
		"another certificate": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Fingerprint = strings.Repeat("ab", 32) },
			check:  "TLS", result: CheckFails, advice: "make sure that it is the BMC",
		},
		"a certificate that no CA signed": {
			change: func(_ *fake, o *CheckOptions) { o.CA = x509.NewCertPool() },
			check:  "TLS", result: CheckFails, advice: "name the CA that signed the certificate",
		},
		"a certificate that has expired": {
			start: func(s *httptest.Server) { s.TLS = expired(t); s.StartTLS() },
			check: "TLS", result: CheckPartly, advice: "has expired", usable: true,
		},
		"TLS 1.0 alone": {start: old, check: "TLS", result: CheckFails, advice: "ingot/tls-minimum"},
		"TLS 1.0 that is allowed": {
			start:  old,
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.TLSMinimum = "1.0" },
			check:  "TLS", result: CheckPartly, advice: "update the firmware", usable: true,
		},
		"no TLS": {
			start:  plain,
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Scheme = "https" },
			check:  "TLS", result: CheckFails, advice: "use scheme http",
		},
		"http to a port that has TLS": {
			change: func(f *fake, o *CheckOptions) { o.Target = f.target(); o.Target.Scheme = "http" },
			check:  "Redfish", result: CheckFails, advice: "use https",
		},
		"no Redfish": {
			change: answer("/", func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "<html>Not here</html>", http.StatusNotFound)
			}),
			check: "Redfish", result: CheckFails, advice: "switch on Redfish",
		},
		"a web page in its place": {
			change: answer("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>Welcome</html>")) }),
			check:  "Redfish", result: CheckFails, advice: "switch on Redfish",
		},
		"systems that cannot be read": {
			change: answer("/redfish/v1/Systems", failing(http.StatusInternalServerError)),
			check:  "systems", result: CheckFails, advice: "update the BMC's firmware",
		},
		"no system": {
			change: func(f *fake, _ *CheckOptions) { f.resources["/redfish/v1/Systems"] = listed() },
			check:  "systems", result: CheckFails, advice: "nothing to install",
		},
		"a system that is no server": {
			change: sys(func(o object) { o["SystemType"] = "DPU" }), check: "systems", result: CheckFails, advice: "nothing to install",
		},
		"a serial number alone": {
			change: sys(func(o object) { delete(o, "UUID") }), check: "identity", result: CheckPartly, advice: "systemUUID and bmcRef", usable: true,
		},
		"what its vendor left for a serial number": {
			change: sys(func(o object) { delete(o, "UUID"); o["SerialNumber"] = "To be filled by O.E.M." }), check: "identity", result: CheckFails, advice: "set",
		},
		"neither UUID nor serial number": {
			change: sys(func(o object) { delete(o, "UUID"); delete(o, "SerialNumber") }), check: "identity", result: CheckFails, advice: "set",
		},
		"a power state that is none": {
			change: sys(func(o object) { o["PowerState"] = "Warm" }), check: "power state", result: CheckFails, advice: "no power state that is known",
		},
		"a machine that cannot be forced off": {
			change: sys(func(o object) {
				o["Actions"].(object)["#ComputerSystem.Reset"].(object)["ResetType@Redfish.AllowableValues"] = []any{"On", "GracefulShutdown"}
			}),
			check: "reset types", result: CheckFails, advice: "for want of ForceOff",
		},
		"a machine that has no graceful shutdown": {
			change: sys(func(o object) {
				o["Actions"].(object)["#ComputerSystem.Reset"].(object)["ResetType@Redfish.AllowableValues"] = []any{"On", "ForceOff"}
			}),
			check: "reset types", result: CheckPartly, advice: "no graceful shutdown", usable: true,
		},
		"no boot override": {
			change: sys(func(o object) { delete(o, "Boot") }), check: "boot override", result: CheckFails, advice: "cannot have it boot from the network",
		},
		"no MAC address": {
			change: sys(func(o object) { delete(o, "EthernetInterfaces") }), check: "inventory", result: CheckPartly,
			advice: "ingot/mac-addresses", usable: true,
		},
		"an override that is not kept": {
			change: func(f *fake, o *CheckOptions) {
				o.Write, f.store = true, func(string, object) int { return http.StatusBadRequest }
			},
			check: "write boot override", result: CheckFails,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			start := secure
			if tt.start != nil {
				start = tt.start
			}
			f := newFake(t, start)
			var o CheckOptions
			if tt.change != nil {
				tt.change(f, &o)
			}
			r := checked(t, f, o)
			row := r.row(tt.check)
			if row.Result != tt.result || !strings.Contains(row.Advice, tt.advice) || r.Usable() != tt.usable {
				t.Errorf("usable %t, got %+v of %+v", r.Usable(), row, r.Checks)
			}
			if tt.result == CheckFails && row.Detail == "" {
				t.Error("it does not say why")
			}
			if strings.Contains(row.Detail, password) {
				t.Errorf("it shows the password: %s", row.Detail)
			}
		})
	}
}

func expired(t *testing.T) *tls.Config {
	cert := certificateOf(t, big.NewInt(1), false)
	leaf := must.Get(x509.ParseCertificate(cert.Certificate[0]))(t)
	signer := cert.PrivateKey.(crypto.Signer)
	leaf.NotBefore, leaf.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	der := must.Get(x509.CreateCertificate(rand.Reader, leaf, leaf, signer.Public(), cert.PrivateKey))(t)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: cert.PrivateKey}}}
}

// A BMC that has IPMI alone is said to have it.
func TestACheckOfABMCWithIPMIAlone(t *testing.T) {
	ipmi := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer ipmi.Close()
	go func() {
		ping := make([]byte, 64)
		for {
			n, from, err := ipmi.ReadFrom(ping)
			if err != nil {
				return
			}
			if slices.Equal(ping[:n], presencePing) {
				// DSP0136 §3.2.4.3: the sequence number is no matter of the standard's.
				pong := append(slices.Clone(presencePong), 0, 0, 16, 0, 0, 0x11, 0xbe, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0)
				pong[2] = 0
				_, _ = ipmi.WriteTo(pong, from)
			}
		}
	}()
	f := newFake(t, secure)
	target := f.target()
	f.Close()
	_, port, _ := net.SplitHostPort(ipmi.LocalAddr().String())
	row := checked(t, f, CheckOptions{Target: target, ipmiPort: port}).row("connection")
	if row.Result != CheckFails || !strings.Contains(row.Advice, "it answers IPMI, which is not enough") {
		t.Errorf("got %+v", row)
	}
	if row := checked(t, f, CheckOptions{Target: target}).row("connection"); strings.Contains(row.Advice, "IPMI") {
		t.Errorf("without an answer: got %+v", row)
	}
}

// A check that is interrupted, whatever it was about to do, leaves neither a session nor
// what it has written.
func TestACheckThatIsInterrupted(t *testing.T) {
	f := newFake(t, secure)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	set := f.set
	f.set = func(path, name string, value any) int {
		cancel()
		return set(path, name, value)
	}
	r := Check(ctx, CheckOptions{Target: f.target(), Write: true}.Hasty())
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) > 0 || f.resources[sysURI]["IndicatorLED"] != "Off" {
		t.Errorf("%d sessions are left, and the indicator is %v", len(f.sessions), f.resources[sysURI]["IndicatorLED"])
	}
	if row := r.row("write boot override"); row.Check != "" {
		t.Errorf("it went on: %+v", row)
	}
}

func TestACheckOfWhatIsNoAddress(t *testing.T) {
	target := newFake(t, secure).target()
	for _, address := range []string{"192.0.2.1", "no.such.host.invalid:443"} {
		target.Address = address
		if row := Check(t.Context(), CheckOptions{Target: target}).row("connection"); row.Result != CheckFails || row.Detail == "" {
			t.Errorf("%s: got %+v", address, row)
		}
	}
}
