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

// Hex reports whether s is made of lower-case hexadecimal digits.
func Hex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
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
