package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// loopbackOnly refuses requests for a host name other than loopback's. Otherwise a page in a
// browser on this machine could read what is here: once it is loaded, its name can resolve
// to loopback (DNS rebinding).
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesLoopback(r.Host) {
			writeText(w, http.StatusForbidden, "this listener answers to localhost, 127.0.0.1 and [::1] only\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesLoopback reports whether host, with or without a port, is localhost or a
// loopback address.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// isLoopback reports whether a listener can be reached from this machine only.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
