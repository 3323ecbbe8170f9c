package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/dhcp"
	"ingot/cmd/daemon/config"
	"ingot/cmd/daemon/listen"
)

func listeners(ctx context.Context, o *config.Options) []Result {
	var results []Result
	for _, s := range o.Listeners() {
		if s.Address == "" {
			continue
		}
		results = append(results, listenResult(s.Key, s.Address, tryListen(ctx, s.Key, s.Address)))
	}
	if address := o.TFTP.Listen; address != "" {
		c, err := net.ListenPacket("udp", address)
		if err == nil {
			_ = c.Close()
		}
		results = append(results, listenResult("tftp.listen", address, err))
	}
	return results
}

func tryListen(ctx context.Context, key, address string) error {
	ln, err := listen.Open(ctx, key, address)
	if err == nil {
		_ = ln.Close()
	}
	return err
}

func listenResult(key, address string, err error) Result {
	switch {
	case err == nil:
		return ok(key, address+" is free")
	case errors.Is(err, syscall.EADDRINUSE):
		return wrong(key, address+" is in use", "stop the program that listens there, which may be Ingot itself (ss -lntup), or set another port")
	case errors.Is(err, syscall.EACCES):
		return wrong(key, address+" is not permitted", "give Ingot the capability CAP_NET_BIND_SERVICE, as its systemd unit does")
	}
	return wrong(key, err.Error(), "set an address that this machine has, or leave the host out")
}

// urls checks whether the addresses that servers are told lead to this machine.
func urls(ctx context.Context, o *config.Options) []Result {
	var results []Result
	for _, l := range []struct{ key, configured, address string }{
		{"boot.url", o.Boot.URL, o.Boot.Listen}, {"registry.url", o.Registry.URL, o.Registry.Listen},
	} {
		if l.address != "" {
			results = append(results, reach(ctx, l.key, l.configured, l.address))
		}
	}
	return results
}

// reach listens for a moment, and asks itself by the URL that servers are told.
func reach(ctx context.Context, key, configured, address string) Result {
	ln, err := listen.Open(ctx, key, address)
	if err != nil {
		return skipped(key, "nothing can listen on "+address)
	}
	nonce := uuid.NewString()
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, nonce) }),
		ReadHeaderTimeout: wait, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { _ = server.Serve(ln) }() // until it is closed
	defer func() { _ = server.Close() }()
	public, err := listen.PublicURL(configured, ln.Addr(), net.InterfaceAddrs)
	if err != nil {
		return wrong(key, err.Error(), "set "+key)
	}
	return urlResult(key, public, askNonce(ctx, public, nonce))
}

// askNonce asks a URL, and wants a certain answer.
func askNonce(ctx context.Context, public, nonce string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, public+"/check", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // servers have no proxy either
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if err == nil && string(body) != nonce {
		err = errors.New("something else answers there")
	}
	return err
}

// urlResult judges whether servers can reach a URL, given how this machine fared.
func urlResult(key, public string, err error) Result {
	u, parseErr := url.Parse(public)
	if parseErr != nil {
		return wrong(key, parseErr.Error(), "set "+key)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	switch {
	case addr.IsLoopback() || u.Hostname() == "localhost":
		return wrong(key, public+" is this machine's own, which no server can reach", "set "+key+" to an address that servers can reach, such as http://192.0.2.1:"+u.Port())
	case err != nil:
		return wrong(key, fmt.Sprintf("%s does not lead here: %v", public, err), "correct "+key+", or what is in between: DNS, proxy, firewall")
	}
	return ok(key, public+" leads here, as seen from this machine")
}

// dhcpSockets checks whether the sockets of DHCP can be opened, and frames be sent.
func dhcpSockets(ctx context.Context, o *config.Options) []Result {
	if !slices.ContainsFunc(o.DHCP, dhcp.Network.Serves) {
		return nil
	}
	var results []Result
	for _, n := range o.DHCP {
		if n.Interface == "" {
			continue
		}
		if _, err := net.InterfaceByName(n.Interface); err != nil {
			results = append(results, wrong("dhcp "+n.Name, "there is no interface "+n.Interface, "name one of: "+interfaceNames()))
		}
	}
	server, err := dhcp.New(dhcp.Options{Networks: o.DHCP, Registerer: prometheus.NewRegistry()})
	if err == nil {
		err = server.Listen(ctx)
		server.Close()
	}
	results = append(results, judged("dhcp", err, "its ports are free",
		"stop the other DHCP server on this machine (ss -lnup), or give Ingot CAP_NET_BIND_SERVICE and CAP_NET_RAW"))
	return append(results, rawSockets())
}

// rawSockets checks whether frames can be sent to clients that have no address yet.
func rawSockets() Result {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return judged("CAP_NET_RAW", err, "frames can be sent", "give Ingot the capability CAP_NET_RAW, as its systemd unit does")
}

func interfaceNames() string {
	all, _ := net.Interfaces() // then there are none to name
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// dhcpServers asks on each interface whether a DHCP server answers.
func dhcpServers(ctx context.Context, o *config.Options) []Result {
	var results []Result
	for _, n := range o.DHCP {
		if n.Interface == "" || !n.Serves() {
			continue
		}
		server, err := dhcp.Ask(ctx, n.Interface, 2*time.Second)
		results = append(results, dhcpResult(n, server, err, ownAddresses()))
	}
	return results
}

func dhcpResult(n dhcp.Network, server netip.Addr, err error, own []netip.Addr) Result {
	check := "dhcp " + n.Name + " other servers"
	switch {
	case err != nil:
		return skipped(check, err.Error())
	case slices.Contains(own, server):
		return skipped(check, "this machine answered: Ingot or another DHCP server runs here")
	case n.Leases() && server.IsValid():
		return wrong(check, fmt.Sprintf("%s serves addresses on %s", server, n.Interface), "turn that server off, or set mode: proxy, which works beside it")
	case !n.Leases() && !server.IsValid():
		return wrong(check, "no DHCP server answers on "+n.Interface+", and mode: proxy needs one", "set mode: server with subnets, or turn the other server on")
	case server.IsValid():
		return ok(check, fmt.Sprintf("%s serves addresses, and Ingot works beside it", server))
	}
	return ok(check, "no other DHCP server answers on "+n.Interface)
}

func ownAddresses() []netip.Addr {
	all, _ := net.InterfaceAddrs() // then none is known for own
	var own []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own
}
