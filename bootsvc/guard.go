package bootsvc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// errForbiddenAddress is returned for addresses that no registry lives at.
var errForbiddenAddress = errors.New("the address is refused: link-local and metadata addresses are never registries, and this machine itself only if the image reference names it")

// metadataAddresses are where clouds serve credentials, beside 169.254.169.254.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
}

// forbidden reports whether nothing may ever be fetched from addr.
func forbidden(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.Contains(metadataAddresses, addr) || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified()
}

// loopbackHost reports whether host is this machine, written literally.
func loopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

type localKey struct{}

// withLocal notes in ctx whether the image reference itself names this machine,
// and so whether this machine may be asked.
func withLocal(ctx context.Context, registry string) context.Context {
	return context.WithValue(ctx, localKey{}, loopbackHost(hostname(registry)))
}

// guard is a RoundTripper that keeps image references, redirects and token
// realms from reaching what is no registry.
type guard struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, fmt.Errorf("scheme %q is neither http nor https", req.URL.Scheme)
	}
	local, _ := req.Context().Value(localKey{}).(bool)
	if err := checkHost(req.URL.Hostname(), local); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(req)
}

// checkHost refuses a host that is a forbidden address, or this machine unless
// local.
func checkHost(host string, local bool) error {
	addr, err := netip.ParseAddr(host)
	if err == nil && forbidden(addr) || !local && loopbackHost(host) {
		return errForbiddenAddress
	}
	return nil
}

// newTransport returns what registries are reached by, behind a guard. Names are
// checked again once they are resolved, for a name may lead anywhere.
func newTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: timeout,
		// Of a registry that never ends.
		MaxResponseHeaderBytes: 256 << 10,
		// Layers are compressed already and are verified as they are.
		DisableCompression: true,
	}
}

// dial connects to addr unless it resolves to a forbidden address, or to this
// machine without saying so.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	local := loopbackHost(host)
	d := net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(_, resolved string, _ syscall.RawConn) error {
			return checkResolved(resolved, local)
		},
	}
	return d.DialContext(ctx, network, addr)
}

// checkResolved refuses an address and port that a name resolved to, as checkHost
// refuses names.
func checkResolved(resolved string, local bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil || forbidden(ap.Addr()) || ap.Addr().Unmap().IsLoopback() && !local {
		return errForbiddenAddress
	}
	return nil
}
