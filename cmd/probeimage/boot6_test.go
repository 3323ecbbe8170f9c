package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ingot/cmd/probeimage/image"
	"ingot/model"
	"ingot/model/must"
)

// Addresses of the IPv6 network: the machine's two cables, and Ingot behind the
// router, which is reached by one of them only.
const (
	goodRouter = "fd00:a::1"
	deafRouter = "fd00:b::1"
	ingotHost  = "fd00:c::1"
)

// TestBootWithIPv6Only boots where there is no IPv4, in a network namespace with a
// router whose DHCPv6 names the Ignition's URL. A second card is plugged into a network
// from which Ingot cannot be reached, though its router has a higher preference.
func TestBootWithIPv6Only(t *testing.T) {
	need(t, "qemu-system-x86_64", "apt-get", "dpkg-deb", "ip", "nft", "dnsmasq")
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	for _, tc := range []struct {
		title string
		leads string // dnsmasq's range on the good cable
		want  string // of the card's addresses, the beginning of one
	}{
		{"addresses by router advertisements and the rest by DHCPv6", "fd00:a::,ra-stateless", "fd00:a::5054:ff:fe00:2"},
		{"all by DHCPv6", "fd00:a::100,fd00:a::1ff,64", "fd00:a::1"},
	} {
		t.Run(tc.title, func(t *testing.T) {
			booted := built(t, image.FlavourCloud)
			folder := t.TempDir()
			n := newNamespace(t)
			n.cable("deaf", deafRouter)
			n.cable("good", goodRouter)
			n.run("ip", "address", "add", ingotHost+"/128", "dev", "lo")
			n.run("nft", "add table ip6 f; add chain ip6 f in { type filter hook input priority 0; }; "+
				"add rule ip6 f in iifname deaf ip6 daddr "+ingotHost+" drop")
			ingot := newIngot(t, "", n.listen(ingotHost))
			n.start("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--enable-ra", "--log-facility=-",
				"--pid-file=", "--user=root", "--dhcp-leasefile="+filepath.Join(folder, "leases"),
				"--ra-param=deaf,high,30", "--dhcp-range=fd00:b::,ra-only", "--dhcp-range="+tc.leads,
				"--dhcp-option=tag:good,option6:bootfile-url,"+ingot.ignitionURL())

			m := start(t, filepath.Join(folder, "qmp"), n.name,
				"-kernel", booted.Kernel, "-initrd", booted.Initramfs, "-append", "console=ttyS0 ip=any",
				"-netdev", "tap,id=n0,ifname=deaf,script=no,downscript=no", "-device", "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01",
				"-netdev", "tap,id=n1,ifname=good,script=no,downscript=no", "-device", "virtio-net-pci,netdev=n1,mac=52:54:00:00:00:02")
			report := next[model.ProbeRegistration](t, m, ingot.reports)
			m.reportedInTime(t)
			addresses := ""
			for _, card := range report.Data.NetworkInterfaces {
				if card.MACAddress == "52:54:00:00:00:02" {
					addresses = strings.Join(card.IPAddresses, " ")
				}
			}
			if !strings.Contains(addresses, tc.want) {
				t.Errorf("the card has the addresses %q, want one as %s", addresses, tc.want)
			}
			m.powerOff(t)
			m.keepsQuiet(t)
		})
	}
}

// namespace is a network apart.
type namespace struct {
	t    *testing.T
	name string
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{t: t, name: fmt.Sprintf("ingot-probe-%d", os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", n.name).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made: %v: %s", err, out)
	}
	t.Cleanup(n.delete)
	n.run("ip", "link", "set", "lo", "up")
	n.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
	return n
}

func (n *namespace) delete() {
	out, _ := exec.Command("ip", "netns", "pids", n.name).Output()
	for field := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if out, err := exec.Command("ip", "netns", "del", n.name).CombinedOutput(); err != nil {
		n.t.Errorf("delete namespace %s: %v: %s", n.name, err, out)
	}
}

func (n *namespace) command(program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.name, program}, args...)...)
}

func (n *namespace) run(program string, args ...string) {
	n.t.Helper()
	if out, err := n.command(program, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

func (n *namespace) start(program string, args ...string) {
	n.t.Helper()
	cmd := n.command(program, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	must.Do(n.t, cmd.Start())
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s:\n%s", program, tail(output.String()))
		}
	})
}

func (n *namespace) cable(name, address string) {
	n.t.Helper()
	n.run("ip", "tuntap", "add", "dev", name, "mode", "tap")
	n.run("ip", "address", "add", address+"/64", "dev", name, "nodad")
	n.run("ip", "link", "set", name, "up")
}

// listen listens on an address of the namespace. A socket stays in the namespace
// that its thread was in.
func (n *namespace) listen(host string) net.Listener {
	n.t.Helper()
	type result struct {
		listener net.Listener
		err      error
	}
	opened := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		fd, err := unix.Open(filepath.Join("/run/netns", n.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd))
		}
		var l net.Listener
		if err == nil {
			l, err = net.Listen("tcp6", net.JoinHostPort(host, "0"))
		}
		opened <- result{l, err}
	}()
	r := <-opened
	if r.err != nil {
		n.t.Fatal(r.err)
	}
	return r.listener
}
