package listen

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// PublicURL returns the URL at which servers reach the listener: the configured one, or
// else one made from the listener's address. A listener on all addresses is reached at
// the first address of the host that is not loopback.
func PublicURL(configured string, listener net.Addr, host func() ([]net.Addr, error)) (string, error) {
	if configured != "" {
		return strings.TrimRight(configured, "/"), nil
	}
	tcp, ok := listener.(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("%s is not a TCP address", listener)
	}
	ip := tcp.IP
	if ip.IsUnspecified() || ip == nil {
		addresses, err := host()
		if err != nil {
			return "", fmt.Errorf("list the addresses of this machine: %w", err)
		}
		ip = firstReachable(addresses)
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(ip.String(), fmt.Sprint(tcp.Port))}
	return u.String(), nil
}

// firstReachable returns the first address that other machines can reach, IPv4
// before IPv6 for the sake of firmware, or loopback when there is none.
func firstReachable(addresses []net.Addr) net.IP {
	var v6 net.IP
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP
		}
		if v6 == nil {
			v6 = n.IP
		}
	}
	if v6 != nil {
		return v6
	}
	return net.IPv4(127, 0, 0, 1)
}
