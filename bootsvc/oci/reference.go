package oci

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ingot/bootsvc/internal/syntax"
)

// dockerHub is the registry of references that name none.
const dockerHub = "docker.io"

// maxReference bounds the length of a reference in bytes.
const maxReference = 1024

// dockerHubAliases are other names of Docker Hub.
var dockerHubAliases = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

var (
	hostPattern       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	layoutPattern     = regexp.MustCompile(`^oci:(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// layoutPrefix is what references of OCI image layouts on this machine begin with.
const layoutPrefix = "oci:"

// Reference is an image reference in its normal form: exactly one of Tag and
// Digest is set, or neither for the only image of a layout.
type Reference struct {
	Registry   string // host or host:port, lower case, Docker Hub as docker.io
	Repository string // path within the registry
	Tag        string
	Digest     string // sha256:… or sha512:…
	Layout     string // absolute path of an OCI image layout, in place of registry and repository
}

// Name returns registry/repository, or oci:/path of a layout, without tag or digest.
func (r Reference) Name() string {
	if r.Layout != "" {
		return layoutPrefix + r.Layout
	}
	return r.Registry + "/" + r.Repository
}

// String returns the whole reference.
func (r Reference) String() string {
	if r.Digest != "" {
		return r.Name() + "@" + r.Digest
	}
	if r.Tag == "" {
		return r.Name()
	}
	return r.Name() + ":" + r.Tag
}

// ParseReference parses an image reference as people write it. A reference
// without a tag means latest, one with tag and digest means the digest, and one
// without a registry is Docker Hub's. oci:/path, with a tag or digest, is an image in an
// OCI image layout. oci:// may stand before a registry.
func ParseReference(s string) (Reference, error) {
	s = strings.TrimPrefix(s, "oci://")
	if err := checkReferenceText(s); err != nil {
		return Reference{}, err
	}
	name, digest, pinned := strings.Cut(s, "@")
	if pinned && !ValidDigest(digest) {
		return Reference{}, errors.New("the digest after @ must be sha256: and 64, or sha512: and 128, lower-case hexadecimal digits")
	}
	if strings.HasPrefix(name, layoutPrefix) {
		return parseLayout(name, digest)
	}
	registry, path := splitRegistry(name)
	repository, tag, tagged := cutLast(path, ':')
	switch {
	case tagged && !tagPattern.MatchString(tag):
		return Reference{}, fmt.Errorf("tag %q: letters, digits, '_', '.' and '-' are allowed, at most 128", tag)
	case !tagged:
		tag = "latest"
	}
	host, err := normalRegistry(registry)
	if err != nil {
		return Reference{}, err
	}
	if host == dockerHub && !strings.Contains(repository, "/") {
		repository = "library/" + repository
	}
	if len(repository) > 255 || !repositoryPattern.MatchString(repository) {
		return Reference{}, fmt.Errorf("repository %q: lower-case letters and digits, with '.', '_' or '-' between them, in parts divided by '/'", repository)
	}
	if pinned {
		return Reference{Registry: host, Repository: repository, Digest: digest}, nil
	}
	return Reference{Registry: host, Repository: repository, Tag: tag}, nil
}

// CheckReference returns what is wrong with an image reference, given the folders that
// layouts may lie in.
func CheckReference(s string, imageDirs []string) error {
	r, err := ParseReference(s)
	if err != nil || r.Layout == "" {
		return err
	}
	if _, _, ok := (layouts{imageDirs}).within(r.Layout); !ok {
		return errOutside
	}
	return nil
}

// parseLayout parses the reference of an image in a layout.
func parseLayout(name, digest string) (Reference, error) {
	path, tag, tagged := strings.Cut(name[len(layoutPrefix):], ":")
	switch {
	case !layoutPattern.MatchString(layoutPrefix + path):
		return Reference{}, fmt.Errorf("layout %q: an absolute path is wanted, whose parts have letters, digits, '_', '-' and '.' and do not begin with '.'", path)
	case tagged && !tagPattern.MatchString(tag):
		return Reference{}, fmt.Errorf("tag %q: letters, digits, '_', '.' and '-' are allowed, at most 128", tag)
	case digest != "":
		return Reference{Layout: path, Digest: digest}, nil
	}
	return Reference{Layout: path, Tag: tag}, nil
}

// checkReferenceText refuses what is no reference at all.
func checkReferenceText(s string) error {
	switch {
	case s == "":
		return errors.New("the image reference is empty")
	case len(s) > maxReference:
		return fmt.Errorf("the image reference is longer than %d bytes", maxReference)
	case strings.Contains(s, "://"):
		return errors.New("an image reference has no scheme: write registry/repository:tag")
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return errors.New("an image reference has no spaces and no characters beyond ASCII")
		}
	}
	return nil
}

// splitRegistry divides a name before its first slash, if what stands there can
// only be a host: it has a dot or a colon, or is localhost.
func splitRegistry(name string) (registry, path string) {
	first, rest, ok := strings.Cut(name, "/")
	if !ok || !(strings.ContainsAny(first, ".:[") || strings.EqualFold(first, "localhost")) {
		return dockerHub, name
	}
	return first, rest
}

// cutLast is strings.Cut around the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// normalRegistry returns the one spelling of a registry's host and port by which
// registries are compared.
func normalRegistry(s string) (string, error) {
	host, port := strings.ToLower(s), ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return "", fmt.Errorf("registry %q: the port must be a number from 1 to 65535", s)
		}
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	addr, err := netip.ParseAddr(bare)
	bracketed := strings.HasPrefix(s, "[")
	switch {
	case err == nil && addr.Is6() && addr.Zone() == "" && bracketed:
		host = "[" + addr.String() + "]"
	case err == nil && addr.Is4() && !bracketed:
	case bracketed || len(host) > 253 || !hostPattern.MatchString(host):
		return "", fmt.Errorf("registry %q is not a host name or address, with or without a port", s)
	}
	if slices.Contains(dockerHubAliases, host) {
		host = dockerHub
	}
	if port == "" || port == "443" {
		return host, nil
	}
	return host + ":" + port, nil
}

// normalRegistries returns the normal spellings of a list of registries.
func normalRegistries(list []string) ([]string, error) {
	var normal []string
	for _, entry := range list {
		host, err := normalRegistry(entry)
		if err != nil {
			return nil, err
		}
		normal = append(normal, host)
	}
	return normal, nil
}

// hostname returns a registry's host without port and brackets.
func hostname(registry string) string {
	if h, _, err := net.SplitHostPort(registry); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(registry, "["), "]")
}

// ValidDigest reports whether s is a digest of an algorithm that Ingot verifies.
func ValidDigest(s string) bool {
	algorithm, sum, _ := strings.Cut(s, ":")
	switch algorithm {
	case "sha256":
		return len(sum) == 64 && syntax.Hex(sum)
	case "sha512":
		return len(sum) == 128 && syntax.Hex(sum)
	}
	return false
}

// ValidName reports whether s can be registry/repository, or oci:/path: nothing in it
// means anything to iPXE or a URL.
func ValidName(s string) bool {
	if strings.HasPrefix(s, layoutPrefix) {
		return len(s) <= maxReference && layoutPattern.MatchString(s)
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '.', c == '-', c == '_', c == '/', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return len(s) > 2 && len(s) <= maxReference && strings.Contains(s, "/") && !strings.Contains(s, "..") && !strings.Contains(s, "//")
}
