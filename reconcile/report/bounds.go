package report

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"ingot/model"
)

// Limits of what the status branch shows of things that others say: BMCs, probes,
// neighbours, manifests. A file that outgrows what is read back would take its record
// with it. Of the records only messages and the results of wipes are bounded.
const (
	maxShownText  = 1 << 10  // bytes of one text
	maxShownList  = 64 << 10 // bytes of one list of a server's parts
	maxShownWipes = 256 << 10
	maxShownSteps = 128 << 10 // of one list of the guard

	maxShownLastGood = 32 << 10 // bytes of the list of last good objects

	maxShownAbsences = 256 << 10 // of one list of objects or records in fleet.yaml
	maxReadme        = 256 << 10
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

// room counts down the bytes that a list may take.
type room struct{ left int }

func (r *room) fits(entry any) bool {
	r.left -= entryOverhead
	for t := range texts(reflect.ValueOf(entry).Elem()) {
		t.SetString(shownText(t.String()))
		r.left -= written(t.String())
	}
	return r.left >= 0
}

// fitsWhole is fits for an entry that is compared with others, and so stays as it is.
func (r *room) fitsWhole(entry any) bool {
	n := entryOverhead
	for t := range texts(reflect.ValueOf(entry).Elem()) {
		n += t.Len()
	}
	return r.takes(n)
}

// takes counts n more bytes, and reports whether they fit.
func (r *room) takes(n int) bool {
	r.left -= n
	return r.left >= 0
}

// texts are those of an entry, except in its lists.
func texts(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		switch {
		case v.Kind() == reflect.String:
			yield(v)
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			for _, field := range v.Fields() {
				texts(field)(yield)
			}
		}
	}
}

// kept returns the first entries of a list: those that fit, made to. The list stays as
// it is.
func kept[T any](list []T, fits func(any) bool) []T {
	var out []T
	for _, e := range list {
		if !fits(&e) {
			break
		}
		out = append(out, e)
	}
	return out
}

// lastKept returns the last entries that fit: of steps that were done the newest count.
func lastKept[T any](list []T, fits func(any) bool) []T {
	for i, e := range slices.Backward(list) {
		if !fits(&e) {
			return list[i+1:]
		}
	}
	return list
}

// bounds keeps lists within their limits, and writes down what it left out.
type bounds struct{ leftOut []string }

// note says that some of the parts of a list are left out.
func (b *bounds) note(kept, all int, of string) {
	if kept < all {
		b.leftOut = append(b.leftOut, fmt.Sprintf("%d of %d %s", all-kept, all, of))
	}
}

func shownList[T any](b *bounds, all []T, of string) []T {
	r := room{maxShownList}
	out := kept(all, r.fits)
	b.note(len(out), len(all), of)
	return out
}

func (b *bounds) storages(all []StorageStatus) []StorageStatus {
	r := room{maxShownList}
	var out []StorageStatus
	drives, volumes, keptDrives, keptVolumes := 0, 0, 0, 0
	for _, s := range all {
		drives, volumes = drives+len(s.Drives), volumes+len(s.Volumes)
		if !r.fits(&s) {
			continue // and so do all behind it
		}
		s.Drives, s.Volumes = kept(s.Drives, r.fits), kept(s.Volumes, r.fits)
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
		if !r.fits(&n) {
			break
		}
		ips, neighbors := len(n.IPs), len(n.Neighbors)
		n.IPs, n.Neighbors = kept(n.IPs, r.fits), kept(n.Neighbors, near.fits)
		b.note(len(n.IPs), ips, "addresses of "+n.Name)
		b.note(len(n.Neighbors), neighbors, "neighbours of "+n.Name)
		out = append(out, n)
	}
	b.note(len(out), len(all), "network interfaces")
	return out
}

// Decided is a record as the status branch keeps it: without the fields that have the tag decided:"-".
// Messages, by which nothing is restored, are bounded.
func Decided[R any](rec *R) *R {
	d := *rec
	decide(reflect.ValueOf(&d).Elem())
	return &d
}

func decide(v reflect.Value) {
	for _, change := range changesOf(v.Type()) {
		change(v)
	}
}

var changes sync.Map // reflect.Type → []func(reflect.Value)

func changesOf(t reflect.Type) (all []func(reflect.Value)) {
	if known, ok := changes.Load(t); ok {
		return known.([]func(reflect.Value))
	}
	for f := range t.Fields() {
		at := f.Index[0]
		switch {
		case f.Tag.Get("decided") == "-":
			all = append(all, func(v reflect.Value) { v.Field(at).SetZero() })
		case f.Name == "Message":
			all = append(all, func(v reflect.Value) { v.Field(at).SetString(shownText(v.Field(at).String())) })
		case f.Type.Kind() == reflect.Struct && len(changesOf(f.Type)) > 0:
			all = append(all, func(v reflect.Value) { decide(v.Field(at)) })
		case f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && len(changesOf(f.Type.Elem())) > 0:
			all = append(all, func(v reflect.Value) {
				if old := v.Field(at); !old.IsNil() {
					c := reflect.New(f.Type.Elem())
					c.Elem().Set(old.Elem())
					decide(c.Elem())
					old.Set(c)
				}
			})
		}
	}
	changes.Store(t, all)
	return all
}

// decidedFleet is the fleet's record as the status branch keeps it. If the record is ever needed, the rest
// of a list that is too long is decided again: held steps are held again.
func decidedFleet(rec model.FleetRecord) model.FleetRecord {
	within := func(left int) func(any) bool { return (&room{left}).fitsWhole }
	held := within(maxShownSteps)
	rec.Holds = slices.Clone(rec.Holds)
	for i := range rec.Holds {
		rec.Holds[i].Steps = kept(rec.Holds[i].Steps, held)
	}
	rec.ApprovedSteps, rec.Done = kept(rec.ApprovedSteps, within(maxShownSteps)), lastKept(rec.Done, within(maxShownSteps))
	rec.Absent = kept(rec.Absent, within(maxShownAbsences))
	rec.Unreadable = kept(rec.Unreadable, within(maxShownAbsences)) // as long as one is listed, no server is taken for new
	rec.Removed = kept(rec.Removed, within(maxShownAbsences))       // one that is left out is merely absent after a lost store
	return rec
}

// shownWipes bounds the outcomes of a wipe: if not all fit, failed and skipped disks come first.
func shownWipes(all []model.DiskWipe) []model.DiskWipe {
	return worstKept(all, maxShownWipes, func(a, b model.DiskWipe) int { return cmp.Compare(a.Result, b.Result) })
}

// bySeverity sorts errors before warnings.
func bySeverity(a, b model.Problem) int { return cmp.Compare(a.Severity, b.Severity) }

// worstKept returns the entries of a list that fit. If not all fit, the worst come first.
func worstKept[T any](list []T, bytes int, worst func(a, b T) int) []T {
	shown := kept(list, (&room{bytes}).fits)
	if len(shown) == len(list) {
		return shown
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, worst)
	return kept(list, (&room{bytes}).fits)
}

// shownReadme cuts the page after a line.
func shownReadme(page string) string {
	if len(page) <= maxReadme {
		return page
	}
	page = page[:maxReadme]
	return page[:strings.LastIndexByte(page, '\n')+1] + "\nThe page is cut here; the folders hold all.\n"
}
