// Package syntax checks whether values can stand in boot scripts, URLs and
// configurations as they are: nothing in them means anything to JSON, YAML, systemd, a
// shell or iPXE.
package syntax

import (
	"regexp"
	"strings"

	"ingot/model"
)

var urlPattern = regexp.MustCompile(`^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$`)

// URL reports whether s is a URL of http or https with a host and a plain path.
func URL(s string) bool { return len(s) <= 2048 && urlPattern.MatchString(s) }

// UUID reports whether s is a UUID in its canonical form.
func UUID(s string) bool {
	canonical, err := model.CanonicalUUID(s)
	return err == nil && canonical == s
}

// MachineID returns the canonical form of what a machine names itself by: a UUID of any
// case, or a MAC address with colons or dashes.
func MachineID(s string) (string, bool) {
	switch len(s) {
	case len("00000000-0000-4000-8000-000000000000"):
		id, err := model.CanonicalUUID(s)
		return id, err == nil
	case len("00:00:00:00:00:00"):
		id, err := model.CanonicalMAC(s)
		return id, err == nil
	}
	return "", false
}

// Token reports whether s is made as boot tickets' tokens are.
func Token(s string) bool {
	if len(s) < 16 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Printable makes a foreign text fit for an error: ASCII that can be printed, and short.
func Printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

var diskFile = regexp.MustCompile(`(?i)\.(raw|img|bin|qcow2)(\.(zst|gz|xz|bz2))?$`)

// packings are how files are packed, by the ends of their names.
var packings = map[string]string{"zst": "+zstd", "gz": "+gzip", "xz": "+xz", "bz2": "+bzip2"}

// DiskFile returns what the name of a file says of the disk image in it, as media types write it:
// raw or qcow2, and how it is packed, +zstd, +gzip, +xz or +bzip2. It is "" for a name that is
// not a disk image's.
func DiskFile(name string) string {
	m := diskFile.FindStringSubmatch(strings.ToLower(name))
	switch {
	case m == nil:
		return ""
	case m[1] == "qcow2":
		return "qcow2" + packings[m[3]]
	}
	return "raw" + packings[m[3]]
}
