package life

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim/qemu"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// debianScript makes the image that is installed.
//
//go:embed debian.sh
var debianScript []byte

// cloudLimit is how long a machine may take from power on until its system has run what
// cloud-init was given, when other tests use the computer, too.
const cloudLimit = 10 * time.Minute

// TestAnOrdinaryCloudImageOnDisk takes machines with two disks through the life of a claim
// that has an image as publishers make them: on the disk that is named, and on no other. A boot
// with cloud-init takes a minute or two here, so that what comes after the install is shared out.
func TestAnOrdinaryCloudImageOnDisk(t *testing.T) {
	rig.SkipIfLate(t)
	rig.NeedMachines(t, rig.ToolMtools, rig.ToolSyslinux, rig.ToolMmdebstrap, rig.ToolSfdisk, rig.ToolMkfsVFAT, rig.ToolQEMUImg, rig.ToolZstd)
	rig.NeedFile(t, "/usr/lib/syslinux/mbr/gptmbr.bin", "syslinux-common")
	c := newCloud(t)
	takeThrough(t, c, c.tenants, []stage[*cloud, *tenant]{
		{"a machine with two disks is discovered", (*cloud).discovered},
		{"a claim's cloud image is installed on the disk that its hint names, and configures itself", (*cloud).installed},
		{"after a power cut the machine boots from that disk, or another image is installed there", (*cloud).goesOn},
		{"a machine whose claim is removed has both disks wiped", (*cloud).released},
	})
}

// tenant is a machine, and the claim that is made for it.
type tenant struct {
	name, claim string
	spec        qemu.Machine
	image       string
	next        string // that takes its place, "" = its power is cut instead
	// target is the number of the disk that the image goes to. A BIOS starts the first disk of
	// its own order and no other; UEFI starts the one that its boot entry names.
	target int
	server rig.SimulatedServer
	was    Word
}

// cloud is what the machines live in.
type cloud struct {
	on      *rig.Namespace
	ingot   *rig.Ingot
	witness *witness
	tenants []*tenant
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	disk := debianImage(t)
	on := rig.NewServer(t)
	two := func(bus qemu.DiskBus) []qemu.Disk {
		return []qemu.Disk{{Bus: bus, SizeMiB: 800}, {Bus: bus, SizeMiB: 1024}}
	}
	url, authority := publish(t, on, disk)
	layers := rig.NewImages(t, on)
	c := &cloud{on: on, witness: newWitness(t, on), tenants: []*tenant{
		{
			name: "BIOS", claim: "web-bios",
			spec:  qemu.Machine{Firmware: qemu.FirmwareBIOS, MemoryMiB: 1024, Disks: two(qemu.DiskVirtio)},
			image: pushDisk(t, layers, disk), next: url,
		},
		{
			name: "UEFI", claim: "web-uefi",
			spec:  qemu.Machine{Firmware: qemu.FirmwareUEFI, MemoryMiB: 1024, Disks: two(qemu.DiskNVMe)},
			image: url, target: 1,
		},
	}}
	order := rig.RackOrder{StateDir: t.TempDir(), BMCs: len(c.tenants), SystemsPerBMC: 1}
	for _, m := range c.tenants {
		tap := "tap" + m.name
		on.Tap(tap, rig.BridgeName)
		m.spec.Taps = []string{tap}
		order.QEMU, order.NetworkFirst = append(order.QEMU, m.spec), append(order.NetworkFirst, true)
	}
	facts := on.StartRack(t, order)
	probe := rig.PushProbe(t, on)
	settings := fmt.Sprintf("discovery: {image: %q}\nboot: {registries: [{host: %q, plain: true}, {host: %q, plain: true}, {host: %q}], caFile: %q}\n",
		probe, registryOf(probe), registryOf(c.tenants[0].image), registryOf(url), authority)
	c.ingot = rig.NewIngot(t, on, network+settings)
	c.ingot.CommitRack(t, facts)
	for n, m := range c.tenants {
		m.server = facts.Servers[n]
		rig.KeepConsole(t, m.server)
	}
	c.ingot.Start(t)
	return c
}

func debianImage(t *testing.T) string {
	t.Helper()
	sum := sha256.Sum256(debianScript)
	kept, err := os.UserCacheDir()
	if err != nil {
		kept = os.TempDir()
	}
	dir := filepath.Join(kept, "ingot-images", hex.EncodeToString(sum[:8]))
	disk := filepath.Join(dir, "disk.raw")
	if _, err := os.Stat(disk); err == nil {
		return disk
	}
	must.Do(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	making := must.Get(os.MkdirTemp(filepath.Dir(dir), "making-"))(t)
	defer os.RemoveAll(making)
	began := time.Now()
	command := exec.CommandContext(t.Context(), "bash", "-s", making)
	command.Stdin = strings.NewReader(string(debianScript))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the image cannot be made: %v\n%s", err, out)
	}
	t.Logf("the image was made in %s", time.Since(began).Round(time.Second))
	must.Do(t, os.Rename(making, dir))
	return disk
}

// digestOf is the SHA-256 of a file, in hexadecimal.
func digestOf(t *testing.T, path string) string {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	sum := sha256.New()
	must.Get(io.Copy(sum, f))(t)
	return hex.EncodeToString(sum.Sum(nil))
}

// pushDisk pushes a disk image to a registry, as qcow2.
func pushDisk(t *testing.T, to *ociserver.Registry, disk string) (reference string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "disk.qcow2")
	rig.MustRun(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", disk, made)
	content, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	tagged, digest, err := to.Push("debian", "qcow2", ociserver.Image{Disk: content, DiskType: "application/vnd.ingot.disk.qcow2"})
	if err != nil {
		t.Fatal(err)
	}
	return registryOf(tagged) + "/debian@" + digest
}

func (c *cloud) discovered(t *testing.T, m *tenant) {
	c.ingot.StatusHas(t, bootLimit, m.status(), "state: Available", "powerState: \"Off\"")
}

func (c *cloud) installed(t *testing.T, m *tenant) {
	m.was = c.install(t, m, m.image, "", 1)
	if want := (Word{UUID: m.server.UUID, Hostname: m.claim, From: FromDisk, Installation: m.was.Installation, Boot: m.was.Boot, RootBytes: m.was.RootBytes}); m.was != want {
		t.Errorf("the machine says %+v, want %+v", m.was, want)
	}
	m.grown(t)
}

// grown checks whether the root filesystem has the disk to itself, but for what the image has
// before it and the seed behind it: cloud-init's growpart has to find the room.
func (m *tenant) grown(t *testing.T) {
	t.Helper()
	const before, seed, own = 97 << 20, 5 << 20, 0.95 // ext4 keeps some of its blocks to itself
	disk := int64(m.spec.Disks[m.target].SizeMiB) << 20
	if least := int64(float64(disk-before-seed) * own); m.was.RootBytes < least || m.was.RootBytes > disk-before {
		t.Errorf("on a disk of %d bytes the root filesystem has %d, want at least %d", disk, m.was.RootBytes, least)
	}
}

func (c *cloud) install(t *testing.T, m *tenant, image, reprovision string, n int) Word {
	t.Helper()
	c.ingot.Commit(t, m.manifest(), fmt.Sprintf(cloudManifests, m.claim, image, m.server.Name, m.server.DiskSerials[m.target], reprovision, c.witness.url))
	said := c.witness.await(t, cloudLimit, m.server.UUID, n)
	c.ingot.StatusHas(t, rig.Patience, "serverclaims/default/"+m.claim+".yaml", "phase: Bound", "reason: Booted", m.server.DiskSerials[m.target])
	c.untouched(t, m)
	if reprovision != "" {
		c.ingot.StatusHas(t, rig.Patience, "serverclaims/default/"+m.claim+".yaml", "reason: CloudInitFailed",
			"cloud-init ended in error (stage modules-final, module scripts-user: Runparts: 1 failures (runcmd)): ")
	}
	return said
}

func (c *cloud) untouched(t *testing.T, m *tenant) {
	t.Helper()
	if at, ok := blank(t, m.server.Disks[1-m.target]); !ok {
		t.Errorf("the other disk was written to, at byte %d", at)
	}
}

func (c *cloud) goesOn(t *testing.T, m *tenant) {
	if m.next == "" {
		c.cut(t, m)
		return
	}
	c.reinstalled(t, m)
}

func (c *cloud) cut(t *testing.T, m *tenant) {
	must.Do(t, c.on.Meddle("/servers/"+m.server.Name+"/power-cut"))
	said := c.witness.await(t, cloudLimit, m.server.UUID, 2)
	if said.Installation != m.was.Installation {
		t.Errorf("it runs installation %s, want %s", said.Installation, m.was.Installation)
	}
	c.untouched(t, m)
}

func (c *cloud) reinstalled(t *testing.T, m *tenant) {
	t.Helper()
	said := c.install(t, m, m.next, "second", 2)
	if said.Installation == m.was.Installation || said.Hostname != m.claim {
		t.Errorf("the machine says %+v after it was installed again, and before it %+v", said, m.was)
	}
}

func (c *cloud) released(t *testing.T, m *tenant) {
	c.ingot.Remove(t, m.manifest())
	c.ingot.StatusHas(t, bootLimit, m.status(), "state: Available", "powerState: \"Off\"", "reason: WipeDone")
	for i, disk := range m.server.Disks {
		if at, ok := blank(t, disk); !ok {
			t.Errorf("disk %d still holds data, at byte %d", i, at)
		}
	}
}

func blank(t *testing.T, path string) (at int64, ok bool) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(f, buffer)
		for i, b := range buffer[:n] {
			if b != 0 {
				return at + int64(i), false
			}
		}
		at += int64(n)
		if err != nil {
			return at, true
		}
	}
}

func (m *tenant) called() string   { return m.name }
func (m *tenant) status() string   { return "servers/" + m.server.Name + ".yaml" }
func (m *tenant) manifest() string { return "claims/" + m.claim + ".yaml" }

// cloudManifests are a claim with a disk image, and its user-data: a script that speaks to
// the witness on each start, and a command that fails in each install but the first.
const cloudManifests = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: %[1]s
  namespace: default
  annotations: {ingot/root-device: "serial=%[4]s", ingot/reprovision: "%[5]s"}
spec:
  power: "On"
  image: %[2]q
  serverRef: {name: %[3]s}
  ignitionSecretRef: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s, namespace: default}
stringData:
  user-data: |
    #cloud-config
    ssh_genkeytypes: [ed25519]
    locale: false
    runcmd: [[test, -z, "%[5]s"]]
    write_files:
    - path: /var/lib/cloud/scripts/per-boot/witness
      permissions: "0755"
      content: |
        #!/usr/bin/python3
        import json, os, socket, urllib.request
        read = lambda path: open(path).read().strip()
        root = os.statvfs("/")
        word = {"UUID": read("/sys/class/dmi/id/product_uuid").lower(), "Hostname": socket.gethostname(), "From": "disk",
                "Installation": read("/var/lib/cloud/data/instance-id"), "Boot": read("/proc/sys/kernel/random/boot_id"),
                "RootBytes": root.f_blocks * root.f_frsize}
        urllib.request.urlopen("%[6]s", json.dumps(word).encode(), timeout=30)
`
