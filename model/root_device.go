package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model/text"
)

// CandidateDisk is a disk that an image may be written to.
type CandidateDisk struct {
	ProbeDisk
	// Member is the RAID volume of the firmware that the disk is part of, such as "Volume0 of
	// Intel VROC"; "" = none, or not known before the probe has looked.
	Member string
	// Holder is what uses the disk and cannot be taken down, such as "sda1 is mounted on
	// /data"; "" = nothing.
	Holder string
}

// DiskNeed is what an image needs of its disk.
type DiskNeed struct {
	Bytes      uint64 // at least
	SectorSize int    // of the disk that the image was made for; 0 = its table does not say, 512 is meant
	// Hints are those of the Server and of its claim: the disk has to fulfil all of them.
	Hints []RootDeviceHints
	// Previous is the disk of the claim's last install, which is taken again unless a hint
	// names another; nil = there was none.
	Previous *RootDisk
}

// NeedOf is what an image needs of its disk, with the values of AnnotationRootDevice. The problem
// is one of a hint that cannot be read.
func NeedOf(img DiskImage, hints []string, previous *RootDisk) (DiskNeed, *RootDiskProblem) {
	need := DiskNeed{Bytes: img.Bytes, SectorSize: img.SectorSize, Previous: previous}
	for _, hint := range hints {
		h, err := ParseRootDeviceHints(hint)
		if err != nil {
			return need, &RootDiskProblem{ReasonRootDeviceMissing, fmt.Sprintf("annotation %s: %v", AnnotationRootDevice, err)}
		}
		need.Hints = append(need.Hints, h)
	}
	return need, nil
}

// RootDiskProblem is why no disk was chosen.
type RootDiskProblem struct {
	Reason Reason
	// Message is for people: what was looked for, and every disk with its properties.
	Message string
}

// Error implements error.
func (p *RootDiskProblem) Error() string { return p.Message }

// ChooseRootDisk returns the disk that an image is to be written to: that of the last install,
// else of those that fulfil the hints and take the image the smallest, and of equal ones the
// first by its place in the machine. Nothing is chosen that is removable, read-only, lent by
// the BMC or on a storage network.
func ChooseRootDisk(disks []CandidateDisk, need DiskNeed) (CandidateDisk, *RootDiskProblem) {
	c := diskChoice{disks: disks, need: need}
	fit := filter(disks, c.fulfils)
	if same := filter(fit, c.isPrevious); len(same) > 0 {
		return same[0], c.refuse(same)
	}
	if p := cmp.Or(c.ambiguous(fit), c.gone(fit)); p != nil {
		return CandidateDisk{}, p
	}
	usable := filter(fit, func(d CandidateDisk) bool { return c.unfit(d).why == "" })
	if len(usable) == 0 {
		return CandidateDisk{}, c.none(fit)
	}
	chosen := slices.MinFunc(usable, compareCandidates)
	return chosen, c.paths(chosen)
}

func filter(disks []CandidateDisk, fits func(CandidateDisk) bool) (list []CandidateDisk) {
	for _, d := range disks {
		if fits(d) {
			list = append(list, d)
		}
	}
	return list
}

// compareCandidates orders disks that all fit: the smallest first, equal ones by their place.
func compareCandidates(a, b CandidateDisk) int {
	return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), text.CompareNatural(a.ByPath, b.ByPath),
		text.CompareNatural(a.HCTL, b.HCTL), cmp.Compare(len(a.Name), len(b.Name)), text.CompareNatural(a.Name, b.Name))
}

// Is reports whether d is the disk. One that has neither serial number nor world-wide name
// goes by its model and size.
func (r RootDisk) Is(d ProbeDisk) bool {
	a, b := r.disk(), Disk{Serial: d.Serial, Model: d.Model, IDs: wideNames(d.WWID)}
	if a.Nameless() || b.Nameless() {
		return a.Nameless() && b.Nameless() && r.Bytes == d.SizeBytes && r.Model == d.Model
	}
	return a.Same(b)
}

func (r RootDisk) disk() Disk {
	return Disk{Serial: r.Serial, Model: r.Model, IDs: wideNames(r.WWID)}
}

// wideNames are the world-wide names of a disk, as Disk has them. A name that WorldWideName
// does not know tells disks apart all the same.
func wideNames(wwid string) []string {
	if name := foldWWID(wwid); name != "" {
		return []string{name}
	}
	return nil
}

// RootDiskOf is what is remembered of a disk that an image was written to.
func RootDiskOf(d ProbeDisk) RootDisk {
	const most = 256 // bytes of one text
	return RootDisk{
		Name: text.Clip(d.Name, most), Serial: text.Clip(d.Serial, most), WWID: text.Clip(d.WWID, most),
		Model: text.Clip(d.Model, most), Bytes: d.SizeBytes,
	}
}

type diskChoice struct {
	disks []CandidateDisk
	need  DiskNeed
}

func (c diskChoice) fulfils(d CandidateDisk) bool {
	return !slices.ContainsFunc(c.need.Hints, func(h RootDeviceHints) bool { return !h.Fit(d.ProbeDisk) })
}

// isPrevious reports whether a disk is that of the last install.
func (c diskChoice) isPrevious(d CandidateDisk) bool {
	return c.need.Previous != nil && c.need.Previous.Is(d.ProbeDisk)
}

// ambiguous says that several disks fulfil hints that are to name one.
func (c diskChoice) ambiguous(fit []CandidateDisk) *RootDiskProblem {
	if len(fit) < 2 || !slices.ContainsFunc(c.need.Hints, RootDeviceHints.Identity) {
		return nil
	}
	return cmp.Or(c.paths(fit[0]), c.problem(ReasonRootDeviceAmbiguous, "%d disks fulfil %s, which is to name one: "+
		"add another hint, such as wwid or by-path", len(fit), c.hints()))
}

// gone says that the disk of the last install is not there, unless a hint names another disk.
func (c diskChoice) gone(fit []CandidateDisk) *RootDiskProblem {
	p := c.need.Previous
	named := len(fit) == 1 && slices.ContainsFunc(c.need.Hints, RootDeviceHints.Identity)
	if p == nil || named || slices.ContainsFunc(c.disks, c.isPrevious) {
		return nil
	}
	return c.problem(ReasonRootDeviceGone, "the disk of the last install (%s) is not in the machine: "+
		"bring it back, or name another by serial or wwid in annotation ingot/root-device", describe(ProbeDisk{
		Serial: p.Serial, WWID: p.WWID, Model: p.Model, SizeBytes: p.Bytes,
	}))
}

// paths says that several disks of the machine are one, by their world-wide name.
func (c diskChoice) paths(chosen CandidateDisk) *RootDiskProblem {
	name := foldWWID(chosen.WWID)
	same := filter(c.disks, func(d CandidateDisk) bool { return name != "" && foldWWID(d.WWID) == name })
	if len(same) < 2 {
		return nil
	}
	return c.problem(ReasonMultipath, "%d disks have the world-wide name %s: they are paths to one disk, "+
		"and an image is not written through one of several paths: leave one path, or choose another disk", len(same), chosen.WWID)
}

// refuse says why the disk of the last install cannot be taken, nil if it can: same are those
// that it may be.
func (c diskChoice) refuse(same []CandidateDisk) *RootDiskProblem {
	if p := c.paths(same[0]); p != nil {
		return p
	}
	if len(same) > 1 {
		return c.problem(ReasonRootDeviceAmbiguous, "%d disks may be that of the last install: "+
			"name one by wwid or by-path in annotation ingot/root-device", len(same))
	}
	if u := c.unfit(same[0]); u.why != "" {
		return c.problem(u.reason, "disk %s of the last install cannot be taken: %s", same[0].Name, u.why)
	}
	return nil
}

// none says why no disk can be taken, by what comes nearest to one that can.
func (c diskChoice) none(fit []CandidateDisk) *RootDiskProblem {
	if len(fit) == 0 && len(c.need.Hints) > 0 && len(c.disks) > 0 {
		return c.problem(ReasonRootDeviceMissing, "no disk fulfils %s", c.hints())
	}
	reason := Reason(ReasonRootDeviceMissing)
	for _, nearest := range []Reason{ReasonDiskTooSmall, ReasonSectorSizeMismatch, ReasonDiskBusy} {
		if slices.ContainsFunc(fit, func(d CandidateDisk) bool { return c.unfit(d).reason == nearest }) {
			reason = nearest
		}
	}
	which := "no disk of the machine"
	if hints := c.hints(); hints != "" {
		which = "no disk that fulfils " + hints
	}
	return c.problem(reason, "%s takes the image, which needs %s and sectors of %d bytes", which, text.Bytes(c.need.Bytes), c.sectorSize())
}

// sectorSize is that of the disks that take the image, in bytes.
func (c diskChoice) sectorSize() int { return cmp.Or(c.need.SectorSize, 512) }

// hints are all conditions, "" for none.
func (c diskChoice) hints() string {
	var texts []string
	for _, h := range c.need.Hints {
		if len(h) > 0 {
			texts = append(texts, h.String())
		}
	}
	return strings.Join(texts, " and ")
}

// unfitness is why a disk cannot be taken; why "" = it can.
type unfitness struct {
	reason Reason
	why    string
}

// unfit says why a disk cannot be taken, apart from the hints.
func (c diskChoice) unfit(d CandidateDisk) unfitness {
	missing := func(why string) unfitness { return unfitness{ReasonRootDeviceMissing, why} }
	switch {
	case VirtualMedia(d.Vendor, d.Model):
		return missing("the BMC lends it to the machine")
	case d.Removable:
		return missing("it is removable")
	case d.Transport == "usb" || d.Transport == "sd":
		return missing("it is on USB, or a memory card")
	case d.Remote:
		return missing("it is on a storage network, where a cleanup would leave it alone")
	case d.ReadOnly:
		return missing("it is read-only")
	case d.SizeBytes == 0:
		return missing("it shows no size: it is locked, broken or not ready")
	case d.Member != "":
		return missing("it is part of the RAID volume " + d.Member + ": the firmware assembles that, and Linux sees disks")
	case d.LogicalBlockSize != 0 && d.LogicalBlockSize != uint64(c.sectorSize()):
		return unfitness{ReasonSectorSizeMismatch, fmt.Sprintf("its sectors have %d bytes, the image is for %d", d.LogicalBlockSize, c.sectorSize())}
	case d.SizeBytes < c.need.Bytes:
		return unfitness{ReasonDiskTooSmall, fmt.Sprintf("it has %d bytes, the image %d", d.SizeBytes, c.need.Bytes)}
	case d.Holder != "":
		return unfitness{ReasonDiskBusy, d.Holder}
	}
	return unfitness{}
}

// maxListed is how many disks a message lists.
const maxListed = 64

// problem says why no disk is chosen, and lists the disks of the machine.
func (c diskChoice) problem(reason Reason, format string, args ...any) *RootDiskProblem {
	message := fmt.Sprintf(format, args...)
	if len(c.disks) == 0 {
		return &RootDiskProblem{reason, message + "; the machine shows no disk"}
	}
	listed := make([]string, 0, len(c.disks))
	for _, d := range c.disks[:min(len(c.disks), maxListed)] {
		listed = append(listed, c.judged(d))
	}
	if more := len(c.disks) - len(listed); more > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", more))
	}
	return &RootDiskProblem{reason, message + "; disks: " + strings.Join(listed, "; ")}
}

// judged describes a disk and says what speaks against it.
func (c diskChoice) judged(d CandidateDisk) string {
	line := d.Name + " (" + describe(d.ProbeDisk) + ")"
	if u := c.unfit(d); u.why != "" {
		return line + ": " + u.why
	}
	if !c.fulfils(d) {
		return line + ": does not fulfil the hints"
	}
	return line + ": takes the image"
}

// describe are the properties of a disk that hints can name.
func describe(d ProbeDisk) string {
	const most = 64 // bytes of one property
	kind := ""
	if d.LogicalBlockSize != 0 {
		kind = fmt.Sprintf("%d-byte sectors", d.LogicalBlockSize)
	}
	spins := ""
	if d.Rotational {
		spins = "rotational"
	}
	parts := []string{text.Bytes(d.SizeBytes)}
	for _, p := range []struct{ name, value string }{
		{"", strings.TrimSpace(d.Vendor + " " + d.Model)},
		{"serial ", d.Serial}, {"wwid ", d.WWID}, {"transport ", d.Transport}, {"by-path ", d.ByPath}, {"hctl ", d.HCTL},
		{"", kind}, {"", spins},
	} {
		if p.value != "" {
			parts = append(parts, p.name+text.Clip(p.value, most))
		}
	}
	return strings.Join(parts, ", ")
}
