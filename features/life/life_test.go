package life

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim/qemu"
	"ingot/cmd/probeimage/image"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// bootLimit is how long a machine may take from power on to what it is for, when
// other tests use the computer, too.
const bootLimit = 2 * time.Minute

const network = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: 10.77.1.0/24, ranges: [10.77.1.100-10.77.1.150], gateway: 10.77.1.1}
tftp: {listen: ":69"}
`

func TestTheLifeOfAServer(t *testing.T) {
	rig.NeedMachines(t, rig.ToolMtools, rig.ToolSyslinux)
	rig.NeedFile(t, bootCode, "syslinux-common")
	w := newWorld(t)
	passed := takeThrough(t, w, w.machines, []stage[*world, *machine]{
		{"a machine whose BMC is in Git is discovered", (*world).discovered},
		{"a claim's image is booted, is told that claim's Ignition and installs itself", (*world).installed},
		{"after a power cut the machine boots from its disk", (*world).cut},
		{"a machine that its system restarts boots from its disk", (*world).restarted},
		{"a machine whose claim is removed is wiped and Available again", (*world).released},
	})
	if passed {
		t.Run("no secret is on the status branch or in the log", w.keptSecrets)
	}
}

// stage is a part of the life of machines M in a world W.
type stage[W, M any] struct {
	rule string
	do   func(W, *testing.T, M)
}

// takeThrough takes machines through stages side by side: each begins when all have passed the
// one before. It reports whether all have passed the last.
func takeThrough[W any, M interface{ called() string }](t *testing.T, w W, machines []M, stages []stage[W, M]) bool {
	t.Helper()
	for _, s := range stages {
		passed := t.Run(s.rule, func(t *testing.T) {
			for _, m := range machines {
				t.Run(m.called(), func(t *testing.T) {
					t.Parallel()
					began := time.Now()
					s.do(w, t, m)
					t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
				})
			}
		})
		if !passed {
			return false
		}
	}
	return true
}

// machine is a machine that is taken through its life.
type machine struct {
	name    string
	spec    qemu.Machine
	cleanup string
	method  string // of its wipe, "" if that is too quick to be seen
	// networkFirst puts the network before the disk in its boot order, so that its
	// firmware has to be told nothing by Ingot to come to the disk. UEFI asks for minutes.
	networkFirst bool

	claim  string
	secret string // a text that stands in its claim's Ignition alone
	server rig.SimulatedServer
	was    [sha256.Size]byte // its disk, once installed
	runs   Word              // what was installed, as it said so itself
}

// world is what the machines live in.
type world struct {
	on       *rig.Namespace
	ingot    *rig.Ingot
	witness  *witness
	image    string // that claims boot, by reference
	machines []*machine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	on := rig.NewServer(t)
	on.StartRadvd(t, "fd77:1::/64", false)
	w := &world{on: on, witness: newWitness(t, on), image: pushGuest(t, on), machines: []*machine{
		{
			name: "BIOS", spec: qemu.Machine{Firmware: qemu.FirmwareBIOS, Disks: []qemu.Disk{{Bus: qemu.DiskVirtio, SizeMiB: 256}}},
			networkFirst: true, cleanup: "quick",
		},
		{
			name: "UEFI", spec: qemu.Machine{Firmware: qemu.FirmwareUEFI, Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 256}}},
			cleanup: "secure", method: "nvme-format",
		},
	}}
	order := rig.RackOrder{StateDir: t.TempDir(), BMCs: len(w.machines), SystemsPerBMC: 1}
	for _, m := range w.machines {
		tap := "tap" + m.name
		on.Tap(tap, rig.BridgeName)
		m.spec.Taps = []string{tap}
		m.claim = "web-" + strings.ToLower(m.name)
		m.secret = "the secret of " + m.claim
		order.QEMU = append(order.QEMU, m.spec)
		order.NetworkFirst = append(order.NetworkFirst, m.networkFirst)
	}
	facts := on.StartRack(t, order)
	probe := rig.PushProbe(t, on)
	settings := fmt.Sprintf("discovery: {image: %q}\nboot: {registries: [{host: %q, plain: true}, {host: %q, plain: true}]}\n",
		probe, registryOf(probe), registryOf(w.image))
	w.ingot = rig.NewIngot(t, on, network+settings)
	w.ingot.Paced = true
	w.ingot.CommitRack(t, facts)
	for n, m := range w.machines {
		m.server = facts.Servers[n]
		rig.KeepConsole(t, m.server)
		w.ingot.Commit(t, "servers/"+m.server.Name+".yaml", fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata: {name: %s, annotations: {ingot/cleanup: %s}}
`, m.server.Name, m.cleanup))
	}
	w.ingot.Start(t)
	return w
}

func registryOf(reference string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(reference, "https://"), "/")
	return host
}

func pushGuest(t *testing.T, on *rig.Namespace) (reference string) {
	t.Helper()
	built := buildGuest(t)
	return rig.PushImage(t, on, built, makeDiskImage(t, built))
}

func buildGuest(t *testing.T) image.Result {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "guest")
	must.Do(t, rig.Build(program, "ingot/features/life/guest", "-trimpath", "-ldflags", "-s -w"))
	built, err := image.Build(t.Context(), image.Options{Out: dir, Flavour: image.FlavourCloud, Probe: program, Arguments: diskArguments})
	if err != nil {
		rig.Missing(t, "the claims' image cannot be built here: "+err.Error())
	}
	return built
}

func (w *world) discovered(t *testing.T, m *machine) {
	w.ingot.StatusHas(t, bootLimit, m.status(), "state: Available", "powerState: \"Off\"")
}

func (w *world) installed(t *testing.T, m *machine) {
	w.ingot.Commit(t, m.manifest(), fmt.Sprintf(claimManifests, m.claim, w.image, m.server.Name, w.witness.url, m.secret))
	m.runs = w.witness.await(t, bootLimit, m.server.UUID, 1)
	want := Word{UUID: m.server.UUID, Hostname: m.claim, From: FromNetwork, Installation: m.runs.Installation, Boot: m.runs.Boot}
	if m.runs != want {
		t.Errorf("the machine says %+v, want %+v", m.runs, want)
	}
	w.ingot.StatusHas(t, rig.Patience, "serverclaims/default/"+m.claim+".yaml", "phase: Bound", "reason: Booted")
	m.was = w.readDisk(t, m)
}

// cut takes the machine's power away: no system is asked. It is Ingot that switches
// it on again, for the claim says so.
func (w *world) cut(t *testing.T, m *machine) {
	w.bootsItsDisk(t, m, 2, func() {
		must.Do(t, w.on.Meddle("/servers/"+m.server.Name+"/power-cut"))
	})
}

// restarted lets the machine's system restart it: Ingot chooses nothing.
func (w *world) restarted(t *testing.T, m *machine) {
	said := w.witness.heard(m.server.UUID)
	w.bootsItsDisk(t, m, 3, func() { w.witness.order(said[len(said)-1], OrderRestart) })
}

func (w *world) bootsItsDisk(t *testing.T, m *machine, n int, do func()) {
	t.Helper()
	before := w.served(t)
	do()
	got := w.witness.await(t, bootLimit, m.server.UUID, n)
	want := m.runs
	want.From, want.Boot = FromDisk, got.Boot
	if got != want {
		t.Errorf("the machine says %+v, want %+v", got, want)
	}
	if after := w.served(t); after != before {
		t.Errorf("machines were served something by the network:\n%s\nand before:\n%s", after, before)
	}
	if w.readDisk(t, m) != m.was {
		t.Error("its disk was written to")
	}
}

func (w *world) served(t *testing.T) string {
	t.Helper()
	counted, err := w.ingot.Metric("ingot_boot_requests_total")
	if err != nil || counted == "" {
		t.Fatalf("what machines were served is not counted: %v", err)
	}
	return counted
}

func (w *world) readDisk(t *testing.T, m *machine) [sha256.Size]byte {
	t.Helper()
	disk := m.disk(t)
	for _, other := range w.machines {
		if has := bytes.Contains(disk, []byte(other.secret)); has != (other == m) {
			t.Errorf("%q is on the disk of %s: %t", other.secret, m.name, has)
		}
	}
	left, err := LoadInstallation(bytes.NewReader(disk))
	if err != nil || left.ID != m.runs.Installation || left.Files["/etc/secret"] != m.secret {
		t.Errorf("on the disk is %+v (%v), want installation %s", left, err, m.runs.Installation)
	}
	return sha256.Sum256(disk)
}

func (w *world) released(t *testing.T, m *machine) {
	w.ingot.Remove(t, m.manifest())
	if m.method != "" {
		w.ingot.APIHas(t, bootLimit, "servers/"+m.server.Name, `"`+m.method+`"`)
	}
	w.ingot.StatusHas(t, bootLimit, m.status(), "state: Available", "powerState: \"Off\"", "reason: WipeDone", "cleanupMode: "+m.cleanup)
	for at, b := range m.disk(t) {
		if b != 0 {
			t.Fatalf("the disk still holds data, at byte %d", at)
		}
	}
	var detail struct{ Power string }
	if err := w.on.Control("/servers/"+m.server.Name, &detail); err != nil || detail.Power != "Off" {
		t.Errorf("its power is %q, want Off (%v)", detail.Power, err)
	}
}

func (w *world) keptSecrets(t *testing.T) {
	history := must.Get(w.ingot.Repo.Git("log", "-p", rig.StatusBranch))(t)
	for _, m := range w.machines {
		if strings.Contains(history, m.secret) || strings.Contains(w.ingot.Process.Output.String(), m.secret) {
			t.Errorf("%q can be read", m.secret)
		}
	}
}

func (m *machine) called() string   { return m.name }
func (m *machine) status() string   { return "servers/" + m.server.Name + ".yaml" }
func (m *machine) manifest() string { return "claims/" + m.claim + ".yaml" }

func (m *machine) disk(t *testing.T) []byte {
	t.Helper()
	return must.Get(os.ReadFile(m.server.Disks[0]))(t)
}

const claimManifests = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: %[1]s, namespace: default}
spec:
  power: "On"
  image: %[2]s
  serverRef: {name: %[3]s}
  ignitionSecretRef: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: default}
stringData:
  format: fcos
  ignition: |
    variant: fcos
    version: 1.5.0
    storage:
      files:
      - {path: ` + HostnameFile + `, contents: {inline: %[1]s}}
      - {path: ` + WitnessFile + `, contents: {inline: "%[4]s"}}
      - {path: /etc/secret, mode: 0600, contents: {inline: %[5]s}}
`
