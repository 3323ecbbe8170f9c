package model

import (
	"net/url"
	"strings"
)

const (
	diskImageWant = `want the URL of a disk image with the digest of the file as it is published: https://images.example.com/os.qcow2#sha256:… or #sha512:…`
	digestsWant   = `sha256: and 64, or sha512: and 128, of the digits 0-9 and a-f, as the image's publisher names them`
)

// IsImageURL reports whether the image of a claim is a disk image at a URL, not an OCI reference.
func IsImageURL(ref string) bool {
	return strings.HasPrefix(ref, "https://") || strings.HasPrefix(ref, "http://")
}

// imageURLFault checks the URL of a disk image. Without a digest whoever has the server, or the
// way to it, would say what is installed.
func imageURLFault(s string) string {
	location, digest, pinned := strings.Cut(s, "#")
	u, err := url.Parse(location)
	if err != nil || len(s) > 1024 || u.Host == "" || !isHost(u.Host) || u.Path == "" || u.Path == "/" || !isURLText(location) {
		return diskImageWant
	}
	algorithm, _, _ := strings.Cut(digest, ":")
	switch {
	case u.User != nil:
		return diskImageWant + ", without user name and password"
	case !pinned:
		return "its digest is missing (" + ReasonDigestMissing + "): add it, as the image's publisher names it: image: " + location + "#sha256:…; an image in a registry is written without " + u.Scheme + "://"
	case algorithm != "sha256" && algorithm != "sha512" || !isDigest(digest):
		return "its digest cannot be read: want " + digestsWant + ", behind the #"
	}
	return ""
}

// isURLText reports whether a URL has nothing but characters that a URL has (RFC 3986 §2), and
// so means the same in a log, in a table and on a command line.
func isURLText(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && !strings.ContainsRune("-._~:/?[]@!$&'()*+,;=%", rune(s[i])) {
			return false
		}
	}
	return true
}
