package efi

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func example(t *testing.T, label string) Option {
	t.Helper()
	return must.Get(NewOption(label, Loader{Partition: 1, First: 2048, Sectors: 196608, GUID: "11223344-5566-7788-99aa-bbccddeeff00", Path: `\EFI\BOOT\BOOTX64.EFI`}))(t)
}

func TestLoadOptionIsThatOfTheSpecification(t *testing.T) {
	want := "01000000" + "5e00" + // active; length of the path
		"49006e0067006f0074002000770000" + "00" + // "Ingot w"
		"04012a00" + "01000000" + "0008000000000000" + "0000030000000000" + "4433221166558877" + "99aabbccddeeff00" + "0202" + // the drive
		"04043000" + "5c004500460049005c0042004f004f0054005c0042004f004f0054005800360034002e00450046004900" + "0000" + // the file
		"7fff0400"
	o := example(t, "Ingot w")
	got := hex.EncodeToString(o.Encode())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("load option (-want +got):\n%s", diff)
	}
	again, err := ParseOption(o.Encode())
	again.Data = nil
	if diff := cmp.Diff(o, again); diff != "" || err != nil {
		t.Errorf("it is read as (-want +got):\n%s\n%v", diff, err)
	}
}

// network is an option that starts by PXE over IPv4.
func network(label string) Option {
	path := append(node(2, 1, make([]byte, 8)), node(nodeMessaging, 11, make([]byte, 33))...)
	path = append(append(path, node(nodeMessaging, 12, make([]byte, 23))...), node(nodeEnd, endWhole, nil)...)
	return Option{Attributes: active, Label: label, Path: path}
}

func TestAnOptionHasItsPlace(t *testing.T) {
	ours, disk := example(t, "Ingot web-1"), example(t, "debian")
	tests := map[string]struct {
		state  State
		number uint16
		order  []uint16
		gone   []uint16
	}{
		"behind the network entry that the machine was started by": {
			State{Current: new(uint16(2)), Order: []uint16{1, 2, 3}, Options: map[uint16]Option{1: disk, 2: network("PXE"), 3: disk}}, 0, []uint16{1, 2, 0, 3}, nil,
		},
		"behind the network entry, where a system put itself first (N50)": {
			State{Current: new(uint16(2)), Order: []uint16{3, 1, 2}, Options: map[uint16]Option{1: disk, 2: network("PXE"), 3: disk}}, 0, []uint16{3, 1, 2, 0}, nil,
		},
		"first, when the machine was started from a disk": {
			State{Current: new(uint16(1)), Order: []uint16{1, 2}, Options: map[uint16]Option{1: disk, 2: network("PXE")}}, 0, []uint16{0, 1, 2}, nil,
		},
		"first, when the machine does not say what it was started by (N51)": {
			State{Order: []uint16{0, 1}, Options: map[uint16]Option{0: disk, 1: network("PXE")}}, 2, []uint16{2, 0, 1}, nil,
		},
		"first, when the network entry is in no order": {
			State{Current: new(uint16(5)), Order: []uint16{1}, Options: map[uint16]Option{1: disk, 5: network("PXE")}}, 0, []uint16{0, 1}, nil,
		},
		"in a firmware that has nothing": {State{}, 0, []uint16{0}, nil},
		"with the number of the one with its label, and no second (N48)": {
			State{Current: new(uint16(2)), Order: []uint16{4, 2, 7, 1}, Options: map[uint16]Option{1: disk, 2: network("PXE"), 4: ours, 7: ours}}, 4, []uint16{2, 4, 1}, []uint16{7},
		},
		"with the lowest number that is free": {
			State{Options: map[uint16]Option{0: disk, 1: {Path: []byte{}}, 3: disk}, Order: []uint16{3}}, 2, []uint16{2, 3}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Place(test.state, ours)
			want := Change{Number: test.number, Option: &ours, Order: test.order, Next: &test.number, Delete: test.gone}
			if len(got.Delete) == 0 {
				got.Delete = nil
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("change (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestOptionsAreTakenAway(t *testing.T) {
	s := State{
		Order: []uint16{3, 1, 2}, Next: new(uint16(3)),
		Options: map[uint16]Option{1: example(t, "debian"), 2: example(t, "Ingot a"), 3: example(t, "Ingot b"), 4: example(t, "Ingots")},
	}
	want := Change{Order: []uint16{1}, Delete: []uint16{2, 3}, DropNext: true}
	if diff := cmp.Diff(want, Remove(s, "Ingot ")); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestVariablesAreWrittenAndReadBack(t *testing.T) {
	v := Variables{t.TempDir()}
	put := func(name string, value []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(v.Folder, name+global), append([]byte{7, 0, 0, 0}, value...), 0o600))
	}
	pxe := network("PXE")
	put("Boot0001", pxe.Encode())
	put("Boot0002", []byte{1}) // not an option, and its number is taken
	put("BootOrder", encode(1, 2))
	put("BootCurrent", encode(1))
	must.Do(t, os.WriteFile(filepath.Join(v.Folder, "Boot0009-another-vendor"), nil, 0o600))
	state, err := v.State()
	if err != nil || len(state.Options) != 2 {
		t.Fatalf("state %+v, error %v", state, err)
	}
	ours := example(t, "Ingot web-1")
	change := must.Get(Place(state, ours))(t)
	for range 2 { // the second time there is nothing to do
		must.Do(t, v.Apply(change))
	}
	got, err := v.State()
	pxe.Data, ours.Data = []byte{}, []byte{}
	want := State{Current: new(uint16(1)), Order: []uint16{1, 0, 2}, Next: new(uint16(0)), Options: map[uint16]Option{0: ours, 1: pxe, 2: {Path: []byte{}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("state (-want +got):\n%s\n%v", diff, err)
	}
	// a variable has what was written last, a file what it had behind that as well
	must.Do(t, os.Truncate(filepath.Join(v.Folder, "BootOrder"+global), 0))
	must.Do(t, v.Apply(Remove(got, "Ingot ")))
	got, err = v.State()
	delete(want.Options, 0)
	want.Order, want.Next = []uint16{1, 2}, nil
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("state after its removal (-want +got):\n%s\n%v", diff, err)
	}
}

func TestAFirmwareThatRefusesIsSaidTo(t *testing.T) {
	v := Variables{filepath.Join(t.TempDir(), "gone")}
	o := example(t, "Ingot web-1")
	if err := v.Apply(Change{Option: &o}); err == nil || !strings.Contains(err.Error(), "write variable Boot0000") {
		t.Errorf("error is %v", err)
	}
}

func FuzzParseOption(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x04\x00a\x00\x00\x00\x7f\xff\x04\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseOption(b)
		if err == nil {
			o.Network()
		}
	})
}
