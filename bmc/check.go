package bmc

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"ingot/model"
)

// A CheckResult says how one thing that a BMC is used for came out.
type CheckResult string

// The results of a check.
const (
	CheckWorks  CheckResult = "works"
	CheckPartly CheckResult = "partly" // it works, and something about it is worth knowing
	CheckFails  CheckResult = "fails"
	CheckNone   CheckResult = "none" // the BMC has no such thing
)

// A CheckItem is one row of a CheckReport.
type CheckItem struct {
	System string      `json:"system,omitempty"` // the URI of the system that it is about, "" = the BMC
	Check  string      `json:"check"`
	Result CheckResult `json:"result"`
	Needed bool        `json:"needed"` // no server can be run without
	Detail string      `json:"detail,omitempty"`
	// Reason is the one that the daemon's condition would have; "" = it would have none.
	Reason model.Reason `json:"reason,omitempty"`
	Actor  model.Actor  `json:"actor,omitempty"`
	Advice string       `json:"advice,omitempty"` // what to do
}

// because sets the reason, and what model.BMCAdvice has for it.
func (i *CheckItem) because(reason model.Reason) {
	advice := model.BMCAdvice[reason]
	i.Reason, i.Actor, i.Advice = reason, advice.Actor, advice.Text
}

// failed notes why the thing does not work, if err is not nil. Advice that was set already stays.
func (i *CheckItem) failed(err error) {
	if err == nil {
		return
	}
	advice := i.Advice
	i.Result, i.Detail = CheckFails, err.Error()
	i.because(ReasonOf(err))
	i.Advice = cmp.Or(advice, i.Advice)
}

// A CheckReport is what a BMC was found to do.
type CheckReport struct {
	URL    string          `json:"url"`
	BMC    *model.BMCFacts `json:"bmc,omitempty"` // nil = it could not be read
	Checks []CheckItem     `json:"checks"`
	// Requests counts what was asked, logins included.
	Requests uint64 `json:"requests"`
	// Slowest is the request that took longest, and how long.
	Slowest        string  `json:"slowest,omitempty"`
	SlowestSeconds float64 `json:"slowestSeconds"`
}

// Usable reports whether all works that no server can be run without. A BMC without any
// server is of no use.
func (r *CheckReport) Usable() bool {
	for _, item := range r.Checks {
		if item.Needed && (item.Result == CheckFails || item.Result == CheckNone) {
			return false
		}
	}
	return true
}

// CheckOptions say which BMC is checked, and how.
type CheckOptions struct {
	Target  model.BMCTarget
	CA      *x509.CertPool // see Options.CA
	Timeout time.Duration  // of one request; see Options.Timeout
	// Write has indicator and boot override set, read back, and set to what they were.
	// Without it nothing but a session is made.
	Write bool

	ipmiPort string          // "" = ipmiPort
	pace     float64         // 0 = checkPace, negative = none
	readBack []time.Duration // see Options.ReadBack
}

// Check finds out what a BMC can do, by the code that servers are run by, one thing after
// another until one fails that the others need. It never changes the power of a machine,
// and logs out even after ctx has ended.
func Check(ctx context.Context, o CheckOptions) *CheckReport {
	k := &checkup{opts: o, report: &CheckReport{URL: o.Target.Scheme + "://" + o.Target.Address}}
	networks, ok := k.resolve(ctx)
	if !ok {
		return k.report
	}
	p := NewPool(Options{
		CA: o.CA, Timeout: o.Timeout, Networks: networks, RequestsPerSecond: cmp.Or(o.pace, checkPace), ReadBack: o.readBack, Permit: k.permit, observe: k.observe,
	})
	c, err := p.client(ctx, o.Target)
	if err != nil {
		k.fails("connection", err, "")
		return k.report
	}
	c.pin.met = k.meet
	k.pool, k.client = p, c
	k.run(ctx)
	if err := p.Close(ctx); err != nil {
		k.add(CheckItem{Check: "logout", Result: CheckPartly, Detail: err.Error(), Advice: "one of the BMC's sessions stays open until it ends by itself"})
	}
	k.report.Requests = c.counted.requests.Load()
	return k.report
}

// checkPace is how many requests a second a BMC is checked with, as by default when it is run.
const checkPace = 5

// checkup is a Check that is under way.
type checkup struct {
	opts   CheckOptions
	report *CheckReport
	pool   *Pool
	client *client
	shown  tls.ConnectionState // of the newest handshake, without certificates
	leaf   *x509.Certificate   // that was shown in it
}

// run checks one thing after another.
func (k *checkup) run(ctx context.Context) {
	steps := []func(context.Context) bool{k.connection, k.tls, k.redfish, k.login, k.account, k.systems}
	for _, step := range steps {
		if !step(ctx) {
			return
		}
	}
	f := k.report.BMC
	k.add(CheckItem{Check: "manager", Result: resultOf(f.FirmwareVersion != ""), Detail: joinOr(filled(f.Manufacturer, f.Model, f.FirmwareVersion), "no manufacturer, model or firmware version")})
	for _, s := range k.report.BMC.Systems {
		if ctx.Err() == nil && !s.Unread {
			k.system(ctx, s)
		}
	}
}

// permit keeps anything from being written that nobody asked for.
func (k *checkup) permit(context.Context, model.BMCTarget, string) error {
	if !k.opts.Write {
		return errors.New("nothing is changed by a check that only reads")
	}
	return nil
}

func (k *checkup) observe(method, uri string, took time.Duration) {
	if seconds := took.Seconds(); seconds > k.report.SlowestSeconds {
		k.report.Slowest, k.report.SlowestSeconds = method+" "+printable(uri, maxText), seconds
	}
}

// meet notes what the BMC shows in a TLS handshake.
func (k *checkup) meet(cs tls.ConnectionState) {
	k.leaf = cs.PeerCertificates[0]
	k.shown = tls.ConnectionState{Version: cs.Version, CipherSuite: cs.CipherSuite}
}

func (k *checkup) add(item CheckItem) { k.report.Checks = append(k.report.Checks, item) }

// works notes what the BMC can do, or, if it cannot be done without, fails what it cannot.
func (k *checkup) works(what, detail string) bool {
	k.add(CheckItem{Check: what, Result: CheckWorks, Needed: true, Detail: detail})
	return true
}

// fails notes an error without which the BMC could be used, and what else was found about it.
func (k *checkup) fails(what string, err error, more string) bool {
	item := CheckItem{Check: what, Needed: true}
	item.failed(err)
	item.Detail += more
	k.add(item)
	return false
}

// resolve finds the addresses of the BMC, which are those that may be spoken with. They are
// named one by one, as a person wrote them, so that loopback is one of them if it was meant.
func (k *checkup) resolve(ctx context.Context) (model.BMCNetworks, bool) {
	host, _, err := net.SplitHostPort(k.opts.Target.Address)
	if err != nil {
		return nil, k.fails("connection", fmt.Errorf("%w: %w", ErrUnreachable, err), "")
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, k.fails("connection", fmt.Errorf("%w: %w", ErrUnreachable, err), "")
	}
	var networks model.BMCNetworks
	for _, addr := range found {
		addr = addr.Unmap().WithZone("")
		networks = append(networks, model.BMCNetwork{
			Prefix: netip.PrefixFrom(addr, addr.BitLen()), Plain: k.opts.Target.Scheme == "http",
		})
	}
	return networks, true
}

func joinOr(list []string, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return printable(strings.Join(list, ", "), maxDetail)
}

// resultOf is what to call a thing that is not needed.
func resultOf(has bool) CheckResult {
	if has {
		return CheckWorks
	}
	return CheckNone
}

func filled(all ...string) (some []string) {
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}
