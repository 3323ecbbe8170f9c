package bootsvc

import (
	"net/http"
	"regexp"
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
		"/files":                           "other",
		"/files/a":                         "/files/{path} a",
		"/files/a//b/c":                    "/files/{path} a,b,c",
		"/IPXE":                            "other",
		"/" + strings.Repeat("a", maxPath): "other",
	} {
		r, args := find(path, nil)
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

func FuzzScriptPath(f *testing.F) {
	for _, s := range []string{
		"/ipxe/" + uuid1, "/ipxe", "//ipxe//x", "/ignition/" + uuid1 + "/x", "/image?imageName=a", "/httpboot/a/b/sha256-0.efi",
		"/../../etc/passwd", "/ipxe/%00",
	} {
		f.Add(s)
	}
	d := newDesk()
	d.arm(scriptTicket(), "{}")
	h := newServer(f, d, nil).Handler()
	token := tokenOf(scriptTicket()).Reveal()
	f.Fuzz(func(t *testing.T, target string) {
		w := ask(h, http.MethodGet, target)
		if w.Code != 200 && w.Code != 404 && w.Code != 403 {
			t.Fatalf("%q: %d %s", target, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), token) && !strings.Contains(strings.ToLower(target), uuid1) {
			t.Fatalf("%q: a token for nobody", target)
		}
		for line := range strings.SplitSeq(w.Body.String(), "\n") {
			if w.Code == 200 && line != "" && !knownLine.MatchString(line) {
				t.Fatalf("%q: odd line %q", target, line)
			}
		}
	})
}

var knownLine = regexp.MustCompile(`^(#!ipxe|:mac|exit|boot|(set|isset|iseq|chain|echo|kernel|initrd|sleep) [ -~]+)$`)
