package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ingot/model"
	"ingot/model/text"
)

// Limits of what the status branch shows of things that others say: BMCs, probes,
// neighbours, manifests. A file that outgrows what is read back would take its record
// with it. The records themselves stay whole, but for texts and the outcomes of wipes.
const (
	maxShownText  = 1 << 10  // bytes of one text
	maxShownList  = 64 << 10 // bytes of one list of a server's parts
	maxShownWipes = 256 << 10
	maxDiskText   = 128       // bytes of what tells one disk of a wipe from others
	maxShownSteps = 128 << 10 // of one list of the guard

	maxShownLastGood = 128 << 10 // bytes of what is in force as it was

	maxShownProblems     = 1000
	maxShownProblemBytes = 256 << 10
	maxReadme            = 256 << 10
)

// entryOverhead is what an entry of a list takes beside its texts: field names,
// indentation, numbers.
const entryOverhead = 160

// shownText bounds a text, and takes out what would be written in an escape longer
// than itself.
func shownText(text string) string {
	if len(text) > maxShownText {
		text = text[:maxShownText-len("…")] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r != utf8.RuneError && unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
}

// written is about how many bytes a text takes in a file: each of its lines is
// indented, and some letters are escaped.
func written(text string) int {
	const indentation = 12
	n := len(text) + indentation*strings.Count(text, "\n")
	for _, escaped := range []string{`"`, `\`, "\t"} {
		n += strings.Count(text, escaped)
	}
	return n
}

// bounds keeps lists within their limits, and writes down what it left out.
type bounds struct{ leftOut []string }

// note says that some of the parts of a list are left out.
func (b *bounds) note(kept, all int, of string) {
	if kept < all {
		b.leftOut = append(b.leftOut, fmt.Sprintf("%d of %d %s", all-kept, all, of))
	}
}

// room counts down the bytes that a list may take.
type room struct{ left int }

// fits bounds the texts of one entry, and reports whether the entry fits.
func (r *room) fits(texts ...*string) bool {
	r.left -= entryOverhead
	for _, t := range texts {
		*t = shownText(*t)
		r.left -= written(*t)
	}
	return r.left >= 0
}

func (b *bounds) processors(all []model.Processor) []model.Processor {
	r := room{maxShownList}
	var out []model.Processor
	for _, p := range all {
		if !r.fits(&p.ID, &p.Type, &p.Architecture, &p.InstructionSet, &p.Manufacturer, &p.Model) {
			break
		}
		out = append(out, p)
	}
	b.note(len(out), len(all), "processors")
	return out
}

func (b *bounds) bootOrder(all []string) []string {
	r := room{maxShownList}
	out := kept(all, func(option *string) bool { return r.fits(option) })
	b.note(len(out), len(all), "boot options")
	return out
}

func (b *bounds) storages(all []StorageStatus) []StorageStatus {
	r := room{maxShownList}
	var out []StorageStatus
	drives, volumes, keptDrives, keptVolumes := 0, 0, 0, 0
	for _, s := range all {
		drives, volumes = drives+len(s.Drives), volumes+len(s.Volumes)
		if !r.fits(&s.Name, &s.State) {
			continue // and so do all behind it
		}
		s.Drives = kept(s.Drives, func(d *DriveStatus) bool {
			return r.fits(&d.Name, &d.MediaType, &d.Type, &d.Capacity, &d.Vendor, &d.Model, &d.State)
		})
		s.Volumes = kept(s.Volumes, func(v *VolumeStatus) bool {
			return r.fits(&v.Name, &v.Capacity, &v.State, &v.RAIDType, &v.VolumeUsage)
		})
		keptDrives, keptVolumes = keptDrives+len(s.Drives), keptVolumes+len(s.Volumes)
		out = append(out, s)
	}
	b.note(len(out), len(all), "storages")
	b.note(keptDrives, drives, "drives")
	b.note(keptVolumes, volumes, "volumes")
	return out
}

func (b *bounds) interfaces(all []model.NetworkInterface) []model.NetworkInterface {
	r, near := room{maxShownList}, room{maxShownList}
	var out []model.NetworkInterface
	for _, n := range all {
		if !r.fits(&n.Name, &n.MACAddress, &n.CarrierStatus) {
			break
		}
		ips, neighbors := len(n.IPs), len(n.Neighbors)
		n.IPs = kept(n.IPs, func(ip *string) bool { return r.fits(ip) })
		b.note(len(n.IPs), ips, "addresses of "+n.Name)
		n.Neighbors = kept(n.Neighbors, func(n *model.Neighbor) bool {
			return near.fits(&n.MACAddress, &n.PortID, &n.PortDescription, &n.SystemName, &n.SystemDescription)
		})
		b.note(len(n.Neighbors), neighbors, "neighbours of "+n.Name)
		out = append(out, n)
	}
	b.note(len(out), len(all), "network interfaces")
	return out
}

func (b *bounds) cleanup(st *CleanupStatus) *CleanupStatus {
	if st == nil {
		return nil
	}
	r := room{maxShownList}
	out := *st
	out.Disks = kept(st.Disks, func(d *DiskStatus) bool { return r.fits(&d.Name, &d.Serial, &d.Method, &d.Result) })
	b.note(len(out.Disks), len(st.Disks), "disks")
	return &out
}

// kept returns the first entries of a list: those that fit, made to. The list stays as
// it is.
func kept[T any](list []T, fits func(*T) bool) []T {
	var out []T
	for _, e := range list {
		if !fits(&e) {
			break
		}
		out = append(out, e)
	}
	return out
}

// shownWipes bounds the outcomes of a wipe. If not all fit, those that failed come
// first: they are what somebody has to act upon.
func shownWipes(all []model.DiskWipe) []model.DiskWipe {
	r := room{maxShownWipes}
	take := func(list []model.DiskWipe) []model.DiskWipe {
		return kept(list, func(d *model.DiskWipe) bool {
			for _, t := range []*string{&d.Name, &d.Serial, &d.Model, &d.Method, &d.Result} {
				*t = text.Clip(*t, maxDiskText)
			}
			return r.fits(&d.Name, &d.Serial, &d.Model, &d.Method, &d.Result, &d.Error)
		})
	}
	out := take(all)
	if len(out) == len(all) {
		return out
	}
	r = room{maxShownWipes}
	var failed, others []model.DiskWipe
	for _, d := range all {
		if d.Result == model.WipeFailed {
			failed = append(failed, d)
			continue
		}
		others = append(others, d)
	}
	return append(take(failed), take(others)...)
}

// takes counts n more bytes, and reports whether they fit.
func (r *room) takes(n int) bool {
	r.left -= n
	return r.left >= 0
}

// lastKept is kept from the end: of what was done the newest counts.
func lastKept[T any](list []T, fits func(*T) bool) []T {
	for i, e := range slices.Backward(list) {
		if !fits(&e) {
			return list[i+1:]
		}
	}
	return list
}

// shownProblems is the list of problems; of too many the first, errors before warnings.
func shownProblems(all []model.Problem) *Problems {
	shown := firstProblems(all)
	if len(shown) < len(all) {
		all = slices.Clone(all)
		slices.SortStableFunc(all, bySeverity)
		shown = firstProblems(all)
	}
	doc := &Problems{Problems: shown}
	if more := len(all) - len(shown); more > 0 {
		doc.LeftOut = fmt.Sprintf("%d more of %d problems: correct those above, then the others are shown", more, len(all))
	}
	return doc
}

// bySeverity sorts errors before warnings.
func bySeverity(a, b model.Problem) int { return cmp.Compare(a.Severity, b.Severity) }

// firstProblems are as many as there is room for.
func firstProblems(all []model.Problem) []model.Problem {
	r, shown := room{maxShownProblemBytes}, []model.Problem{}
	for _, p := range all[:min(len(all), maxShownProblems)] {
		if !r.fits(&p.File, &p.Object, &p.Field, &p.Message) {
			break
		}
		shown = append(shown, p)
	}
	return shown
}

// shownReadme cuts the page after a line.
func shownReadme(page string) string {
	if len(page) <= maxReadme {
		return page
	}
	page = page[:maxReadme]
	return page[:strings.LastIndexByte(page, '\n')+1] + "\nThe page is cut here; the folders hold all.\n"
}
