package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// known are the MAC addresses of a server's record.
func (w *loopWorld) known(i int) []model.ServerMAC {
	return w.Observed().Servers[w.machine(i).name].MACs
}

func (w *loopWorld) expectMACs(i int, want []model.ServerMAC) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.known(i), cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("MAC addresses of %s (-want +got):\n%s", w.machine(i).name, diff)
	}
}

// board is a world with a machine that was not seen yet.
func board(t *testing.T, change func(m *machine), test func(w *loopWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.change(0, change)
		w.start()
		test(w)
		w.stop()
	})
}

func TestAReportAddsNoMACAddress(t *testing.T) {
	board(t, func(m *machine) {
		m.nics, m.cards, m.sights = []string{cardOf(1)}, []string{cardOf(1), cardOf(9)}, []string{cardOf(9)}
	}, func(w *loopWorld) {
		w.expect(5*time.Minute, 0, "Available Off")
		w.expectMACs(0, macs(model.MACByBMC, 1))
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, fleettest.InGit(cardOf(2)))) })
		pass(time.Minute)
		w.expectMACs(0, append(macs(model.MACByBMC, 1), macs(model.MACByGit, 2)...))
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
		pass(time.Minute)
		w.expectMACs(0, macs(model.MACByBMC, 1))
	})
}

func TestABoardWhoseBMCShowsNoMACAddress(t *testing.T) {
	tests := map[string]struct {
		machine   machine
		ambiguous string // what it says, "" = it is Available
		want      []model.ServerMAC
	}{
		"its firmware asked": {
			machine: machine{cards: []string{cardOf(1)}, sights: []string{cardOf(1)}},
			want:    macs(model.MACBySighting, 1),
		},
		"its firmware tried card after card": {
			machine: machine{cards: []string{cardOf(1), cardOf(2), cardOf(3)}, sights: []string{cardOf(2), cardOf(1)}},
			want:    macs(model.MACBySighting, 1, 2, 3),
		},
		"nobody was seen to ask": {machine: machine{cards: []string{cardOf(1)}}},
		"a stranger asked as well": {
			machine: machine{cards: []string{cardOf(1)}, sights: []string{cardOf(9), cardOf(1)}},
			ambiguous: cardOf(9) + " asked to boot under its UUID, and the machine that reported has " + cardOf(1) +
				"; its BMC shows no MAC address: " +
				"write those of its network cards in annotation ingot/mac-addresses of Server bmc00-system-0",
		},
		"a stranger reported": {
			machine:   machine{cards: []string{cardOf(9)}, sights: []string{cardOf(1)}},
			ambiguous: cardOf(1) + " asked to boot under its UUID, and the machine that reported has " + cardOf(9),
		},
		"a stranger was refused": {
			machine:   machine{cards: []string{cardOf(1)}, sights: []string{cardOf(1)}, refused: "192.0.2.9"},
			ambiguous: cardOf(1) + " asked to boot under its UUID, and so did a client at 192.0.2.9, which was refused",
		},
		"a stranger was refused, and nobody reported": {
			machine:   machine{cards: []string{cardOf(1)}, sights: []string{cardOf(1)}, refused: "192.0.2.9", silent: true},
			ambiguous: cardOf(1) + " asked to boot under its UUID, and so did a client at 192.0.2.9, which was refused",
		},
		"more asked than any board has cards": {
			machine: machine{cards: []string{cardOf(1)}, sights: func() (all []string) {
				for n := range model.MaxSightings + 1 {
					all = append(all, cardOf(n+1))
				}
				return all
			}()},
			ambiguous: "more than 16 network cards asked to boot under its UUID",
		},
		"a refused stranger is of no interest where its BMC shows one": {
			machine: machine{nics: []string{cardOf(1)}, cards: []string{cardOf(1)}, sights: []string{cardOf(9)}, refused: "192.0.2.9"},
			want:    macs(model.MACByBMC, 1),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			board(t, func(m *machine) {
				is := tt.machine
				m.nics, m.cards, m.sights, m.refused, m.silent = is.nics, is.cards, is.sights, is.refused, is.silent
			}, func(w *loopWorld) {
				if tt.ambiguous == "" {
					w.expect(5*time.Minute, 0, "Available Off")
					w.expectMACs(0, tt.want)
					return
				}
				w.expect(40*time.Minute, 0, "Error Off")
				w.expectMACs(0, nil)
				why := w.plan().Servers[0].Why
				if why.Reason != model.ReasonMachineAmbiguous || !strings.HasPrefix(why.Message, tt.ambiguous) ||
					!strings.Contains(why.Message, model.AnnotationMACAddresses) {
					t.Errorf("it says %s: %s\nwant %s", why.Reason, why.Message, tt.ambiguous)
				}
				w.change(0, func(m *machine) { m.silent = false })
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, fleettest.InGit(cardOf(1)))) })
				w.expect(5*time.Minute, 0, "Available Off")
				w.expectMACs(0, macs(model.MACByGit, 1))
			})
		})
	}
}

func TestAnAmbiguousBoardIsDiscoveredAgainWhenAPersonAsksForIt(t *testing.T) {
	board(t, func(m *machine) { m.cards, m.sights, m.refused = []string{cardOf(1)}, []string{cardOf(1)}, "192.0.2.9" }, func(w *loopWorld) {
		w.expect(5*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.refused = "" })
		w.expect(5*time.Hour, 0, "Error Off")
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
		w.expect(5*time.Minute, 0, "Available Off")
		w.expectMACs(0, macs(model.MACBySighting, 1))
	})
}

// Some BMCs show network cards only once the system has started.
func TestTheCardsAreReadAgainWhenOneAsksThatIsNotKnown(t *testing.T) {
	board(t, func(m *machine) {
		m.nics, m.cards, m.sights = []string{cardOf(1)}, []string{cardOf(1), cardOf(2)}, []string{cardOf(2)}
	}, func(w *loopWorld) {
		w.mu.Lock()
		w.delay = 30 * time.Second // from the power-on to the first request
		w.mu.Unlock()
		w.change(0, func(m *machine) { m.silent = true })
		pass(10 * time.Second)
		before := w.seen(0).readings
		w.change(0, func(m *machine) { m.nics = []string{cardOf(1), cardOf(2)} })
		pass(time.Minute)
		w.expectMACs(0, macs(model.MACByBMC, 1, 2))
		if n := w.seen(0).readings - before; n != 1 {
			t.Errorf("its parts were read %d times, want once", n)
		}
	})
}

func TestAStrangerDoesNotHaveTheCardsReadAgainAndAgain(t *testing.T) {
	board(t, func(m *machine) { m.nics, m.sights, m.silent = []string{cardOf(1)}, []string{cardOf(9)}, true }, func(w *loopWorld) {
		pass(10 * time.Second)
		before := w.seen(0).readings
		for range 6 * 20 { // for twenty minutes
			w.mu.Lock()
			if p := w.observed.Progress["bmc00-system-0"]; p != nil {
				next, _ := p.Sighted(cardOf(9), time.Now())
				w.observed.Progress["bmc00-system-0"] = &next
				signal(w.stored)
			}
			w.mu.Unlock()
			pass(10 * time.Second)
		}
		if n := w.seen(0).readings - before; n < 2 || n > 50 {
			t.Errorf("its parts were read %d times in 20 minutes, want some in the 15 in which firmware asks, 20 s apart", n)
		}
		w.expectMACs(0, macs(model.MACByBMC, 1))
	})
}
