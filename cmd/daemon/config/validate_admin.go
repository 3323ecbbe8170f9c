package config

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"ingot/model"
)

// admin checks who may look at the admin listener.
func (c *checks) admin(a *Admin) {
	switch {
	case a.TLS.CertFile != "" && a.TLS.KeyFile == "":
		c.wrong("admin.tls.keyFile", "is empty though admin.tls.certFile is set; name the file with the certificate's key")
	case a.TLS.CertFile == "" && a.TLS.KeyFile != "":
		c.wrong("admin.tls.certFile", "is empty though admin.tls.keyFile is set; name the file with the certificate")
	}
	c.trustedHeader(&a.TrustedHeader)
	for _, u := range a.urls() {
		if !isHTTPURL(u) {
			c.wrong("admin.url", "%q is not allowed: must be the URL at which people reach the admin listener, such as https://ingot.example.com", u)
		}
	}
	if host, port, err := net.SplitHostPort(a.Listen); err == nil && port != "" && !a.Guarded() && reached(host) {
		c.wrong("admin.listen", "%s", Unguarded(a.Listen))
	}
}

// reached reports whether a listener on host is certainly reached from other machines. What
// a name stands for is known once it is listened on.
func reached(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && !ip.Unmap().IsLoopback()
}

// Guarded reports whether something says who may look.
func (a *Admin) Guarded() bool {
	return a.TLS.CertFile != "" || a.Users != "" || a.TrustedHeader.Name != ""
}

// Unguarded says what to do about an admin listener that other machines reach, while nothing
// says who may look.
func Unguarded(address string) string {
	return fmt.Sprintf("%q is reached from other machines, and nothing says who may look; either name users and their passwords in admin.users, "+
		"a file that htpasswd -B writes; or have a proxy that knows its users name them in admin.trustedHeader; or set admin.tls, if "+
		"everybody who reaches it may look; or listen on this machine alone, such as 127.0.0.1:8080. "+
		"With admin.openMetrics: true Prometheus needs no password beside any of these; see docs/admin.md", address)
}

// sentByMany are headers that clients and proxies send for purposes of their own.
var sentByMany = []string{"Authorization", "Cookie", "Host", "From", "User-Agent", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded"}

// headerName matches the name of a header field (RFC 9110 §5.6.2).
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (c *checks) trustedHeader(t *TrustedHeader) {
	switch {
	case t.Name == "" && len(t.From) > 0:
		c.wrong("admin.trustedHeader.name", "is empty though admin.trustedHeader.from is set; name the header in which the proxy names the user, such as X-Forwarded-User")
	case t.Name != "" && len(t.From) == 0:
		c.wrong("admin.trustedHeader.from", "is empty though admin.trustedHeader.name is set: anybody could name himself; name the addresses of the proxy, such as 10.0.0.5")
	case t.Name == "":
	case !headerName.MatchString(t.Name) || slices.Contains(sentByMany, http.CanonicalHeaderKey(t.Name)):
		c.wrong("admin.trustedHeader.name", "%q is not allowed: must be a header that the proxy alone sets, such as X-Forwarded-User", t.Name)
	}
	for i, from := range t.From {
		if _, err := proxies(from); err != nil {
			c.wrong(fmt.Sprintf("admin.trustedHeader.from[%d]", i), "%v", err)
		}
	}
}

// proxies reads a network, or an address. All addresses there are would be no proxy.
func proxies(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := model.ParseNetwork(text)
	if err == nil && p.Bits() == 0 {
		err = fmt.Errorf("%s is everybody, who could name himself; name the addresses of the proxy, such as 10.0.0.5", text)
	}
	return p, err
}

// Networks are the addresses that the header is believed from. Validate has refused what is
// none.
func (t *TrustedHeader) Networks() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range t.From {
		if p, err := proxies(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

func (a *Admin) urls() []string {
	return strings.FieldsFunc(a.URL, func(r rune) bool { return r == ',' || r == ' ' })
}

// Names are the names in admin.url, to which the admin listener answers in addition to its own.
func (a *Admin) Names() []string {
	var names []string
	for _, text := range a.urls() {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			names = append(names, u.Hostname())
		}
	}
	return names
}
