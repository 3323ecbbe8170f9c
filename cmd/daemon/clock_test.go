package daemon

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/cmd/daemon/addresses"
	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

func TestAClockThatIsSetMovesNoTimeOut(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wall, up := began, 40*24*time.Hour
	clock := steadyClock(func() time.Time { return wall }, func() time.Duration { return up })
	for _, jump := range []time.Duration{0, time.Hour, -3 * time.Hour} {
		before := clock()
		up += time.Minute
		wall = wall.Add(time.Minute + jump)
		if passed := clock().Sub(before); passed != time.Minute {
			t.Errorf("in one minute, while the wall clock was set by %s, %s passed", jump, passed)
		}
	}
	if got := clock(); !got.Equal(began.Add(3 * time.Minute)) {
		t.Errorf("it says %s, want what the wall clock said at the start and three minutes", got)
	}
}

// The kernel's time goes on while the machine sleeps, which that of the process does not.
func TestTimeSinceBootIsTheKernels(t *testing.T) {
	kernels := func() time.Duration {
		var now unix.Timespec
		must.Do(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
		return time.Duration(now.Nano())
	}
	for title, sleep := range map[string]time.Duration{"as it is": 0, "after a sleep of an hour": time.Hour} {
		beforeProcess.Add(-int64(sleep))
		askedBoot.Store(-int64(time.Second))
		before := kernels()
		if got := sinceBoot(); got < before-time.Second || got > kernels() {
			t.Errorf("%s: the machine is up for %s, want %s", title, got, before)
		}
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last, n := time.Duration(0), 0; n < 10_000; n++ {
				askedBoot.Store(-int64(time.Second))
				now := sinceBoot()
				if now < last {
					t.Errorf("%s, and then %s", last, now)
				}
				last = now
			}
		})
	}
	readers.Wait()
}

// What one part notes, such as when a probe reported, another compares with its own time.
func TestAllPartsGoByOneClock(t *testing.T) {
	now := time.Now().Add(40 * 24 * time.Hour).UTC()
	o := loopbackOptions()
	o.State.Dir, o.Git.URL, o.Boot.BindTickets = t.TempDir(), t.TempDir(), "nothing"
	d := must.Get(assemble(t.Context(), o, Environment{Clock: func() time.Time { return now }}))(t)
	defer d.close()
	ticket := &model.Ticket{ID: "t", Server: "s", UUID: "4c4c4544-0059-3110-8035-b4c04f4d4232", Purpose: model.PurposeClaim, ArmedAt: now}
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: ticket.Server, UUID: ticket.UUID}, Life: model.RecordLife{State: model.StateReserved}, Boot: model.RecordBoot{Ticket: ticket}}
	must.Do(t, d.registry.Save(t.Context(), registry.Changes{Servers: []*model.ServerRecord{rec}}))
	ask := func(h http.Handler, method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:4000"
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask(d.probes, http.MethodPost, "/r/"+d.registry.TokenKey.Report(ticket).Reveal()+"/bootstate", `{"systemUUID": "`+ticket.UUID+`", "booted": true}`)
	must.Do(t, d.registry.Boots.Note(t.Context(), ticket, model.StageScript, netip.Addr{}))
	desired := &model.Desired{Endpoints: map[string]*model.Endpoint{"e": {Spec: model.EndpointSpec{MACAddress: cardMAC, IP: "127.0.0.1"}}}}
	d.clients.endpoints = &addresses.Endpoints{Desired: func() *model.Desired { return desired }}
	ask(d.bootsvc.Handler(), http.MethodGet, "/loader/nothing", "")

	families := must.Get(d.metrics.Gather())(t)
	for _, family := range families { // who alerts has a clock that is right
		if name := family.GetName(); name == "ingot_store_last_success_timestamp_seconds" {
			if at := time.Unix(int64(family.GetMetric()[0].GetGauge().GetValue()), 0); time.Since(at).Abs() > time.Hour {
				t.Errorf("%s is %s", name, at)
			}
		}
	}
	noted := map[string]time.Time{"loop": d.loop.Clock()}
	seen := d.registry.Observed()
	if p := seen.Progress[ticket.Server]; p != nil {
		noted["registry"] = p.ScriptAt
	}
	if b := seen.BootStates[ticket.Server]; b != nil {
		noted["probes"] = b.ReceivedAt
	}
	if events := d.clients.cards.Of(cardMAC); len(events) > 0 {
		noted["boot service"] = events[0].At
	}
	for _, part := range []string{"loop", "registry", "probes", "boot service"} {
		if at := noted[part]; !at.Equal(now) {
			t.Errorf("%s: it is %s, want %s", part, at, now)
		}
	}
}
