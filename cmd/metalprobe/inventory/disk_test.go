package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// sata is a SATA disk with two partitions: sysfs has no serial file for it, but
// the page that the kernel kept.
func sata(name, major string) tree {
	device := "sys/devices/pci0000:00/0000:00:17.0/ata1/" + name
	return tree{
		device + "/vendor":   "ATA     \n",
		device + "/model":    "SAMSUNG MZ7LH960\n",
		device + "/wwid":     "naa.5002538e0000" + name + "\n",
		device + "/vpd_pg80": "\x00\x80\x00\x14      S45NNE0M" + name + "   ",

		"sys/class/ata_port/ata1/port_no":                 "1\n",
		"sys/block/" + name + "/device":                   "-> ../../devices/pci0000:00/0000:00:17.0/ata1/" + name,
		"sys/block/" + name + "/dev":                      major + ":0\n",
		"sys/block/" + name + "/size":                     "1875385008\n",
		"sys/block/" + name + "/removable":                "0\n",
		"sys/block/" + name + "/ro":                       "0\n",
		"sys/block/" + name + "/queue/rotational":         "0\n",
		"sys/block/" + name + "/queue/logical_block_size": "512\n",
		"sys/block/" + name + "/" + name + "1/partition":  "1\n",
		"sys/block/" + name + "/" + name + "1/dev":        major + ":1\n",
		"sys/block/" + name + "/" + name + "1/start":      "2048\n",
		"sys/block/" + name + "/" + name + "1/size":       "4096\n",
	}
}

func sataDisk(name, major string) Disk {
	return Disk{
		ProbeDisk: model.ProbeDisk{
			Path: "/dev/" + name, Name: name, Vendor: "ATA", Model: "SAMSUNG MZ7LH960",
			Serial: "S45NNE0M" + name, WWID: "naa.5002538e0000" + name,
			LogicalBlockSize: 512, SizeBytes: 960197124096,
			Transport: "sata", ByPath: "pci-0000:00:17.0-ata-1",
		},
		Device:     major + ":0",
		Partitions: []Partition{{Name: name + "1", Start: 1 << 20, Bytes: 2 << 20}},
		Above:      []Node{{Name: name + "1", Device: major + ":1"}},
	}
}

var array = tree{
	"sys/block/sda/sda1/holders/md127": "-> ../../../md127",
	"sys/block/sdb/sdb1/holders/md127": "-> ../../../md127",
	"sys/block/md127/dev":              "9:127\n",
	"sys/block/md127/md/array_state":   "active\n",
	"sys/block/md127/holders/dm-0":     "-> ../../dm-0",
	"sys/block/dm-0/dev":               "253:0\n",
	"sys/block/dm-0/dm/name":           "vg-root\n",
}

var overBoth = []Node{
	{Name: "dm-0", Device: "253:0", Mapping: "vg-root"},
	{Name: "md127", Device: "9:127", Array: true},
}

func TestWhatIsAssembledOverADisk(t *testing.T) {
	files := tree{
		"sys/block/sda/holders/bcache0":         "-> ../../bcache0",
		"sys/block/bcache0/dev":                 "251:0\n",
		"sys/block/bcache0/holders/dm-0":        "-> ../../dm-0",
		"sys/block/bcache0/bcache0p1/partition": "1\n",
		"sys/block/dm-0/dm/name":                "vg-root\n",
	}
	var got []string
	for _, n := range files.host(t).above("sda", nil) {
		if n.Assembled() {
			got = append(got, n.String())
		}
	}
	if diff := cmp.Diff([]string{"dm-0 vg-root", "bcache0"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDisks(t *testing.T) {
	sda, sdb := sataDisk("sda", "8"), sataDisk("sdb", "65")
	sda.Above, sdb.Above = append(overBoth, sda.Above...), append(overBoth[:2:2], sdb.Above...)

	tests := map[string]struct {
		files tree
		want  []Disk
	}{
		"a SATA disk's serial number is in its vital product data": {
			files: sata("sda", "8"), want: []Disk{sataDisk("sda", "8")},
		},
		"an NVMe disk of a kind that Linux hides is a disk all the same": {
			files: tree{"sys/block/nvme0n2/device/serial": "S1\n", "sys/block/nvme0n2/hidden": "1\n"},
			want:  []Disk{{ProbeDisk: model.ProbeDisk{Path: "/dev/nvme0n2", Name: "nvme0n2", Serial: "S1", Transport: "nvme"}}},
		},
		"what the kernel makes up, optical drives, hidden paths and what the firmware lives in are no disks": {
			files: tree{
				"sys/block/loop0/size": "8\n", "sys/block/ram0/size": "8\n", "sys/block/zram0/size": "8\n",
				"sys/block/md0/size": "8\n", "sys/block/dm-0/size": "8\n",
				"sys/block/sr0/device/model": "DVD", "sys/block/fd0/device/model": "floppy",
				"sys/block/nvme0c0n1/device/model": "P5800X", "sys/block/nvme0c0n1/hidden": "1\n",
				"sys/block/mmcblk0boot0/device/name": "eMMC",
				"sys/block/mtdblock0/device/name":    "BIOS", "sys/block/mtdblock0/size": "65536\n",
			},
		},
		"a volume on an array rests on both of the array's disks, and comes down before it": {
			files: with(sata("sda", "8"), sata("sdb", "65"), array), want: []Disk{sda, sdb},
		},
		"a virtio disk has a serial number of its own, and no vendor but a number": {
			files: tree{
				"sys/block/vda/device/vendor": "0x1af4\n", "sys/block/vda/serial": "overlay\n", "sys/block/vda/size": "8\n",
			},
			want: []Disk{{ProbeDisk: model.ProbeDisk{
				Path: "/dev/vda", Name: "vda", Serial: "overlay", SizeBytes: 4096,
			}}},
		},
		"an NVMe disk that is reached over TCP is not in the machine": {
			files: tree{
				"sys/block/nvme0n1/device/nvme0/transport": "tcp\n", "sys/block/nvme0n1/device/serial": "S1\n",
			},
			want: []Disk{{
				ProbeDisk: model.ProbeDisk{
					Path: "/dev/nvme0n1", Name: "nvme0n1", Serial: "S1", Remote: true, Transport: "nvme-fabrics",
				},
			}},
		},
		"an NVMe disk on PCI Express is": {
			files: tree{"sys/block/nvme0n1/device/transport": "pcie\n"},
			want: []Disk{{
				ProbeDisk: model.ProbeDisk{Path: "/dev/nvme0n1", Name: "nvme0n1", Transport: "nvme"},
			}},
		},
		"an iSCSI disk is not in the machine": {
			files: tree{
				"sys/devices/platform/host6/session1/target6:0:0/6:0:0:0/model": "LUN\n",
				"sys/block/sdc/device": "-> ../../devices/platform/host6/session1/target6:0:0/6:0:0:0",
			},
			want: []Disk{{
				ProbeDisk: model.ProbeDisk{
					Path: "/dev/sdc", Name: "sdc", Model: "LUN", Remote: true, Transport: "iscsi", HCTL: "6:0:0:0",
				},
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.files.host(t).Disks()); diff != "" {
				t.Errorf("disks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhereADiskIs(t *testing.T) {
	at := func(name, device string) tree {
		return tree{
			"sys/devices/" + device + "/model": "M",
			"sys/block/" + name + "/device":    "-> ../../devices/" + device,
		}
	}
	tests := map[string]struct {
		name, device string
		files        tree
		want         place
	}{
		"SATA behind AHCI": {
			name: "sda", device: "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0", files: tree{"sys/class/ata_port/ata3/port_no": "3\n"},
			want: place{"sata", "pci-0000:00:17.0-ata-3", "2:0:0:0"},
		},
		"SATA behind the controller that was found second": {
			name: "sda", device: "pci0000:00/0000:00:18.0/ata9/host8/target8:0:0/8:0:0:0", files: tree{"sys/class/ata_port/ata9/port_no": "1\n"},
			want: place{"sata", "pci-0000:00:18.0-ata-1", "8:0:0:0"},
		},
		"SATA behind a port multiplier": {
			name: "sda", device: "pci0000:00/0000:00:17.0/ata3/host2/target2:4:0/2:4:0:0", files: tree{"sys/class/ata_port/ata3/port_no": "3\n"},
			want: place{"sata", "pci-0000:00:17.0-ata-3.4.0", "2:4:0:0"},
		},
		"the second of two disks on an IDE port": {
			name: "sda", device: "pci0000:00/0000:00:1f.1/ata1/host0/target0:0:1/0:0:1:0", files: tree{"sys/class/ata_port/ata1/port_no": "1\n"},
			want: place{"sata", "pci-0000:00:1f.1-ata-1.1", "0:0:1:0"},
		},
		"SATA at a port that is not known": {
			name: "sda", device: "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0", want: place{"sata", "", "2:0:0:0"},
		},
		"SAS behind an adapter": {
			name: "sdb", device: "pci0000:00/0000:00:01.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:5/0:0:5:0",
			want: place{"sas", "pci-0000:3b:00.0-scsi-0:0:5:0", "0:0:5:0"},
		},
		"a volume of a RAID controller": {
			name: "sdc", device: "pci0000:00/0000:00:01.0/0000:02:00.0/host10/target10:2:0/10:2:0:0", want: place{"scsi", "pci-0000:02:00.0-scsi-0:2:0:0", "10:2:0:0"},
		},
		"NVMe": {
			name: "nvme1n1", device: "pci0000:00/0000:00:1d.0/0000:04:00.0/nvme/nvme1", want: place{"nvme", "pci-0000:04:00.0-nvme-1", ""},
		},
		"the second namespace of NVMe": {
			name: "nvme1n2", device: "pci0000:00/0000:00:1d.0/0000:04:00.0/nvme/nvme1", files: tree{"sys/block/nvme1n2/nsid": "2\n"},
			want: place{"nvme", "pci-0000:04:00.0-nvme-2", ""},
		},
		"virtio-blk": {name: "vda", device: "pci0000:00/0000:00:05.0/virtio2", want: place{"virtio", "pci-0000:00:05.0", ""}},
		"virtio-scsi": {
			name: "sdd", device: "pci0000:00/0000:00:06.0/virtio3/host4/target4:0:1/4:0:1:0", want: place{"virtio", "pci-0000:00:06.0-scsi-0:0:1:0", "4:0:1:0"},
		},
		"USB": {
			name: "sde", device: "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host5/target5:0:0/5:0:0:0", want: place{"usb", "", "5:0:0:0"},
		},
		"a memory card": {
			name: "mmcblk0", device: "pci0000:00/0000:00:1a.0/mmc_host/mmc0/mmc0:0001", files: tree{"sys/devices/pci0000:00/0000:00:1a.0/mmc_host/mmc0/mmc0:0001/type": "SD\n"},
			want: place{"sd", "", ""},
		},
		"soldered flash memory": {
			name: "mmcblk0", device: "platform/soc/mmc_host/mmc0/mmc0:0001", files: tree{"sys/devices/platform/soc/mmc_host/mmc0/mmc0:0001/type": "MMC\n"},
			want: place{"mmc", "", ""},
		},
		"Fibre Channel": {
			name: "sdf", device: "pci0000:00/0000:05:00.0/host7/rport-7:0-1/target7:0:0/7:0:0:1", want: place{"fc", "", "7:0:0:1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := with(at(test.name, test.device), test.files).host(t).placeOf(test.name); got != test.want {
				t.Errorf("place is %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestADiskWithoutASerialNumberInSysfsIsAsked(t *testing.T) {
	h := tree{"sys/block/sda/device/model": "QEMU HARDDISK\n", "sys/block/nvme0n1/device/model": "x"}.host(t)
	h.Serial = func(path string) (string, error) { return "asked " + path, nil }
	got := make(map[string]string)
	for _, d := range h.Disks() {
		got[d.Name] = d.Serial
	}
	want := map[string]string{"sda": "asked /dev/sda", "nvme0n1": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("serial numbers (-want +got):\n%s", diff)
	}
}

func TestUsed(t *testing.T) {
	tests := map[string]struct {
		files tree
		want  map[string]string
	}{
		"nothing uses the disks of a machine that lives in memory": {
			files: tree{"proc/self/mountinfo": "22 1 0:21 / / rw - tmpfs tmpfs rw\n"},
			want:  map[string]string{"sda": "", "sdb": ""},
		},
		"a mounted partition": {
			files: tree{"proc/self/mountinfo": "27 1 8:1 / /mnt/old rw,relatime shared:1 - ext4 /dev/sda1 rw\n"},
			want:  map[string]string{"sda": "sda1 is mounted on /mnt/old", "sdb": ""},
		},
		"a partition that the host mounted and this container does not see": {
			files: tree{"proc/1/mountinfo": "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"},
			want:  map[string]string{"sda": "sda1 is mounted on /", "sdb": ""},
		},
		"btrfs, which has a device number of its own": {
			files: tree{"proc/self/mountinfo": "27 1 0:44 / / rw - btrfs /dev/sdb1 rw\n"},
			want:  map[string]string{"sda": "", "sdb": "sdb1 is mounted on /"},
		},
		"a volume over two disks uses both": {
			files: with(array, tree{"proc/self/mountinfo": "27 1 253:0 / / rw - xfs /dev/mapper/vg-root rw\n"}),
			want:  map[string]string{"sda": "dm-0 is mounted on /", "sdb": "dm-0 is mounted on /"},
		},
		"a mapping that is known by its name only": {
			files: with(array, tree{"proc/self/mountinfo": "27 1 0:44 / / rw - btrfs /dev/mapper/vg-root rw\n"}),
			want:  map[string]string{"sda": "dm-0 is mounted on /", "sdb": "dm-0 is mounted on /"},
		},
		"swap": {
			files: tree{"proc/swaps": "Filename Type Size Used Priority\n/dev/sdb1 partition 8 0 -2\n/swapfile file 8 0 -3\n"},
			want:  map[string]string{"sda": "", "sdb": "sdb1 is used as swap"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := with(sata("sda", "8"), sata("sdb", "65"), test.files).host(t)
			got, use := make(map[string]string), h.Use()
			for _, d := range h.Disks() {
				got[d.Name] = d.Used(use)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("use (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzUnitSerial(f *testing.F) {
	f.Add([]byte("\x00\x80\x00\x08 ABCDEF "))
	f.Add([]byte("\x00\x80\xff\xff"))
	f.Fuzz(func(t *testing.T, page []byte) {
		if s := unitSerial(page); s != clean(s) {
			t.Errorf("serial number %q is not fit to be shown", s)
		}
	})
}
