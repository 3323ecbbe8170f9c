package qemu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim"
)

func TestTheCommandLineOfQEMU(t *testing.T) {
	files := files{console: "/s/a,b.log", disks: []string{"/s/0.img", "/s/1.img", "/s/2.img"}, code: "/o/CODE.fd", vars: "/s/vars.fd"}
	card := card{
		uuid: "4c4c4544-0011-2233-8044-b4c04f565931", manufacturer: "Dell, Inc.", product: "R750", sku: "K1", serial: "S1",
		macs: []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}, diskSerials: []string{"D0", "D1", "D2"},
	}
	common := func(memory string) []string {
		return []string{
			"-accel tcg -cpu max -smp 1 -m " + memory, "-S -nodefaults -nographic",
			"-uuid 4c4c4544-0011-2233-8044-b4c04f565931 -smbios type=1,manufacturer=Dell,, Inc.,product=R750,serial=S1,sku=K1",
			"-chardev socket,id=monitor,fd=3 -mon chardev=monitor,mode=control",
			"-chardev file,id=console,append=on,path=/s/a,,b.log -serial chardev:console",
		}
	}
	ovmf := []string{
		"-machine q35",
		"-drive if=pflash,format=raw,unit=0,readonly=on,file=/o/CODE.fd",
		"-drive if=pflash,format=raw,unit=1,file=/s/vars.fd",
	}
	file0 := "-blockdev driver=file,discard=unmap,node-name=file0,filename=/s/0.img"
	network := []sim.BootSource{sim.BootFromNetwork, sim.BootFromDisk}
	disk := []sim.BootSource{sim.BootFromDisk}
	tests := []struct {
		name     string
		machine  Machine
		order    []sim.BootSource
		httpOnly bool
		want     []string
	}{
		{
			name:    "the zero value boots its disk alone",
			machine: Machine{}, order: disk, httpOnly: false,
			want: append(common("512"),
				"-machine pc -boot strict=on", file0, "-device virtio-blk-pci,drive=file0,id=disk0,serial=D0,bootindex=1"),
		},
		{
			name:    "a BIOS boots the network by its option ROM, then the disk",
			machine: Machine{Taps: []string{"tap0"}}, order: network, httpOnly: false,
			want: append(common("512"),
				"-machine pc -boot strict=on",
				"-netdev tap,id=net0,ifname=tap0,script=no,downscript=no "+
					"-device virtio-net-pci,id=nic0,mac=02:00:00:00:00:01,netdev=net0,bootindex=1",
				file0, "-device virtio-blk-pci,drive=file0,id=disk0,serial=D0,bootindex=2"),
		},
		{
			name:    "a NIC that is not booted from has no place in the order",
			machine: Machine{Taps: []string{""}}, order: disk, httpOnly: false,
			want: append(common("512"),
				"-machine pc -boot strict=on", "-device virtio-net-pci,id=nic0,mac=02:00:00:00:00:01",
				file0, "-device virtio-blk-pci,drive=file0,id=disk0,serial=D0,bootindex=1"),
		},
		{
			name:    "UEFI boots by a client of its own",
			machine: Machine{Firmware: FirmwareUEFI, MemoryMiB: 1024, Taps: []string{"a", "b"}, Disks: []Disk{}},
			order:   network, httpOnly: false,
			want: append(append(common("1024"), ovmf...),
				"-netdev tap,id=net0,ifname=a,script=no,downscript=no "+
					"-device virtio-net-pci,id=nic0,mac=02:00:00:00:00:01,netdev=net0,romfile=,bootindex=1",
				"-netdev tap,id=net1,ifname=b,script=no,downscript=no "+
					"-device virtio-net-pci,id=nic1,mac=02:00:00:00:00:02,netdev=net1,romfile=,bootindex=2"),
		},
		{
			name:    "UEFI without PXE",
			machine: Machine{Firmware: FirmwareUEFIHTTP, Taps: []string{""}, Disks: []Disk{}}, order: network, httpOnly: true,
			want: append(append(common("512"), ovmf...),
				"-fw_cfg name=opt/org.tianocore/IPv4PXESupport,string=no -fw_cfg name=opt/org.tianocore/IPv6PXESupport,string=no",
				"-device virtio-net-pci,id=nic0,mac=02:00:00:00:00:01,romfile=,bootindex=1"),
		},
		{
			name:    "UEFI with the option ROM",
			machine: Machine{Firmware: FirmwareUEFI, Taps: []string{""}, Disks: []Disk{}, OptionROM: true}, order: network, httpOnly: false,
			want: append(append(common("512"), ovmf...), "-device virtio-net-pci,id=nic0,mac=02:00:00:00:00:01,bootindex=1"),
		},
		{
			name: "disks of all kinds, and more arguments",
			machine: Machine{
				Disks:     []Disk{{Bus: DiskVirtio, SizeMiB: 1}, {Bus: DiskSATA, SizeMiB: 1}, {Bus: DiskNVMe, SizeMiB: 1, SectorSize: 4096}},
				ExtraArgs: []string{"-msg", "timestamp=on"},
			}, order: disk, httpOnly: false, want: append(common("512"),
				"-machine pc -boot strict=on", file0, "-device virtio-blk-pci,drive=file0,id=disk0,serial=D0,bootindex=1",
				"-blockdev driver=file,discard=unmap,node-name=file1,filename=/s/1.img -device ahci,id=ahci1",
				"-device ide-hd,rotation_rate=1,bus=ahci1.0,drive=file1,id=disk1,serial=D1,bootindex=2",
				"-blockdev driver=file,discard=unmap,node-name=file2,filename=/s/2.img",
				"-device nvme,logical_block_size=4096,physical_block_size=4096,drive=file2,id=disk2,serial=D2,bootindex=3", "-msg timestamp=on"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.machine.withDefaults().args(files, card, tt.order, tt.httpOnly)
			split := func(s string) []string { return strings.Split(strings.ReplaceAll(s, " -", "\n-"), "\n") }
			if diff := cmp.Diff(split(strings.Join(tt.want, " ")), split(strings.Join(got, " "))); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePlacesInTheBootOrder(t *testing.T) {
	tests := []struct {
		name  string
		order []sim.BootSource
		want  []bootIndex
	}{
		{
			name: "network, then disks", order: []sim.BootSource{sim.BootFromNetwork, sim.BootFromDisk},
			want: []bootIndex{{"nic0", 1}, {"nic1", 2}, {"disk0", 3}, {"disk1", 4}},
		},
		{
			name: "disks alone", order: []sim.BootSource{sim.BootFromDisk},
			want: []bootIndex{{"nic0", -1}, {"nic1", -1}, {"disk0", 1}, {"disk1", 2}},
		},
		{
			name:  "nothing",
			order: nil,
			want:  []bootIndex{{"nic0", -1}, {"nic1", -1}, {"disk0", -1}, {"disk1", -1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, bootIndexes(tt.order, 2, 2), cmp.AllowUnexported(bootIndex{})); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatABMCShowsOfAMachineOfQEMU(t *testing.T) {
	tests := []struct {
		firmware Firmware
		targets  []string
		modes    []string
	}{
		{FirmwareBIOS, []string{"None", "Pxe", "Hdd"}, []string{"Legacy"}},
		{FirmwareUEFI, []string{"None", "Pxe", "UefiHttp", "Hdd"}, []string{"UEFI"}},
		{FirmwareUEFIHTTP, []string{"None", "UefiHttp", "Hdd"}, []string{"UEFI"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.firmware), func(t *testing.T) {
			m := Machine{
				Firmware: tt.firmware, Taps: []string{"", ""},
				Disks: []Disk{{Bus: DiskSATA, SizeMiB: 10}, {Bus: DiskNVMe, SizeMiB: 20}, {Bus: DiskSATA, SizeMiB: 30}, {Bus: DiskVirtio, SizeMiB: 40}},
			}
			b := m.withDefaults().build([]string{"None", "Pxe", "UefiHttp", "Hdd", "Cd", "Usb", "BiosSetup"})
			if diff := cmp.Diff([][]string{tt.targets, tt.modes}, [][]string{b.Targets, b.Modes}); diff != "" {
				t.Errorf("targets and modes (-want +got):\n%s", diff)
			}
			var disks []string
			for _, d := range b.Hardware.Drives {
				disks = append(disks, d.Name)
			}
			if diff := cmp.Diff([]string{"sda", "nvme0n1", "sdb", "vda"}, disks); diff != "" {
				t.Errorf("disks (-want +got):\n%s", diff)
			}
			if b.NICs != 2 || b.Hardware.DIMMBytes != 512<<20 || b.Hardware.Drives[3].Bytes != 40<<20 {
				t.Errorf("got %+v", b)
			}
		})
	}
}

func TestTheLastWordsOfQEMU(t *testing.T) {
	tests := []struct{ name, said, want string }{
		{"nothing", "", ""},
		{"the last line counts", "warning: x\nqemu: no\n\n", "qemu: no"},
		{"bytes that are no text", "a\xff", "a?"},
		{"of much the end is kept", strings.Repeat("x", maxWords) + "\nend", "end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w tail
			for _, part := range strings.SplitAfter(tt.said, "\n") {
				_, _ = w.Write([]byte(part))
			}
			if got := w.lastLine(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(w.end) > maxWords {
				t.Errorf("%d bytes are kept", len(w.end))
			}
		})
	}
	for words, want := range map[string]string{
		`failed to find romfile "efi-virtio.rom"`:                                     "ipxe-qemu",
		"could not configure /dev/net/tun (tap0): Device or resource busy":            "one machine",
		"could not open /dev/net/tun: Operation not permitted":                        "root",
		`-device nvme: Failed to get "write" lock Is another process using the image`: "another qemu",
		"what else": "",
	} {
		if got := hint(words); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: hint %q", words, got)
		}
	}
}
