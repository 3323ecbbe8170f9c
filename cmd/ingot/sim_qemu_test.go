package main

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim/qemu"
	"ingot/model/must"
)

func TestTheFlagsMakeTheVirtualMachines(t *testing.T) {
	standard := []qemu.Disk{qemu.DefaultDisk}
	for name, tc := range map[string]struct {
		flags   qemuFlags
		servers int
		want    qemu.Machines
	}{
		"none without --qemu": {flags: qemuFlags{}, servers: 6},
		"one each": {
			flags: qemuFlags{QEMU: true}, servers: 2,
			want: qemu.Machines{{Firmware: "bios", Disks: standard}, {Firmware: "bios", Disks: standard}},
		},
		"taps are dealt out in order": {
			flags: qemuFlags{QEMU: true, Tap: []string{"a", "b", "c", "d"}}, servers: 2,
			want: qemu.Machines{
				{Firmware: "bios", Disks: standard, Taps: []string{"a", "b"}},
				{Firmware: "bios", Disks: standard, Taps: []string{"c", "d"}},
			},
		},
		"all of it": {
			flags: qemuFlags{
				QEMU: true, Firmware: "uefi", Memory: 1024, Disk: []string{"nvme", "sata"}, DiskSize: 64, Tap: []string{"a"},
				OptionROM: true, QEMUArg: []string{"-snapshot"},
			},
			servers: 1,
			want: qemu.Machines{{
				Firmware: qemu.FirmwareUEFI, MemoryMiB: 1024, Taps: []string{"a"}, OptionROM: true, ExtraArgs: []string{"-snapshot"},
				Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 64}, {Bus: qemu.DiskSATA, SizeMiB: 64}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(tc.flags.machines(tc.servers))(t)
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

func TestVirtualMachinesThatCannotBeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"without --qemu": {
			args: "--tap=tap0 --memory=1024", want: "--memory, --tap: only QEMU virtual machines have that; add --qemu",
		},
		"taps left over": {
			args: "--qemu --systems=2 --tap=a",
			want: "--tap: 1 of them for 2 servers; each server takes as many as the others",
		},
		"a ROM and a BIOS": {args: "--qemu --option-rom", want: "choose --firmware uefi"},
		"no such firmware": {
			args: "--qemu --firmware=coreboot", want: `firmware "coreboot": there are [bios uefi uefi-http]`,
		},
		"no such bus": {args: "--qemu --disk=floppy", want: `disk on "floppy": there are [virtio sata nvme]`},
		"no such interface": {
			args: "--qemu --tap=ingot-nowhere",
			want: "tap ingot-nowhere: there is no such interface in this network namespace; make it: ip tuntap add",
		},
		"no servers":       {args: "--qemu --bmcs=-1", want: "there have to be BMCs and servers"},
		"port of the last": {args: "--port=65535", want: "port 65535: each BMC needs one of its own"},
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

func TestABridgeHasATapForEachServer(t *testing.T) {
	b := must.Get(newBridge(interfaceAddress{"rack0", netip.MustParsePrefix("10.20.0.1/24")}, 2))(t)
	var got []string
	for _, args := range b.commands() {
		got = append(got, strings.Join(args, " "))
	}
	want := []string{
		"link add name rack0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
		"address add 10.20.0.1/24 dev rack0",
		"tuntap add rack0-1 mode tap", "link set rack0-1 master rack0 up",
		"tuntap add rack0-2 mode tap", "link set rack0-2 master rack0 up",
		"link set rack0 up",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Run("and is not made without ip", func(t *testing.T) {
		t.Setenv("PATH", "")
		if err := b.make(t.Context()); err == nil || !strings.Contains(err.Error(), "apt-get install iproute2") {
			t.Errorf("got %v", err)
		}
	})
}

// A bridge that cannot be made whole leaves nothing behind, and takes nothing away that was there.
func TestABridgeRemovesWhatItMadeAlone(t *testing.T) {
	dir := t.TempDir()
	did := filepath.Join(dir, "did")
	program := "#!/bin/sh\necho \"$@\" >>" + did + "\ncase \"$*\" in \"tuntap add rack0-2 \"*) echo 'ioctl(TUNSETIFF): Device or resource busy' >&2; exit 1;; esac\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "ip"), []byte(program), 0o700))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	b := must.Get(newBridge(interfaceAddress{"rack0", netip.MustParsePrefix("10.20.0.1/24")}, 3))(t)
	if err := b.make(t.Context()); err == nil || !strings.Contains(err.Error(), "ip link delete: rack0, rack0-1, rack0-2, rack0-3") {
		t.Errorf("got %v", err)
	}
	b.remove(t.Context())
	log := must.Get(os.ReadFile(did))(t)
	var removed []string
	for line := range strings.Lines(string(log)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "link delete "); ok {
			removed = append(removed, name)
		}
	}
	if diff := cmp.Diff([]string{"rack0-1", "rack0"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s\n%s", diff, log)
	}
}

func TestABridgeHasAnAddressUnlessOneIsGiven(t *testing.T) {
	for text, want := range map[string]string{"rack0": "10.20.0.1/24", "rack0=192.0.2.1/28": "192.0.2.1/28"} {
		var at interfaceAddress
		must.Do(t, at.UnmarshalText([]byte(text)))
		b, err := newBridge(at, 1)
		if err != nil || b.address.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, b, err, want)
		}
	}
}

// Nothing is run here: what is not refused would be made.
func TestABridgeThatCannotBeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"rack0=":                     `"rack0=": write INTERFACE or INTERFACE=ADDRESS/BITS, such as rack0=10.20.0.1/24`,
		"=10.20.0.1/24":              "write INTERFACE or INTERFACE=ADDRESS/BITS",
		"rack0=10.20.0.0/24":         "10.20.0.0/24 is the network: write the address of this machine on it, such as 10.20.0.1/24",
		"twelve-bytes=10.20.0.1/24":  "--bridge twelve-bytes: the name of a bridge has at most 11 bytes",
		"rack0=10.20.0.1/24 and tap": "--bridge and --tap: a server is plugged into one of them",
	} {
		at := new(interfaceAddress)
		text, tap, _ := strings.Cut(text, " and ")
		err := at.UnmarshalText([]byte(text))
		if err == nil {
			flags := qemuFlags{QEMU: true, Bridge: at}
			if tap != "" {
				flags.Tap = []string{tap}
			}
			_, err = flags.bridge(1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestARackWithQEMUIsOneServerUnlessMoreAreAskedFor(t *testing.T) {
	two := 2
	for name, tc := range map[string]struct {
		cmd  simCommand
		want [2]int
	}{
		"simulated": {cmd: simCommand{}, want: [2]int{3, 2}},
		"with QEMU": {cmd: simCommand{qemuFlags: qemuFlags{QEMU: true}}, want: [2]int{1, 1}},
		"asked for": {cmd: simCommand{qemuFlags: qemuFlags{QEMU: true}, Systems: &two}, want: [2]int{1, 2}},
	} {
		if bmcs, systems := tc.cmd.layout(); bmcs != tc.want[0] || systems != tc.want[1] {
			t.Errorf("%s: %d BMCs with %d servers, want %v", name, bmcs, systems, tc.want)
		}
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("NO RACK WITH QEMU IS MADE: qemu-system-x86_64 is not installed (apt-get install qemu-system-x86)")
	}
	stdout, stderr, code := interrupted(t, "]\n", "sim", "--qemu", "--disk-size=1", "--state-dir", t.TempDir(), "-o", "json")
	if code != 0 || strings.Count(stdout, "-system-") != 1 {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
