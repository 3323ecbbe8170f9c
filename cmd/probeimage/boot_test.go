package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc"
	"ingot/cmd/probeimage/image"
	"ingot/model"
)

const (
	uuid  = "4c4c4544-0011-2233-4455-667788990011"
	token = "mzxw6ytboi7xk3tforsgk3tfnq"
)

// maxTogether bounds kernel and initramfs, in bytes: all of it goes through each
// server's firmware.
const maxTogether = 25 << 20

// TestBoot boots each flavour in a virtual machine, directly: Ignition, report,
// wipe and the power button. Firmware and DHCP of Ingot's own are for the features.
func TestBoot(t *testing.T) {
	need(t, "qemu-system-x86_64", "apt-get", "dpkg-deb")
	for _, tc := range []struct {
		title, flavour, card, disk string
		viaDHCP                    bool // what the Ignition's address comes by
		purpose                    model.TicketPurpose
	}{
		{"discovery of a virtual machine", image.FlavourCloud, "virtio-net-pci", "virtio-blk-pci,drive=d0,serial=S1", false, model.PurposeDiscovery},
		{"cleanup of a server", image.FlavourGeneric, "e1000e", "ide-hd,drive=d0,serial=S1", true, model.PurposeCleanup},
	} {
		t.Run(tc.title, func(t *testing.T) {
			folder := t.TempDir()
			built, err := image.Build(t.Context(), image.Options{Out: folder, Flavour: tc.flavour, Stub: image.NoStub})
			if err != nil {
				t.Skip("SKIPPED: the image cannot be built here: ", err)
			}
			if size := built.Sizes.Kernel + built.Sizes.Initramfs; size > maxTogether {
				t.Errorf("kernel and initramfs have %d bytes, want at most %d", size, maxTogether)
			}
			disk := filepath.Join(folder, "disk")
			if err := os.WriteFile(disk, bytes.Repeat([]byte("secret! "), 4<<20/8), 0o600); err != nil {
				t.Fatal(err)
			}
			ingot := newIngot(t, tc.purpose)
			network, arguments := "user,id=n0", "console=ttyS0 ip=any"
			if tc.viaDHCP {
				network += ",bootfile=" + ingot.ignitionURL()
			} else {
				arguments += " ignition.config.url=" + ingot.ignitionURL()
			}
			m := start(t, filepath.Join(folder, "qmp"),
				"-kernel", built.Kernel, "-initrd", built.Initramfs, "-append", arguments,
				"-netdev", network, "-device", tc.card+",netdev=n0",
				"-drive", "file="+disk+",format=raw,if=none,id=d0", "-device", tc.disk)

			report := next[model.ProbeRegistration](t, m, ingot.reports)
			t.Logf("Ignition after %s s of the kernel's time, with %d + %d bytes booted", m.told(t, "Ignition is fetched"), built.Sizes.Kernel, built.Sizes.Initramfs)
			if report.SystemUUID != uuid || report.Data.SystemInfo.SystemInformation.UUID != uuid {
				t.Errorf("report of %s, want %s", report.SystemUUID, uuid)
			}
			if disks := report.Data.Storage; len(disks) != 1 || disks[0].Serial != "S1" {
				t.Errorf("disks %+v, want one with serial S1", disks)
			}
			if cards := report.Data.NetworkInterfaces; len(cards) != 1 || cards[0].IPAddress != "10.0.2.15" {
				t.Errorf("cards %+v, want one with its address", cards)
			}
			if tc.purpose == model.PurposeCleanup {
				wiped := next[model.ProbeWipe](t, m, ingot.wipes)
				if len(wiped.Disks) != 1 || wiped.Disks[0].Result != model.WipeDone {
					t.Errorf("wipe %+v", wiped)
				}
				if content, err := os.ReadFile(disk); err != nil || bytes.Contains(content, []byte("secret!")) {
					t.Errorf("the disk still holds data (%v)", err)
				}
			}
			m.powerOff(t)
			// The kernel itself shows its command line, before that.
			_, text, ours := strings.Cut(m.console(), "metalprobe starts")
			if !ours || strings.Contains(text, token) || strings.Contains(text, "Kernel panic") {
				t.Errorf("the console shows a token or a panic:\n%s", tail(text))
			}
		})
	}
}

// need skips a test, loudly, when a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: booting a machine is not short")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is needed to boot the image: install it (Debian: qemu-system-x86 apt dpkg)", p)
		}
	}
}

// ingot stands for Ingot: it serves one Ignition, and takes reports.
type ingot struct {
	server  *httptest.Server
	reports chan model.ProbeRegistration
	wipes   chan model.ProbeWipe
}

// guestView is where a machine with qemu's own network sees this one's loopback.
const guestView = "10.0.2.2"

func newIngot(t *testing.T, purpose model.TicketPurpose) *ingot {
	t.Helper()
	i := &ingot{reports: make(chan model.ProbeRegistration, 16), wipes: make(chan model.ProbeWipe, 16)}
	// i.server is set before anybody asks: the handler reads it.
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { i.serve(t, purpose, w, r) }))
	i.server.Start()
	t.Cleanup(i.server.Close)
	return i
}

func (i *ingot) base() string {
	_, port, _ := net.SplitHostPort(i.server.Listener.Addr().String())
	return "http://" + net.JoinHostPort(guestView, port)
}

func (i *ingot) ignitionURL() string { return i.base() + "/ignition/" + token }

func (i *ingot) serve(t *testing.T, purpose model.TicketPurpose, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ignition/" + token:
		g, err := bootsvc.NewIgnition(bootsvc.IgnitionOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		served, err := g.Probe(bootsvc.ProbeBoot{
			UUID: uuid, RegistryURL: i.base(), Token: model.NewSensitive(token), Purpose: purpose, CleanupMode: model.CleanupQuick,
		})
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, served.Reveal())
	case "/r/" + token + "/register":
		take(t, r, i.reports)
	case "/r/" + token + "/wipe":
		take(t, r, i.wipes)
	default:
		t.Errorf("asked for %s", r.URL.Path)
		http.NotFound(w, r)
	}
}

func take[T any](t *testing.T, r *http.Request, to chan<- T) {
	var body T
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Error(err)
	}
	select {
	case to <- body:
	default: // nobody waits for so many
	}
}

// next waits for what the machine posts.
func next[T any](t *testing.T, m *vm, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case err := <-m.ended:
		t.Fatalf("the machine has ended: %v\n%s", err, tail(m.console()))
	case <-time.After(2 * time.Minute):
		t.Fatalf("nothing is posted:\n%s", tail(m.console()))
	}
	panic("unreachable")
}

// vm is a virtual machine.
type vm struct {
	log   string // path of what its serial console shows
	qmp   string // path of its control socket
	ended chan error
}

// start starts a machine, without hardware support for it: that is slow, but there
// everywhere.
func start(t *testing.T, qmp string, args ...string) *vm {
	t.Helper()
	m := &vm{log: qmp + ".log", qmp: qmp, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append([]string{
		"-accel", "tcg", "-machine", "q35", "-cpu", "max", "-smp", "1", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
		"-uuid", uuid, "-serial", "file:" + m.log, "-qmp", "unix:" + qmp + ",server=on,wait=off",
	}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := cmd.Wait(); err != nil {
			m.ended <- fmt.Errorf("qemu: %w: %s", err, stderr.String())
		}
		close(m.ended)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return m
}

func (m *vm) console() string {
	text, _ := os.ReadFile(m.log)
	return string(text)
}

// told waits for a message on the console, and returns the time that is shown
// before it.
func (m *vm) told(t *testing.T, message string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if before, _, ok := strings.Cut(m.console(), "] "+message); ok {
			return strings.TrimSpace(before[strings.LastIndexByte(before, '[')+1:])
		}
	}
	t.Fatalf("the console never says %q:\n%s", message, tail(m.console()))
	return ""
}

// pressPowerButton does what a BMC does for a graceful shutdown.
func (m *vm) pressPowerButton(t *testing.T) {
	t.Helper()
	c, err := net.Dial("unix", m.qmp)
	if err != nil {
		return // it has ended, or has not: whoever waits for that says so
	}
	defer c.Close()
	answers := json.NewDecoder(c)
	for _, command := range []string{"qmp_capabilities", "system_powerdown"} {
		var answer map[string]any
		if err := answers.Decode(&answer); err != nil {
			return
		}
		fmt.Fprintf(c, `{"execute":%q}`, command)
	}
	var answer map[string]any
	if err := answers.Decode(&answer); err == nil && answer["error"] != nil {
		t.Fatal(answer)
	}
}

// powerOff presses the power button, and again every few seconds as a person would:
// a machine that is still starting may not know its button yet.
func (m *vm) powerOff(t *testing.T) {
	t.Helper()
	again := time.NewTicker(5 * time.Second)
	defer again.Stop()
	for late := time.After(time.Minute); ; {
		m.pressPowerButton(t)
		select {
		case err := <-m.ended:
			if err != nil {
				t.Error(err)
			}
			return
		case <-late:
			t.Errorf("the machine is still on a minute after its power button was pressed:\n%s", tail(m.console()))
			return
		case <-again.C:
		}
	}
}

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-4000):] }
