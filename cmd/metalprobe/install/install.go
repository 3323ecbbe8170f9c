package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/install/efi"
	"ingot/cmd/metalprobe/inventory"
	"ingot/cmd/metalprobe/wipe"
	"ingot/model"
	"ingot/model/filesystem"
)

// lateDisk is how long a disk that is named, and is not there, is waited for: slow controllers
// find their disks late. Tests do not wait.
var lateDisk = 30 * time.Second

// letsGo is how long a disk is waited for that is still busy after what was assembled over it was
// taken down: not all of that lets its disks go at once.
const letsGo = 5 * time.Second

// Reader is a disk that is only looked at.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Installer installs disk images.
type Installer struct {
	// Disks lists the disks of the machine, and Use is what block devices are used for.
	Disks func() []inventory.Disk
	Use   func() map[string]string
	// Takedown stops an array or removes a mapping.
	Takedown func(inventory.Node) error
	// Open opens a disk for writing, and Look one to be looked at, by its path.
	Open func(path string) (Disk, error)
	Look func(path string) (Reader, error)
	// Mount mounts a partition, and Firmware opens the firmware's variables: efi.ErrNone for a
	// machine that has none.
	Mount    Mount
	Firmware func() (efi.Variables, error)
	// Product is the serial number that the machine's firmware has for it.
	Product func() string
	Post    Post
	Log     *slog.Logger
}

// Local installs on the machine this runs on.
func Local(host *inventory.Host, post Post, log *slog.Logger) Installer {
	return Installer{
		Disks: host.Disks, Use: host.Use, Takedown: wipe.Takedown, Open: Open, Look: look,
		Mount: mountPartition, Firmware: efi.Open, Product: productSerial, Post: post, Log: log,
	}
}

// productSerial reads the machine's serial number (DSP0134 §7.2), "" if it has none.
func productSerial() string {
	text, _ := os.ReadFile("/sys/class/dmi/id/product_serial")
	return string(text)
}

func look(path string) (Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := deviceSize(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return readOnly{f, size}, nil
}

type readOnly struct {
	*os.File
	size int64
}

// Size implements Reader.
func (r readOnly) Size() int64 { return r.size }

// Run does the install that the document at a URL describes, and reports it. When it returns
// nil the daemon knows the outcome, good or bad, and the machine has nothing more to do.
func (i Installer) Run(ctx context.Context, address, uuid string) error {
	src, err := newSource(address, i.Log)
	if err != nil {
		return err
	}
	doc, err := src.install(ctx)
	if err != nil {
		return fmt.Errorf("begin the install: %w", err)
	}
	r := newReporter(i.Post, model.ProbeInstall{SystemUUID: uuid, Install: doc.Install, Stage: model.DiskProbeBooted}, i.Log)
	posting, stop := context.WithCancel(ctx)
	var posted sync.WaitGroup
	posted.Go(func() { r.run(posting) })
	defer posted.Wait()
	defer stop()
	r.stage(model.DiskProbeBooted)

	if strings.Contains(i.Product(), "ds=nocloud") {
		r.warn("the machine's serial number has ds=nocloud, which cloud-init takes before any seed")
	}
	t := &task{Installer: i, src: src, doc: doc, report: r}
	err = t.do(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := failureOf(err)
	i.Log.Error("install failed", "reason", f.Reason, "err", f.Message)
	r.change(func(p *model.ProbeInstall) { p.Reason, p.Message = f.Reason, f.Message })
	return r.accepted(ctx)
}

type task struct {
	Installer
	src    *source
	doc    model.InstallDocument
	report *reporter

	chosen model.CandidateDisk
	disk   Disk // that was chosen, while it is open
}

// do installs, up to the end of the machine's work.
func (t *task) do(ctx context.Context) error {
	if err := t.write(ctx); err != nil {
		return err
	}
	t.report.stage(model.DiskVerified)
	if err := t.report.accepted(ctx); err != nil {
		return err
	}
	t.report.stage(model.DiskBootEntry)
	if err := t.bootEntry(); err != nil {
		t.report.warn("the firmware has no boot entry for the system, which starts all the same if its loader is where firmware looks by itself: %v", err)
	}
	t.report.stage(model.DiskRebooting)
	return t.report.accepted(ctx)
}

// write puts the image on its disk, unless this very install is there already.
func (t *task) write(ctx context.Context) error {
	if s := t.doc.Seed; s != nil && s.Kind != model.SeedNone && !seedVolume(s) && !seedFiles(s) {
		return failure(model.ReasonSeedFilesystem, "seed %q is not known to this probe: build the probe image anew", s.Kind)
	}
	table, err := t.src.table(ctx, t.doc)
	if err != nil {
		return err
	}
	if t.disk, err = t.choose(ctx); err != nil {
		return err
	}
	defer func() { t.disk.Close() }()
	held := lookAt(t.disk, t.disk.Size())
	if held.ours(t.doc.Install) {
		t.Log.Info("this install is on the disk already, and whole", "disk", t.chosen.Name)
		return nil
	}
	seeds, err := t.compareOthers()
	if err != nil {
		return err
	}
	if err := t.mayOverwrite(held); err != nil {
		return err
	}
	if err := t.clearSeeds(seeds); err != nil {
		return err
	}
	return t.image(ctx, table)
}

// choose chooses the disk and opens it, with nothing resting on it any more.
func (t *task) choose(ctx context.Context) (Disk, error) {
	need, unread := model.NeedOf(t.doc.Image, t.doc.Hints, t.doc.Previous)
	if unread != nil {
		return nil, &Failure{unread.Reason, unread.Message}
	}
	found, problem := t.await(ctx, need)
	if problem != nil {
		return nil, &Failure{problem.Reason, problem.Message}
	}
	t.Log.Info("disk is chosen", "disk", t.chosen.Name, "serial", t.chosen.Serial, "model", t.chosen.Model, "bytes", t.chosen.SizeBytes)
	disk, err := t.open(ctx, found)
	if err != nil {
		return nil, failure(model.ReasonDiskBusy, "disk %s (serial number %s) cannot be opened for the install: %v%s",
			t.chosen.Name, orNone(t.chosen.Serial), err, t.holders())
	}
	remembered := model.RootDiskOf(t.chosen.ProbeDisk)
	t.report.change(func(p *model.ProbeInstall) { p.Disk = &remembered })
	t.report.stage(model.DiskChosen)
	return disk, nil
}

// await chooses the disk, and waits for one that is named and not there yet.
func (t *task) await(ctx context.Context, need model.DiskNeed) (inventory.Disk, *model.RootDiskProblem) {
	named := need.Previous != nil || slices.ContainsFunc(need.Hints, func(h model.RootDeviceHints) bool { return len(h) > 0 })
	for deadline := time.Now().Add(lateDisk); ; {
		disks := t.Disks()
		chosen, problem := model.ChooseRootDisk(t.candidates(disks), need)
		if problem == nil {
			t.chosen = chosen
			return disks[slices.IndexFunc(disks, func(d inventory.Disk) bool { return d.Path == chosen.Path })], nil
		}
		missing := problem.Reason == model.ReasonRootDeviceMissing || problem.Reason == model.ReasonRootDeviceGone
		if !missing || !named && len(disks) > 0 || !time.Now().Before(deadline) {
			return inventory.Disk{}, problem
		}
		t.Log.Info("waiting for a disk", "reason", problem.Reason)
		select {
		case <-ctx.Done():
			return inventory.Disk{}, problem
		case <-time.After(time.Second):
		}
	}
}

func (t *task) candidates(disks []inventory.Disk) []model.CandidateDisk {
	use := t.Use()
	list := make([]model.CandidateDisk, 0, len(disks))
	for _, d := range disks {
		list = append(list, model.CandidateDisk{ProbeDisk: d.ProbeDisk, Member: t.member(d), Holder: d.Used(use)})
	}
	return list
}

// member is the RAID volume of the firmware that a disk is part of, "" if it is of none.
func (t *task) member(d inventory.Disk) string {
	r, err := t.Look(d.Path)
	if err != nil {
		return ""
	}
	defer r.Close()
	id, _ := filesystem.Identify(r, r.Size())
	switch id.Type {
	case filesystem.IntelRAID:
		return strings.TrimSpace(id.Label + " of Intel VROC or RST")
	case filesystem.FirmwareDDF:
		return "of a firmware RAID (DDF)"
	}
	return ""
}

// open opens the disk, after it has taken down what is assembled over it.
func (t *task) open(ctx context.Context, d inventory.Disk) (Disk, error) {
	took := t.takeDown(d)
	for deadline := time.Now().Add(letsGo); ; {
		disk, err := t.Open(d.Path)
		if err == nil || !took || !errors.Is(err, unix.EBUSY) || !time.Now().Before(deadline) {
			return disk, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

// takeDown takes down what is assembled over a disk, and reports whether there was anything.
// What is left keeps the disk from being opened.
func (t *task) takeDown(d inventory.Disk) (took bool) {
	for _, n := range d.Above {
		if !n.Assembled() {
			continue
		}
		took = true
		if err := t.Takedown(n); err != nil {
			t.Log.Warn("device over the disk cannot be taken down", "device", n.Name, "err", err)
		}
	}
	return took
}

// holders names what is assembled over the chosen disk now, for a message.
func (t *task) holders() string {
	var names []string
	for _, d := range t.Disks() {
		for _, n := range d.Above {
			if d.Path == t.chosen.Path && n.Assembled() {
				names = append(names, n.String())
			}
		}
	}
	if names == nil {
		return ""
	}
	return "; on it rest " + strings.Join(names, ", ")
}

// mayOverwrite refuses a disk that holds what has to be kept.
func (t *task) mayOverwrite(c content) error {
	if t.doc.MayOverwrite || c.blank() || t.doc.Previous != nil && t.doc.Previous.Is(t.chosen.ProbeDisk) {
		return nil
	}
	return failure(model.ReasonRootDeviceNotBlank, "disk %s (serial number %s) was not wiped by Ingot and holds %s: "+
		"annotate the claim with ingot/overwrite to write over it, or name another disk in ingot/root-device",
		t.chosen.Name, orNone(t.chosen.Serial), strings.Join(c.holds, ", "))
}

// oldSeed is a seed partition of ours on a disk that is not written to otherwise.
type oldSeed struct {
	path, disk string
	partition
}

// compareOthers refuses an install when another disk has what a system of the image would take
// for its own, and returns the seeds of ours that are on other disks.
func (t *task) compareOthers() (seeds []oldSeed, err error) {
	for _, d := range t.Disks() {
		if d.Path == t.chosen.Path || d.SizeBytes == 0 {
			continue
		}
		r, err := t.Look(d.Path)
		if err != nil {
			t.report.warn("disk %s cannot be read, so it is not known whether the system would take it for its own: %v", d.Name, err)
			continue
		}
		c := lookAt(r, r.Size())
		r.Close()
		if same := c.duplicates(t.doc.Identities, t.doc.Seed); len(same) > 0 {
			return nil, failure(model.ReasonDuplicateIdentity, "disk %s (serial number %s) has %s, as the image has: the system may start from it, or take its configuration from it: "+
				"wipe that disk, or take it out", d.Name, orNone(d.Serial), strings.Join(same, ", "))
		}
		old := c.seeds()
		if d.Remote && len(old) > 0 {
			return nil, failure(model.ReasonDuplicateIdentity, "disk %s (serial number %s) is on a storage network and has the seed of an install, from which the system may take its configuration: "+
				"detach that disk, which may be another machine's, or delete its partition %s", d.Name, orNone(d.Serial), seedPartition)
		}
		for _, p := range old {
			seeds = append(seeds, oldSeed{d.Path, d.Name, p})
		}
	}
	return seeds, nil
}

// clearSeeds clears seeds of former installs: a system may take the configuration of the last
// disk that has one.
func (t *task) clearSeeds(seeds []oldSeed) error {
	for _, s := range seeds {
		if err := t.clearSeed(s); err != nil {
			return failure(model.ReasonDuplicateIdentity, "disk %s has the seed of a former install, which cannot be cleared: %v", s.disk, err)
		}
		t.Log.Info("seed of a former install is cleared", "disk", s.disk)
	}
	return nil
}

func (t *task) clearSeed(s oldSeed) error {
	disk, err := t.Open(s.path)
	if err != nil {
		return err
	}
	w := &writer{disk: disk}
	err = w.clear(s.from, s.to-s.from)
	if err == nil {
		err = disk.Flush()
	}
	return errors.Join(err, disk.Close())
}

// image writes the image, its seed and its partition table to a disk that may be overwritten.
func (t *task) image(ctx context.Context, table model.ChunkTable) error {
	u, err := t.src.at(t.doc.Chunks)
	if err != nil {
		return err
	}
	d := download{url: u, table: table}
	w := newWriter(t.disk, t.chosen.Serial, table, t.report.done)
	begin, err := w.first(ctx, t.src, d)
	if err != nil {
		return err
	}
	p := place{t.doc.Install, table.Bytes, t.disk.Size(), t.disk.SectorSize(), nil}
	if seedVolume(t.doc.Seed) {
		p.seed = t.doc.Seed
	}
	a, err := arrange(begin[:min(len(begin), mebibyte)], p)
	if err != nil {
		return err
	}
	t.report.writing(table.Data())
	var changed span // what the seed's files changed
	for _, step := range []func() error{
		func() error { return w.begin() },
		func() error { return w.body(ctx, t.src, d, begin) },
		func() error { return w.ends(a) },
		func() (err error) {
			if seedFiles(t.doc.Seed) {
				changed, err = t.files(w, a)
			}
			return err
		},
		func() error { return w.check(a, changed) },
		func() error { return w.finish(a.head) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := t.disk.Reread(); err != nil {
		t.report.warn("the kernel does not read the new partition table: %v", err)
	}
	return nil
}

// seedVolume reports whether a seed is a filesystem of its own.
func seedVolume(s *model.InstallSeed) bool {
	return s != nil && (s.Kind == model.SeedNoCloud || s.Kind == model.SeedOpenStack)
}
