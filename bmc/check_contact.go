package bmc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// connection checks whether the BMC can be connected to.
func (k *checkup) connection(ctx context.Context) bool {
	conn, err := k.client.dialer(k.opts.Target.Scheme).DialContext(ctx, "tcp", k.opts.Target.Address)
	if err != nil {
		return k.fails("connection", err.Error(),
			k.orIPMI(ctx, "check the address, that the BMC is on, and that nothing between here and there keeps the connection from being made"))
	}
	at := conn.RemoteAddr()
	_ = conn.Close() // it was not used
	return k.works("connection", at.String())
}

// tls checks whether the BMC can be spoken with by TLS, and who it shows itself to be.
func (k *checkup) tls(ctx context.Context) bool {
	if k.opts.Target.Scheme == "http" {
		k.add(CheckItem{
			Check: "TLS", Result: CheckPartly, Detail: "http was requested: anyone on the path to the BMC can read the password",
			Advice: "use https if the BMC supports it",
		})
		return true
	}
	conn, err := k.client.wire.secure(ctx, "tcp", k.opts.Target.Address)
	if err != nil {
		return k.fails("TLS", err.Error(), k.orIPMI(ctx, tlsAdvice(err)))
	}
	_ = conn.Close()
	item := CheckItem{Check: "TLS", Result: CheckWorks, Needed: true}
	item.Detail = fmt.Sprintf("%s, %s; certificate SHA-256 %s, for %s, until %s", tls.VersionName(k.shown.Version),
		tls.CipherSuiteName(k.shown.CipherSuite), fingerprintOf(k.leaf), cmp.Or(clip(k.leaf.Subject.CommonName), "nobody"), k.leaf.NotAfter.Format(time.DateOnly))
	switch {
	case k.opts.CA != nil:
		item.Detail += "; signed by a CA that is trusted"
	case k.opts.Target.Fingerprint != "":
		item.Detail += "; it is the one that is expected"
	default:
		item.Detail += "; to be pinned on first contact"
	}
	switch now := time.Now(); {
	case now.After(k.leaf.NotAfter):
		item.Result, item.Advice = CheckPartly, "the certificate has expired, which is no harm to a pin: with a CA it would be refused"
	case now.Before(k.leaf.NotBefore):
		item.Result, item.Advice = CheckPartly, "the certificate is not valid yet: set the BMC's clock"
	case k.shown.Version < tls.VersionTLS12:
		item.Result, item.Advice = CheckPartly, "TLS of this version is broken: update the firmware"
	}
	k.add(item)
	return true
}

// tlsAdvice says what to do about a handshake that failed.
func tlsAdvice(err error) string {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, named := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case strings.Contains(err.Error(), noHandshake):
		return "it took the connection and then said nothing: restart the BMC, and check whether its web page answers"
	case errors.Is(err, ErrCertificateChanged):
		return "make sure that it is the BMC, for instance at its own console, and expect the certificate that is shown now"
	case noTLS:
		return "it does not speak TLS on this port: correct the port, or, if it has nothing else, use scheme http, which shows the password to everybody on the way"
	case unknown:
		return "name the CA that signed the certificate, or none: then the certificate is pinned on first contact"
	case named:
		return "the certificate is for another name: give it as the host name (spec.hostname of the BMC), or name no CA"
	case invalid:
		return "have the BMC's certificate renewed, or name no CA: then the certificate is pinned, and may have expired"
	case tooOld(err):
		return "it has no TLS 1.2: update its firmware, or, if there is none that has it, allow an older version for this BMC alone (annotation ingot/tls-minimum)"
	}
	return "it speaks no TLS that is understood: correct the port, or update its firmware"
}

// tooOld reports whether a handshake failed because no version of TLS is both known to the BMC
// and allowed. The library has no errors for that but their texts, the first of which is of
// an alert that the BMC sent (RFC 8446 §6.2), the second its own.
func tooOld(err error) bool {
	text := err.Error()
	return strings.Contains(text, "protocol version not supported") || strings.Contains(text, "unsupported protocol version")
}

func (k *checkup) redfish(ctx context.Context) bool {
	unlock, err := k.client.lockLogin(ctx)
	if err != nil {
		return k.fails("Redfish", err.Error(), "")
	}
	svc, err := k.client.rootLocked(ctx)
	unlock()
	if err != nil {
		advice := "it answers, but not as a BMC does: correct the address, or switch on Redfish in the BMC's settings"
		if errors.Is(err, ErrUnreachable) {
			advice = "it took the connection and then gave no answer: restart the BMC, and check whether its web page answers"
		}
		if statusOf(err) == http.StatusBadRequest && k.opts.Target.Scheme == "http" {
			advice = "it refuses http on this port: use https"
		}
		return k.fails("Redfish", err.Error(), k.orIPMI(ctx, advice))
	}
	detail := "the service root asks for the password"
	if !svc.wantsCredential {
		detail = "without expansion of collections: many small requests instead of few"
		if svc.expand != "" {
			detail = "expands collections"
		}
	}
	if k.opts.Target.Scheme == "http" && k.client.safer.Load() != nil {
		detail += "; it redirects http to https"
	}
	return k.works("Redfish", detail)
}

// login checks whether the BMC takes the credentials, and by what.
func (k *checkup) login(ctx context.Context) bool {
	c := k.client
	a, err := c.authorized(ctx)
	var svc *service
	if err == nil {
		svc, err = c.root(ctx)
	}
	if err == nil && a.basic { // nothing has proven the password yet
		_, err = c.get(ctx, cmp.Or(svc.systems, svc.managers))
	}
	switch {
	case err == nil && a.basic:
		k.add(CheckItem{
			Check: "login", Result: CheckPartly, Needed: true, Detail: "by HTTP Basic: the BMC opens no session that can be used",
			Advice: "every request carries the password, which some BMCs are slow to check: update the firmware if a newer one has sessions",
		})
		return true
	case err == nil:
		return k.works("login", "a session")
	}
	return k.fails("login", err.Error(), loginAdvice(err))
}

func loginAdvice(err error) string {
	switch {
	case errors.Is(err, ErrUnauthorized):
		return "correct user name and password, and check whether the account may log in by Redfish and is not locked: BMCs lock it for some minutes after a few wrong passwords"
	case errors.Is(err, ErrBusy):
		return "all of its sessions are taken: end some on its web page, or wait until they end by themselves, which takes half an hour on most"
	}
	return "look at the BMC's log, and restart the BMC if it fails for long"
}

// ipmiPort is where IPMI is spoken (IPMI 2.0 §13.1.2).
const ipmiPort = "623"

// ipmiWait is how long an answer to presencePing is waited for.
const ipmiWait = time.Second

// presencePing and presencePong are how the messages of RMCP begin by which a BMC that has
// IPMI is found (DSP0136 §3.2.4.2; IPMI 2.0 §13.2.3).
var (
	presencePing = []byte{0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x00, 0x00, 0x00}
	presencePong = []byte{0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x40}
)

// orIPMI is advice for a BMC that has IPMI alone, if it has, or else the other.
func (k *checkup) orIPMI(ctx context.Context, other string) string {
	if !k.answersIPMI(ctx) {
		return other
	}
	return "it answers IPMI, which is not enough: switch on Redfish (HTTPS) in the BMC's settings, or update its firmware; " +
		"a BMC that has no Redfish cannot be used"
}

// answersIPMI reports whether something at the BMC's address speaks IPMI.
func (k *checkup) answersIPMI(ctx context.Context) bool {
	host, _, err := net.SplitHostPort(k.opts.Target.Address)
	if err != nil {
		return false
	}
	d := k.client.dialer(k.opts.Target.Scheme)
	d.Timeout = ipmiWait
	conn, err := d.DialContext(ctx, "udp", net.JoinHostPort(host, cmp.Or(k.opts.ipmiPort, ipmiPort)))
	if err != nil {
		return false
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(ipmiWait))
	if _, err := conn.Write(presencePing); err != nil {
		return false
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	return err == nil && isPong(reply[:n])
}

// isPong reports whether a message is an answer to presencePing. Its sequence number may be
// another.
func isPong(m []byte) bool {
	const sequence = 2
	return len(m) >= len(presencePong) && bytes.Equal(m[:sequence], presencePong[:sequence]) &&
		bytes.Equal(m[sequence+1:len(presencePong)], presencePong[sequence+1:])
}

func (k *checkup) systems(ctx context.Context) bool {
	facts, err := k.pool.Discover(ctx, k.opts.Target)
	if err != nil {
		advice := "update the BMC's firmware, or restart the BMC: what it answers cannot be used"
		if errors.Is(err, ErrUnauthorized) {
			advice = loginAdvice(err)
		}
		return k.fails("systems", err.Error(), advice)
	}
	k.report.BMC = facts
	unread := 0
	for _, s := range facts.Systems {
		if s.Unread {
			unread++
		}
	}
	item := CheckItem{Check: "systems", Result: CheckWorks, Needed: true}
	item.Detail = fmt.Sprintf("%d, servers among them: %d", len(facts.Systems)+len(facts.Others), len(facts.Systems)-unread)
	switch {
	case len(facts.Systems) == unread:
		item.Result, item.Advice = CheckFails, "there is nothing to install here; of the BMC of a chassis, check those of its blades"
	case unread > 0:
		item.Result, item.Advice = CheckPartly, "restart the BMC: it lists systems that it then does not show"
	}
	k.add(item)
	for _, other := range facts.Others {
		k.add(CheckItem{Check: "no server", Result: CheckNone, Detail: other})
	}
	for _, problem := range facts.Problems {
		k.add(CheckItem{Check: "remark", Result: CheckPartly, Detail: problem})
	}
	return true
}
