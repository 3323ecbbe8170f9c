package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestWhatTheBootConfigurationSaysWasFetched(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	both := &model.Progress{Ticket: "t", ScriptAt: at, IgnitionAt: at}
	const (
		script    = "True IPXEScriptDelivered: IPXE script has been successfully delivered to the client."
		ignition  = "True IgnitionDataDelivered: Ignition data has been successfully delivered to the client."
		cloudInit = "True CloudInitDataDelivered: cloud-init data has been successfully delivered to the client."
	)
	tests := map[string]struct {
		config   model.TicketThing
		progress *model.Progress
		want     [3]string // script, Ignition, cloud-init
		stages   []model.BootStage
	}{
		"nothing yet":         {stages: []model.BootStage{model.StageArmed}},
		"a script":            {progress: &model.Progress{Ticket: "t", ScriptAt: at}, want: [3]string{script}, stages: []model.BootStage{model.StageArmed, model.StageScript}},
		"Ignition":            {progress: both, want: [3]string{script, ignition}, stages: []model.BootStage{model.StageArmed, model.StageScript, model.StageIgnition}},
		"cloud-init's data":   {config: model.ThingCloudInit, progress: both, want: [3]string{script, "", cloudInit}, stages: []model.BootStage{model.StageArmed, model.StageScript, model.StageIgnition}},
		"the claim's script":  {config: model.ThingScript, progress: both, want: [3]string{script}, stages: []model.BootStage{model.StageArmed, model.StageScript}},
		"with another ticket": {progress: &model.Progress{Ticket: "old", ScriptAt: at, IgnitionAt: at}, stages: []model.BootStage{model.StageArmed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			rec.Ticket.Config = tc.config
			in.Observed.Progress[rec.Name] = tc.progress
			conds := bootConfigurationOf(in, rec.Claim).Conditions
			var got [3]string
			for i, kind := range []string{"IPXEScriptFetched", "IgnitionDataFetched", "CloudInitDataFetched"} {
				got[i] = conditionOf(conds, kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			var stages []model.BootStage
			for _, st := range in.Observed.BootOf(rec).Steps() {
				stages = append(stages, st.Stage)
			}
			if diff := cmp.Diff(tc.stages, stages); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatConfiguresAMachine(t *testing.T) {
	for want, keys := range map[model.TicketThing][][]string{
		"":                   {{}, {"ignition"}, {"ignition", "ipxe-script"}},
		model.ThingCloudInit: {{"user-data"}, {"user-data", "ipxe-script"}},
		model.ThingScript:    {{"ipxe-script"}},
	} {
		for _, k := range keys {
			b := Boot{Secret: make(map[string]model.Sensitive)}
			for _, key := range k {
				b.Secret[key] = model.NewSensitive("x")
			}
			if got := b.config(); got != want {
				t.Errorf("%v: %q, want %q", k, got, want)
			}
		}
	}
}

func TestABootThatFailedIsAnErrorOfItsConfiguration(t *testing.T) {
	in, rec := ticketed(model.StateReserved, model.PurposeClaim)
	rec.Ticket.Ended, rec.Attempts = model.TicketSpent, 1
	rec.BootProblem = &model.BootProblem{Digest: rec.Ticket.Digest, Reason: BootTimeout, Message: "it did not boot", Image: "os:1"}
	st := bootConfigurationOf(in, rec.Claim)
	if got := conditionOf(st.Conditions, "Booted"); st.State != "Error" || got != "False BootTimeout: it did not boot; it is tried again (to act: rack operator)" {
		t.Errorf("%s, Booted %s", st.State, got)
	}
	if got := conditionOf(st.Conditions, "ImageValidation"); got[:5] != "True " {
		t.Errorf("the image, which was fetched, is %s", got)
	}
}

// TestWhatATicketPinsOutlivesTheStore has the tag of a claim's image move while the
// store is lost: what was pinned once is what counts.
func TestWhatATicketPinsOutlivesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start()
		w.serve("web")
		want := &imageStatus{Ref: "os:1", Repository: "registry/os", Architecture: "amd64", Layers: []layerStatus{
			{"kernel", "sha256:1", 1 << 20}, {"initramfs", "sha256:2", 3 << 19},
		}}
		before := w.shown(webBoot).Status
		if diff := cmp.Diff(want, before.Image); diff != "" || before.ImageDigest != "sha256:os:1" {
			t.Errorf("digest %s, image (-want +got):\n%s", before.ImageDigest, diff)
		}
		pinned := w.Observed().Servers["bmc00-system-0"].Ticket
		files := rendered(t, reportOf(w.loop.Input(time.Now())))
		w.stop()

		recs, problems := restored(files)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		w.mu.Lock()
		w.observed = model.NewObserved()
		w.observed.Records = recs
		w.mu.Unlock()
		w.start()
		defer w.stop()
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if diff := cmp.Diff(pinned, w.Observed().Servers["bmc00-system-0"].Ticket); diff != "" {
			t.Errorf("the ticket (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.Image, w.shown(webBoot).Status.Image); diff != "" {
			t.Errorf("the status branch (-before +after):\n%s", diff)
		}
	})
}

func TestAServerThatWasBootingWhenTheStoreWasLostIsNotPoweredOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start()
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		for !w.Observed().Servers["bmc00-system-0"].Ticket.Open() || w.seen(0).power != model.PowerOn {
			pass(100 * time.Millisecond)
		}
		files := rendered(t, reportOf(w.loop.Input(time.Now())))
		pass(10 * time.Second) // it is installed meanwhile
		w.stop()

		recs, _ := restored(files)
		w.mu.Lock()
		w.observed = model.NewObserved()
		w.observed.Records = recs
		w.mu.Unlock()
		before := w.seen(0)
		w.start()
		defer w.stop()
		w.expect(24*time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); len(m.boots) != len(before.boots) || m.forced > 0 || before.installs != 1 {
			t.Errorf("installed %d times before, then forced off %d times and booted %v", before.installs, m.forced, m.boots[len(before.boots):])
		}
		if why := Plan(w.loop.Input(time.Now())).Servers[0].Why; why.Reason != string(model.DoubtInstallUnknown) {
			t.Errorf("it says %+v", why)
		}
	})
}
