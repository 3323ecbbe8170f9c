package diskimage

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// maxURL bounds the length of a reference in bytes.
const maxURL = 2048

// URLRef is a disk image on a web server, with its digest.
type URLRef struct {
	Ref    string // as the person wrote it
	URL    string // without the digest
	Digest string // sha256:… or sha512:…, in lower case: of the file as published
}

// ParseURL parses a reference of the form https://HOST/PATH#sha256:HEX, or with http: or
// sha512:. It reports false for what is no URL, and an *Error for one that cannot be fetched
// and verified.
func ParseURL(ref string) (URLRef, bool, error) {
	lower := strings.ToLower(ref)
	if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://") {
		return URLRef{}, false, nil
	}
	if len(ref) > maxURL {
		return URLRef{}, true, refuse(model.ReasonInvalidReference, "the URL of a disk image has at most %d bytes; this has %d", maxURL, len(ref))
	}
	u, err := url.Parse(ref)
	var parse *url.Error
	switch {
	case errors.As(err, &parse):
		return URLRef{}, true, refuse(model.ReasonInvalidReference, "the URL of the disk image is none: %v", parse.Err)
	case u.Host == "" || u.Hostname() == "":
		return URLRef{}, true, refuse(model.ReasonInvalidReference, "the URL of the disk image has no host")
	case u.User != nil:
		return URLRef{}, true, refuse(model.ReasonInvalidReference, "the URL of the disk image has a user name or a password, which everybody could read: publish it where none is needed, or in a registry")
	}
	digest := strings.ToLower(u.Fragment)
	if digest == "" {
		return URLRef{}, true, refuse(model.ReasonDigestMissing, "the URL does not say the digest of the file: write %s#sha256:DIGEST, of the file as it is published (sha256sum %s, or the publisher's list of checksums)", withoutQuery(u), fileOf(u))
	}
	if !validDigest(digest) {
		return URLRef{}, true, refuse(model.ReasonDigestMissing, "what follows # in the URL must be sha256: and 64, or sha512: and 128, hexadecimal digits")
	}
	u.Fragment, u.RawFragment = "", ""
	return URLRef{ref, u.String(), digest}, true, nil
}

// kind is what the name of the file says that it is.
func (u URLRef) kind() string {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return ""
	}
	return syntax.DiskFile(parsed.Path)
}

// withoutQuery is a URL as it may be shown: a query can hold a key.
func withoutQuery(u *url.URL) string {
	return fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.EscapedPath())
}

// fileOf is the name of the file that a URL leads to.
func fileOf(u *url.URL) string {
	if name := path.Base(u.Path); name != "/" && name != "." {
		return syntax.Printable(name)
	}
	return "FILE"
}

// validDigest reports whether s is a digest of an algorithm that is verified.
func validDigest(s string) bool {
	algorithm, sum, _ := strings.Cut(s, ":")
	switch algorithm {
	case "sha256":
		return len(sum) == 64 && syntax.Hex(sum)
	case "sha512":
		return len(sum) == 128 && syntax.Hex(sum)
	}
	return false
}
