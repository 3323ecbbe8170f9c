package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

type machine struct {
	name     model.ServerName
	bmc      model.BMCName
	uuid     string
	board    model.Board // of one that shows no UUID
	power    model.Power
	override bool // from the network
	// diskOnce is an override to boot from disk, noDisk why its BMC has none.
	diskOnce bool
	noDisk   error
	led      model.Indicator
	noLED    error // why its BMC does not switch it
	ledAsks  int
	// order is its boot order, noOrder why its BMC does not set it.
	order     []string
	noOrder   error
	orderAsks int
	// ordersLater: an order counts from the next start on; nextOrder is the one that waits for
	// it, and forgetful is set for firmware that does not take it over.
	ordersLater, forgetful bool
	nextOrder              []string
	// netFirst is set for firmware that asks the network first without an override;
	// asked counts how often it did, for whatever reason.
	netFirst bool
	// fromDisk is set for firmware that does not follow an override; lost is how many of its next boot
	// scripts do not arrive.
	fromDisk bool
	lost     int
	asked    int
	sets     int  // boot overrides asked for
	dead     bool // its BMC does not answer
	frozen   bool // nor says so: who asks waits until it is given up
	hidden   int  // how many of the next readings of its BMC leave it out
	unread   bool // its BMC lists it and shows nothing of it
	liar     bool // its BMC accepts the override and forgets it
	stubborn bool // its BMC keeps the override until it is cleared
	wipeFail bool
	silent   bool // what it boots to be discovered does not report
	// wipeHangs is set while what wipes it comes to no result.
	wipeHangs bool
	disks     []model.ProbeDisk // that its probe sees, in discovery and in a wipe
	noNotice  bool              // what it boots does not say that it is up
	nics      []string          // MAC addresses that its BMC shows
	cards     []string          // those that its probe finds
	sights    []string          // those that ask DHCP when it boots from the network
	refused   string            // the address of somebody who was refused what it asked for, then
	readings  int               // of all its parts
	lies      int               // how many of the next power readings say the opposite
	flaps     time.Duration     // for how long after a request every other power reading does
	flapped   bool              // the last one did
	requested time.Time         // when the power was asked for last
	noParts   bool              // its BMC does not show its inventory
	refuses   map[model.ResetKind]bool
	rude      bool // it knows no graceful shutdown
	deaf      bool // what it runs does not hear that it is to shut down
	dark      bool // it does not come on
	stuck     bool // nor does it go off, or so its BMC says
	mute      bool // its BMC says nothing to power requests, and does nothing about them
	bmcReset  time.Time
	storages  []model.Storage
	forced    int
	offs      int    // requests to go off, of either kind
	disturbed int    // requests to go off or to restart, while it ran what is on its disk
	disk      string // digest of what is installed, "" = empty
	ons       int
	starting  bool // it was asked to power on and has not yet
	installs  int
	boots     []string
	installer
}

func (w *loopWorld) machine(i int) *machine {
	return w.machines[fmt.Sprintf("/redfish/v1/Systems/%d", i)]
}

func (w *loopWorld) seen(i int) machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := *w.machine(i)
	m.boots = slices.Clone(m.boots)
	return m
}

func (w *loopWorld) change(i int, how func(m *machine)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how(w.machine(i))
}

// state sums a server up: state, power, claim.
func (w *loopWorld) state(i int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machines[fmt.Sprintf("/redfish/v1/Systems/%d", i)]
	rec := w.observed.Servers[m.name]
	if rec == nil {
		return "unknown"
	}
	s := string(rec.Life.State) + " " + string(m.power)
	if rec.Claim.Name != "" {
		s += " " + string(rec.Claim.Name)
	}
	return s
}

func (w *loopWorld) set(m *machine, p model.Power) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.power = p
	m.session++
}

func (w *loopWorld) boot(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.power, m.starting = model.PowerOn, false
	m.session++
	if m.nextOrder != nil && !m.forgetful {
		m.order, m.nextOrder = m.nextOrder, nil
	}
	rec := w.observed.Servers[m.name]
	network := (m.override || m.netFirst && !m.diskOnce) && !m.fromDisk
	m.override, m.diskOnce = m.override && m.stubborn, false
	if network {
		m.asked++
	}
	if !network || rec == nil || !rec.Boot.Ticket.MayBoot(w.observed.Progress[m.name]) {
		m.boots = append(m.boots, "disk "+m.disk)
		w.startDisk(m)
		return
	}
	session := m.session
	time.AfterFunc(w.delay, func() {
		w.mu.Lock()
		isOver := rec.Boot.Ticket.Disk != nil && m.session != session
		w.mu.Unlock()
		if !isOver {
			w.booted(m, rec.Boot.Ticket)
		}
	})
}

func (w *loopWorld) booted(m *machine, t *model.Ticket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer signal(w.stored)
	if m.power != model.PowerOn {
		return
	}
	now := time.Now()
	m.boots = append(m.boots, "network "+t.Image.Ref)
	if m.lost > 0 {
		m.lost--
		w.observed.Progress[m.name] = &model.Progress{Ticket: t.ID, ScriptAt: now}
		return
	}
	progress := model.Progress{Ticket: t.ID, ScriptAt: now, IgnitionAt: now}
	if old := w.observed.Progress[m.name]; t.Disk != nil && old != nil && old.Ticket == t.ID {
		progress, _ = old.Reached(model.StageScript, now)
		progress, _ = progress.Reached(model.StageIgnition, now)
	}
	for _, mac := range m.sights {
		progress, _ = progress.Sighted(mac, now)
	}
	if m.refused != "" {
		progress.Uses = append(progress.Uses, model.TicketUse{
			What: model.ThingScript, Client: m.refused, Refusal: model.RefusedUnknown, First: now, Last: now, Count: 1,
		})
	}
	w.observed.Progress[m.name] = &progress
	switch t.Purpose {
	case model.PurposeDiscovery:
		if m.silent {
			return
		}
		w.observed.Probes[m.name] = &model.ProbeReport{Ticket: t.ID, ReceivedAt: now, Data: model.ProbeData{
			NetworkInterfaces: fleettest.Probed(m.cards), Storage: m.disks,
		}}
	case model.PurposeCleanup:
		if m.wipeHangs {
			return
		}
		wiped := make([]model.DiskWipe, len(m.disks))
		for i, d := range m.disks {
			wiped[i] = model.DiskWipe{Name: d.Name, Serial: d.Serial, SizeBytes: d.SizeBytes, Result: model.WipeDone}
			if m.wipeFail && i == 0 {
				wiped[i].Result, wiped[i].Error = model.WipeFailed, "I/O error"
			}
		}
		if !m.wipeFail {
			m.disk, m.seed, m.owner = "", "", ""
		}
		w.observed.Wipes[m.name] = &model.WipeReport{Ticket: t.ID, ReceivedAt: now, Disks: wiped}
	case model.PurposeClaim:
		if t.Disk != nil {
			w.writeDisk(m, t)
			return
		}
		m.seed, m.owner = "", t.Claim
		m.disk, m.installs = t.Digest, m.installs+1
		if !m.noNotice {
			w.observed.BootStates[m.name] = &model.BootState{Ticket: t.ID, ReceivedAt: now}
		}
	}
}

func (w *loopWorld) Arm(_ context.Context, b proposal.Boot) (model.Ticket, model.Sensitive, error) {
	t := b.Ticket
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arms++
	switch {
	case b.Image == "broken:1" || w.broken:
		return t, model.Sensitive{}, &armError{"ValidationFailed", "image " + b.Image + " has no kernel layer"}
	case b.Secret["ignition"].Reveal() == "bad":
		return t, model.Sensitive{}, &armError{model.ReasonSourceInvalid, "ignition: line 3, column 5: unknown key"}
	}
	if w.isDisk(b.Image) && t.Purpose == model.PurposeClaim {
		w.rotten = w.rotten && !b.Doubtful
		err := w.armDisk(&t, b.Image, b.Architecture)
		return t, model.NewSensitive("served by " + t.ID), err
	}
	t.Image = model.PinnedImage{
		Ref: b.Image, Repository: "registry/os", Digest: "sha256:" + b.Image, Architecture: b.Architecture,
		Kernel: &model.Layer{Digest: "sha256:1", Size: 1 << 20}, Initrd: &model.Layer{Digest: "sha256:2", Size: 3 << 19},
	}
	return t, model.NewSensitive("served by " + t.ID), nil
}

// armError is why nothing can be armed, as the image service and the Ignition
// compiler have it.
type armError struct{ reason, message string }

func (e *armError) Error() string { return e.message }

func (e *armError) Reason() string { return e.reason }
