package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

const rescueScript = "../../examples/rescue.ipxe"

// loneMachine is a QEMU virtual machine without a BMC, that nobody named.
type loneMachine struct {
	rule     string
	patience time.Duration
	command  func(*testing.T) []string // what runs it, but for its network card and its console
	loaders  func(*testing.T) string   // the folder of boot loaders, nil for Debian's
	last     string                    // what its console says when nobody chooses
}

var loneMachines = []loneMachine{
	{
		rule: "a BIOS whose network card has iPXE", patience: bootPatience, last: "No bootable device",
		command: func(*testing.T) []string {
			return []string{"qemu-system-x86_64", "-machine", "pc", "-cpu", "max", "-m", "256", "-boot", "strict=on"}
		},
	},
	{
		rule: "UEFI of arm64 that boots by PXE", patience: 2 * bootPatience, last: "BdsDxe",
		command: arm64Machine, loaders: arm64Loaders,
	},
}

func TestAMachineWithoutTicketHasTheRescueMenu(t *testing.T) {
	rig.NeedMachines(t)
	t.Parallel()
	for _, m := range loneMachines {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			machines <- struct{}{}
			defer func() { <-machines }()
			m.rescued(t)
		})
	}
}

func (m loneMachine) rescued(t *testing.T) {
	t.Helper()
	command, mac, serial := m.command(t), rig.MAC(0xe5), filepath.Join(t.TempDir(), "serial")
	boot := fmt.Sprintf("rescue: %q", hastyMenu(t))
	if m.loaders != nil {
		boot += fmt.Sprintf(", loaderDirs: [%q]", m.loaders(t))
	}
	r := newRack(t)
	r.server.StartRadvd(t, "fd77:1::/64", false)
	r.server.Tap("tap0", rig.BridgeName)
	i := rig.NewIngot(t, r.server, rackNetwork+"tftp: {listen: \":69\"}\nboot: {"+boot+"}\n")
	i.Start(t)

	began := time.Now()
	r.server.Start(t, "qemu", append(command, "-accel", "tcg", "-nodefaults", "-nographic", "-serial", "file:"+serial,
		"-smbios", "type=1,manufacturer=Acme,product=Rack1,serial=S-77",
		"-netdev", "tap,id=net0,ifname=tap0,script=no,downscript=no", "-device", "virtio-net-pci,netdev=net0,bootindex=0,mac="+mac)...)
	rig.Eventually(t, m.patience, func() error {
		said, err := os.ReadFile(serial)
		if err != nil {
			return err
		}
		return saysInOrder(string(said), "Rescue: "+mac+" Acme Rack1 S-77", "Boot from disk", "Test the memory", "iPXE shell", m.last)
	})
	t.Logf("the menu was shown and left %s after its power-on", time.Since(began).Round(100*time.Millisecond))
	if lines, err := i.Metric("ingot_boot_rescue_scripts_total"); err != nil || !strings.Contains(lines, "ingot_boot_rescue_scripts_total 1") {
		t.Errorf("the metrics count no machine, or more: %v\n%s", err, lines)
	}
	if log := i.Process.Output.String(); !strings.Contains(log, "a machine without a boot ticket is served the rescue script") {
		t.Errorf("the log does not say who was served the script:\n%s", i.Process.Output.Tail(20))
	}
}

// hastyMenu is the documented menu, which does not wait as long for somebody to choose.
func hastyMenu(t *testing.T) string {
	t.Helper()
	menu := must.Get(os.ReadFile(rescueScript))(t)
	script := filepath.Join(t.TempDir(), "rescue.ipxe")
	must.Do(t, os.WriteFile(script, []byte(strings.Replace(string(menu), "--timeout 20000", "--timeout 5000", 1)), 0o644))
	return script
}

// arm64Firmware is UEFI for arm64, of Debian's package qemu-efi-aarch64.
const arm64Firmware = "/usr/share/AAVMF"

// arm64Machine is a machine that is emulated, for which setup installs nothing.
func arm64Machine(t *testing.T) []string {
	t.Helper()
	if hint := rig.Lacking(rig.Tool{Program: "qemu-system-aarch64", Install: "qemu-system-arm"}); hint != "" {
		t.Skip("SKIPPED, AND NOTHING IS PROVED: " + hint)
	}
	empty, err := os.ReadFile(filepath.Join(arm64Firmware, "AAVMF_VARS.fd"))
	if err != nil {
		t.Skip("SKIPPED, AND NOTHING IS PROVED: apt-get install --no-install-recommends qemu-efi-aarch64: ", err)
	}
	settings := filepath.Join(t.TempDir(), "vars.fd")
	must.Do(t, os.WriteFile(settings, empty, 0o600))
	return []string{
		"qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a57", "-m", "512",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + filepath.Join(arm64Firmware, "AAVMF_CODE.fd"),
		"-drive", "if=pflash,format=raw,unit=1,file=" + settings,
	}
}

// arm64Loaders is the folder that has iPXE for arm64: Debian has it from version 13 on, whose package ipxe may
// be unpacked into the cache of the one who runs the tests.
func arm64Loaders(t *testing.T) string {
	t.Helper()
	cache := must.Get(os.UserCacheDir())(t)
	unpacked := filepath.Join(cache, "ingot", "ipxe-arm64", rig.LoaderFolder)
	for _, dir := range []string{rig.LoaderFolder, unpacked} {
		if _, err := os.Stat(filepath.Join(dir, "ipxe-arm64.efi")); err == nil {
			return dir
		}
	}
	t.Skip("SKIPPED, AND NOTHING IS PROVED: no ipxe-arm64.efi is in " + rig.LoaderFolder + " or " + unpacked)
	return ""
}

func saysInOrder(text string, parts ...string) error {
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			return errors.New("the console does not say " + p + ": " + strings.ToValidUTF8(text[max(0, len(text)-2000):], "?"))
		}
		rest = after
	}
	return nil
}
