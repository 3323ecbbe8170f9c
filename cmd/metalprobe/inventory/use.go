package inventory

import (
	"bufio"
	"bytes"
	"strings"
)

// Use returns what the block devices of this machine are used for, by their name and by
// their major:minor. It does not see mounts of other mount namespaces, but the kernel
// refuses exclusive use of those disks anyway.
func (h *Host) Use() map[string]string {
	use := make(map[string]string)
	for _, process := range []string{"1", "self"} {
		for line := range h.lines("proc", process, "mountinfo") {
			h.mounted(use, line)
		}
	}
	for line := range h.lines("proc/swaps") {
		fields := strings.Fields(line)
		if len(fields) > 0 && strings.HasPrefix(fields[0], "/dev/") {
			use[strings.TrimPrefix(fields[0], "/dev/")] = "used as swap"
		}
	}
	return use
}

// mounted notes one line of mountinfo (proc(5)). btrfs shows a device number of
// its own there, so the source counts as well as the number.
func (h *Host) mounted(use map[string]string, line string) {
	left, right, _ := strings.Cut(line, " - ")
	fields, source := strings.Fields(left), strings.Fields(right)
	if len(fields) < 5 || len(source) < 2 {
		return
	}
	how := "mounted on " + clean(fields[4])
	use[fields[2]] = how
	if name, ok := strings.CutPrefix(source[1], "/dev/"); ok {
		use[name] = how
	}
}

func (h *Host) lines(elem ...string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s := bufio.NewScanner(bytes.NewReader(h.read(maxFile, elem...))); s.Scan(); {
			if !yield(s.Text()) {
				return
			}
		}
	}
}

// Used returns what the disk is used for, itself or by what rests on it, or "".
func (d Disk) Used(use map[string]string) string {
	for _, n := range append([]Node{{Name: d.Name, Device: d.Device}}, d.Above...) {
		for _, key := range []string{n.Name, n.Device, "mapper/" + n.Mapping} {
			if how := use[key]; how != "" && key != "" {
				return n.Name + " is " + how
			}
		}
	}
	return ""
}
