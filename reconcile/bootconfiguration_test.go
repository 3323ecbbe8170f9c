package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/report"
)

// TestWhatATicketPinsOutlivesTheStore has the tag of a claim's image move while the
// store is lost: what was pinned once is what counts.
func TestWhatATicketPinsOutlivesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.start()
		w.serve("web")
		want := &report.ImageStatus{Ref: "os:1", Repository: "registry/os", Architecture: "amd64", Layers: []report.LayerStatus{
			{Name: "kernel", Digest: "sha256:1", SizeBytes: 1 << 20}, {Name: "initramfs", Digest: "sha256:2", SizeBytes: 3 << 19},
		}}
		before := w.shown(webBoot).Status
		if diff := cmp.Diff(want, before.Image); diff != "" || before.ImageDigest != "sha256:os:1" {
			t.Errorf("digest %s, image (-want +got):\n%s", before.ImageDigest, diff)
		}
		pinned := w.Observed().Servers["bmc00-system-0"].Boot.Ticket
		files := w.files()
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
		if diff := cmp.Diff(pinned, w.Observed().Servers["bmc00-system-0"].Boot.Ticket); diff != "" {
			t.Errorf("the ticket (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.Image, w.shown(webBoot).Status.Image); diff != "" {
			t.Errorf("the status branch (-before +after):\n%s", diff)
		}
	})
}

func TestAServerThatWasBootingWhenTheStoreWasLostIsNotPoweredOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.start()
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		for !w.Observed().Servers["bmc00-system-0"].Boot.Ticket.Open() || w.seen(0).power != model.PowerOn {
			pass(100 * time.Millisecond)
		}
		files := w.files()
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
			t.Errorf("installed %d times before, then forced off %d times and booted %v",
				before.installs, m.forced, m.boots[len(before.boots):])
		}
		if why := w.plan().Servers[0].Why; why.Reason != string(model.DoubtInstallUnknown) {
			t.Errorf("it says %+v", why)
		}
		w.commit(func(d *model.Desired) { d.Add(claim("web", fleettest.Annotated(model.AnnotationReprovision, "1"))) })
		pass(time.Hour)
		if m, rec := w.seen(0), w.record(); m.installs != 2 || rec.Doubt != nil || rec.Install.Digest == "" {
			t.Errorf("asked to be installed again it was installed %d times, in doubt %+v", m.installs, rec.Doubt)
		}
	})
}
