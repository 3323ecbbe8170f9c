package reconcile

import (
	"fmt"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// writing counts the servers that are on for a disk image that is not yet verified.
func (w *loopWorld) writing() (n int) {
	for name, rec := range w.Observed().Servers {
		t, p := rec.Boot.Ticket, w.Observed().Progress[name]
		if !t.Open() || t.Disk == nil || w.machineOf(name).power != model.PowerOn {
			continue
		}
		if p == nil || p.Ticket != t.ID || !p.Install.Verified() {
			n++
		}
	}
	return n
}

func (w *loopWorld) machineOf(name model.ServerName) machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		if m.name == name {
			return *m
		}
	}
	return machine{}
}

// An install takes longer than a boot ticket may wait for its server: the tickets of those that
// wait for their turn end and are made anew, and no attempt is counted.
func TestSoManyDiskImagesAreWrittenAtATime(t *testing.T) {
	const servers, limit = 5, 2
	live(t, servers, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, servers-1, "Available Off")
		w.loop.Policy.MaxConcurrentInstalls, w.installStep = limit, 2*time.Minute
		w.commit(func(d *model.Desired) {
			for i := range servers {
				c := claim(fmt.Sprintf("web-%d", i))
				c.Spec.Image = diskOS
				d.Add(c)
			}
		})
		most, waited := 0, make(map[int]bool)
		for range 2 * 60 * 4 {
			pass(15 * time.Second)
			most = max(most, w.writing())
			for i := range servers {
				if w.why(i) == model.ReasonInstallsLimited {
					waited[i] = true
				}
			}
		}
		if most != limit {
			t.Errorf("%d servers were written to at a time, want %d", most, limit)
		}
		if len(waited) != servers-limit {
			t.Errorf("servers %v waited for their turn, want %d", waited, servers-limit)
		}
		for i := range servers {
			m, rec := w.seen(i), w.Observed().Servers[w.machine(i).name]
			if m.writes != 1 || rec.Install.Digest == "" || !rec.Install.Unconfirmed.IsZero() || rec.Boot.Problem != nil || m.ons != 3 {
				t.Errorf("%s was powered on %d times and written to %d times, boot problem %+v: want discovery, one install, and its disk",
					m.name, m.ons, m.writes, rec.Boot.Problem)
			}
		}
	})
}

// Whoever is to be installed again is not taken from what it runs before its turn comes.
func TestAReprovisionRunsOnUntilItsDiskImageMayBeWritten(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.claimDisk()
		pass(5 * time.Minute)
		w.installedTimes(1)
		w.loop.Policy.MaxConcurrentInstalls, w.installStep = 1, 2*time.Minute
		other := claim("db")
		other.Spec.Image = diskOS
		w.commit(func(d *model.Desired) { d.Add(other) })
		pass(5 * time.Minute)
		w.commit(func(d *model.Desired) {
			d.Add(diskClaim(fleettest.Annotated(model.AnnotationReprovision, "2"), func(c *model.ServerClaim) { c.Spec.Image = "disk/debian:14" }))
		})
		for waits := 0; ; waits++ {
			pass(15 * time.Second)
			if done := w.seen(1).installs > 0; done {
				if waits < 20 {
					t.Errorf("the other server was installed after %d looks", waits)
				}
				break
			}
			if m, why := w.seen(0), w.why(0); m.power != model.PowerOn || w.record().Install.Digest == "" || why != model.ReasonInstallsLimited && waits > 4 {
				t.Fatalf("while the other server is written to it is %s, installed %q, and waits for %s", m.power, w.record().Install.Digest, why)
			}
		}
		pass(time.Hour)
		w.installedTimes(2)
	})
}
