package forge

import (
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// maxAddress bounds the address of a repository, in bytes.
const maxAddress = 2000

// Address is where a repository is at its forge, as all addresses of it say: over HTTP, over
// SSH and in the browser.
type Address struct {
	scheme string // of its pages: http or https
	host   string // of its pages, in lower case, with a port that is not the scheme's
	path   string // infra/metal, as it was written
}

// scpAddress is the short form of an SSH address, user@host:path.
var scpAddress = regexp.MustCompile(`^(?:[\w.-]+@)?([\w.-]+):/?([^/].*)$`)

// sshHosts are the hosts that forges have for SSH on the port of HTTPS.
var sshHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}

// ParseAddress reads the address of a repository at a forge. It returns false for a path on
// this machine, and for what is no address.
func ParseAddress(raw string) (Address, bool) {
	if len(raw) > maxAddress {
		return Address{}, false
	}
	a := Address{scheme: "https"}
	if m := scpAddress.FindStringSubmatch(raw); m != nil && !strings.Contains(raw, "://") {
		a.host, a.path = m[1], m[2]
	} else {
		u, err := url.Parse(raw)
		if err != nil {
			return Address{}, false
		}
		a.path = u.Path
		switch strings.ToLower(u.Scheme) {
		case "http":
			a.scheme, a.host = "http", webHost(u, "80")
		case "https":
			a.host = webHost(u, "443")
		case "ssh", "git", "git+ssh":
			a.host = u.Hostname() // the port is that of SSH
		}
	}
	a.host = strings.ToLower(strings.TrimSuffix(a.host, "."))
	if web, ok := sshHosts[a.host]; ok {
		a.host = web
	}
	a.path = strings.TrimPrefix(path.Clean("/"+strings.TrimSuffix(strings.TrimRight(a.path, "/"), ".git")), "/")
	return a, a.host != "" && a.path != ""
}

// webHost is a URL's host, with its port unless that is the usual one.
func webHost(u *url.URL, usual string) string {
	if p := u.Port(); p != "" && p != usual {
		return net.JoinHostPort(u.Hostname(), p)
	}
	if strings.Contains(u.Hostname(), ":") {
		return "[" + u.Hostname() + "]"
	}
	return u.Hostname()
}

// String is the address without scheme, git.example.com/infra/metal.
func (a Address) String() string { return a.host + "/" + a.path }
