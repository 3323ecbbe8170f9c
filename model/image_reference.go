package model

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DockerHub is the registry of references that name none.
const DockerHub = "docker.io"

// maxReference is the maximum length of a reference in bytes.
const maxReference = 1024

// dockerHubAliases are other names of Docker Hub.
var dockerHubAliases = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

var (
	registryPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	layoutPattern     = regexp.MustCompile(`^oci:(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// layoutPrefix is what references of OCI image layouts on this machine begin with.
const layoutPrefix = "oci:"

// ImageReference is an OCI image reference in its normal form: exactly one of Tag and
// Digest is set, or neither for the only image of a layout.
type ImageReference struct {
	Registry   string // host or host:port, lower case, Docker Hub as docker.io
	Repository string // path within the registry
	Tag        string
	Digest     string // sha256:… or sha512:…
	Layout     string // absolute path of an OCI image layout, in place of registry and repository
}

// Name returns registry/repository, or oci:/path of a layout, without tag or digest.
func (r ImageReference) Name() string {
	if r.Layout != "" {
		return layoutPrefix + r.Layout
	}
	return r.Registry + "/" + r.Repository
}

// String returns the whole reference.
func (r ImageReference) String() string {
	if r.Digest != "" {
		return r.Name() + "@" + r.Digest
	}
	if r.Tag == "" {
		return r.Name()
	}
	return r.Name() + ":" + r.Tag
}

// ParseImageReference parses an image reference as people write it. A reference
// without a tag means latest, one with tag and digest means the digest, and one
// without a registry is Docker Hub's. oci:/path, with a tag or digest, is an image in an
// OCI image layout. oci:// may stand before a registry.
func ParseImageReference(s string) (ImageReference, error) {
	s = strings.TrimPrefix(s, "oci://")
	if err := checkReferenceText(s); err != nil {
		return ImageReference{}, err
	}
	name, digest, pinned := strings.Cut(s, "@")
	if pinned && !IsImageDigest(digest) {
		return ImageReference{}, errors.New("the digest after @ must be sha256: and 64, or sha512: and 128, lower-case hexadecimal digits")
	}
	if strings.HasPrefix(name, layoutPrefix) {
		return parseLayout(name, digest)
	}
	registry, path := splitRegistry(name)
	repository, tag := path, "latest"
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		repository, tag = path[:i], path[i+1:]
	}
	if !tagPattern.MatchString(tag) {
		return ImageReference{}, tagError(tag)
	}
	host, err := ParseRegistry(registry)
	if err != nil {
		return ImageReference{}, err
	}
	if host == DockerHub && !strings.Contains(repository, "/") {
		repository = "library/" + repository
	}
	if len(repository) > 255 {
		return ImageReference{}, errors.New("the repository is longer than 255 bytes")
	}
	if !repositoryPattern.MatchString(repository) {
		return ImageReference{}, fmt.Errorf("repository %.80q: lower-case letters and digits, with '.', '_' or '-' between them, in parts divided by '/'", repository)
	}
	if pinned {
		return ImageReference{Registry: host, Repository: repository, Digest: digest}, nil
	}
	return ImageReference{Registry: host, Repository: repository, Tag: tag}, nil
}

func parseLayout(name, digest string) (ImageReference, error) {
	path, tag, tagged := strings.Cut(name[len(layoutPrefix):], ":")
	switch {
	case !layoutPattern.MatchString(layoutPrefix + path):
		return ImageReference{}, fmt.Errorf("layout %.80q: an absolute path is wanted, whose parts have letters, digits, '_', '-' and '.' and do not begin with '.'", path)
	case tagged && !tagPattern.MatchString(tag):
		return ImageReference{}, tagError(tag)
	case digest != "":
		return ImageReference{Layout: path, Digest: digest}, nil
	}
	return ImageReference{Layout: path, Tag: tag}, nil
}

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
	if !ok || !isRegistry(first) {
		return DockerHub, name
	}
	return first, rest
}

func isRegistry(s string) bool {
	return strings.ContainsAny(s, ".:[") || strings.EqualFold(s, "localhost")
}

func tagError(tag string) error {
	return fmt.Errorf("tag %.80q: letters, digits, '_', '.' and '-' are allowed, at most 128", tag)
}

// ParseRegistry returns the normal spelling of a registry's host and port, by which registries are compared.
func ParseRegistry(s string) (string, error) {
	host, port := strings.ToLower(s), ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return "", fmt.Errorf("registry %.80q: the port must be a number from 1 to 65535", s)
		}
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	addr, err := netip.ParseAddr(bare)
	bracketed := strings.HasPrefix(s, "[")
	switch {
	case err == nil && addr.Is6() && addr.Zone() == "" && bracketed:
		host = "[" + addr.String() + "]"
	case err == nil && addr.Is4() && !bracketed:
	case bracketed || len(host) > 253 || !registryPattern.MatchString(host):
		return "", fmt.Errorf("registry %.80q is not a host name or address, with or without a port", s)
	}
	if slices.Contains(dockerHubAliases, host) {
		host = DockerHub
	}
	if port == "" || port == "443" {
		return host, nil
	}
	return host + ":" + port, nil
}

// IsImageName reports whether s can be registry/repository, or oci:/path: nothing in it
// means anything to iPXE or a URL.
func IsImageName(s string) bool {
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
