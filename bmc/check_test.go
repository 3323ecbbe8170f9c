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
		"connection: works", "TLS: works", "Redfish: works", "login: works", "account: none", "systems: works", "manager: works",
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
	if row.Result != CheckFails || !strings.Contains(row.Detail, "it answers IPMI, which is not enough") {
		t.Errorf("got %+v", row)
	}
	if row := checked(t, f, CheckOptions{Target: target}).row("connection"); strings.Contains(row.Detail, "IPMI") {
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
