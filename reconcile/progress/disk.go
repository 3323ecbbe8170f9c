package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
)

// Install says how far the writing of a disk image is, by the tenths of its data.
func Install(image *model.DiskImage, in *model.DiskInstall) string {
	switch in.Stage {
	case model.DiskProbeBooted:
		return "its probe runs"
	case model.DiskChosen:
		return "disk " + Disk(in.Disk) + " is chosen"
	case model.DiskVerified, model.DiskBootEntry, model.DiskRebooting:
		return "it is on disk " + Disk(in.Disk)
	case model.DiskWriting:
	}
	says := fmt.Sprintf("%d %% of %s written", in.Tenths*10, text.Bytes(image.Data))
	if in.Disk != nil {
		says += " to " + Disk(in.Disk)
	}
	took := in.TenthAt.Sub(in.StartedAt)
	if in.Tenths == 0 || in.StartedAt.IsZero() || took < time.Second {
		return says
	}
	rate := float64(image.Data) / 10 * float64(in.Tenths) / took.Seconds()
	left := took / time.Duration(in.Tenths) * time.Duration(10-in.Tenths)
	return fmt.Sprintf("%s, %s/s, done at about %s", says, text.Bytes(uint64(rate)), text.Time(in.TenthAt.Add(left)))
}

// Disk names the disk of an install.
func Disk(d *model.RootDisk) string {
	switch {
	case d == nil:
		return "that is not known"
	case d.Serial != "":
		return fmt.Sprintf("%s (serial %s)", d.Name, d.Serial)
	case d.WWID != "":
		return fmt.Sprintf("%s (wwid %s)", d.Name, d.WWID)
	}
	return d.Name
}

// Wipe says how far a wipe is: how many disks are done, and which of the others is the furthest
// behind of those that report a percentage.
func Wipe(w *model.WipeProgress) string {
	done, slowest, behind := 0, model.DiskProgress{}, false
	for _, d := range w.Disks {
		percent, least := d.Tens(), slowest.Tens()
		switch {
		case d.Result != "":
			done++
		case !behind || percent != nil && (least == nil || *percent < *least):
			slowest, behind = d, true
		}
	}
	says := fmt.Sprintf("%d of %s done", done, text.Plural(len(w.Disks), "disk"))
	if !behind {
		return says
	}
	says += ", " + slowest.Name
	percent := slowest.Tens()
	if percent != nil {
		says += fmt.Sprintf(" at %d %%", *percent)
	}
	if slowest.Method != "" {
		says += " (" + slowest.Method + ")"
	}
	if percent == nil {
		says += ": the disk does not say how far it is"
	}
	return says
}

// Wiped names wiped disks.
func Wiped(disks []model.DiskWipe) string {
	var all []model.MissingDisk
	for _, d := range disks {
		all = append(all, model.MissingDisk{Name: d.Name, Serial: d.Serial, Model: d.Model})
	}
	return text.Plural(len(disks), "disk") + ", " + Disks(all)
}

// NotWiped names the disks whose wipe failed, by serial number; "" = none.
func NotWiped(disks []model.DiskWipe) string {
	var failed []string
	for _, d := range disks {
		if d.Result == model.WipeFailed {
			failed = append(failed, fmt.Sprintf("%s (serial %s): %s", d.Name, d.Serial, d.Error))
		}
	}
	return strings.Join(failed, ", ")
}

// Missing says which disks are missing from the report of a wipe; "" = none.
func Missing(missing []model.MissingDisk) string {
	var texts []string
	for _, of := range []struct {
		is       func(model.MissingDisk) bool
		one, all string
	}{
		{
			func(m model.MissingDisk) bool { return m.NotWiped },
			"was seen by the wipe and not wiped, or not wholly",
			"were seen by the wipe and not wiped, or not wholly",
		},
		{
			func(m model.MissingDisk) bool { return m.FromBMC && !m.NotWiped },
			"is shown by the BMC and is not in the wipe's report, nor are all volumes that it is part of",
			"are shown by the BMC and are not in the wipe's report, nor are all volumes that they are part of",
		},
		{
			func(m model.MissingDisk) bool { return !m.FromBMC && !m.NotWiped },
			"was there before and is not in the wipe's report",
			"were there before and are not in the wipe's report",
		},
	} {
		disks := slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return !of.is(m) })
		switch len(disks) {
		case 0:
		case 1:
			texts = append(texts, "disk "+Disks(disks)+" "+of.one)
		default:
			texts = append(texts, "disks "+Disks(disks)+" "+of.all)
		}
	}
	return strings.Join(texts, "; ")
}

// MaxNamed is how many disks a message names.
const MaxNamed = 8

// Disks names the first MaxNamed of some disks.
func Disks(disks []model.MissingDisk) string {
	var names []string
	for _, d := range disks[:min(len(disks), MaxNamed)] {
		serial := "no serial number"
		if d.Serial != "" {
			serial = "serial " + d.Serial
		}
		if d.Model != "" {
			serial += ", model " + d.Model
		}
		names = append(names, fmt.Sprintf("%s (%s)", d.Name, serial))
	}
	if more := len(disks) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
