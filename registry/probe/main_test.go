package probe

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The servers of endpoint tests, by number.
const (
	discovered = iota // ticket for discovery
	claimed           // ticket for a claim
	cleaned           // ticket for cleanup
	finished          // its discovery ticket served its purpose
	revoked           // its discovery ticket was revoked
	noTicket
	twinA // two servers with one UUID
	twinB
	rebooted // its claim's ticket served its purpose
)

func fleet() []*model.ServerRecord {
	recs := []*model.ServerRecord{
		discovered: serverRecord(discovered, model.PurposeDiscovery),
		claimed:    serverRecord(claimed, model.PurposeClaim),
		cleaned:    serverRecord(cleaned, model.PurposeCleanup),
		finished:   serverRecord(finished, model.PurposeDiscovery),
		revoked:    serverRecord(revoked, model.PurposeDiscovery),
		noTicket:   serverRecord(noTicket, model.PurposeDiscovery),
		twinA:      serverRecord(twinA, model.PurposeClaim),
		twinB:      serverRecord(twinB, model.PurposeClaim),
		rebooted:   serverRecord(rebooted, model.PurposeClaim),
	}
	recs[finished].Boot.Ticket.Ended = model.TicketBooted
	recs[rebooted].Boot.Ticket.Ended = model.TicketBooted
	recs[revoked].Boot.Ticket.Ended = model.TicketSpent
	recs[noTicket].Boot.Ticket = nil
	recs[twinB].UUID = recs[twinA].UUID
	recs[cleaned].Boot.Ticket.CleanupMode = model.CleanupQuick
	return recs
}

// rig is a registry with the fleet, and its endpoint.
type rig struct {
	*registry.Registry
	endpoint *endpoint
	handler  http.Handler
	metrics  *prometheus.Registry
}

func newRig(t testing.TB, o Options) rig { return newRigIn(t, t.TempDir(), o) }

func newRigIn(t testing.TB, dir string, o Options) rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = func() time.Time { return now }
	}
	o.Registerer = prometheus.NewRegistry()
	r := openRegistry(t, registry.Options{Dir: dir, Clock: o.Clock, Log: o.Log, Registerer: o.Registerer})
	save(t, r, registry.Changes{Servers: fleet()})
	o.Registry, o.Tokens = r.Boots, r.TokenKey
	e := newEndpoint(o)
	return rig{r, e, e.handler(), o.Registerer.(*prometheus.Registry)}
}

func openRegistry(t testing.TB, o registry.Options) *registry.Registry {
	t.Helper()
	o.SealKey = []byte("0123456789abcdef0123456789abcdef")
	r := must.Get(registry.Open(t.Context(), o))(t)
	t.Cleanup(func() { _ = r.Close() }) // closed by the test already, or not
	return r
}

func save(t testing.TB, r *registry.Registry, c registry.Changes) {
	t.Helper()
	must.Do(t, r.Save(t.Context(), c))
}

func (r rig) writes(t *testing.T, bucket string) (n float64) {
	t.Helper()
	families := must.Get(r.metrics.Gather())(t)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ingot_store_writes_total" && m.GetLabel()[0].GetValue() == bucket {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func (r rig) saveUses(t *testing.T) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must.Do(t, r.Run(ended))
}

func wantUses(t *testing.T, r rig, server model.ServerName, want ...model.TicketUse) {
	t.Helper()
	var got []model.TicketUse
	if p := r.Observed().Progress[server]; p != nil {
		got = p.Uses
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses of %s (-want +got):\n%s", server, diff)
	}
}

func uuidOf(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i+1) }

func serverRecord(i int, purpose model.TicketPurpose) *model.ServerRecord {
	name := model.ServerName(fmt.Sprintf("server-%d", i))
	return &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: name, BMC: model.BMCName(fmt.Sprintf("bmc-%d", i)), UUID: uuidOf(i)},
		Life:           model.RecordLife{State: model.StateDiscovery, Since: now},
		Boot: model.RecordBoot{Ticket: &model.Ticket{
			ID: fmt.Sprintf("%s-1", name), Server: name, UUID: uuidOf(i), Purpose: purpose, ArmedAt: now, Digest: "d",
			Image: model.PinnedImage{Repository: "registry.example.com/os", Digest: "sha256:m", Architecture: "amd64"},
		}},
	}
}

func (r rig) token(i int) string {
	return r.TokenKey.Report(serverRecord(i, model.PurposeClaim).Boot.Ticket).Reveal()
}

func (r rig) do(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func uuidBody(i int, rest string) string {
	return fmt.Sprintf(`{"systemUUID":%q%s}`, uuidOf(i), rest)
}

const probed = `,"data":{"timestamp":"1970-01-01T00:00:00Z","systemInfo":{"systemInformation":{"serialNumber":"S1"}},` +
	`"cpu":[{"id":0,"capabilities":null}],"memory":[{"size":null}],` +
	`"networkInterfaces":[{"name":"tun0","ipAddresses":null},{"name":"eth0","ipAddresses":["fe80::1"]}]}`

func wiping(disks string) string {
	return uuidBody(cleaned, `,"mode":"quick","disks":[`+disks+`]`)
}
