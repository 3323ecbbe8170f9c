package model

import (
	"net/netip"
	"strings"
)

// The …Fault functions check the syntax of a piece of text. They return what it
// should look like, or "" when it does.

const (
	subdomainWant = `want at most 253 lower-case letters, digits, "-" and ".", with a letter or digit at either end of each part`
	labelWant     = `want at most 63 lower-case letters, digits and "-", with a letter or digit at either end`
	keyWant       = `want a key such as rack or example.com/rack: at most 63 letters, digits, "-", "_" and ".", after an optional domain and "/"`
	valueWant     = `want at most 63 letters, digits, "-", "_" and ".", with a letter or digit at either end`
	imageWant     = `want an OCI reference such as registry.example.com/os/image:tag or …/image@sha256:digest, or the URL of a disk image with its digest: https://…#sha256:…`
)

// subdomainFault checks a name by RFC 1123, as Kubernetes does.
func subdomainFault(s string) string {
	if len(s) == 0 || len(s) > 253 {
		return subdomainWant
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			if !isLabelText(s[start:i], isLowerAlnum, isDash) {
				return subdomainWant
			}
			start = i + 1
		}
	}
	return ""
}

// labelFault checks one part of a name by RFC 1123.
func labelFault(s string) string {
	if len(s) > 63 || !isLabelText(s, isLowerAlnum, isDash) {
		return labelWant
	}
	return ""
}

// keyFault checks the key of a label, annotation or taint.
func keyFault(s string) string {
	name := s
	if domain, rest, ok := strings.Cut(s, "/"); ok {
		if subdomainFault(domain) != "" {
			return keyWant
		}
		name = rest
	}
	if len(name) > 63 || !isLabelText(name, isAlnum, isDashUnderscoreDot) {
		return keyWant
	}
	return ""
}

// valueFault checks the value of a label or taint, which may be empty.
func valueFault(s string) string {
	if s != "" && (len(s) > 63 || !isLabelText(s, isAlnum, isDashUnderscoreDot)) {
		return valueWant
	}
	return ""
}

// isLabelText reports whether s begins and ends with edge and has only edge and
// inner between.
func isLabelText(s string, edge, inner func(byte) bool) bool {
	if s == "" || !edge(s[0]) || !edge(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !edge(s[i]) && !inner(s[i]) {
			return false
		}
	}
	return true
}

func isLowerAlnum(c byte) bool        { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func isAlnum(c byte) bool             { return isLowerAlnum(c) || 'A' <= c && c <= 'Z' }
func isDash(c byte) bool              { return c == '-' }
func isDashUnderscoreDot(c byte) bool { return c == '-' || c == '_' || c == '.' }

// isSecretKey checks a key of a Secret, which names a file.
func isSecretKey(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && !isDashUnderscoreDot(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= 253
}

// isHost checks a registry's host and port loosely.
func isHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && !isDashUnderscoreDot(c) && c != ':' && c != '[' && c != ']' {
			return false
		}
	}
	return true
}

const wantIP = "an IP address such as 192.168.100.10 or fd00::10"

// canonicalIP returns an address in its shortest spelling, or what is wrong with
// it. A device cannot have an address that means none, or many.
func canonicalIP(s string) (canonical, fault string) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return s, "found " + show(s) + ", want " + wantIP
	case a.IsUnspecified() || a.IsMulticast():
		return s, "found " + show(s) + ", want the address of one device"
	}
	return a.Unmap().String(), ""
}

func isHex(c byte) bool { return hexDigit(c) < 16 }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// IsImageDigest reports whether s is a digest of an algorithm that Ingot verifies: sha256 or sha512, in lower case.
func IsImageDigest(s string) bool {
	algorithm, digits, _ := strings.Cut(s, ":")
	if want := map[string]int{"sha256": 64, "sha512": 128}[algorithm]; len(digits) != want || want == 0 {
		return false
	}
	for i := range len(digits) {
		if !isHex(digits[i]) || digits[i] != lower(digits[i]) {
			return false
		}
	}
	return true
}
