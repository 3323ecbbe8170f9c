package model

import (
	"errors"
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

// ImageURL is a disk image on a web server.
type ImageURL struct {
	URL    string // without the digest
	Digest string // of the file as published
}

// ParseImageURL parses the URL of a disk image, which has the digest of the published file as its fragment. Without a
// digest the web server would decide what is installed. The error quotes nothing that may be a password.
func ParseImageURL(ref string) (ImageURL, error) {
	location, digest, pinned := strings.Cut(ref, "#")
	u, err := url.Parse(location)
	switch {
	case err != nil || len(ref) > maxReference || u.Host == "" || !isHost(u.Host) || u.Path == "" || u.Path == "/" || !isURLText(location):
		return ImageURL{}, errors.New(diskImageWant)
	case u.User != nil:
		return ImageURL{}, errors.New(diskImageWant + ", without user name and password")
	case !pinned:
		plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path} // a query can hold a key
		return ImageURL{}, errors.New("its digest is missing (" + ReasonDigestMissing + "): add it, as the image's publisher names it: image: " + plain.String() +
			"#sha256:…; an image in a registry is written without " + u.Scheme + "://")
	case !IsImageDigest(digest):
		return ImageURL{}, errors.New("its digest cannot be read: want " + digestsWant + ", behind the #")
	}
	return ImageURL{location, digest}, nil
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
