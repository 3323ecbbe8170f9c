package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// timesCounted are the numbers of observations of the histograms of timings, by name and label,
// where there are any.
func timesCounted(t *testing.T, reg prometheus.Gatherer) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for _, f := range families {
		measured := []string{"ingot_claim_stage_seconds", "ingot_server_state_duration_seconds", "ingot_release_seconds", "ingot_discovery_seconds"}
		if !slices.Contains(measured, f.GetName()) {
			continue
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if n := m.GetHistogram().GetSampleCount(); n > 0 {
				out[name] = n
			}
		}
	}
	return out
}

func TestALifeIsMeasuredOnceThoughIngotStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		first := prometheus.NewRegistry()
		w.counts = NewMetrics(first)
		w.start()
		w.serve("web")
		want := map[string]uint64{
			"ingot_discovery_seconds":                       1,
			"ingot_server_state_duration_seconds Initial":   1,
			"ingot_server_state_duration_seconds Discovery": 1,
			"ingot_server_state_duration_seconds Available": 1,
		}
		for _, stage := range claimStageNames {
			want["ingot_claim_stage_seconds "+stage] = 1
		}
		if diff := cmp.Diff(want, timesCounted(t, first)); diff != "" {
			t.Errorf("of a discovery and a boot (-want +got):\n%s", diff)
		}
		w.stop()

		second := prometheus.NewRegistry()
		w.counts = NewMetrics(second)
		w.start()
		time.Sleep(time.Hour)
		if got := timesCounted(t, second); len(got) > 0 {
			t.Errorf("after a restart: %v, want nothing", got)
		}
		w.set(w.machine(0), model.PowerOff) // a power cut, which is healed
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Available Off")
		want = map[string]uint64{
			"ingot_release_seconds":                        1,
			"ingot_server_state_duration_seconds Reserved": 1,
			"ingot_server_state_duration_seconds Cleanup":  1,
		}
		if diff := cmp.Diff(want, timesCounted(t, second)); diff != "" {
			t.Errorf("of a release after a restart (-want +got):\n%s", diff)
		}
		w.stop()
	})
}

func TestWhatIsMeasuredOfAServer(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.Unix(1_800_000_000, 0).UTC().Add(time.Duration(minutes) * time.Minute)
	}
	type step struct {
		rec      model.ServerRecord
		progress *model.Progress
		booted   *model.BootState
		removed  []model.RemovedObject
		device   *model.EndpointRecord
	}
	available := model.ServerRecord{Life: model.RecordLife{State: model.StateAvailable, Since: at(30)}}
	bound := model.ServerRecord{Life: model.RecordLife{State: model.StateReserved, Since: at(61)}, Claim: model.RecordClaim{Name: "default/web", BoundAt: at(61)}}
	armed := bound
	armed.Boot.Ticket = &model.Ticket{ID: "t1", Purpose: model.PurposeClaim, Claim: "default/web", ArmedAt: at(62)}
	powered := armed
	powered.Power.Asked = &model.PowerAsked{Want: model.PowerOn, At: at(63)}
	installed := armed
	installed.Install.Digest = "digest"
	releasing := installed
	releasing.Release = &model.Release{Claim: "default/web", At: at(200)}
	cleanup := model.ServerRecord{Life: model.RecordLife{State: model.StateCleanup, Since: at(210)}, Release: releasing.Release}
	retained := releasing
	retained.Life.State, retained.Life.Since = model.StateReleased, at(210)
	again := installed
	again.Install.Reprovision, again.Install.Digest = "1", ""
	again.Boot.Ticket = &model.Ticket{ID: "t2", Purpose: model.PurposeClaim, Claim: "default/web", ArmedAt: at(300)}
	freed := available
	freed.Life.Since, freed.Release = at(240), releasing.Release

	for name, tc := range map[string]struct {
		steps []step
		want  []string
	}{
		"a server that is Available for the first time": {
			steps: []step{{rec: model.ServerRecord{Life: model.RecordLife{State: model.StateInitial, Since: at(10)}}}, {rec: model.ServerRecord{Life: model.RecordLife{State: model.StateDiscovery, Since: at(11)}}}, {rec: available}},
			want:  []string{"state Initial 1m0s", "state Discovery 19m0s", "discovery  20m0s"},
		},
		"from when its BMC's device was seen, if that was before": {
			steps: []step{
				{rec: model.ServerRecord{RecordIdentity: model.RecordIdentity{BMC: "b"}, Life: model.RecordLife{State: model.StateInitial, Since: at(10)}}, device: &model.EndpointRecord{Name: "b", Since: at(0)}},
				{rec: available},
			},
			want: []string{"state Initial 20m0s", "discovery  30m0s"},
		},
		"a server of which it is not known when it was plugged in": {
			steps: []step{{rec: model.ServerRecord{Life: model.RecordLife{State: model.StateInitial, Since: at(10)}, Boot: model.RecordBoot{BootScratch: model.BootScratch{Attempts: 1}}}}, {rec: available}},
			want:  []string{"state Initial 20m0s"},
		},
		"each stage of a boot, from when the claim was seen, once": {
			steps: []step{
				{rec: available}, {rec: bound}, {rec: armed}, {rec: powered},
				{rec: powered, progress: &model.Progress{Ticket: "t1", ScriptAt: at(65)}},
				{rec: powered, progress: &model.Progress{Ticket: "t1", ScriptAt: at(66), IgnitionAt: at(67)}},
				{rec: armed, booted: &model.BootState{Ticket: "t1", ReceivedAt: at(70)}}, {rec: installed},
			},
			want: []string{
				"state Available 31m0s", "stage bound 1m0s", "stage armed 2m0s", "stage powered 3m0s",
				"stage script 5m0s", "stage ignition 7m0s", "stage booted 10m0s",
			},
		},
		"what another ticket served is no stage of this boot": {
			steps: []step{{rec: armed}, {rec: armed, progress: &model.Progress{Ticket: "t0", ScriptAt: at(65)}, booted: &model.BootState{Ticket: "t0", ReceivedAt: at(70)}}},
			want:  []string{"stage bound 1m0s", "stage armed 2m0s"},
		},
		"power of what is installed is no stage of its boot": {
			steps: []step{{rec: installed}, {rec: func() model.ServerRecord { r := installed; r.Power.Asked = powered.Power.Asked; return r }()}},
			want:  []string{"stage bound 1m0s", "stage armed 2m0s"},
		},
		"a reprovision is none of the boot for the claim": {
			steps: []step{
				{rec: installed}, {rec: again},
				{rec: again, progress: &model.Progress{Ticket: "t2", ScriptAt: at(301)}, booted: &model.BootState{Ticket: "t2", ReceivedAt: at(305)}},
			},
			want: []string{"stage bound 1m0s", "stage armed 2m0s"},
		},
		"however fast it is": {
			steps: []step{{rec: installed}, {rec: again, booted: &model.BootState{Ticket: "t2", ReceivedAt: at(305)}}},
			want:  []string{"stage bound 1m0s", "stage armed 2m0s"},
		},
		"a release, from when the removal was seen": {
			steps: []step{
				{rec: releasing, removed: []model.RemovedObject{{Identity: model.ClaimName("default/web").Identity(), Removal: model.Removal{At: at(190)}}}},
				{rec: cleanup}, {rec: freed},
			},
			want: []string{"stage bound 1m0s", "stage armed 2m0s", "state Reserved 2h29m0s", "state Cleanup 30m0s", "release  50m0s"},
		},
		"a release that a wipe fails in between": {
			steps: []step{{rec: releasing}, {rec: cleanup}, {rec: model.ServerRecord{Life: model.RecordLife{State: model.StateError, Since: at(220)}, Release: cleanup.Release}}, {rec: freed}},
			want:  []string{"stage bound 1m0s", "stage armed 2m0s", "state Reserved 2h29m0s", "state Cleanup 10m0s", "state Error 20m0s", "release  40m0s"},
		},
		"not a server that a person kept as it was": {
			steps: []step{{rec: releasing}, {rec: retained}, {rec: cleanup}, {rec: freed}},
			want:  []string{"stage bound 1m0s", "stage armed 2m0s", "state Reserved 2h29m0s", "state Released 0s", "state Cleanup 30m0s"},
		},
		"nor a wipe that began before Ingot did, of which it is not known when the claim went": {
			steps: []step{{rec: cleanup}, {rec: freed}},
			want:  []string{"state Cleanup 30m0s"},
		},
		"a state that this version does not know": {
			steps: []step{{rec: model.ServerRecord{Life: model.RecordLife{State: "<script>", Since: at(0)}}}, {rec: available}},
			want:  []string{"state other 30m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c course
			var got []string
			for _, s := range tc.steps {
				o := model.NewObserved()
				o.Claims["default/web"] = &model.ClaimRecord{Name: "default/web", FirstSeen: at(60)}
				o.Fleet.Removed = s.removed
				rec := s.rec
				rec.Name = "s1"
				if s.progress != nil {
					o.Progress["s1"] = s.progress
				}
				if s.booted != nil {
					o.BootStates["s1"] = s.booted
				}
				if s.device != nil {
					o.Endpoints[s.device.Name] = s.device
				}
				var times []took
				c, times = c.next(o, &rec)
				for _, m := range times {
					got = append(got, fmt.Sprintf("%s %s %s", []string{"stage", "state", "release", "discovery"}[m.what], m.of, m.until.Sub(m.since)))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("measured (-want +got):\n%s", diff)
			}
		})
	}
}
