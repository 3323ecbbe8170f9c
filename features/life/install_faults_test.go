package life

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim/qemu"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// A system on disk whose installs are broken, in MiB: its EFI system partition, a partition with
// an Installation, and one that makes the install long enough for what is done to it.
const (
	faultyESP     = 64
	faultyBallast = 160
	faultyDisk    = 1 + faultyESP + 1 + faultyBallast + 1
	faultyMachine = 512 // of each disk of a machine
)

const kills = 10

// faulty is what the machines live in whose installs are broken.
type faulty struct {
	whole                            *testing.T // as long as all of them live
	on                               *rig.Namespace
	ingot                            *rig.Ingot
	witness                          *witness
	image                            string // a file
	reference                        string // of it
	killed, cut, twin, largerSectors *tenant
}

// TestInstallsThatAreBroken does to installs of real machines what breaks them: whatever comes,
// a disk holds nothing that starts, or all of the image, and other disks hold what they held.
func TestInstallsThatAreBroken(t *testing.T) {
	rig.SkipIfLate(t)
	rig.NeedMachines(t, rig.ToolMtools, rig.ToolSfdisk, rig.ToolMkfsVFAT)
	f := newFaulty(t)
	for _, m := range f.tenants() {
		f.ingot.StatusHas(t, bootLimit, m.status(), "state: Available", "powerState: \"Off\"")
	}
	for _, fault := range []struct {
		rule string
		do   func(*faulty, *testing.T)
	}{
		{"a disk with sectors of another size is refused before the machine is powered on", (*faulty).otherSectors},
		{"an image that another disk holds already is refused, and neither disk is written to", (*faulty).sameLabels},
		{"Ingot is killed again and again while a disk is written, which goes on", (*faulty).killedWhileWriting},
		{"a power cut leaves nothing that starts, or all of it", (*faulty).cutAtEachStage},
	} {
		t.Run(fault.rule, func(t *testing.T) {
			began := time.Now()
			fault.do(f, t)
			t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
		})
	}
}

func (f *faulty) tenants() []*tenant { return []*tenant{f.killed, f.cut, f.twin, f.largerSectors} }

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	on := rig.NewServer(t)
	f := &faulty{whole: t, on: on, witness: newWitness(t, on)}
	f.image = faultyImage(t, f.witness.url)
	var authority string
	f.reference, authority = publish(t, on, f.image)
	order := rig.RackOrder{StateDir: t.TempDir(), BMCs: 4, SystemsPerBMC: 1}
	for i, to := range []**tenant{&f.killed, &f.cut, &f.twin, &f.largerSectors} {
		disk := qemu.Disk{Bus: qemu.DiskNVMe, SizeMiB: faultyMachine}
		other := disk
		if to == &f.largerSectors {
			disk.SectorSize = 4096
		}
		tap := fmt.Sprint("tap", i)
		on.Tap(tap, rig.BridgeName)
		m := &tenant{claim: fmt.Sprint("broken-", i), spec: qemu.Machine{
			Firmware: qemu.FirmwareUEFI, MemoryMiB: 768, Disks: []qemu.Disk{disk, other}, Taps: []string{tap},
		}}
		*to = m
		order.QEMU, order.NetworkFirst = append(order.QEMU, m.spec), append(order.NetworkFirst, true)
	}
	facts := on.StartRack(t, order)
	probe := rig.PushProbe(t, on)
	f.ingot = rig.NewIngot(t, on, network+fmt.Sprintf("discovery: {image: %q}\nboot: {registries: [{host: %q, plain: true}], caFile: %q}\n",
		probe, registryOf(probe), authority))
	f.ingot.CommitRack(t, facts)
	for i, m := range f.tenants() {
		m.server = facts.Servers[i]
		rig.KeepConsole(t, m.server)
	}
	f.ingot.Start(t)
	return f
}

func faultyImage(t *testing.T, witness string) string {
	t.Helper()
	dir, built := t.TempDir(), buildGuest(t)
	path := filepath.Join(dir, "disk.raw")
	disk := must.Get(os.Create(path))(t)
	defer disk.Close()
	must.Do(t, disk.Truncate(faultyDisk<<20))
	table := filepath.Join(dir, "table")
	layout := fmt.Sprintf("label: gpt\nstart=1MiB, size=%dMiB, type=uefi\nsize=1MiB, type=linux\nsize=%dMiB, type=linux\n", faultyESP, faultyBallast)
	must.Do(t, os.WriteFile(table, []byte(layout), 0o600))
	rig.MustRun(t, "sh", "-c", "sfdisk --quiet "+path+" <"+table)
	esp := path + "@@1M"
	rig.MustRun(t, "mformat", "-i", esp, "-T", fmt.Sprint(faultyESP<<20/sectorSize), "-v", "GUEST", "::")
	rig.MustRun(t, "mmd", "-i", esp, "::/EFI", "::/EFI/BOOT")
	rig.MustRun(t, "mcopy", "-i", esp, built.UKI, "::/EFI/BOOT/BOOTX64.EFI")
	must.Do(t, (Installation{ID: "image", Files: map[string]string{WitnessFile: witness}}).Save(disk))
	must.Get(io.CopyN(io.NewOffsetWriter(disk, (2+faultyESP)<<20), rand.Reader, faultyBallast<<20))(t)
	return path
}

func (f *faulty) claim(t *testing.T, m *tenant) {
	t.Helper()
	f.ingot.Commit(t, m.manifest(), fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: %s
  namespace: default
  annotations: {ingot/root-device: "serial=%s", ingot/booted: served}
spec:
  power: "On"
  image: %q
  serverRef: {name: %s}
`, m.claim, m.server.DiskSerials[0], f.reference, m.server.Name))
}

func (f *faulty) runs(t *testing.T, m *tenant) {
	t.Helper()
	said := f.witness.await(t, bootLimit, m.server.UUID, 1)
	if said.From != FromDisk || said.Installation != "image" {
		t.Errorf("the machine says %+v", said)
	}
	f.ingot.StatusHas(t, rig.Patience, "serverclaims/default/"+m.claim+".yaml", "phase: Bound", "reason: Booted")
	want := must.Get(os.ReadFile(f.image))(t)
	got := must.Get(os.ReadFile(m.server.Disks[0]))(t)
	// The EFI system partition is its system's own by now, and behind the last one the table ends.
	from, to := (1+faultyESP)<<20, (faultyDisk-1)<<20
	if !bytes.Equal(got[from:to], want[from:to]) {
		t.Error("the disk does not hold what the image does")
	}
	untouched(t, m)
}

func untouched(t *testing.T, m *tenant) {
	t.Helper()
	if at, ok := blank(t, m.server.Disks[1]); !ok {
		t.Errorf("the other disk was written to, at byte %d", at)
	}
}

func (f *faulty) sent() (int64, error) {
	lines, err := f.ingot.Metric("ingot_boot_install_bytes_total")
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(lines) {
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:len(strings.TrimRight(line, "\n"))], 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return int64(sum), nil
}

func (f *faulty) awaitSent(t *testing.T, limit time.Duration, more int64) {
	t.Helper()
	var from int64 // one that is starting counts from zero
	if f.ingot.Ready() == nil {
		var err error
		if from, err = f.sent(); err != nil {
			t.Fatal(err)
		}
	}
	rig.Eventually(t, limit, func() error {
		now, err := f.sent()
		if err == nil && now < from+more {
			err = fmt.Errorf("%d bytes were sent, and %d are awaited", now-from, more)
		}
		return err
	})
}

func (f *faulty) otherSectors(t *testing.T) {
	f.claim(t, f.largerSectors)
	f.ingot.StatusHas(t, bootLimit, "serverclaims/default/"+f.largerSectors.claim+".yaml", "SectorSizeMismatch", "sectors of 512 bytes")
	f.ingot.StatusHas(t, rig.Patience, f.largerSectors.status(), "powerState: \"Off\"")
	for i, path := range f.largerSectors.server.Disks {
		if at, ok := blank(t, path); !ok {
			t.Errorf("disk %d was written to, at byte %d", i, at)
		}
	}
}

func (f *faulty) sameLabels(t *testing.T) {
	m := f.twin
	rig.MustRun(t, "dd", "if="+f.image, "of="+m.server.Disks[1], "conv=notrunc,sparse", "bs=1M", "status=none")
	before := digestOf(t, m.server.Disks[1])
	f.claim(t, m)
	f.ingot.StatusHas(t, bootLimit, "serverclaims/default/"+m.claim+".yaml", "DuplicateIdentity")
	if at, ok := blank(t, m.server.Disks[0]); !ok {
		t.Errorf("the disk that the claim names was written to, at byte %d", at)
	}
	if digestOf(t, m.server.Disks[1]) != before {
		t.Error("the other disk was written to")
	}
}

func (f *faulty) killedWhileWriting(t *testing.T) {
	f.claim(t, f.killed)
	for i := range kills {
		f.awaitSent(t, bootLimit, 1+mathrand.Int64N(faultyBallast<<20/(2*kills)))
		f.ingot.Kill()
		if startable(t, f.killed.server.Disks[0]) {
			t.Fatalf("the image is on the disk when Ingot was killed %d times: %d are wanted meanwhile", i+1, kills)
		}
		f.ingot.Launch(f.whole) // it outlives this part
	}
	f.ingot.AwaitReady(t)
	f.runs(t, f.killed)
}

func (f *faulty) cutAtEachStage(t *testing.T) {
	m := f.cut
	f.claim(t, m)
	for _, more := range []int64{1, faultyBallast << 19} { // at the first chunk, and half-way
		f.awaitSent(t, bootLimit, more)
		f.cutPower(t, m)
		if startable(t, m.server.Disks[0]) {
			t.Fatal("a disk that is half written has a partition table")
		}
	}
	verified := regexp.MustCompile(`"install reported","server":"` + regexp.QuoteMeta(m.server.Name) + `".*"stage":"Verified"`)
	rig.Eventually(t, bootLimit, func() error {
		if !verified.MatchString(f.ingot.Process.Output.String()) {
			return errors.New("its probe does not say that the image is on the disk")
		}
		return nil
	})
	var before, is struct{ Power string }
	wasOn := f.on.Control("/servers/"+m.server.Name, &before) == nil && before.Power == "On"
	f.cutPower(t, m)
	if err := f.on.Control("/servers/"+m.server.Name, &is); err != nil || !wasOn || is.Power == "On" {
		t.Errorf("its power was %q when it was to be cut, and is %q (%v)", before.Power, is.Power, err)
	}
	sent := must.Get(f.sent())(t)
	f.runs(t, m)
	if after, err := f.sent(); err != nil || after != sent {
		t.Errorf("%d bytes of the image were sent after it was verified (%v)", after-sent, err)
	}
}

func (f *faulty) cutPower(t *testing.T, m *tenant) {
	t.Helper()
	must.Do(t, f.on.Meddle("/servers/"+m.server.Name+"/power-cut"))
}

func startable(t *testing.T, path string) bool {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	sectors := make([]byte, 3*sectorSize) // the first two, and the last
	for i, at := range []int64{0, sectorSize, faultyMachine<<20 - sectorSize} {
		must.Get(f.ReadAt(sectors[i*sectorSize:][:sectorSize], at))(t)
	}
	return !bytes.Equal(sectors, make([]byte, len(sectors)))
}
