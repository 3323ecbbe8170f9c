package reconcile

import (
	"strings"
	"time"

	"ingot/model"
)

// diskImages is how the images of a world are written to disks.
type diskImages struct {
	// onDisk has all images be disk images; else those are whose name begins with "disk/".
	onDisk bool
	// preparing is how often it is still said that an image is being prepared.
	preparing int
	// rotten is set while what is kept of images is something else than it was, until they are
	// looked at.
	rotten bool
	// installStep is how long each step of an install takes.
	installStep time.Duration
}

func (w *loopWorld) isDisk(image string) bool { return w.onDisk || strings.HasPrefix(image, "disk/") }

// installer is how a machine's probe writes disk images, and what it wrote.
type installer struct {
	// fails is why it gives up at a stage, stalls the stage from which on it says nothing, and
	// cuts how often power fails at one, each at "" not at all.
	fails   map[model.DiskInstallStage]model.Reason
	stalls  model.DiskInstallStage
	cut     model.DiskInstallStage
	cuts    int
	comesOn bool             // by itself, after the power failed
	unsaid  bool             // that it is verified: the power fails before the report
	untold  bool             // it was not reported that the disk holds what it does
	session int              // of the machine, new with each start and each power cut
	seed    string           // the ticket whose configuration is on the disk
	owner   model.ClaimName  // whose image was verified to be on the disk
	writes  int              // installs that began to write
	onto    []model.RootDisk // what they wrote to
	untaken int              // reports that were refused
}

// prepare says of an image that it is still being prepared.
type preparing struct{ armError }

func (preparing) Preparing() (stage string, done, total uint64) { return "fetching", 2e8, 6e8 }

func (w *loopWorld) armDisk(t *model.Ticket, image, arch string) error {
	if w.preparing > 0 {
		w.preparing--
		return &preparing{armError{model.ReasonImagePreparing, "being prepared"}}
	}
	t.Image = model.PinnedImage{Ref: "registry/probe:1", Repository: "registry/probe", Digest: "sha256:probe", Architecture: arch,
		Kernel: &model.Layer{Digest: "sha256:1", Size: 1 << 20}, Initrd: &model.Layer{Digest: "sha256:2", Size: 3 << 19}}
	t.Disk = &model.DiskImage{Ref: image, Digest: "sha256:" + image, Format: "qcow2", Bytes: 4e9, Data: 6e8}
	return nil
}

// writeDisk is what the probe does with its ticket: it is called with the lock held.
func (w *loopWorld) writeDisk(m *machine, t *model.Ticket) {
	if m.seed == t.ID { // it finds what it wrote itself
		w.steps(m, t, []model.DiskInstallStage{model.DiskProbeBooted, model.DiskVerified, model.DiskRebooting})
		return
	}
	w.steps(m, t, model.DiskInstallStages)
}

// steps goes through the stages of an install, for as long as the machine stays on.
func (w *loopWorld) steps(m *machine, t *model.Ticket, stages []model.DiskInstallStage) {
	session := m.session
	var next func(i, tenths int)
	next = func(i, tenths int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		defer signal(w.stored)
		if m.session != session || m.power != model.PowerOn {
			return
		}
		if i == len(stages) {
			m.power = model.PowerOff
			m.session++
			return
		}
		stage, on := stages[i], m.disks[0]
		disk := &model.RootDisk{Name: on.Name, Serial: on.Serial, Model: on.Model, Bytes: on.SizeBytes}
		r := model.ProbeInstall{Stage: stage, Install: t.ID, Done: uint64(tenths) * 6e7}
		if stage != model.DiskProbeBooted {
			r.Disk = disk
		}
		if stage == model.DiskVerified {
			r.Done = 6e8
		}
		if m.stalls == stage {
			return
		}
		reason := m.fails[stage]
		if w.rotten && stage == model.DiskWriting {
			reason = model.ReasonDigestMismatch
		}
		if reason != "" {
			r.Reason, r.Message = reason, "the probe says why"
			w.told(m, t, &r)
			return
		}
		if stage == model.DiskWriting && tenths == 0 {
			w.beginWriting(m, t, disk)
		}
		if stage == model.DiskVerified && m.seed != t.ID {
			m.disk, m.seed, m.owner, m.installs = t.Digest, t.ID, t.Claim, m.installs+1
			if m.untold = m.unsaid; m.unsaid {
				m.unsaid = false
				w.cutPower(m)
				return
			}
		}
		if !w.told(m, t, &r) {
			return
		}
		m.untold = m.untold && stage != model.DiskVerified
		if m.cut == stage && m.cuts > 0 && (stage != model.DiskWriting || tenths == 5) {
			m.cuts--
			w.cutPower(m)
			return
		}
		if stage == model.DiskWriting && tenths < 10 {
			time.AfterFunc(w.installStep, func() { next(i, tenths+1) })
			return
		}
		time.AfterFunc(w.installStep, func() { next(i+1, 0) })
	}
	time.AfterFunc(w.installStep, func() { next(0, 0) })
}

// beginWriting is when the first byte goes to the disk: that must be one that is free, or
// holds what its own claim wants to have replaced.
func (w *loopWorld) beginWriting(m *machine, t *model.Ticket, disk *model.RootDisk) {
	rec := w.observed.Servers[m.name]
	switch {
	case rec == nil || rec.Boot.Ticket == nil || rec.Boot.Ticket.ID != t.ID:
		return // it is refused with its next report
	case rec.Claim.Name != t.Claim:
		w.t.Errorf("%s is written to for %s while it is bound to %s", m.name, t.Claim, rec.Claim.Name)
	case m.owner != "" && m.owner != t.Claim:
		w.t.Errorf("%s is written to for %s while its disk is %s's", m.name, t.Claim, m.owner)
	case rec.Install.Digest != "":
		w.t.Errorf("%s is written to while it is installed", m.name)
	}
	m.writes++
	m.onto = append(m.onto, *disk)
	m.disk, m.seed = "", ""
}

// told takes a probe's report as the registry does, and reports whether it was taken.
func (w *loopWorld) told(m *machine, t *model.Ticket, r *model.ProbeInstall) bool {
	rec := w.observed.Servers[m.name]
	if rec == nil || !rec.Boot.Ticket.Open() || rec.Boot.Ticket.ID != t.ID {
		m.untaken++
		return false
	}
	p := model.Progress{Ticket: t.ID}
	if old := w.observed.Progress[m.name]; old != nil && old.Ticket == t.ID {
		p = *old
	}
	next := p.Install.Told(r, p.Boots, t.Disk.Data, time.Now())
	p.Install = &next
	w.observed.Progress[m.name] = &p
	return true
}

// cutPower takes the power from a machine.
func (w *loopWorld) cutPower(m *machine) {
	m.power = model.PowerOff
	m.session++
	if m.comesOn {
		time.AfterFunc(time.Minute, func() { w.boot(m) })
	}
}

func (w *loopWorld) startDisk(m *machine) {
	if m.seed == "" || m.disk == "" || m.noNotice {
		return
	}
	session, seed := m.session, m.seed
	time.AfterFunc(w.delay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		defer signal(w.stored)
		rec := w.observed.Servers[m.name]
		if m.session != session || m.power != model.PowerOn || rec == nil || !rec.Boot.Ticket.Open() || rec.Boot.Ticket.ID != seed {
			return
		}
		w.observed.BootStates[m.name] = &model.BootState{Ticket: seed, ReceivedAt: time.Now()}
	})
}
