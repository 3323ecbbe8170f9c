package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim/qemu"
)

func TestTheFlagsMakeTheMachinesOfQEMU(t *testing.T) {
	standard := []qemu.Disk{qemu.DefaultDisk}
	for name, tc := range map[string]struct {
		flags   qemuFlags
		servers int
		want    qemu.Machines
	}{
		"none without --qemu": {qemuFlags{}, 6, nil},
		"one each":            {qemuFlags{QEMU: true}, 2, qemu.Machines{{Firmware: "bios", Disks: standard}, {Firmware: "bios", Disks: standard}}},
		"taps are dealt out in order": {
			qemuFlags{QEMU: true, Tap: []string{"a", "b", "c", "d"}}, 2,
			qemu.Machines{{Firmware: "bios", Disks: standard, Taps: []string{"a", "b"}}, {Firmware: "bios", Disks: standard, Taps: []string{"c", "d"}}},
		},
		"all of it": {
			qemuFlags{QEMU: true, Firmware: "uefi", Memory: 1024, Disk: []string{"nvme", "sata"}, DiskSize: 64, Tap: []string{"a"}, OptionROM: true, QEMUArg: []string{"-snapshot"}}, 1,
			qemu.Machines{{
				Firmware: qemu.FirmwareUEFI, MemoryMiB: 1024, Taps: []string{"a"}, OptionROM: true, ExtraArgs: []string{"-snapshot"},
				Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 64}, {Bus: qemu.DiskSATA, SizeMiB: 64}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.flags.machines(tc.servers)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if len(got[i].Taps) == 0 {
					got[i].Taps = nil
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("machines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachinesOfQEMUThatCannotBeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"without --qemu":    {"--tap=tap0 --memory=1024", "--memory, --tap: only machines of qemu have that; add --qemu"},
		"taps left over":    {"--qemu --systems=2 --tap=a", "--tap: 1 of them for 2 servers; each server takes as many as the others"},
		"a ROM and a BIOS":  {"--qemu --option-rom", "choose --firmware uefi"},
		"no such firmware":  {"--qemu --firmware=coreboot", `firmware "coreboot": there are [bios uefi uefi-http]`},
		"no such bus":       {"--qemu --disk=floppy", `disk on "floppy": there are [virtio sata nvme]`},
		"no such interface": {"--qemu --tap=ingot-nowhere", "tap ingot-nowhere: there is no such interface in this network namespace; make it: ip tuntap add"},
		"no servers":        {"--qemu --bmcs=-1", "there have to be BMCs and servers"},
		"port of the last":  {"--port=65535", "port 65535: each BMC needs one of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := command(t, append([]string{"sim"}, strings.Fields(tc.args)...)...)
			if code != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
	t.Run("without qemu", func(t *testing.T) {
		t.Setenv("PATH", "")
		_, stderr, code := command(t, "sim", "--qemu")
		if code != 1 || !strings.Contains(stderr, "qemu-system-x86_64 is not installed: apt-get install qemu-system-x86") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
}

func TestARackOfQEMUIsOneServerUnlessMoreAreAskedFor(t *testing.T) {
	two := 2
	for name, tc := range map[string]struct {
		cmd  simCommand
		want [2]int
	}{
		"pretended": {simCommand{}, [2]int{3, 2}},
		"of qemu":   {simCommand{qemuFlags: qemuFlags{QEMU: true}}, [2]int{1, 1}},
		"asked for": {simCommand{qemuFlags: qemuFlags{QEMU: true}, Systems: &two}, [2]int{1, 2}},
	} {
		if bmcs, systems := tc.cmd.layout(); bmcs != tc.want[0] || systems != tc.want[1] {
			t.Errorf("%s: %d BMCs with %d servers, want %v", name, bmcs, systems, tc.want)
		}
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("NO RACK OF QEMU IS MADE: qemu-system-x86_64 is not installed (apt-get install qemu-system-x86)")
	}
	stdout, stderr, code := interrupted(t, "]\n", "sim", "--qemu", "--disk-size=1", "--state-dir", t.TempDir(), "-o", "json")
	if code != 0 || strings.Count(stdout, "-system-") != 1 {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
