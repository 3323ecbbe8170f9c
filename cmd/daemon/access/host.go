package access

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// IsLoopback reports whether a listener can be reached from this machine only.
func IsLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// answersTo returns v if the name of a Host header is the listener's, else a refusal.
func (a *Access) answersTo(host string, v verdict) verdict {
	if a.isOurs(nameOf(host)) {
		return v
	}
	const doing = "; set admin.url for others"
	text := "this listener answers to its addresses and to its own names only" + doing
	if a.loopback {
		text = "this listener answers to localhost, 127.0.0.1 and [::1] only" + doing
	}
	return verdict{refusal: refusedHost, code: 403, text: text}
}

// isOurs reports whether a name is the listener's. An address always is where others reach
// it, because the page of another machine cannot have this one's address as its name.
func (a *Access) isOurs(name string) bool {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().IsLoopback() || !a.loopback || slices.Contains(a.opts.Hosts, name)
	}
	switch {
	case name == "":
		return false
	case name == "localhost", slices.ContainsFunc(a.opts.Hosts, func(h string) bool { return nameOf(h) == name }):
		return true
	case a.loopback:
		return false
	case name == strings.ToLower(a.hostname):
		return true
	}
	return a.pair != nil && a.pair.get().Leaf.VerifyHostname(name) == nil
}

// nameOf is the host of a Host header without its port, in lower case.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
