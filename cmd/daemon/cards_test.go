package daemon

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/cmd/daemon/addresses"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

const cardMAC = "02:00:00:00:00:0a"

// following is a daemon that knows from Git whose address 10.0.0.7 is.
func following(t *testing.T) *daemon {
	t.Helper()
	o := loopbackOptions()
	o.State.Dir, o.Git.URL, o.TFTP.Listen = t.TempDir(), t.TempDir(), "127.0.0.1:0"
	d := must.Get(assemble(t.Context(), o, Environment{}))(t)
	t.Cleanup(d.close)
	desired := &model.Desired{Endpoints: map[string]*model.Endpoint{
		"e": {Spec: model.EndpointSpec{MACAddress: cardMAC, IP: "10.0.0.7"}},
		"f": {Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:0b", IP: "127.0.0.1"}},
	}}
	d.endpoints = &addresses.Endpoints{Desired: func() *model.Desired { return desired }}
	d.links.Close()
	d.links, d.neighbours = nil, nil
	return d
}

// What a card reports stands in its timeline by its kind: the path holds the token.
func TestReportsAreOfTheCardAtTheirAddress(t *testing.T) {
	d := following(t)
	h := d.followReports(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/wipe") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	for _, ask := range []struct{ from, path string }{
		{"10.0.0.7:4000", "/r/secret-token/register"}, {"10.0.0.7:4000", "/r/secret-token/wipe"}, {"10.0.0.7:4000", "/r/secret-token"},
		{"10.0.0.8:4000", "/r/secret-token/register"},
	} {
		r := httptest.NewRequest(http.MethodPost, ask.path, strings.NewReader("{}"))
		r.RemoteAddr = ask.from
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	want := []model.CardEvent{
		{Protocol: model.CardHTTP, Asked: "report", From: "10.0.0.7", Result: model.CardServed, Bytes: 2},
		{Protocol: model.CardHTTP, Asked: "wipe result", From: "10.0.0.7", Result: model.CardRefused, Answer: "Forbidden", Bytes: 2, Routine: true},
	}
	if diff := cmp.Diff(want, d.cards.Of(cardMAC), cmpopts.IgnoreFields(model.CardEvent{}, "At", "Seconds")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TFTP tells of its transfers, and the boot service of its requests, over real sockets.
func TestWhatIsAskedOnTheNetworkIsOfTheCardThatAsks(t *testing.T) {
	d := following(t)
	ended := make(chan error, 1)
	go func() { ended <- d.tftp.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	conn := must.Get(net.Dial("udp", d.tftp.Addr().String()))(t)
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte("\x00\x01nothing\x00octet\x00"))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 100)); err != nil || n < 4 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for end := time.Now().Add(10 * time.Second); d.cards.Of("02:00:00:00:00:0b") == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("TFTP tells nothing")
		}
	}
	server := httptest.NewServer(d.bootsvc.Handler())
	resp := must.Get(http.Get(server.URL + "/loader/nothing"))(t)
	_ = resp.Body.Close()
	server.Close() // waits for what is under way
	want := []model.CardEvent{
		{Protocol: model.CardTFTP, Asked: "nothing", From: "127.0.0.1", Result: model.CardRefused, Answer: "not found", Routine: true},
		{
			Protocol: model.CardHTTP, Asked: "boot loader", From: "127.0.0.1", Result: model.CardRefused, Routine: true,
			Answer: "there is no boot loader of this name",
		},
	}
	if diff := cmp.Diff(want, d.cards.Of("02:00:00:00:00:0b"), cmpopts.IgnoreFields(model.CardEvent{}, "At", "Seconds")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestANetworkCardIsExplainedWithoutAnEndpoint(t *testing.T) {
	d := following(t)
	f := newFleet(d)
	if _, err := f.Explain("endpoint", cardMAC); !errors.Is(err, report.ErrUnknownObject) {
		t.Errorf("of a card that asked nothing: %v", err)
	}
	for range 3 {
		d.cards.Add(cardMAC, model.CardEvent{At: d.clock(), Protocol: model.CardDHCPv4, Asked: "DISCOVER", Result: model.CardLimited, Answer: "more than 8 packets per second", Routine: true})
	}
	x, err := f.Explain("endpoint", strings.ToUpper(cardMAC))
	if err != nil || x.Name != cardMAC || x.Card == nil || len(x.Card.Events) != 1 {
		t.Fatalf("got %+v, %v", x, err)
	}
	if len(x.Facts) != 1 || !strings.HasPrefix(x.Facts[0].Value, "DHCPv4 more than 8 packets per second: since ") || !strings.Contains(x.Facts[0].Value, " 3 times, the last at ") {
		t.Errorf("that it is limited is said as %+v", x.Facts)
	}
	if _, err := f.Explain("server", cardMAC); !errors.Is(err, report.ErrUnknownObject) {
		t.Errorf("as a server: %v", err)
	}
}

func TestAnEndpointWhoseDeviceIsNotKnownYetIsListedAndExplained(t *testing.T) {
	d := following(t)
	desired := model.NewDesired()
	desired.Endpoints["p7"] = &model.Endpoint{
		Meta: model.Meta{Name: "p7", Annotations: map[string]string{model.AnnotationCircuitID: "Eth1/7", model.AnnotationRemoteID: "leafA"}},
		Spec: model.EndpointSpec{IP: "10.0.0.7"},
	}
	d.loop.Desired = func() *model.Desired { return desired }
	f := newFleet(d)
	x, err := f.Explain("endpoint", "p7")
	if err != nil || x.Name != "p7" || x.Why != "no lease yet for a device on circuit Eth1/7, remote leafA" {
		t.Errorf("got %+v, %v", x, err)
	}
	if rows := f.Rows().Endpoints; len(rows) != 1 || rows[0].Name != "p7" || rows[0].State != string(report.EndpointAwaited) || rows[0].Address != "10.0.0.7" {
		t.Errorf("it has no row: %+v", rows)
	}
	for kind, name := range map[string]string{"endpoint": "p8", "server": "p7"} {
		if _, err := f.Explain(kind, name); !errors.Is(err, report.ErrUnknownObject) {
			t.Errorf("%s %s: %v", kind, name, err)
		}
	}
}
