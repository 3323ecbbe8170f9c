package daemon

import (
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
	d.clients.endpoints = &addresses.Endpoints{Desired: func() *model.Desired { return desired }}
	d.clients.links.Close()
	d.clients.links, d.clients.neighbours = nil, nil
	return d
}

// What a card reports stands in its timeline by its kind: the path holds the token.
func TestReportsAreOfTheCardAtTheirAddress(t *testing.T) {
	d := following(t)
	h := d.clients.followReports(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	if diff := cmp.Diff(want, d.clients.cards.Of(cardMAC), cmpopts.IgnoreFields(model.CardEvent{}, "At", "Seconds")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TFTP tells of its transfers, and the boot service of its requests, over real sockets.
func TestWhatIsAskedOnTheNetworkIsOfTheCardThatAsks(t *testing.T) {
	d := following(t)
	ended := make(chan error, 1)
	go func() { ended <- d.network.tftp.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	conn := must.Get(net.Dial("udp", d.network.tftp.Addr().String()))(t)
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte("\x00\x01nothing\x00octet\x00"))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 100)); err != nil || n < 4 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for end := time.Now().Add(10 * time.Second); d.clients.cards.Of("02:00:00:00:00:0b") == nil; time.Sleep(time.Millisecond) {
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
	if diff := cmp.Diff(want, d.clients.cards.Of("02:00:00:00:00:0b"), cmpopts.IgnoreFields(model.CardEvent{}, "At", "Seconds")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCardsAreKnownByTheirRequests(t *testing.T) {
	d := following(t)
	f := newFleet(d)
	if c, known := f.Card(cardMAC); known || len(c.Events) != 0 || c.Events == nil {
		t.Errorf("a card without requests: %+v, %t", c, known)
	}
	for range 3 {
		d.clients.cards.Add(cardMAC, model.CardEvent{At: d.clock(), Protocol: model.CardDHCPv4, Asked: "DISCOVER", Result: model.CardLimited, Answer: "more than 8 packets per second", Routine: true})
	}
	c, known := f.Card(cardMAC)
	if !known || len(c.Events) != 1 || !strings.HasPrefix(c.Limited, "DHCPv4 more than 8 packets per second: since ") || !strings.Contains(c.Limited, " 3 times, the last at ") {
		t.Errorf("got %+v, %t", c, known)
	}
}

func TestDocumentsStayTheSameWhileNothingChanges(t *testing.T) {
	d := following(t)
	f := newFleet(d)
	before := f.Documents()
	if before.Fleet == nil || f.Documents() != before {
		t.Errorf("before a revision was read: %+v", before.Fleet)
	}
	desired := model.NewDesired()
	desired.Endpoints["p7"] = &model.Endpoint{
		Meta: model.Meta{Name: "p7", Source: "endpoints/p7.yaml:3", Annotations: map[string]string{model.AnnotationCircuitID: "Eth1/7", model.AnnotationRemoteID: "leafA"}},
		Spec: model.EndpointSpec{IP: "10.0.0.7"},
	}
	d.loop.Desired = func() *model.Desired { return desired }
	docs := f.Documents()
	if docs == before || f.Documents() != docs {
		t.Error("a new report has no new documents, or the same report others")
	}
	p7, err := docs.Find(report.Endpoints, "p7")
	if err != nil {
		t.Fatal(err)
	}
	o := p7.Overview()
	if o.Summary.State != report.EndpointAwaited || o.First().Message != "no lease yet for a device on circuit Eth1/7, remote leafA" {
		t.Errorf("got %+v", o)
	}
	if source := (pageFleet{fleet: f}).Source(p7); source != "endpoints/p7.yaml:3" {
		t.Errorf("its manifest is at %q", source)
	}
}
