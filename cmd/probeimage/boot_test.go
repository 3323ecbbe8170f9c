package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/ignition"
	"ingot/cmd/probeimage/image"
	"ingot/model"
	"ingot/model/must"
)

const (
	uuid  = "4c4c4544-0011-2233-4455-667788990011"
	token = "mzxw6ytboi7xk3tforsgk3tfnq"
)

const reportWithin = 20 * time.Second

// TestBoot boots each flavour in a virtual machine, directly: Ignition, report,
// wipe and the power button. Firmware and DHCP of Ingot's own are for the features.
func TestBoot(t *testing.T) {
	need(t, "qemu-system-x86_64", "apt-get", "dpkg-deb")
	for _, tc := range []struct {
		title, flavour, card, disk string
		viaDHCP                    bool // what the Ignition's address comes by
		mode                       string
	}{
		{
			title: "discovery of a virtual machine", flavour: image.FlavourCloud, card: "virtio-net-pci",
			disk: "virtio-blk-pci,drive=d0,serial=S1", viaDHCP: false, mode: "",
		},
		{
			title: "cleanup of a server with a disk that refuses it", flavour: image.FlavourGeneric, card: "e1000e",
			disk: "ide-hd,drive=d0,serial=S1", viaDHCP: true, mode: model.CleanupQuick,
		},
	} {
		t.Run(tc.title, func(t *testing.T) {
			folder := t.TempDir()
			booted := built(t, tc.flavour)
			disk := random(t, folder, "d0")
			ingot := newIngot(t, tc.mode, nil)
			network, arguments := "user,id=n0", "console=ttyS0 ip=any"
			if tc.viaDHCP {
				network += ",bootfile=" + ingot.ignitionURL()
			} else {
				arguments += " ignition.config.url=" + ingot.ignitionURL()
			}
			args := []string{
				"-kernel", booted.Kernel, "-initrd", booted.Initramfs, "-append", arguments,
				"-netdev", network, "-device", tc.card + ",netdev=n0",
				"-drive", "file=" + disk + ",format=raw,if=none,id=d0", "-device", tc.disk,
			}
			if tc.mode != "" {
				args = append(args,
					"-drive", "file="+random(t, folder, "d1")+",format=raw,if=none,id=d1,readonly=on",
					"-device", "virtio-blk-pci,drive=d1,serial=S2")
			}
			m := start(t, filepath.Join(folder, "qmp"), "", args...)

			report := next[model.ProbeRegistration](t, m, ingot.reports)
			m.reportedInTime(t)
			t.Logf("Ignition after %s s of the kernel's time, with %d bytes booted",
				m.told(t, "Ignition is fetched"), booted.Sizes.Booted())
			if report.SystemUUID != uuid {
				t.Errorf("report of %s, want %s", report.SystemUUID, uuid)
			}
			if disks := report.Data.Storage; len(disks) == 0 || disks[0].Serial != "S1" {
				t.Errorf("disks %+v, want one with serial S1 first", disks)
			}
			if cards := report.Data.NetworkInterfaces; len(cards) != 1 || !slices.Contains(cards[0].IPAddresses, "10.0.2.15") {
				t.Errorf("cards %+v, want one with its address", cards)
			}
			if tc.mode != "" {
				wiped := next[model.ProbeWipe](t, m, ingot.wipes)
				if len(wiped.Disks) != 2 || wiped.Disks[0].Result != model.WipeDone || wiped.Disks[1].Result != model.WipeFailed {
					t.Errorf("wipe %+v, want the first disk wiped and the other failed", wiped)
				}
				m.told(t, "ERROR machine stays on: disks are not wiped disks=\"vda (S2): the disk refuses writing")
			}
			m.powerOff(t)
			m.keepsQuiet(t)
		})
	}
}

// TestWipe wipes one disk of each kind that QEMU has, reads them from outside afterwards,
// and waits for the machine to power itself off.
func TestWipe(t *testing.T) {
	need(t, "qemu-system-x86_64", "apt-get", "dpkg-deb")
	want := map[string]map[string]string{
		model.CleanupSecure: {"NVME1": "nvme-format", "SATA1": "blkzeroout", "VIRTIO1": "blkzeroout"},
		model.CleanupQuick: {
			"NVME1": "blkdiscard+overwrite-edges", "SATA1": "blkdiscard+overwrite-edges",
			"VIRTIO1": "blkdiscard+overwrite-edges",
		},
	}
	for _, mode := range []string{model.CleanupSecure, model.CleanupQuick} {
		t.Run(mode, func(t *testing.T) {
			folder := t.TempDir()
			booted := built(t, image.FlavourGeneric)
			ingot := newIngot(t, mode, nil)
			args := []string{
				"-kernel", booted.Kernel, "-initrd", booted.Initramfs,
				"-append", "console=ttyS0 ip=any ignition.config.url=" + ingot.ignitionURL(),
				"-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0",
			}
			var disks []string
			for i, device := range []string{"nvme,serial=NVME1", "ide-hd,serial=SATA1", "virtio-blk-pci,serial=VIRTIO1"} {
				id := fmt.Sprintf("d%d", i)
				disks = append(disks, random(t, folder, id))
				args = append(args, "-drive", "file="+disks[i]+",format=raw,if=none,discard=unmap,id="+id, "-device", device+",drive="+id)
			}
			m := start(t, filepath.Join(folder, "qmp"), "", args...)

			wiped := next[model.ProbeWipe](t, m, ingot.wipes)
			m.ends(t)
			methods := make(map[string]string)
			for _, d := range wiped.Disks {
				methods[d.Serial] = d.Method
				if d.Result != model.WipeDone {
					t.Errorf("disk %+v, want wiped", d)
				}
			}
			if diff := cmp.Diff(want[mode], methods); diff != "" {
				t.Errorf("methods (-want +got):\n%s", diff)
			}
			for _, disk := range disks {
				if at := firstData(t, disk); at >= 0 {
					t.Errorf("%s holds data at byte %d", filepath.Base(disk), at)
				}
			}
			progress := next[model.ProbeWipeProgress](t, m, ingot.progress)
			if progress.SystemUUID != uuid || progress.Mode != mode || len(progress.Disks) != 3 {
				t.Errorf("progress %+v, want that of three disks", progress)
			}
			m.keepsQuiet(t)
		})
	}
}

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
	server   *httptest.Server
	reports  chan model.ProbeRegistration
	wipes    chan model.ProbeWipe
	progress chan model.ProbeWipeProgress
	host     string // as the machine sees it
}

const guestView = "10.0.2.2"

// newIngot starts an Ingot that wants disks wiped in a mode, "" for a discovery. It
// listens where it is told to, or where a machine with qemu's own network finds it.
func newIngot(t *testing.T, mode string, listener net.Listener) *ingot {
	t.Helper()
	i := &ingot{
		reports: make(chan model.ProbeRegistration, 16), wipes: make(chan model.ProbeWipe, 16),
		progress: make(chan model.ProbeWipeProgress, 16), host: guestView,
	}
	// i.server is set before anybody asks: the handler reads it.
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { i.serve(t, mode, w, r) }))
	if listener != nil {
		i.server.Listener.Close()
		i.server.Listener = listener
		i.host, _, _ = net.SplitHostPort(listener.Addr().String())
	}
	i.server.Start()
	t.Cleanup(i.server.Close)
	return i
}

func (i *ingot) base() string {
	_, port, _ := net.SplitHostPort(i.server.Listener.Addr().String())
	return "http://" + net.JoinHostPort(i.host, port)
}

func (i *ingot) ignitionURL() string { return i.base() + "/ignition/" + token }

func (i *ingot) serve(t *testing.T, mode string, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ignition/" + token:
		g, err := ignition.New(ignition.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		b := ignition.ProbeBoot{UUID: uuid, RegistryURL: i.base(), Token: model.NewSensitive(token), Purpose: model.PurposeDiscovery}
		if mode != "" {
			b.Purpose, b.CleanupMode = model.PurposeCleanup, mode
		}
		served, err := g.ForProbe(b)
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, served.Reveal())
	case "/r/" + token + "/register":
		take(t, r, i.reports)
	case "/r/" + token + "/wipe":
		take(t, r, i.wipes)
	case "/r/" + token + "/wipe-progress":
		take(t, r, i.progress)
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
		select {
		case v := <-from: // it was the last that it did
			return v
		default:
		}
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
// everywhere. It is in a network namespace, "" for that of the test.
func start(t *testing.T, qmp, namespace string, args ...string) *vm {
	t.Helper()
	m := &vm{log: qmp + ".log", qmp: qmp, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	command := []string{"qemu-system-x86_64"}
	if namespace != "" {
		command = append([]string{"ip", "netns", "exec", namespace}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], append(append(command[1:],
		"-accel", "tcg", "-machine", "q35", "-cpu", "max", "-smp", "1", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
		"-uuid", uuid, "-serial", "file:"+m.log, "-qmp", "unix:"+qmp+",server=on,wait=off",
	), args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must.Do(t, cmd.Start())
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

// reportedInTime says how long the probe took from its start to its report, by the
// machine's own clock.
func (m *vm) reportedInTime(t *testing.T) {
	t.Helper()
	at := func(message string) time.Duration {
		return must.Get(time.ParseDuration(m.told(t, message) + "s"))(t)
	}
	took := at("server is registered") - at("metalprobe starts")
	t.Logf("reported %v after its start", took)
	if took > reportWithin {
		t.Errorf("reported %v after its start, want at most %v", took, reportWithin)
	}
}

// keepsQuiet looks for what no console may show. The kernel itself shows its
// command line, before that.
func (m *vm) keepsQuiet(t *testing.T) {
	t.Helper()
	_, text, ours := strings.Cut(m.console(), "metalprobe starts")
	if !ours || strings.Contains(text, token) || strings.Contains(text, "Kernel panic") {
		t.Errorf("the console shows a token or a panic:\n%s", tail(text))
	}
	if !strings.Contains(text, "machine is powered off") {
		t.Errorf("the console misses the last line:\n%s", tail(text))
	}
}

func (m *vm) ends(t *testing.T) {
	t.Helper()
	select {
	case err := <-m.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Errorf("the machine is still on a minute after its work was done:\n%s", tail(m.console()))
	}
}

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

// images are built once for all tests.
var images = map[string]func() (image.Result, error){
	image.FlavourCloud: buildOnce(image.FlavourCloud), image.FlavourGeneric: buildOnce(image.FlavourGeneric),
}

var imageFolder string

func buildOnce(flavour string) func() (image.Result, error) {
	return sync.OnceValues(func() (image.Result, error) {
		return image.Build(context.Background(), image.Options{Out: filepath.Join(imageFolder, flavour), Flavour: flavour})
	})
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "probeimage-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		imageFolder = folder
		return m.Run()
	}())
}

// built returns an image of a flavour. One that is too large is a failure.
func built(t *testing.T, flavour string) image.Result {
	t.Helper()
	r, err := images[flavour]()
	if err != nil {
		if os.Getenv("INGOT_LAB") == "required" {
			t.Fatal("the image cannot be built: ", err)
		}
		t.Skip("SKIPPED: the image cannot be built here: ", err)
	}
	if size := r.Sizes.Booted(); size > image.MaxBooted {
		t.Errorf("a server loads %d bytes, want at most %d", size, image.MaxBooted)
	}
	return r
}

const diskSize = 64 << 20

func random(t *testing.T, folder, name string) (path string) {
	t.Helper()
	content := make([]byte, diskSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	path = filepath.Join(folder, name)
	must.Do(t, os.WriteFile(path, content, 0o600))
	return path
}

// firstData returns where a disk is not zero, -1 for nowhere.
func firstData(t *testing.T, disk string) int {
	t.Helper()
	content := must.Get(os.ReadFile(disk))(t)
	return slices.IndexFunc(content, func(b byte) bool { return b != 0 })
}

func tail(s string) string { return s[max(0, len(s)-4000):] }
