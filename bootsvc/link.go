package bootsvc

import (
	"net/netip"
	"strconv"
)

// baseFor returns the URL that links in r's answer begin with. A Host header that
// is no plain IP address could be anything, and is passed over.
func (s *Server) baseFor(r *request) string {
	if !s.fromHost {
		return s.base
	}
	if host, ok := literalHost(r.Host); ok {
		if r.TLS != nil {
			return "https://" + host
		}
		return "http://" + host
	}
	return s.base
}

// literalHost returns a Host header (RFC 9110 §7.2) that is an IP address which
// other machines can reach, with or without a port, in its canonical form.
func literalHost(host string) (string, bool) {
	at, err := netip.ParseAddrPort(host)
	port := ":" + strconv.Itoa(int(at.Port()))
	if err != nil {
		at, err = netip.ParseAddrPort(host + ":80")
		port = ""
	}
	addr := at.Addr()
	switch {
	case err != nil, at.Port() == 0, addr.Zone() != "", addr.IsUnspecified(), addr.IsMulticast():
		return "", false
	case addr.Is6():
		return "[" + addr.String() + "]" + port, true
	}
	return addr.String() + port, true
}
