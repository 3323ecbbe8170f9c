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

// TestHistoriesOfFoundBMCsBreakNoLaw is TestRandomHistories for BMCs that nobody
// wrote a manifest for, while leases move and swap, the MAC prefix database comes
// and goes, and so do BMCs and Endpoints in Git.
func TestHistoriesOfFoundBMCsBreakNoLaw(t *testing.T) {
	for seed := range fleettest.Histories(5, 40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				(&roaming{history: newHistory(newNetwork(t, 4), seed, 3)}).live()
			})
		})
	}
}

// roaming is a random life of BMCs whose addresses are not fixed.
type roaming struct {
	*history
	devices []*device
	next    int // number of the next address
}

func (h *roaming) live() {
	w := h.w
	w.commit(func(d *model.Desired) { d.Add(secretFor("s", "calvin")) })
	w.start()
	for i := range 4 {
		h.devices = append(h.devices, w.plugIn(i, "calvin"))
	}
	pass(5 * time.Minute) // all are named as they will be
	for range 60 {
		if h.rnd.IntN(2) == 0 {
			h.event()
		} else {
			h.roam()
		}
		pass(time.Duration(h.rnd.IntN(90)) * time.Second)
		h.check()
		h.checkDevices()
	}
	h.settle()
	h.end(6 * time.Hour)
	h.checkDevices()
}

// settle takes away all that keeps servers from where claims want them.
func (h *roaming) settle() {
	w := h.w
	h.revive()
	w.stop()
	w.database = database(w.t, "calvin")
	w.start()
	for _, d := range h.devices {
		h.move(d, h.fresh())
	}
	w.commit(func(d *model.Desired) { clear(d.BMCs) })
}

func (h *roaming) fresh() string {
	h.next++
	return fmt.Sprintf("198.51.100.%d", h.next%250+1)
}

// move gives a device an address that is free or another's.
func (h *roaming) move(d *device, ip string) { h.w.lease(d, ip) }

func (h *roaming) roam() {
	w := h.w
	i := h.rnd.IntN(4)
	d := h.devices[i]
	switch h.rnd.IntN(7) {
	case 0:
		ip := h.fresh()
		h.say("device %d moves to %s", i, ip)
		h.move(d, ip)
	case 1:
		other := h.devices[(i+1)%4]
		h.say("devices %d and %d swap addresses, one after the other", i, (i+1)%4)
		a, b := h.at(d), h.at(other)
		if a == "" || b == "" {
			return
		}
		h.move(d, b)
		time.Sleep(time.Duration(h.rnd.IntN(3000)) * time.Millisecond)
		h.move(other, a)
	case 2:
		h.say("the database comes or goes, and a restart")
		w.stop()
		if w.database == nil {
			w.database = database(w.t, "calvin")
		} else {
			w.database = nil
		}
		w.start()
	case 3:
		h.say("a BMC in Git for device %d comes or goes", i)
		name := model.BMCName(fmt.Sprint("rack", i))
		w.commit(func(des *model.Desired) {
			if des.BMCs[name] != nil {
				delete(des.BMCs, name)
				return
			}
			b := bmcFile(string(name), i)
			b.Spec.Access, b.Spec.EndpointRef = nil, &model.LocalRef{Name: foundAs(i)}
			des.Add(b)
		})
	case 4:
		h.say("an Endpoint in Git for device %d comes or goes", i)
		name := fmt.Sprint("slot", i)
		w.commit(func(des *model.Desired) {
			if des.Endpoints[name] != nil {
				delete(des.Endpoints, name)
				return
			}
			des.Add(&model.Endpoint{Meta: model.Meta{Name: name}, Spec: model.EndpointSpec{MACAddress: d.mac, IP: h.fresh()}})
		})
	case 5:
		h.say("a stranger gets the address of device %d", i)
		if ip := h.at(d); ip != "" {
			h.move(&device{mac: "02:00:00:00:00:01", uri: "/x", password: "none"}, ip)
		}
	case 6:
		h.say("a BMCSecret for device %d comes or goes", i)
		w.commit(func(des *model.Desired) {
			if des.BMCSecrets[foundAs(i)] != nil {
				delete(des.BMCSecrets, foundAs(i))
				return
			}
			des.Add(secretFor(foundAs(i), "calvin"))
		})
	}
}

func (h *roaming) at(d *device) string {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for ip, other := range h.w.devices {
		if other == d {
			return ip
		}
	}
	return ""
}

// checkDevices checks whether each device and each machine is known once.
func (h *roaming) checkDevices() {
	o := h.w.Observed()
	byMAC, byUUID := make(map[string]string), make(map[string]model.ServerName)
	for name, rec := range o.Endpoints {
		if other, twice := byMAC[rec.MACAddress]; twice {
			h.fail("%s is endpoint %s and %s", rec.MACAddress, name, other)
		}
		byMAC[rec.MACAddress] = name
	}
	for name, rec := range o.Servers {
		if other, twice := byUUID[rec.UUID]; twice {
			h.fail("machine %s is server %s and %s", rec.UUID, name, other)
		}
		byUUID[rec.UUID] = name
	}
	if len(o.Servers) > 4 {
		h.fail("4 machines are %d servers: %v", len(o.Servers), maps.Collect(maps.All(byUUID)))
	}
	for _, d := range h.devices {
		refused := h.w.refusals(d)
		for i := 3; i < len(refused); i++ {
			if refused[i].Sub(refused[i-3]) < 30*time.Minute {
				h.fail("%s refused more than 3 passwords in half an hour", d.mac)
			}
		}
	}
}
