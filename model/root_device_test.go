package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func TestRootDeviceHintsThatCannotBeUsed(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a kernel name":             {"/dev/sda", `root device hint "/dev/sda": names that the kernel gives, such as /dev/sda, are not the same in each boot: name the disk by its serial, wwid or by-path`},
		"a kernel name as a value":  {"serial=/dev/sda", "names that the kernel gives"},
		"a kernel name by a key":    {"name=sda", "names that the kernel gives"},
		"a misspelt key":            {"seriel=S1", `key "seriel" is not known; did you mean "serial"?`},
		"a key like no other":       {"colour=blue", "known here: by-path, hctl, model, rotational, serial, size, transport, vendor, wwid"},
		"no operator":               {"sda", "no operator is in it: write key=value"},
		"a strict comparison":       {"size>4GB", "operators are =, != and, for size, >= and <="},
		"no value":                  {"serial=", "serial has no value that can be compared"},
		"two operators":             {"serial==S1", "serial has no value that can be compared"},
		"an exact size":             {"size=960GB", "a size is never met exactly: write size>= or size<=, or both"},
		"an ordered serial number":  {"serial>=S1", "operator >= is for size only: use = or !="},
		"a size without a number":   {"size>=big", `"big" is no size: write a whole number and a unit`},
		"a size with a fraction":    {"size>=1.5TB", `"1.5TB" is no size`},
		"a size that is too large":  {"size>=99999999999TB", `is no size`},
		"neither true nor false":    {"rotational=maybe", `rotational is true or false, not "maybe"`},
		"an empty condition":        {"serial=S1,", "no operator is in it"},
		"too many conditions":       {strings.Repeat("model=a,", 17), "there are 18 root device hints: at most 16 are allowed"},
		"more text than is read":    {"serial=" + strings.Repeat("x", 2000), "root device hints have 2007 bytes: at most 1024 are read"},
		"the second of two is said": {"model=a, size=1", `root device hint "size=1"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRootDeviceHints(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error of %q is %v, want one with %q", test.text, err, test.want)
			}
		})
	}
}

func TestRootDeviceHintsFit(t *testing.T) {
	disk := ProbeDisk{
		Name: "sda", Serial: "  S45N-NE0M 12", WWID: "naa.5002538e00001234", Vendor: "ATA", Model: "SAMSUNG  MZ7LH960",
		Transport: "sata", ByPath: "pci-0000:00:17.0-ata-1", HCTL: "0:0:0:0", SizeBytes: 960197124096,
	}
	tests := map[string]struct {
		hints string
		want  bool
	}{
		"no hints are fulfilled by every disk":               {"", true},
		"a serial number in other case and blanks":           {"serial=s45nne0m12", true},
		"another serial number":                              {"serial=S45NNE0M13", false},
		"a serial number by its beginning":                   {"serial=S45N*", true},
		"a serial number by its middle":                      {"serial=*ne0m*", true},
		"an asterisk may stand for nothing":                  {"serial=S45NNE0M12*", true},
		"parts of a pattern do not overlap":                  {"serial=S45NNE0M12*12", false},
		"a world-wide name without its form":                 {"wwid=5002538E00001234", true},
		"a world-wide name as udev has it":                   {"wwid=wwn-0x5002538e00001234", true},
		"a world-wide name by a pattern":                     {"wwid=naa.5002538e*", true},
		"the model, blanks as one":                           {"model=samsung mz7lh960", true},
		"not the model":                                      {"model!=samsung*", false},
		"not another vendor":                                 {"vendor!=DELL", true},
		"two conditions, one not fulfilled":                  {"vendor=ATA,model=other", false},
		"the transport":                                      {"transport=SATA", true},
		"the place":                                          {"by-path=pci-0000:00:17.0-*", true},
		"the place as newer udev writes it":                  {"by-path=pci-0000:00:17.0-ata-1.0", true},
		"the place of another disk on the port":              {"by-path=pci-0000:00:17.0-ata-1.1", false},
		"the SCSI address":                                   {"hctl=0:0:0:0", true},
		"solid state":                                        {"rotational=false", true},
		"solid state as a number":                            {"rotational=0", true},
		"a size between two":                                 {"size>=900GB, size<=1TB", true},
		"a size in powers of two that is more than the disk": {"size>=1TiB", false},
		"a size without unit":                                {"size>=960197124096", true},
		"not a pattern that is met":                          {"serial!=S45*", false},
		"blanks around":                                      {"  serial = S45NNE0M12 , rotational != true ", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hints := must.Get(ParseRootDeviceHints(test.hints))(t)
			if got := hints.Fit(disk); got != test.want {
				t.Errorf("%q fits: %v, want %v", test.hints, got, test.want)
			}
		})
	}
}

func sold(name string, gigabytes uint64, change ...func(*CandidateDisk)) CandidateDisk {
	d := CandidateDisk{ProbeDisk: ProbeDisk{
		Name: name, Serial: "S-" + name, WWID: "eui.00000000000000" + name[len(name)-1:] + "f", Model: "M1", Transport: "sata",
		LogicalBlockSize: 512, SizeBytes: gigabytes * 1e9,
	}}
	for _, c := range change {
		c(&d)
	}
	return d
}

func TestTheRootDiskIsChosen(t *testing.T) {
	at := func(place string) func(*CandidateDisk) { return func(d *CandidateDisk) { d.ByPath = place } }
	serial := func(s string) func(*CandidateDisk) { return func(d *CandidateDisk) { d.Serial = s } }
	wwid := func(s string) func(*CandidateDisk) { return func(d *CandidateDisk) { d.WWID = s } }
	fourK := func(d *CandidateDisk) { d.LogicalBlockSize = 4096 }
	removable := func(d *CandidateDisk) { d.Removable = true }
	usb := func(d *CandidateDisk) { d.Transport = "usb" }
	card := func(d *CandidateDisk) { d.Transport = "sd" }
	readOnly := func(d *CandidateDisk) { d.ReadOnly = true }
	remote := func(d *CandidateDisk) { d.Remote = true }
	lent := func(d *CandidateDisk) { d.Model = "Virtual HDisk" }
	member := func(d *CandidateDisk) { d.Member = "Volume0 of Intel VROC" }
	held := func(d *CandidateDisk) { d.Holder = "sda1 is mounted on /data" }
	nameless := func(d *CandidateDisk) { d.Serial, d.WWID = "", "" }
	sda := RootDiskOf(sold("sda", 500).ProbeDisk)
	blank := RootDisk{Model: "M1", Bytes: 500e9}

	tests := map[string]struct {
		disks    []CandidateDisk
		hints    []string
		previous *RootDisk
		sectors  int
		want     string // the disk's name
		reason   Reason
		says     []string
	}{
		"the smallest without a hint": {disks: []CandidateDisk{sold("sda", 900), sold("sdb", 500), sold("sdc", 700)}, want: "sdb"},
		"of equal ones the first by its place in natural order": {
			disks: []CandidateDisk{sold("sda", 500, at("pci-0000:10:00.0-ata-10")), sold("sdb", 500, at("pci-0000:10:00.0-ata-2"))}, want: "sdb",
		},
		"of equal ones without a place the first by its name": {
			disks: []CandidateDisk{sold("sdaa", 500, wwid("")), sold("sdb", 500)}, want: "sdb",
		},
		"never one that is removable, on USB, a card, read-only, lent, remote or without a size (N28, N29)": {
			disks: []CandidateDisk{
				sold("sda", 100, removable), sold("sdb", 100, usb), sold("sdc", 100, readOnly), sold("sdd", 100, remote),
				sold("sde", 100, lent), sold("sdf", 0), sold("sdg", 900), sold("sdh", 100, card),
			},
			want: "sdg",
		},
		"not even by its serial number, and it is said why": {
			disks: []CandidateDisk{sold("sda", 100, removable), sold("sdb", 900)}, hints: []string{"serial=S-sda"},
			reason: ReasonRootDeviceMissing,
			says:   []string{"no disk that fulfils serial=S-sda takes the image", "sda (100 GB, M1, serial S-sda, wwid eui.00000000000000af, transport sata, 512-byte sectors): it is removable"},
		},
		"one on a storage network is not taken by its world-wide name (N31)": {
			disks: []CandidateDisk{sold("sda", 100, remote)}, hints: []string{"wwid=00000000000000af"},
			reason: ReasonRootDeviceMissing, says: []string{"on a storage network"},
		},
		"the smallest that fulfils a hint": {
			disks: []CandidateDisk{sold("sda", 900), sold("sdb", 500), sold("sdc", 700)}, hints: []string{"size>=600GB"}, want: "sdc",
		},
		"the hints of Server and claim both count": {
			disks: []CandidateDisk{sold("sda", 900), sold("sdb", 500), sold("sdc", 700)}, hints: []string{"size>=600GB", "serial!=S-sdc"}, want: "sda",
		},
		"several that fulfil a hint of identity (N18)": {
			disks: []CandidateDisk{sold("sda", 500, serial("SAME 1")), sold("sdb", 500, serial("same1")), sold("sdc", 500)}, hints: []string{"serial=same1"},
			reason: ReasonRootDeviceAmbiguous, says: []string{"2 disks fulfil serial=same1", "sda (", "sdb (", "sdc (", "does not fulfil the hints"},
		},
		"a world-wide name tells equal serial numbers apart (N22)": {
			disks: []CandidateDisk{sold("sda", 500, serial("SAME")), sold("sdb", 500, serial("SAME"))}, hints: []string{"serial=SAME,wwid=00000000000000bf"}, want: "sdb",
		},
		"several that fulfil a pattern of a model are a choice": {
			disks: []CandidateDisk{sold("sda", 500), sold("sdb", 400)}, hints: []string{"model=m*"}, want: "sdb",
		},
		"none that fulfils the hints (N19)": {
			disks: []CandidateDisk{sold("sda", 500), sold("sdb", 400)}, hints: []string{"serial=other", "model=M1"},
			reason: ReasonRootDeviceMissing, says: []string{"no disk fulfils serial=other and model=M1", "sda (500 GB", "sdb (400 GB"},
		},
		"no disk at all": {reason: ReasonRootDeviceMissing, says: []string{"the machine shows no disk"}},
		"all too small (N14)": {
			disks: []CandidateDisk{sold("sda", 9), sold("sdb", 4)}, reason: ReasonDiskTooSmall,
			says: []string{"needs 10 GB", "sda (9.0 GB", "it has 9000000000 bytes, the image 10000000000"},
		},
		"sectors of another size (N13)": {
			disks: []CandidateDisk{sold("sda", 500, fourK), sold("sdb", 1)}, reason: ReasonSectorSizeMismatch,
			says: []string{"sectors of 512 bytes", "its sectors have 4096 bytes, the image is for 512"},
		},
		"the hinted disk has other sectors, and one that fits is named": {
			disks: []CandidateDisk{sold("sda", 500, fourK), sold("sdb", 500)}, hints: []string{"serial=S-sda"}, reason: ReasonSectorSizeMismatch,
			says: []string{"sdb (500 GB, M1, serial S-sdb, wwid eui.00000000000000bf, transport sata, 512-byte sectors): does not fulfil the hints"},
		},
		"an image for 4096 bytes takes such a disk": {
			disks: []CandidateDisk{sold("sda", 500), sold("sdb", 900, fourK)}, sectors: 4096, want: "sdb",
		},
		"paths to one disk (N23)": {
			disks: []CandidateDisk{sold("sda", 500, wwid("naa.5002538e00001234")), sold("sdb", 500, wwid("0x5002538e00001234"))}, reason: ReasonMultipath,
			says: []string{"2 disks have the world-wide name naa.5002538e00001234"},
		},
		"paths to one disk that a hint names": {
			disks: []CandidateDisk{sold("sda", 500, wwid("naa.5002538e00001234")), sold("sdb", 500, wwid("0x5002538e00001234"))},
			hints: []string{"wwid=5002538e00001234"}, reason: ReasonMultipath,
		},
		"paths to another disk do not matter": {
			disks: []CandidateDisk{sold("sda", 500, wwid("naa.5002538e00001234")), sold("sdb", 500, wwid("0x5002538e00001234")), sold("sdc", 400)}, want: "sdc",
		},
		"a member of a RAID volume, which is named (N24)": {
			disks: []CandidateDisk{sold("sda", 500, member)}, hints: []string{"serial=S-sda"}, reason: ReasonRootDeviceMissing,
			says: []string{"it is part of the RAID volume Volume0 of Intel VROC"},
		},
		"a disk that something holds (N32)": {
			disks: []CandidateDisk{sold("sda", 500, held)}, reason: ReasonDiskBusy, says: []string{"sda1 is mounted on /data"},
		},
		"the disk of the last install is taken again, though another is smaller": {
			disks: []CandidateDisk{sold("sdc", 400), sold("sdd", 500, serial("S-sda"), wwid("eui.00000000000000af"))}, previous: &sda, want: "sdd",
		},
		"the disk of the last install is gone (N27)": {
			disks: []CandidateDisk{sold("sdb", 400)}, previous: &sda, reason: ReasonRootDeviceGone,
			says: []string{"the disk of the last install (500 GB, M1, serial S-sda, wwid eui.00000000000000af) is not in the machine", "sdb (400 GB"},
		},
		"it is gone, and hints of no identity name no other": {
			disks: []CandidateDisk{sold("sdb", 400)}, hints: []string{"model=M1"}, previous: &sda, reason: ReasonRootDeviceGone,
		},
		"it is gone, and a hint names another": {
			disks: []CandidateDisk{sold("sdb", 400)}, hints: []string{"serial=S-sdb"}, previous: &sda, want: "sdb",
		},
		"it is there, and a hint names another": {
			disks: []CandidateDisk{sold("sda", 500), sold("sdb", 400)}, hints: []string{"serial=S-sdb"}, previous: &sda, want: "sdb",
		},
		"it is too small for the new image": {
			disks: []CandidateDisk{sold("sda", 5, wwid("eui.00000000000000af")), sold("sdb", 400)}, previous: &sda, reason: ReasonDiskTooSmall,
			says: []string{"disk sda of the last install cannot be taken"},
		},
		"a disk without any name goes by model and size": {
			disks: []CandidateDisk{sold("sda", 400), sold("sdb", 500, nameless)}, previous: &blank, want: "sdb",
		},
		"two disks may be that of the last install": {
			disks: []CandidateDisk{sold("sda", 500, nameless), sold("sdb", 500, nameless)}, previous: &blank, reason: ReasonRootDeviceAmbiguous,
		},
		"the place tells which of them is meant": {
			disks: []CandidateDisk{sold("sda", 500, nameless), sold("sdb", 500, nameless, at("pci-0000:00:05.0"))}, previous: &blank,
			hints: []string{"by-path=pci-0000:00:05.0"}, want: "sdb",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			need := DiskNeed{Bytes: 10e9, SectorSize: test.sectors, Previous: test.previous}
			for _, text := range test.hints {
				hints := must.Get(ParseRootDeviceHints(text))(t)
				need.Hints = append(need.Hints, hints)
			}
			chosen, problem := ChooseRootDisk(test.disks, need)
			var reason Reason
			message := ""
			if problem != nil {
				reason, message = problem.Reason, problem.Message
			} else if chosen.Name != test.want {
				t.Errorf("chosen is %q, want %q", chosen.Name, test.want)
			}
			if diff := cmp.Diff(test.reason, reason); diff != "" {
				t.Errorf("reason (-want +got):\n%s\nmessage: %s", diff, message)
			}
			for _, part := range test.says {
				if !strings.Contains(message, part) {
					t.Errorf("message lacks %q:\n%s", part, message)
				}
			}
		})
	}
}

func TestAMessageListsManyDisksAndNoMore(t *testing.T) {
	_, problem := ChooseRootDisk(make([]CandidateDisk, 1000), DiskNeed{})
	if problem == nil || len(problem.Message) > 16<<10 || !strings.HasSuffix(problem.Message, "and 936 more") {
		t.Errorf("problem of 1000 disks: %+v", problem)
	}
}

func FuzzRootDeviceHints(f *testing.F) {
	f.Add("serial=S4X1*, size>=400GB")
	f.Add("wwid!=naa.5002538e00001234")
	f.Fuzz(func(t *testing.T, text string) {
		hints, err := ParseRootDeviceHints(text)
		if err != nil {
			return
		}
		again, err := ParseRootDeviceHints(hints.String())
		if err != nil || again.String() != hints.String() {
			t.Errorf("%q reads %q, which reads %q, %v", text, hints, again, err)
		}
	})
}
