package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

var (
	refSHA256 = "sha256:" + strings.Repeat("a", 64)
	refSHA512 = "sha512:" + strings.Repeat("b", 128)
)

func TestParseReference(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want ImageReference
	}{
		"a name without a tag is latest":            {"ghcr.io/a/b", ImageReference{"ghcr.io", "a/b", "latest", "", ""}},
		"a tag is a tag":                            {"ghcr.io/a/b:1.2_x", ImageReference{"ghcr.io", "a/b", "1.2_x", "", ""}},
		"I01: of tag and digest the digest wins":    {"ghcr.io/a/b:1@" + refSHA256, ImageReference{"ghcr.io", "a/b", "", refSHA256, ""}},
		"sha512 is a digest too":                    {"ghcr.io/a/b@" + refSHA512, ImageReference{"ghcr.io", "a/b", "", refSHA512, ""}},
		"I14: a port is not a tag":                  {"host:5000/repo", ImageReference{"host:5000", "repo", "latest", "", ""}},
		"a port and a tag":                          {"host:5000/repo:x", ImageReference{"host:5000", "repo", "x", "", ""}},
		"I08: registries have no capital letters":   {"GHCR.IO/a", ImageReference{"ghcr.io", "a", "latest", "", ""}},
		"I08: Docker Hub has one name":              {"index.docker.io/library/a", ImageReference{"docker.io", "library/a", "latest", "", ""}},
		"no registry is Docker Hub":                 {"a/b:1", ImageReference{"docker.io", "a/b", "1", "", ""}},
		"one word is Docker Hub's library":          {"debian", ImageReference{"docker.io", "library/debian", "latest", "", ""}},
		"the port of HTTPS goes without saying":     {"ghcr.io:443/a", ImageReference{"ghcr.io", "a", "latest", "", ""}},
		"localhost is a registry":                   {"localhost/a", ImageReference{"localhost", "a", "latest", "", ""}},
		"an IPv6 registry stands in brackets":       {"[fd00::1]:5000/a", ImageReference{"[fd00::1]:5000", "a", "latest", "", ""}},
		"an IPv4 registry with a port and a digest": {"10.0.0.1:5000/a@" + refSHA256, ImageReference{"10.0.0.1:5000", "a", "", refSHA256, ""}},
		"a layout may do without a tag":             {"oci:/srv/images/Probe", ImageReference{"", "", "", "", "/srv/images/Probe"}},
		"a layout with a tag":                       {"oci:/srv/probe.tar:v1", ImageReference{"", "", "v1", "", "/srv/probe.tar"}},
		"of a layout's tag and digest, too":         {"oci:/srv/probe:v1@" + refSHA256, ImageReference{"", "", "", refSHA256, "/srv/probe"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(ParseImageReference(tc.in))(t)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.in, diff)
			}
			again, err := ParseImageReference(got.String())
			if err != nil || again != got {
				t.Errorf("%s is read again as %v, %v", got, again, err)
			}
		})
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":                       {"", "is empty"},
		"a URL":                         {"https://ghcr.io/a", "no scheme"},
		"a space":                       {"ghcr.io/a b", "no spaces"},
		"a newline":                     {"ghcr.io/a\nset x y", "no spaces"},
		"letters of another alphabet":   {"ghсr.io/a", "beyond ASCII"},
		"a capital letter in the path":  {"ghcr.io/A", "lower-case"},
		"a path that climbs":            {"ghcr.io/../a", "lower-case"},
		"a tag of odd characters":       {"ghcr.io/a:ta%g", "tag"},
		"a short digest":                {"ghcr.io/a@sha256:abc", "64"},
		"a digest in capital letters":   {"ghcr.io/a@sha256:" + strings.Repeat("A", 64), "64"},
		"an algorithm that is not safe": {"ghcr.io/a@md5:" + strings.Repeat("a", 32), "sha256"},
		"user information":              {"user:pw@ghcr.io/a", "sha256"},
		"a port of no number":           {"ghcr.io:x/a", "port"},
		"a port out of range":           {"ghcr.io:70000/a", "port"},
		"a port with a leading zero":    {"ghcr.io:0443/a", "port"},
		"a zone":                        {"[fe80::1%25eth0]:5000/a", "not a host name"},
		"an address without brackets":   {"fd00::1/a", "not a host name"},
		"a dot at the end":              {"ghcr.io./a", "not a host name"},
		"a layout by a relative path":   {"oci:srv/probe", "absolute path"},
		"a layout that climbs":          {"oci:/srv/../etc", "absolute path"},
		"a layout with an odd tag":      {"oci:/srv/probe:ta%g", "tag"},
		"all of the file system":        {"oci:/", "absolute path"},
		"a very long name":              {"ghcr.io/" + strings.Repeat("a", 2000), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseImageReference(tc.in)
			if err == nil {
				t.Fatalf("%q is taken as %v", tc.in, got)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
		})
	}
}

func FuzzParseImageReference(f *testing.F) {
	for _, s := range []string{
		"a", "ghcr.io/a/b:1@" + refSHA256, "[::1]:5000/a", "host:5000/repo", "A.b/c", "AAA00/0", "LocalHost/0", "x//y", "oci:/srv/a.tar:1", "169.254.169.254/a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseImageReference(s)
		if err != nil {
			return
		}
		if both := r.Tag != "" && r.Digest != ""; both || r.Layout == "" && r.Tag == "" && r.Digest == "" {
			t.Fatalf("%q: exactly one of tag and digest is to be set, or none of a layout: %#v", s, r)
		}
		again, err := ParseImageReference(r.String())
		if err != nil || again != r {
			t.Fatalf("%q: %q is read again as %#v, %v", s, r.String(), again, err)
		}
		if !IsImageName(r.Name()) {
			t.Fatalf("%q: %q cannot stand in a script", s, r.Name())
		}
	})
}
