package forge

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Web makes the addresses of a repository's pages at its forge. The zero Web makes none.
type Web struct {
	base  string // of the repository, without a slash at the end
	style webStyle
}

// webStyle is what is different from forge to forge: the paths below that of the repository,
// which a commit or branch follows.
type webStyle struct{ commit, file, branch, history string }

var giteaStyle = webStyle{commit: "/commit/", file: "/src/commit/", branch: "/src/branch/", history: "/commits/branch/"}

var webStyles = map[string]webStyle{
	"github":  {commit: "/commit/", file: "/blob/", branch: "/tree/", history: "/commits/"},
	"gitlab":  {commit: "/-/commit/", file: "/-/blob/", branch: "/-/tree/", history: "/-/commits/"},
	"gitea":   giteaStyle,
	"forgejo": giteaStyle,
}

// webHosts are forges that everybody knows, by their host, and what hosts of one's own are
// usually called.
var webHosts = []struct{ host, style string }{
	{"github.com", "github"}, {"gitlab.com", "gitlab"}, {"codeberg.org", "forgejo"},
	{"github.", "github"}, {"gitlab.", "gitlab"}, {"forgejo.", "forgejo"}, {"gitea.", "gitea"},
}

// NewWeb returns the addresses of a repository's pages. Base is the address of its first page, derived from
// the repository's if empty. Kind is one of Providers, derived from the host if empty. The Web makes no
// addresses if one of them is unknown.
func NewWeb(repository, base, kind string) (Web, error) {
	if base == "" {
		a, known := ParseAddress(repository)
		if !known {
			return Web{}, nil
		}
		base = a.scheme + "://" + a.host + "/" + a.path
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Web{}, fmt.Errorf("%q is no address of a repository's page: write https://host/owner/name", base)
	}
	style, known := webStyles[cmp.Or(kind, styleOf(u.Hostname()))]
	if !known {
		return Web{}, nil
	}
	return Web{strings.TrimRight(u.String(), "/"), style}, nil
}

// styleOf is the style of a host that is plainly one of the forges, "" for others.
func styleOf(host string) string {
	host = strings.ToLower(host)
	at := slices.IndexFunc(webHosts, func(h struct{ host, style string }) bool {
		return host == h.host || strings.HasSuffix(h.host, ".") && strings.HasPrefix(host, h.host)
	})
	if at < 0 {
		return ""
	}
	return webHosts[at].style
}

// File is the page of a file in a commit, at a line if that is not 0; "" if that is not
// known.
func (w Web) File(commit, path string, line int) string {
	if path == "" {
		return ""
	}
	address := w.below(w.style.file, commit, path)
	if address != "" && line > 0 {
		address += "#L" + strconv.Itoa(line)
	}
	return address
}

// Commit is the page of a commit.
func (w Web) Commit(hash string) string { return w.below(w.style.commit, hash, "") }

// Branch is the page of a file on a branch, or of the branch.
func (w Web) Branch(branch, path string) string { return w.below(w.style.branch, branch, path) }

// History is the page with the commits of a file on a branch.
func (w Web) History(branch, path string) string { return w.below(w.style.history, branch, path) }

// below is an address below the repository's page, "" without one.
func (w Web) below(path, ref, file string) string {
	if w.base == "" || ref == "" {
		return ""
	}
	address := w.base + path + escapedPath(ref)
	if file != "" {
		address += "/" + escapedPath(file)
	}
	return address
}

func escapedPath(path string) string {
	elements := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}
