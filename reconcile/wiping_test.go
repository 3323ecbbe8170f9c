package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

// wipes has the wipe of the first server's disk say how far it is, and nothing more.
func (w *loopWorld) wipes(percent int) {
	w.mu.Lock()
	rec := w.observed.Servers[w.machine(0).name]
	w.observed.WipeProgress[rec.Name] = &model.WipeProgress{
		Ticket: rec.Boot.Ticket.ID, ReceivedAt: time.Now(), Mode: model.CleanupQuick,
		Disks: []model.DiskProgress{{Name: "sda", Serial: "S1", SizeBytes: 1 << 40, Method: "overwrite", Percent: percent}},
	}
	w.mu.Unlock()
	signal(w.stored)
}

// released is a server whose disks are being wiped, of which no result comes.
func released(t *testing.T, test func(w *loopWorld, b *branch)) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.serve("web")
		w.mu.Lock()
		w.machine(0).wipeHangs = true
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Cleanup On")
		test(w, b)
	})
}

func TestAWipeThatGoesOnIsWaitedForAndShown(t *testing.T) {
	released(t, func(w *loopWorld, b *branch) {
		commits := len(b.at)
		for minute := range 200 { // longer than the timeout of 30 minutes
			w.wipes(minute / 2)
			pass(time.Minute)
			if minute == 95 {
				doc := w.shown("servers/bmc00-system-0.yaml").Status
				want := &report.CleanupStatus{
					Mode:  model.CleanupQuick,
					Disks: []report.DiskStatus{{Name: "sda", Serial: "S1", SizeBytes: 1 << 40, Method: "overwrite", Percent: new(40)}},
				}
				if diff := cmp.Diff(want, doc.Cleanup); diff != "" {
					t.Errorf("status.cleanup (-want +got):\n%s", diff)
				}
				const far = "0 of 1 disk done, sda at 40 % (overwrite)"
				if got := conditionOf(doc.Conditions, "Ready"); got != "False Wiping: its disks are being wiped: "+far {
					t.Errorf("Ready is %s", got)
				}
				if got := conditionOf(doc.Conditions, "BootProgress"); !strings.Contains(got, "its wipe: "+far+"; not seen yet: wipe") {
					t.Errorf("BootProgress is %s", got)
				}
			}
		}
		w.expect(0, 0, "Cleanup On")
		if n := len(b.at) - commits; n > 11 {
			t.Errorf("the wipe cost %d commits, want one for each ten per cent", n)
		}
	})
}

func TestAWipeOfWhichNothingIsHeardSaysSoAndThenFails(t *testing.T) {
	released(t, func(w *loopWorld, _ *branch) {
		w.wipes(41)
		heard := fmt.Sprintf("last wipe progress at %s: 0 of 1 disk done, sda at 40 %% (overwrite)", time.Now().UTC().Format(time.RFC3339))
		w.expect(10*time.Minute, 0, "Cleanup On")
		why := w.plan().Servers[0].Why
		if want := heard + "; look at its console"; why.Message != want {
			t.Errorf("got  %s\nwant %s", why.Message, want)
		}
		w.expect(25*time.Minute, 0, "Error On")
		why = w.plan().Servers[0].Why
		if want := "no wipe result within 30m0s; " + heard; why.Reason != "CleanupFailed" || why.Message != want {
			t.Errorf("got  %s: %s\nwant %s", why.Reason, why.Message, want)
		}
	})
}

func TestAWipeThatSaysForEverThatItGoesOnFailsInTheEnd(t *testing.T) {
	released(t, func(w *loopWorld, _ *branch) {
		for range 4*60 + 50 {
			w.wipes(41)
			pass(time.Minute)
		}
		w.expect(0, 0, "Cleanup On")
		for range 15 {
			w.wipes(41)
			pass(time.Minute)
		}
		w.expect(0, 0, "Error On")
	})
}
