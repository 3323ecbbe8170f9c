package dhcp

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestDecline checks when a decline counts as a conflict: not if the client refuses its lease, unless another device answers
// for the address.
func TestDecline(t *testing.T) {
	const (
		refused  = `msg="a device refused its lease"`
		conflict = `msg="a device found its address in use by another"`
		stranger = "02:00:00:00:00:99"
		denied   = "Lease is denied upon entering bound"
	)
	for name, tc := range map[string]struct {
		message string
		after   time.Duration
		probes  bool
		others  neighbours
		want    string
		aside   time.Duration
	}{
		"with a message":                          {message: denied, after: time.Minute, want: refused + ` network=hosts mac=` + mac1 + ` address=192.0.2.10 message="` + denied + `"`, aside: time.Minute},
		"with a message that ends in NUL":         {message: denied + "\x00", after: time.Minute, want: `message="` + denied + `"`, aside: time.Minute},
		"with a long message":                     {message: strings.Repeat("x", 200), after: time.Minute, want: "message=" + strings.Repeat("x", 64) + "\n", aside: time.Minute},
		"with bytes for a message":                {message: "a\nb", after: time.Minute, want: "message=610a62\n", aside: time.Minute},
		"within a second":                         {after: time.Second - 1, want: refused, aside: time.Minute},
		"within a second, and nobody answers":     {after: 0, probes: true, want: refused, aside: time.Minute},
		"within a second, and another answers":    {after: 0, probes: true, others: neighbours{all: stranger}, want: conflict, aside: 10 * time.Minute},
		"with a message, and another answers":     {message: "acd failed", after: time.Minute, probes: true, others: neighbours{all: stranger}, want: `message="acd failed" by=` + stranger, aside: 10 * time.Minute},
		"with a message, and it answers itself":   {message: denied, after: time.Minute, probes: true, others: neighbours{all: mac1}, want: refused, aside: time.Minute},
		"as after a check of the address":         {after: 2 * time.Second, want: conflict, aside: 10 * time.Minute},
		"as after a check that nobody can repeat": {after: 2 * time.Second, probes: true, want: conflict, aside: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			now := t0
			o := Options{Clock: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
			if tc.probes {
				o.Prober = &tc.others
			}
			s := testServer(t, o)
			leaseTo(t, s, mac1)
			now = t0.Add(tc.after)
			options := map[byte]any{50: addr("192.0.2.10"), 54: addr("192.0.2.2")}
			if tc.message != "" {
				options[56] = tc.message
			}
			service4{s.networks[0]}.handle4(packetOf(t, dhcpv4.MessageTypeDecline, mac1, nil, options), netip.MustParseAddrPort(anyone), port4Server)
			s.conflicts.asking.Wait()
			if got := log.String(); !strings.Contains(got, tc.want) || strings.Count(got, "level=WARN") != 1 {
				t.Errorf("logged:\n%swant %s", got, tc.want)
			}
			all := leasesOf(s)
			if len(all) != 1 || !all[0].Declined || all[0].Expires.Sub(now.Truncate(time.Second)) != tc.aside {
				t.Errorf("got %+v, want it aside for %s", all, tc.aside)
			}
			if again, _ := firstAnswer(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil)); again.client == addr("192.0.2.10") {
				t.Error("the client is offered the address at once")
			}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			s.committer.Run(ctx)
		})
	}
}

// TestDeclineLoop: a client that declines all that it gets empties no pool and floods no log.
func TestDeclineLoop(t *testing.T) {
	var log bytes.Buffer
	s := testServer(t, Options{Clock: func() time.Time { return t0 }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	n := service4{s.networks[0]}
	for range 20 {
		leaseTo(t, s, mac1)
		wish := s.Addresses([]string{mac1})[0]
		n.decline4(packet4{DHCPv4: &dhcpv4.DHCPv4{Options: dhcpv4.Options{50: wish.AsSlice(), 56: []byte("no")}}, mac: mac1, link: n.sockets.link()}, t0)
	}
	aside := 0
	for _, l := range leasesOf(s) {
		if l.Declined {
			aside++
		}
	}
	if warned := strings.Count(log.String(), "refused its lease"); warned == 0 || warned > 3 || aside != warned {
		t.Errorf("%d addresses are aside, and %d warnings are logged", aside, warned)
	}
}

// TestDecline6: over DHCPv6 only a status with a text refuses, because duplicate address detection ends within a second.
func TestDecline6(t *testing.T) {
	for name, tc := range map[string]struct {
		status, want string
		aside        time.Duration
	}{
		"within a second": {want: "found its address in use by another", aside: 10 * time.Minute},
		"with a status":   {status: "\n 13 0001 \"no_mask\"", want: `refused its lease" network=net mac=` + mac6 + " address=fd00::10 message=\"no mask\"", aside: time.Minute},
		"without a text":  {status: "\n 13 0001", want: "found its address in use by another", aside: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			l := newLab6(t, plain6())
			l.server.options.Log = slog.New(slog.NewTextHandler(&log, nil))
			l.says(onLink6, "REQUEST 000001"+ids+na6, "REPLY 000001"+ids+given)
			log.Reset()
			l.says(onLink6, "DECLINE 000003"+ids+naHas6+tc.status, "REPLY 000003"+ids+"\n "+success)
			if got := log.String(); !strings.Contains(got, tc.want) {
				t.Errorf("logged:\n%swant %s", got, tc.want)
			}
			if all := leasesOf(l.server); len(all) != 1 || all[0].Expires.Sub(l.now) != tc.aside {
				t.Errorf("got %+v, want it aside for %s", all, tc.aside)
			}
		})
	}
}
