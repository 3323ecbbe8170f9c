package oci

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"ingot/model"
)

// addressError says why an address is refused.
type addressError string

// Error implements error.
func (e addressError) Error() string { return string(e) }

// AddressRefused reports that nothing was asked at the address, so that it can be told.
func (e addressError) AddressRefused() bool { return true }

const (
	// errForbiddenAddress is returned for addresses that no registry lives at.
	errForbiddenAddress addressError = "the address is refused: link-local and metadata addresses are never registries, " +
		"and this machine itself only if the image reference names it"
	// errInside is returned for addresses where no registry is but those that the
	// configuration names.
	errInside addressError = "the address is this machine's, of the BMCs' networks, or a private one that a URL redirects to: " +
		"if images come from there, boot.registries must list it with its port"
)

// forbidden reports whether nothing may ever be fetched from addr.
func forbidden(addr netip.Addr) bool {
	reserve := model.ReserveOf(addr)
	return reserve != model.ReserveNone && reserve != model.ReserveLoopback
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

// egress is where registries are not, but those that the configuration names.
type egress struct {
	// inside reports whether an address belongs to BMCs; nil = none does.
	inside func(netip.Addr) bool
	named  []string // registries in their normal spelling
	closed bool     // private networks are inside as well
	here   []string // those that use TLS, which may be on this machine by any name
	open   bool     // all are as if named
}

// names reports whether the configuration names the registry at host:port.
func (f egress) names(address string) bool { return f.open || isAmong(f.named, address) }

// isAmong reports whether registries contain the one at host:port.
func isAmong(registries []string, address string) bool {
	registry, err := model.ParseRegistry(address)
	// A registry without TLS may also be written without its port.
	return err == nil && (slices.Contains(registries, registry) || slices.Contains(registries, strings.TrimSuffix(registry, ":80")))
}

// isHere reports whether the configuration says of the registry at host:port that it is on
// this machine.
func (f egress) isHere(address string) bool {
	registry, err := model.ParseRegistry(address)
	return err == nil && slices.Contains(f.here, registry)
}

// check refuses an address that is inside, unless the configuration names the registry at host:port that leads there.
func (f egress) check(addr netip.Addr, address string) error {
	addr = addr.Unmap().WithZone("")
	private := !model.IsPublic(addr)
	if (f.closed && private || addr.IsLoopback() || f.inside != nil && f.inside(addr)) && !f.names(address) {
		return errInside
	}
	return nil
}

type proxyKey struct{}

// egressTransport is a RoundTripper that keeps image references, redirects and token
// realms from reaching what is no registry.
type egressTransport struct {
	next   *authorities
	egress egress
}

// RoundTrip implements http.RoundTripper.
func (g egressTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, fmt.Errorf("scheme %q is neither http nor https", req.URL.Scheme)
	}
	local, _ := req.Context().Value(localKey{}).(bool)
	if err := checkHost(req.URL.Hostname(), local); err != nil {
		return nil, err
	}
	if addr, err := hostAddr(req.URL.Hostname()); err == nil {
		if err := g.egress.check(addr, net.JoinHostPort(req.URL.Hostname(), portOf(req.URL))); err != nil {
			return nil, err
		}
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
		req = req.WithContext(context.WithValue(req.Context(), proxyKey{}, net.JoinHostPort(proxy.Hostname(), portOf(proxy))))
	}
	return g.next.RoundTrip(req)
}

// hostAddr is the address that a host is written as; localhost is one.
func hostAddr(host string) (netip.Addr, error) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return netip.ParseAddr(host)
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

// newEgress returns a transport that trusts the system's authorities and those in the file, behind a filter.
func newEgress(f egress, timeout time.Duration, file string) (egressTransport, error) {
	a := &authorities{file: file, base: newTransport(timeout, f)}
	if err := a.read(); err != nil {
		return egressTransport{}, fmt.Errorf("boot.caFile: %w", err)
	}
	return egressTransport{a, f}, nil
}

// newTransport returns what registries are reached by, behind an egressTransport. Names are
// checked again once they are resolved, for a name may lead anywhere.
func newTransport(timeout time.Duration, f egress) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           f.dial,
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

// dial connects to addr unless it resolves to a forbidden address, to this machine
// without saying so, or to what is inside. The proxy that the environment names is
// the operator's own choice.
func (f egress) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	local := loopbackHost(host) || f.isHere(addr)
	proxy, _ := ctx.Value(proxyKey{}).(string)
	d := net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(_, resolved string, _ syscall.RawConn) error {
			if err := checkResolved(resolved, local); err != nil || addr == proxy {
				return err
			}
			return f.check(netip.MustParseAddrPort(resolved).Addr(), addr)
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

// Client returns a client for a file on a web server, and whether the configuration names that server. The list and
// the authorities are those of registries. With a list, redirects may lead only to listed hosts and public addresses:
// unlike registries, web servers redirect wherever a URL asks for it. No credentials are sent, and there is no timeout.
func (i *Images) Client(file model.ImageURL) (client *http.Client, named bool, err error) {
	u, err := url.Parse(file.URL)
	if err != nil {
		return nil, false, err
	}
	address := net.JoinHostPort(u.Hostname(), portOf(u))
	if err := i.allowHost("host "+u.Host, address, isAmong(slices.Collect(maps.Keys(i.registries)), address)); err != nil {
		return nil, false, err
	}
	return &http.Client{Transport: urlTransport{i.files}}, i.egress.names(address), nil
}

// urlTransport is a RoundTripper for what people name by a URL. Only the URL that they wrote may
// name this machine; a redirect does not.
type urlTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u urlTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request // of a redirect, what led here
	}
	return u.next.RoundTrip(req.WithContext(withLocal(req.Context(), first.URL.Host)))
}

// OnThisMachine reports whether a registry, host or host:port, is written as this machine
// itself, and so is spoken to without TLS.
func OnThisMachine(registry string) bool { return loopbackHost(hostname(registry)) }

// hostname returns a registry's host without port and brackets.
func hostname(registry string) string {
	if h, _, err := net.SplitHostPort(registry); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(registry, "["), "]")
}
