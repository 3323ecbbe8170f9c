package routeradvert

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mdlayher/ndp"

	"ingot/model/must"
)

var mac = net.HardwareAddr{0x52, 0x54, 0, 0x12, 0, 1}

func rack() Config {
	return Config{
		Managed: true, OtherConfig: true, RouterLifetime: 30 * time.Minute, MTU: 9000,
		Prefixes: []Prefix{
			{Prefix: netip.MustParsePrefix("fd00:20::/64"), OnLink: true, Autonomous: true, ValidLifetime: 4 * time.Hour, PreferredLifetime: 2 * time.Hour},
			{Prefix: netip.MustParsePrefix("fd00:21::/48"), OnLink: true},
		},
		DNS: []netip.Addr{netip.MustParseAddr("fd00:20::53")}, Domains: []string{"rack4.example.com."},
	}
}

// What is on the wire is in the words of RFC 4861 §4.2 and §4.6, and RFC 8106 §5.
func TestMessageOnTheWire(t *testing.T) {
	for name, tc := range map[string]struct {
		config Config
		want   []string
	}{
		"nothing": {Config{}, []string{"86000000 00 00 0000 00000000 00000000", "01 01 525400120001"}},
		"everything": {rack(), []string{
			"86000000 00 c0 0708 00000000 00000000",
			"01 01 525400120001",
			"05 01 0000 00002328",
			"03 04 40 c0 00003840 00001c20 00000000 fd000020000000000000000000000000",
			"03 04 30 80 00278d00 00093a80 00000000 fd000021000000000000000000000000",
			"19 03 0000 00000708 fd000020000000000000000000000053",
			"1f 04 0000 00000708 057261636b34 076578616d706c65 03636f6d 00 0000000000",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := ndp.MarshalMessage(tc.config.Message(mac))
			want := strings.ReplaceAll(strings.Join(tc.want, ""), " ", "")
			if got := hex.EncodeToString(data); err != nil || got != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
		})
	}
}

func TestWhatIsWrongWithAConfig(t *testing.T) {
	validDomain := func(s string) bool { return !strings.Contains(s, " ") }
	many := make([]Prefix, 17)
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4) + "example"
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string // path and message; "" = nothing
	}{
		"nothing":                {func(*Config) {}, ""},
		"too often":              {func(c *Config) { c.Interval = time.Second }, ".interval: 1s must be from 4s to 30m0s"},
		"too seldom":             {func(c *Config) { c.Interval = time.Hour }, ".interval: 1h0m0s must be from 4s to 30m0s"},
		"a router for too short": {func(c *Config) { c.RouterLifetime = time.Minute }, ".routerLifetime: 1m0s must be 0, where this machine is no router, or from the interval, 10m0s, to 2h30m0s"},
		"a router for too long":  {func(c *Config) { c.RouterLifetime = 3 * time.Hour }, ".routerLifetime: 3h0m0s must be 0, where this machine is no router, or from the interval, 10m0s, to 2h30m0s"},
		"a small MTU":            {func(c *Config) { c.MTU = 1279 }, ".mtu: 1279 must be from 1280 to 65535, or be left out"},
		"many prefixes":          {func(c *Config) { c.Prefixes = many }, ".prefixes: there are 17: at most 16 are allowed"},
		"a prefix of IPv4": {
			func(c *Config) { c.Prefixes[0].Prefix = netip.MustParsePrefix("10.0.0.0/8") },
			".prefixes[0].prefix: 10.0.0.0/8 must be an IPv6 prefix that is not link-local, with no bits set behind its length, as fd00:20::/64",
		},
		"one that is link-local": {
			func(c *Config) { c.Prefixes[1].Prefix = netip.MustParsePrefix("fe80::/64") },
			".prefixes[1].prefix: fe80::/64 must be an IPv6 prefix that is not link-local, with no bits set behind its length, as fd00:20::/64",
		},
		"one with bits behind its length": {
			func(c *Config) { c.Prefixes[1].Prefix = netip.MustParsePrefix("fd00::1/64") },
			".prefixes[1].prefix: fd00::1/64 must be an IPv6 prefix that is not link-local, with no bits set behind its length, as fd00:20::/64",
		},
		"one twice": {func(c *Config) { c.Prefixes[1] = c.Prefixes[0] }, ".prefixes[1].prefix: fd00:20::/64 is that of prefixes[0] already"},
		"one of which no addresses can be made": {
			func(c *Config) { c.Prefixes[1].Autonomous = true },
			".prefixes[1].prefix: fd00:21::/48 must be a /64, of which machines make themselves addresses (autonomous)",
		},
		"one without effect": {
			func(c *Config) { c.Prefixes[1].OnLink = false },
			".prefixes[1]: fd00:21::/48 has no effect: write onLink: true where machines reach its addresses without a router, autonomous: true where they make themselves one",
		},
		"one preferred for longer than it is valid": {
			func(c *Config) { c.Prefixes[0].PreferredLifetime = 5 * time.Hour },
			".prefixes[0].preferredLifetime: 5h0m0s must not be longer than validLifetime, 4h0m0s",
		},
		"one that is valid for a short time": {func(c *Config) { c.Prefixes[1].ValidLifetime = time.Hour }, ""},
		"a DNS server of IPv4":               {func(c *Config) { c.DNS[0] = netip.MustParseAddr("10.0.0.1") }, ".dns[0]: 10.0.0.1 must be the IPv6 address of a DNS server"},
		"no domain":                          {func(c *Config) { c.Domains[0] = "a b" }, `.domains[0]: "a b" must be a DNS name, as rack4.example.com`},
		"too much": {
			func(c *Config) { c.Domains = []string{long, long, long, long, long} },
			": it does not fit into one packet: an advertisement may have 1240 bytes; name fewer prefixes or domains",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := rack()
			tc.change(&c)
			var got []string
			c.Check(validDomain, func(path, format string, args ...any) { got = append(got, path+": "+fmt.Sprintf(format, args...)) })
			if text := strings.Join(got, "\n"); text != tc.want {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}

func TestWhenAdvertisementsAreSent(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := schedule{interval: 10 * time.Minute}
	now := start
	sends := func(chance float64, want time.Duration) {
		t.Helper()
		now = now.Add(s.wait(now))
		s.sentAt(now, chance)
		if got := s.wait(now); got != want {
			t.Errorf("the next after %d is sent after %s, want %s", s.sent, got, want)
		}
	}
	solicited := func(after time.Duration, chance float64, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		s.solicited(now, chance)
		if got := s.wait(now); got != want {
			t.Errorf("answered after %s, want %s", got, want)
		}
	}
	if s.wait(now) != 0 {
		t.Error("the first is not sent at once")
	}
	sends(0.5, 16*time.Second) // the first few are soon
	sends(0, 16*time.Second)
	sends(0, 200*time.Second)
	sends(0.999999, 10*time.Minute-400*time.Microsecond)
	solicited(time.Minute, 0.5, 250*time.Millisecond)
	solicited(0, 0.8, 250*time.Millisecond) // one answer is for both
	sends(0, 200*time.Second)
	solicited(time.Second, 0, 2*time.Second) // not twice within 3 s
	solicited(time.Second, 0.9, time.Second)
	sends(0, 200*time.Second)
	solicited(199*time.Second+900*time.Millisecond, 0.9, 100*time.Millisecond) // one is due sooner
	s = schedule{interval: 4 * time.Second}
	sends(0, 3*time.Second)
	sends(0.5, 3500*time.Millisecond)
}

func TestWhatIsHeardOfOthers(t *testing.T) {
	linkLocal, unspecified := netip.MustParseAddr("fe80::2%eth0"), netip.IPv6Unspecified()
	solicitation := func(options ...ndp.Option) ndp.Message { return &ndp.RouterSolicitation{Options: options} }
	source := &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}
	for name, tc := range map[string]struct {
		message  ndp.Message
		from     netip.Addr
		hopLimit int
		code     byte
		want     bool
	}{
		"a solicitation":                              {message: solicitation(source), from: linkLocal, hopLimit: 255, want: true},
		"one of a host that has no address yet":       {message: solicitation(), from: unspecified, hopLimit: 255, want: true},
		"one that says what such a one cannot":        {message: solicitation(source), from: unspecified, hopLimit: 255},
		"one that a router passed on":                 {message: solicitation(), from: linkLocal, hopLimit: 254},
		"one of a later version":                      {message: solicitation(), from: linkLocal, hopLimit: 255, code: 1},
		"an advertisement":                            {message: rack().Message(mac), from: linkLocal, hopLimit: 255, want: true},
		"one that is not from the link":               {message: rack().Message(mac), from: netip.MustParseAddr("fd00::2"), hopLimit: 255},
		"one that a router passed on is none, either": {message: rack().Message(mac), from: linkLocal, hopLimit: 64},
		"what is neither":                             {message: &ndp.NeighborSolicitation{TargetAddress: netip.MustParseAddr("fd00::2")}, from: linkLocal, hopLimit: 255},
	} {
		data := must.Get(ndp.MarshalMessage(tc.message))(t)
		data[1] = tc.code
		got, ok := packet{data, tc.from, tc.hopLimit}.message()
		if ok != tc.want {
			t.Errorf("%s: %v, want %v", name, ok, tc.want)
		}
		if diff := cmp.Diff(tc.message, got, cmpopts.EquateComparable(netip.Addr{})); ok && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhoContradicts(t *testing.T) {
	other := func(change func(*Config)) *ndp.RouterAdvertisement {
		c := rack()
		change(&c)
		return c.Message(net.HardwareAddr{0x52, 0x54, 0, 0x12, 0, 2})
	}
	for name, tc := range map[string]struct {
		theirs *ndp.RouterAdvertisement
		want   string
	}{
		"who says the same":          {other(func(*Config) {}), ""},
		"a router where we are none": {other(func(c *Config) { c.RouterLifetime = time.Hour }), ""},
		"who says less":              {other(func(c *Config) { c.MTU, c.Prefixes, c.DNS = 0, nil, nil }), ""},
		"who says more": {other(func(c *Config) {
			c.Prefixes = append(c.Prefixes, Prefix{Prefix: netip.MustParsePrefix("fd09::/64"), OnLink: true})
		}), ""},
		"a prefix that begins alike": {other(func(c *Config) { c.Prefixes[0].Prefix = netip.MustParsePrefix("fd00:20::/60") }), ""},
		"who knows no DHCPv6":        {other(func(c *Config) { c.Managed = false }), "managed: false"},
		"who has DHCPv6 for less":    {other(func(c *Config) { c.OtherConfig = false }), ""},
		"who has another MTU":        {other(func(c *Config) { c.MTU = 1500 }), "mtu: 1500"},
		"who says otherwise of a prefix": {
			other(func(c *Config) { c.Prefixes[0].Autonomous = false }),
			"prefix fd00:20::/64: onLink true, autonomous false, validLifetime 4h0m0s, preferredLifetime 2h0m0s",
		},
	} {
		if got := contradiction(rack().Message(mac), tc.theirs); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	ours := Config{OtherConfig: true}
	if got := contradiction(ours.Message(mac), Config{}.Message(mac)); got != "otherConfig: false" {
		t.Errorf("who knows no DHCPv6 for settings: %q", got)
	}
}

func FuzzHeard(f *testing.F) {
	for _, m := range []ndp.Message{rack().Message(mac), Config{}.Message(nil), &ndp.RouterSolicitation{}} {
		data := must.Get(ndp.MarshalMessage(m))(f)
		f.Add(data)
		f.Add(data[:len(data)-1])
	}
	f.Add([]byte{134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0}) // an option without length
	ours := rack().Message(mac)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := packet{data, netip.MustParseAddr("fe80::2"), 255}.message()
		if ok && m == nil {
			t.Error("nothing was heard")
		}
		if theirs, isRouter := m.(*ndp.RouterAdvertisement); isRouter {
			_ = contradiction(ours, theirs)
		}
	})
}
