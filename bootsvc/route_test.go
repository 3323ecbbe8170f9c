package bootsvc

import (
	"strings"
	"testing"
)

func TestRoutes(t *testing.T) {
	for path, want := range map[string]string{
		"":                                 "other",
		"/":                                "other",
		"/ipxe":                            "/ipxe/ ",
		"//ipxe//":                         "/ipxe/ ",
		"/ipxe/a":                          "/ipxe/{uuid} a",
		"/ipxe/a/b":                        "other",
		"/ignition":                        "other",
		"/ignition/a":                      "/ignition/{uuid} a",
		"/ignition/a//b":                   "/ignition/{uuid}/{token} a,b",
		"/ignition/a/b/c":                  "other",
		"/nocloud/a/b":                     "other",
		"/nocloud/a/b/c":                   "/nocloud/{uuid}/{token}/{file} a,b,c",
		"/nocloud/a/b/c/d":                 "other",
		"/image":                           "/image ",
		"/image/a":                         "other",
		"/httpboot":                        "/httpboot ",
		"/httpboot/a":                      "other",
		"/httpboot/a/b":                    "other",
		"/httpboot/a/b/c":                  "/httpboot/{image} a,b,c",
		"/httpboot/a/b/c/d/e/f/g":          "/httpboot/{image} a,b,c,d,e,f,g",
		"/loader":                          "other",
		"/loader/a":                        "/loader/{name} a",
		"/IPXE":                            "other",
		"/" + strings.Repeat("a", maxPath): "other",
	} {
		r, args := find(path)
		got := r.pattern
		if r != unknownPath {
			got += " " + strings.Join(args, ",")
		} else if args != nil {
			got += " with " + strings.Join(args, ",")
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
