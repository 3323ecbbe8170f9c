package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ingot/bmc/sim/qemu"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// The keys of Debian's package ovmf that anybody has: a firmware that trusts nothing else.
const (
	snakeoil           = "/usr/share/ovmf/PkKek-1-snakeoil"
	snakeoilPassphrase = "snakeoil"
)

var secureBoot = []string{"-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"}

func enrolled(t *testing.T, keys string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, from := range map[string]string{"OVMF_CODE_4M.fd": "OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.fd": "OVMF_VARS_4M." + keys + ".fd"} {
		rig.NeedFile(t, filepath.Join(qemu.DefaultOVMFDir, from), "ovmf")
		must.Do(t, os.Symlink(filepath.Join(qemu.DefaultOVMFDir, from), filepath.Join(dir, name)))
	}
	return dir
}

func signed(t *testing.T, program string) string {
	t.Helper()
	rig.NeedFile(t, snakeoil+".key", "ovmf")
	to := filepath.Join(t.TempDir(), filepath.Base(program))
	rig.MustRun(t, "osslsigncode", "sign", "-h", "sha256", "-certs", snakeoil+".pem", "-key", snakeoil+".key", "-pass", snakeoilPassphrase,
		"-in", program, "-out", to)
	return to
}

// TestSecureBootWithKeysOfOnesOwn boots what the ticket stands for by UEFI HTTP boot: the
// firmware starts it only if it is signed with the key that it trusts.
func TestSecureBootWithKeysOfOnesOwn(t *testing.T) {
	rig.NeedMachines(t, rig.ToolOsslsigncode)
	t.Parallel()
	c := bootCase{firmware: qemu.FirmwareUEFI, settings: slices.Concat(withoutPXE, secureBoot)}
	t.Run("a signed UKI is started, and the server is discovered", func(t *testing.T) {
		t.Parallel()
		machines <- struct{}{}
		defer func() { <-machines }()
		c := c
		c.ovmf, c.stages = enrolled(t, "snakeoil"), []string{"DHCP", "HTTP boot", "Ignition"}
		c.push = func(t *testing.T, on *rig.Namespace) string {
			return rig.PushProbeAs(t, on, func(uki string) string { return signed(t, uki) })
		}
		c.boot(t)
	})
	t.Run("one that is not signed is fetched and refused", func(t *testing.T) {
		t.Parallel()
		machines <- struct{}{}
		defer func() { <-machines }()
		c := c
		c.ovmf = enrolled(t, "snakeoil")
		i, server := c.startIn(t, newRack(t))
		i.StatusHas(t, bootPatience, "servers/"+server.Name+".yaml", "stage: HTTP boot")
		rig.Eventually(t, bootPatience, func() error { return refusedBySecureBoot(server) })
		if content, err := i.Status("servers/" + server.Name + ".yaml"); err != nil || strings.Contains(content, "stage: Ignition") {
			t.Errorf("it was started nonetheless (%v):\n%s", err, content)
		}
	})
}

// TestSecureBootByADistributionsShim boots firmware as it is delivered, which trusts
// Microsoft's keys: Debian's shim, which starts Debian's GRUB, which reads its configuration
// from the folder of boot files.
func TestSecureBootByADistributionsShim(t *testing.T) {
	rig.NeedMachines(t)
	cache := must.Get(os.UserCacheDir())(t)
	shim, grub := filepath.Join(cache, "ingot/secureboot/usr/lib/shim"), filepath.Join(cache, "ingot/secureboot/usr/lib/grub/x86_64-efi-signed")
	for _, file := range []string{shim + "/shimx64.efi.signed", grub + "/grubnetx64.efi.signed"} {
		if _, err := os.Stat(file); err != nil {
			rig.Missing(t, file+" is missing: make setup fetches it")
		}
	}
	t.Parallel()
	machines <- struct{}{}
	defer func() { <-machines }()
	const said = "GRUB was configured by the folder of boot files"
	files := writeFiles(t, map[string]string{"grub/grub.cfg": "echo '" + said + "'\nsleep 30\n"})
	c := bootCase{
		firmware: qemu.FirmwareUEFI, ovmf: enrolled(t, "ms"), settings: secureBoot,
		config: fmt.Sprintf("boot: {loaderDirs: [%q, %q], loaders: {amd64: shim}, files: %q}\n", shim, grub, files),
	}
	i, server := c.startIn(t, newRack(t))
	rig.Eventually(t, bootPatience, func() error {
		console, err := os.ReadFile(server.Console)
		if err == nil && !strings.Contains(string(console), said) {
			err = fmt.Errorf("GRUB was not configured, the console has %d bytes", len(console))
		}
		return err
	})
	i.StatusHas(t, bootPatience, "servers/"+server.Name+".yaml", "stage: TFTP")
}

func refusedBySecureBoot(server rig.SimulatedServer) error {
	console, err := os.ReadFile(server.Console)
	if err != nil {
		return err
	}
	if !strings.Contains(string(console), "Access Denied") {
		return fmt.Errorf("the firmware has refused nothing, its console has %d bytes", len(console))
	}
	if strings.Contains(string(console), "Linux version") {
		return errors.New("Linux runs")
	}
	return nil
}
