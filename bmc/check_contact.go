package bmc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"ingot/model"
)

// connection checks whether the BMC can be connected to.
func (k *checkup) connection(ctx context.Context) bool {
	conn, err := k.client.dialer(k.opts.Target.Scheme).DialContext(ctx, "tcp", k.opts.Target.Address)
	if err != nil {
		return k.unanswered(ctx, "connection", err)
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
		return k.unanswered(ctx, "TLS", err)
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

func (k *checkup) redfish(ctx context.Context) bool {
	unlock, err := k.client.lockLogin(ctx)
	if err != nil {
		return k.fails("Redfish", err, "")
	}
	svc, err := k.client.rootLocked(ctx)
	unlock()
	if err != nil {
		return k.fails("Redfish", err, k.ipmi(ctx))
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
	return k.fails("login", err, "")
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

// unanswered notes that no connection can be made, by the error that the daemon has for it.
func (k *checkup) unanswered(ctx context.Context, what string, err error) bool {
	return k.fails(what, k.client.noAnswer(ctx, http.MethodGet, "/redfish/v1/", err), k.ipmi(ctx))
}

// ipmi is what to add about a BMC that answers IPMI, "" if it does not.
func (k *checkup) ipmi(ctx context.Context) string {
	if !k.answersIPMI(ctx) {
		return ""
	}
	return "; it answers IPMI, which is not enough: a BMC without Redfish cannot be used"
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
		return k.fails("systems", err, "")
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
	case len(facts.Systems) == 0:
		item.Result = CheckFails
		item.because(model.ReasonNoServers)
	case unread > 0:
		item.Result = CheckPartly
		if unread == len(facts.Systems) {
			item.Result = CheckFails
		}
		item.because(model.ReasonSystemUnreadable)
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
