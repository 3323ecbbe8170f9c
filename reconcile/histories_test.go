package reconcile

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// TestHarderHistoriesBreakNoLaw has more happen than TestRandomHistories:
// maintenance, park, operations, retain, power Off, moved BMCs, records that are
// not saved after their action was done, files that cannot be read, false
// readings, BMCs that refuse.
func TestHarderHistoriesBreakNoLaw(t *testing.T) {
	for seed := range fleettest.Histories(6, 60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &harder{
					history: newHistory(newLoopWorld(t, 4), seed, 2),
					last:    make(map[model.ServerName]installed), hidden: make(map[model.ClaimName]*model.ServerClaim),
				}
				h.live()
			})
		})
	}
}

type harder struct {
	*history
	hidden map[model.ClaimName]*model.ServerClaim // quarantined
	values int
	last   map[model.ServerName]installed // as of the last look
}

// installed is what explains the installs of a machine.
type installed struct {
	times, asked int
	claim        model.ClaimName
	bound        time.Time
}

// checkInstalls checks whether each install was asked for: by a new binding, or
// by a new value of the reprovision annotation.
func (h *harder) checkInstalls() {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		rec, last := w.observed.Servers[m.name], h.last[m.name]
		if rec == nil || m.installs == last.times {
			continue
		}
		now := installed{m.installs, h.asked[rec.Claim.Name], rec.Claim.Name, rec.Claim.BoundAt}
		due := 0
		if now.claim != last.claim || !now.bound.Equal(last.bound) {
			due = 1 + now.asked
		} else {
			due = now.asked - last.asked
		}
		if n := m.installs - last.times; n > due {
			h.fail("%s was installed %d times for %s since the last look, want %d at most", m.name, n, now.claim, due)
		}
		h.last[m.name] = now
	}
}

func (h *harder) live() {
	h.w.start()
	for range 80 {
		if h.rnd.IntN(2) == 0 {
			h.event()
		} else {
			h.hard()
		}
		pass(time.Duration(h.rnd.IntN(90000)) * time.Millisecond)
		h.check()
		h.checkInstalls()
	}
	h.mend()
	h.end(6 * time.Hour)
}

// mend takes away all that keeps servers from where claims want them.
func (h *harder) mend() {
	h.revive()
	tokens := h.w.tokens()
	h.w.commit(func(d *model.Desired) {
		clear(d.Maintenances)
		clear(d.Quarantined)
		for n, c := range h.hidden {
			if d.Claims[n] == nil {
				d.Add(c)
			}
		}
		h.retry(d)
		for n, c := range maps.Clone(d.Claims) {
			on := *c
			on.Spec.Power = model.PowerOn
			d.Claims[n] = &on
		}
		d.Approvals = tokens
	})
	for range 3 { // what retain and hold let through only now, and boots whose time is over
		time.Sleep(35 * time.Minute)
		tokens := h.w.tokens()
		h.w.commit(func(d *model.Desired) {
			h.retry(d)
			d.Approvals = tokens
		})
	}
}

// retry asks for all servers to be tried again.
func (h *harder) retry(d *model.Desired) {
	for i := range 4 {
		h.values++
		d.Add(serverFile(i, operation1(fmt.Sprint("retry#", h.values)), func(s *model.Server) {
			s.Annotations[model.AnnotationDiscover] = fmt.Sprint(h.values)
		}))
	}
}

func (h *harder) hard() {
	w := h.w
	i := h.rnd.IntN(4)
	m := w.machine(i)
	name := fmt.Sprint("c", h.rnd.IntN(3))
	key := model.ClaimName("default/" + name)
	h.values++
	file := func(change ...func(*model.Server)) func(*model.Desired) {
		return func(d *model.Desired) {
			s := serverFile(i)
			if old := d.Servers[model.ServerName(s.Name)]; old != nil {
				*s = *old
				s.Annotations = maps.Clone(old.Annotations)
			}
			for _, f := range change {
				f(s)
			}
			d.Add(s)
		}
	}
	switch h.rnd.IntN(13) {
	case 0:
		h.say("maintenance of %d on or off", i)
		w.commit(func(d *model.Desired) {
			n := fmt.Sprint("m", i)
			if d.Maintenances[n] != nil {
				delete(d.Maintenances, n)
				return
			}
			d.Add(&model.ServerMaintenance{
				Meta: model.Meta{Name: n},
				Spec: model.ServerMaintenanceSpec{
					ServerRef:   model.LocalRef{Name: fmt.Sprintf("bmc%02d-system-0", i)},
					ServerPower: []model.Power{"", model.PowerOff, model.PowerOn}[h.rnd.IntN(3)],
				},
			})
		})
	case 1:
		op := []string{
			"park", "ignore", "retry#", "power-cycle-server#", "force-off-server#", "force-on-server#", "graceful-restart-server#", "",
		}[h.rnd.IntN(8)]
		if len(op) > 1 && op[len(op)-1] == '#' {
			op += fmt.Sprint(h.values)
		}
		h.say("operation %q on %d", op, i)
		w.commit(file(operation1(op)))
	case 2:
		h.say("retain %d or not", i)
		w.commit(file(func(s *model.Server) {
			if s.Spec.ReclaimPolicy == model.ReclaimRetain {
				s.Spec.ReclaimPolicy = model.ReclaimRecycle
			} else {
				retain(s)
			}
		}))
	case 3, 4:
		h.say("power of %s changes", name)
		w.commit(func(d *model.Desired) {
			if old := d.Claims[key]; old != nil {
				c := *old
				if c.Spec.Power == model.PowerOn {
					c.Spec.Power = model.PowerOff
				} else {
					c.Spec.Power = model.PowerOn
				}
				d.Add(&c)
			}
		})
	case 5:
		h.say("the BMC of %d has a new address", i)
		w.commit(func(d *model.Desired) {
			b := *d.BMCs[m.bmc]
			b.Spec.Protocol.Port++
			d.Add(&b)
		})
	case 6:
		n := 1 + h.rnd.IntN(3)
		h.say("%d outcomes are not saved, then restart", n)
		w.mu.Lock()
		w.cut = n
		w.mu.Unlock()
		time.Sleep(time.Duration(h.rnd.IntN(20000)) * time.Millisecond)
		w.stop()
		w.mu.Lock()
		w.cut = 0
		w.mu.Unlock()
		w.start()
	case 7:
		h.say("%s cannot be read, or can again", name)
		id := model.Identity{Kind: model.KindServerClaim, Namespace: "default", Name: name}
		w.commit(func(d *model.Desired) {
			switch {
			case d.IsQuarantined(id):
				delete(d.Quarantined, id)
				d.Add(h.hidden[key])
				delete(h.hidden, key)
			case d.Claims[key] != nil:
				h.hidden[key] = d.Claims[key]
				delete(d.Claims, key)
				d.Quarantined[id] = []string{""}
			default: // it is put back in a way that cannot be used
				h.hidden[key] = claim(name)
				d.Quarantined[id] = []string{""}
				delete(d.Removed, id)
				w.hidden[id] = true
			}
		})
	case 8:
		h.say("a history without %s is pushed", name)
		w.rewrite(func(d *model.Desired) {
			if d.Claims[key] != nil {
				h.hidden[key] = d.Claims[key]
				delete(d.Claims, key)
			}
		})
	case 9:
		h.say("%d is wrongly said to be Off once", i)
		w.mu.Lock()
		m.lies = 1
		w.mu.Unlock()
	case 10:
		h.say("%d starts or stops to refuse a graceful shutdown", i)
		w.mu.Lock()
		if m.refuses == nil {
			m.refuses = map[model.ResetKind]bool{model.ResetGracefulOff: true, model.ResetGracefulRestart: true}
		} else {
			m.refuses = nil
		}
		w.mu.Unlock()
	case 11:
		h.say("images cannot be booted, or can again")
		w.mu.Lock()
		w.broken = !w.broken
		w.mu.Unlock()
	case 12:
		h.say("the BMC of %d begins or ceases to forget the boot override", i)
		w.mu.Lock()
		m.liar = !m.liar
		w.mu.Unlock()
	}
}
