package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

const device = "eth0"

// clientKind is one program that asks for leases.
type clientKind struct {
	name    string
	family  int // 4 or 6
	needs   rig.Tool
	command func(*client) []string
	// renew makes the client renew its lease now; 0 = it does so only when its time has come.
	renew syscall.Signal
	// due, if set, restarts the client in the belief that it is time to renew.
	due func(*testing.T, *client)
	// release makes the client give its lease back, by a signal or by a program.
	release        syscall.Signal
	releaseCommand func(*client) []string
	read           func(vars map[string]string) lease
	// first and again are the events with which it says that it has an address:
	// after it asked for one, and after it asked to keep one.
	first, again []string
}

// lease is what a client says that it was given.
type lease struct {
	Address          netip.Addr
	Router, DNS, NTP string
	Domain           string
	Seconds          string // the lease time
	BootFile         string // option 67 or the header's file; bootfile-url
	TFTPServer       string // option 66
	Next             string // the header's siaddr
	VendorClass      string
	Prefix           string // that was delegated
}

// client is one run of a DHCP client in a namespace of its own.
type client struct {
	kind    clientKind
	on      *rig.Namespace
	dir     string
	events  string // the file that its script writes to
	seen    int    // how many events were read
	process *rig.Process
	options []string // more arguments or lines of configuration
}

// event is one call of a client's script.
type event struct {
	name string
	vars map[string]string
}

func (e event) String() string {
	if ip := firstOf(e.vars, "ip", "new_ip_address", "new_ip6_address", "new_dhcp6_ia_na1_ia_addr1"); ip != "" {
		return e.name + " " + ip
	}
	return e.name
}

var errNoMore = errors.New("it has no more to do")

const endOfEvent = "--"

// script is what clients call with what they learned in the environment. It
// configures the interface as the clients' own scripts would, and nothing
// outside of the namespace.
const script = `#!/bin/sh
event=${1:-$reason}
case "$event" in
deconfig|RELEASE|EXPIRE|STOP) ip -4 address flush dev "$interface"; ip link set "$interface" up ;;
PREINIT|PREINIT6) ip link set "$interface" up ;;
bound|renew)
	ip -4 address replace "$ip/$mask" dev "$interface"
	[ -z "$router" ] || ip route replace default via "${router%% *}" ;;
BOUND|RENEW|REBIND|REBOOT)
	if [ -z "$new_dhcp_server_identifier" ] || [ -n "$new_ip_address" ]; then
		[ -n "$if_configured" ] || [ -z "$new_ip_address" ] || ip -4 address replace "$new_ip_address/$new_subnet_mask" dev "$interface"
		[ -z "$new_routers" ] || ip route replace default via "${new_routers%% *}"
	fi ;;
BOUND6|RENEW6|REBIND6) [ -z "$new_ip6_address" ] || ip -6 address replace "$new_ip6_address/128" dev "$interface" nodad ;;
RELEASE6|EXPIRE6|STOP6) ip -6 address flush dev "$interface" scope global ;;
esac
{ echo "event=$event"; env; echo "` + endOfEvent + `"; } >>"%s"
`

// newClient makes a client that does not ask yet. It lives until t ends.
func newClient(t *testing.T, kind clientKind, on *rig.Namespace, options ...string) *client {
	t.Helper()
	rig.Need(t, kind.needs)
	c := &client{kind: kind, on: on, dir: t.TempDir(), options: options}
	c.events = filepath.Join(c.dir, "events")
	c.write(t, "script", fmt.Sprintf(script, c.events), 0o755)
	return c
}

func (c *client) path(name string) string { return filepath.Join(c.dir, name) }

func (c *client) write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.WriteFile(c.path(name), []byte(content), mode))
}

func (c *client) start(t *testing.T) {
	t.Helper()
	if c.kind.needs == rig.ToolDhclient || c.kind.needs == rig.ToolDhcpcd {
		c.write(t, "conf", strings.Join(c.configuration(), "\n")+"\n", 0o644)
	}
	c.process = c.on.Start(t, c.kind.name, c.kind.command(c)...)
	t.Cleanup(func() {
		if strings.Contains(c.process.Output.String(), "semicolon expected") {
			t.Errorf("%s does not take its configuration", c.kind.name)
		}
	})
}

func (c *client) configuration() []string {
	switch c.kind.needs {
	case rig.ToolDhclient:
		return append(slices.Clone(dhclientOptions), c.options...)
	case rig.ToolDhcpcd:
		return append(slices.Clone(dhcpcdOptions[c.kind.family]), c.options...)
	}
	return nil
}

func (c *client) all() []event {
	data, err := os.ReadFile(c.events)
	if err != nil {
		return nil // it was not called yet
	}
	var events []event
	e := event{vars: make(map[string]string)}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == endOfEvent {
			events = append(events, e)
			e = event{vars: make(map[string]string)}
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && key == "event" {
			e.name = value
		} else if ok {
			e.vars[key] = value
		}
	}
	return events
}

func (c *client) await(limit time.Duration) (got lease, err error) {
	var ended error
	err = rig.Within(limit, func() error {
		ran := c.process.Running() // asked first: what it says at its end counts
		events := c.all()
		for c.seen < len(events) {
			e := events[c.seen]
			c.seen++
			got = c.kind.read(e.vars)
			if slices.Contains(c.kind.first, e.name) && (got.Address.IsValid() || got.Prefix != "") {
				return nil
			}
		}
		if !ran {
			ended = fmt.Errorf("%s ended after %v: %w", c.kind.name, events, cmp.Or(c.process.Err, errNoMore))
			return nil // there is nothing to wait for
		}
		return fmt.Errorf("%s has no lease, it says %v", c.kind.name, events)
	})
	return got, errors.Join(err, ended)
}

func (c *client) mustAwait(t *testing.T) lease {
	t.Helper()
	return must.Get(c.await(rig.Patience))(t)
}

// renewNow has the client renew its lease, or waits until it does so itself. To
// lose it and be given another is no renewal.
func (c *client) renewNow(t *testing.T) (got lease) {
	t.Helper()
	c.seen = len(c.all())
	var signalled time.Time
	signal := func() {
		must.Do(t, c.process.Signal(c.kind.renew))
		signalled = time.Now()
	}
	switch {
	case c.kind.renew != 0:
		signal()
	case c.kind.due != nil:
		c.kind.due(t, c)
	}
	// One that was restarted has its address confirmed before it renews it. If that is
	// denied it begins anew, and its true T1 is beyond our patience.
	beginning := func(e event) bool {
		return strings.HasPrefix(e.name, "PREINIT") || c.kind.due != nil && slices.Contains(c.kind.first, e.name)
	}
	rig.Eventually(t, rig.Patience, func() error {
		since := slices.DeleteFunc(c.all()[c.seen:], beginning)
		if len(since) == 0 {
			// dhcpcd was seen not to act on a signal that came just after its script had told of the lease.
			if c.kind.renew != 0 && time.Since(signalled) > rig.Patience/4 {
				signal()
			}
			return fmt.Errorf("%s did not renew its lease", c.kind.name)
		}
		if e := since[0]; slices.Contains(c.kind.again, e.name) {
			got = c.kind.read(e.vars)
			return nil
		}
		t.Fatalf("%s lost its lease: %v", c.kind.name, since)
		return nil
	})
	return got
}

func (c *client) releaseNow(t *testing.T) {
	t.Helper()
	if c.kind.releaseCommand == nil {
		must.Do(t, c.process.Signal(c.kind.release))
	} else if out, err := c.on.Run(t, rig.Patience, c.kind.releaseCommand(c)...); err != nil {
		t.Fatalf("%s does not release: %v: %s", c.kind.name, err, out)
	}
	if c.kind.needs == rig.ToolBusybox {
		rig.Eventually(t, rig.Patience, func() error {
			if all := c.all(); len(all) == 0 || all[len(all)-1].name != "deconfig" {
				return fmt.Errorf("%s has not released: %v", c.kind.name, all)
			}
			return nil
		})
		return // it waits to be asked to begin anew
	}
	select {
	case <-c.process.Ended:
	case <-time.After(rig.Patience):
		t.Fatalf("%s does not end after its release", c.kind.name)
	}
}

func firstOf(vars map[string]string, names ...string) string {
	for _, n := range names {
		if vars[n] != "" {
			return vars[n]
		}
	}
	return ""
}

func addressOf(s string) netip.Addr {
	a, _ := netip.ParseAddr(s)
	return a
}

// The clients. What they need to be asked to speak of boot files stands with each.
var (
	udhcpc = clientKind{
		name: "udhcpc", family: 4, needs: rig.ToolBusybox,
		command: func(c *client) []string {
			return append([]string{"busybox", "udhcpc", "-i", device, "-f", "-s", c.path("script"), "-t", "10", "-T", "1", "-A", "1",
				"-O", "tftp", "-O", "bootfile", "-O", "ntpsrv", "-O", "domain", "-O", "dns", "-O", "lease"}, c.options...)
		},
		renew: syscall.SIGUSR1, release: syscall.SIGUSR2, first: []string{"bound"}, again: []string{"renew"},
		read: func(v map[string]string) lease {
			return lease{
				Address: addressOf(v["ip"]), Router: v["router"], DNS: v["dns"], NTP: v["ntpsrv"], Domain: v["domain"], Seconds: v["lease"],
				BootFile: firstOf(v, "bootfile", "boot_file"), TFTPServer: v["tftp"], Next: v["siaddr"], VendorClass: v["vendor"],
			}
		},
	}
	dhclient4 = clientKind{
		name: "dhclient -4", family: 4, needs: rig.ToolDhclient, command: dhclient("-4"), releaseCommand: dhclient("-4", "-r"),
		first: []string{"BOUND", "REBOOT"}, again: []string{"RENEW", "REBIND"},
		read: func(v map[string]string) lease {
			return lease{
				Address: addressOf(v["new_ip_address"]), Router: v["new_routers"], DNS: v["new_domain_name_servers"],
				NTP: v["new_ntp_servers"], Domain: v["new_domain_name"], Seconds: v["new_dhcp_lease_time"],
				BootFile:   firstOf(v, "new_bootfile_name", "new_filename"),
				TFTPServer: v["new_tftp_server_name"], Next: v["new_next_server"], VendorClass: v["new_vendor_class_identifier"],
			}
		},
	}
	dhclient6 = clientKind{
		name: "dhclient -6", family: 6, needs: rig.ToolDhclient, command: dhclient("-6"), due: dueDhclient6,
		releaseCommand: dhclient("-6", "-r"),
		first:          []string{"BOUND6"}, again: []string{"RENEW6", "REBIND6"},
		read: func(v map[string]string) lease {
			return lease{
				Address: addressOf(v["new_ip6_address"]), DNS: v["new_dhcp6_name_servers"], Domain: v["new_dhcp6_domain_search"],
				NTP: v["new_dhcp6_ntp"], Seconds: v["new_max_life"], BootFile: strings.Trim(v["new_dhcp6_bootfile_url"], `"`),
				Prefix: v["new_ip6_prefix"],
			}
		},
	}
	dhcpcd4 = clientKind{
		name: "dhcpcd -4", family: 4, needs: rig.ToolDhcpcd, command: dhcpcd("-4"), renew: syscall.SIGUSR1, release: syscall.SIGALRM,
		first: []string{"BOUND", "REBOOT"}, again: []string{"RENEW", "REBIND"},
		read: func(v map[string]string) lease {
			return lease{
				Address: addressOf(v["new_ip_address"]), Router: v["new_routers"], DNS: v["new_domain_name_servers"],
				NTP: v["new_ntp_servers"], Domain: v["new_domain_name"], Seconds: v["new_dhcp_lease_time"],
				BootFile:   firstOf(v, "new_bootfile_name", "new_filename"),
				TFTPServer: v["new_tftp_server_name"],
			}
		},
	}
	dhcpcd6 = clientKind{
		name: "dhcpcd -6", family: 6, needs: rig.ToolDhcpcd, command: dhcpcd("-6"), renew: syscall.SIGUSR1, release: syscall.SIGALRM,
		first: []string{"BOUND6", "REBOOT6"}, again: []string{"RENEW6", "REBIND6"},
		read: func(v map[string]string) lease {
			return lease{
				Address: addressOf(v["new_dhcp6_ia_na1_ia_addr1"]), DNS: v["new_dhcp6_name_servers"], Domain: v["new_dhcp6_domain_search"],
				NTP: v["new_dhcp6_ntp_server_addr"], Seconds: v["new_dhcp6_ia_na1_ia_addr1_vltime"], BootFile: v["new_dhcp6_bootfile_url"],
				Prefix: firstOf(v, "new_dhcp6_ia_pd1_prefix1", "new_dhcp6_ia_pd2_prefix1"),
			}
		},
	}
	clientKinds = []clientKind{udhcpc, dhclient4, dhclient6, dhcpcd4, dhcpcd6}
)

// dhclientOptions are what dhclient must be told to ask for.
var dhclientOptions = []string{
	"timeout 60; retry 1; initial-interval 1; backoff-cutoff 2; reboot 2;",
	"supersede dhcp-renewal-time 4; supersede dhcp-rebinding-time 40;",
	"option arch code 93 = unsigned integer 16;",
	"option machine code 97 = string;",
	"option dhcp6.ntp code 56 = string;",
	"option dhcp6.user code 15 = string;",
	"option dhcp6.vendor code 16 = string;",
	"request subnet-mask, routers, domain-name, domain-name-servers, ntp-servers, " +
		"tftp-server-name, bootfile-name, vendor-class-identifier;",
	"also request dhcp6.name-servers, dhcp6.domain-search, dhcp6.ntp, dhcp6.bootfile-url;",
}

func dhclient(arguments ...string) func(*client) []string {
	return func(c *client) []string {
		command := append([]string{"dhclient"}, arguments...)
		if !slices.Contains(arguments, "-r") {
			command = append(command, "-d")
		}
		return append(command, "-pf", c.path("pid"), "-lf", c.path("leases"), "-cf", c.path("conf"), "-sf", c.path("script"), device)
	}
}

// dueDhclient6 changes the T1 of what dhclient keeps: it cannot be told to renew,
// nor to prefer a T1 of its own.
func dueDhclient6(t *testing.T, c *client) {
	t.Helper()
	c.process.Kill()
	kept := must.Get(os.ReadFile(c.path("leases")))(t)
	c.write(t, "leases", t1.ReplaceAllString(string(kept), "renew 1;"), 0o644)
	c.start(t)
}

var t1 = regexp.MustCompile(`renew \d+;`)

var dhcpcdOptions = map[int][]string{
	4: {"ipv4only", "noarp", "noipv4ll", "option domain_name_servers, domain_name, ntp_servers, routers, bootfile_name, tftp_server_name"},
	6: {
		"ipv6only", "noipv6rs", "ia_na 1", "duid",
		"option dhcp6_name_servers, dhcp6_domain_search, dhcp6_ntp_server, dhcp6_bootfile_url",
	},
}

// dhcpcd keeps its state in folders that cannot be chosen: it gets its own.
func dhcpcd(family string) func(*client) []string {
	const alone = `mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib/dhcpcd && exec "$@"`
	return func(c *client) []string {
		return []string{"unshare", "-m", "sh", "-c", alone, "sh",
			"dhcpcd", family, "-B", "-d", "-t", "0", "-f", c.path("conf"), "-c", c.path("script"), device}
	}
}

func refused(t *testing.T, on *rig.Namespace, options ...string) error {
	t.Helper()
	c := newClient(t, udhcpc, on, append([]string{"-n", "-q", "-t", "3"}, options...)...)
	c.start(t)
	defer c.process.Kill()
	got, err := c.await(rig.Patience)
	if err == nil {
		return fmt.Errorf("it was given %s", got.Address)
	}
	if len(c.all()) == 0 {
		return errors.New("udhcpc never asked")
	}
	return nil
}
