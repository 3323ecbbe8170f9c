package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

// rescueScript is where the documented menu is.
const rescueScript = "../../examples/rescue.ipxe"

// TestAMachineWithoutTicketHasTheRescueMenu boots a machine that nobody named, by the iPXE of its network card, into
// the documented menu, and on to its disk when nobody chooses.
func TestAMachineWithoutTicketHasTheRescueMenu(t *testing.T) {
	rig.NeedMachines(t)
	t.Parallel()
	machines <- struct{}{}
	defer func() { <-machines }()
	r := newRack(t)
	r.server.StartRadvd(t, "fd77:1::/64", false)
	r.server.Tap("tap0", rig.BridgeName)
	menu, err := os.ReadFile(rescueScript)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "rescue.ipxe")
	hasty := strings.Replace(string(menu), "--timeout 20000", "--timeout 5000", 1)
	if err := os.WriteFile(script, []byte(hasty), 0o644); err != nil {
		t.Fatal(err)
	}
	i := rig.NewIngot(t, r.server, rackNetwork+fmt.Sprintf("tftp: {listen: \":69\"}\nboot: {rescue: {script: %q, for: unknown}}\n", script))
	i.Start(t)

	mac := rig.MAC(0xe5)
	serial := filepath.Join(t.TempDir(), "serial")
	r.server.Start(t, "qemu", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "256", "-nodefaults", "-nographic",
		"-machine", "pc", "-boot", "strict=on", "-smbios", "type=1,manufacturer=Acme,product=Rack1,serial=S-77", "-serial", "file:"+serial,
		"-netdev", "tap,id=net0,ifname=tap0,script=no,downscript=no", "-device", "virtio-net-pci,netdev=net0,mac="+mac+",bootindex=0")
	rig.Eventually(t, bootPatience, func() error {
		said, err := os.ReadFile(serial)
		if err != nil {
			return err
		}
		return saysInOrder(string(said), "Rescue: "+mac+" Acme Rack1 S-77", "Boot from disk", "Test the memory", "iPXE shell", "No bootable device")
	})
	if lines, err := i.Metric("ingot_boot_rescue_scripts_total"); err != nil || !strings.Contains(lines, `{machine="unknown"} 1`) {
		t.Errorf("the metrics count no machine, or more: %v\n%s", err, lines)
	}
	if log := i.Process.Output.String(); !strings.Contains(log, "a machine without a boot ticket is served the rescue script") {
		t.Errorf("the log does not say who was served the script:\n%s", i.Process.Output.Tail(20))
	}
}

// saysInOrder is nil if a text has all parts, in their order.
func saysInOrder(text string, parts ...string) error {
	for _, p := range parts {
		_, after, found := strings.Cut(text, p)
		if !found {
			return errors.New("the console does not say " + p + ": " + strings.ToValidUTF8(text[max(0, len(text)-2000):], "?"))
		}
		text = after
	}
	return nil
}
