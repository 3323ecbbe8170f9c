package inventory

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// dimm is a memory device as a DDR5 server has it (DSP0134 §7.18, version 3.3).
func dimm(change func(area []byte)) []byte {
	area := make([]byte, 0x5c)
	le := binary.LittleEndian
	area[0x00], area[0x01] = smbiosMemoryDevice, byte(len(area))
	le.PutUint16(area[0x0c:], 0x7fff) // see the extended size
	le.PutUint32(area[0x1c:], 65536)  // MiB
	area[0x10], area[0x11], area[0x12] = 1, 2, 0x22
	le.PutUint16(area[0x15:], 4800)
	area[0x17], area[0x18], area[0x19], area[0x1a] = 3, 4, 5, 6
	le.PutUint16(area[0x20:], 4400)
	le.PutUint16(area[0x22:], 1100)
	le.PutUint16(area[0x24:], 1100)
	le.PutUint16(area[0x26:], 1100)
	if change != nil {
		change(area)
	}
	return append(area, "A1\x00NODE 1\x00Hynix\x00802A\x00tag\x00HMCG94  \x00\x00"...)
}

func dimmWanted(change func(*model.ProbeMemory)) model.ProbeMemory {
	m := model.ProbeMemory{
		Size: 64 << 30, DeviceSet: "None", DeviceLocator: "A1", BankLocator: "NODE 1", MemoryType: "DDR5",
		Speed: "4800 MT/s", Vendor: "Hynix", SerialNumber: "802A", AssetTag: "tag", PartNumber: "HMCG94",
		ConfiguredMemorySpeed: "4400 MT/s", MinimumVoltage: "1.1 V", MaximumVoltage: "1.1 V", ConfiguredVoltage: "1.1 V",
	}
	if change != nil {
		change(&m)
	}
	return m
}

func TestMemory(t *testing.T) {
	bios := []byte("\x00\x05\x00\x00\x01AMI\x00\x00")
	noStrings := []byte{11, 4, 0, 0, 0, 0}
	le := binary.LittleEndian
	size := func(n uint16) []byte { return dimm(func(area []byte) { le.PutUint16(area[0x0c:], n) }) }
	sized := func(n int64) []model.ProbeMemory {
		return []model.ProbeMemory{dimmWanted(func(m *model.ProbeMemory) { m.Size = n })}
	}
	tests := map[string]struct {
		table []byte
		want  []model.ProbeMemory
	}{
		"a machine without SMBIOS":                    {nil, []model.ProbeMemory{}},
		"a memory device among other structures":      {join(bios, noStrings, dimm(nil)), []model.ProbeMemory{dimmWanted(nil)}},
		"an empty socket is left out":                 {join(size(0), dimm(nil)), []model.ProbeMemory{dimmWanted(nil)}},
		"a size in MiB":                               {size(16384), sized(16 << 30)},
		"a size in KiB":                               {size(0x8000 | 512), sized(512 << 10)},
		"a size that firmware does not know":          {size(0xffff), sized(0)},
		"nothing after the end of the table counts":   {join([]byte{127, 4, 0, 0, 0, 0}, dimm(nil)), []model.ProbeMemory{}},
		"a structure that is cut off does not count":  {join(dimm(nil), dimm(nil)[:100]), []model.ProbeMemory{dimmWanted(nil)}},
		"a length below that of a header ends it all": {join([]byte{17, 3, 0, 0, 0, 0}, dimm(nil)), []model.ProbeMemory{}},
		"a speed beyond 65 GT/s is in the extended field": {
			dimm(func(area []byte) { le.PutUint16(area[0x15:], 0xffff); le.PutUint32(area[0x54:], 70000) }),
			[]model.ProbeMemory{dimmWanted(func(m *model.ProbeMemory) { m.Speed = "70000 MT/s" })},
		},
		"a number of a string that is not there": {
			dimm(func(area []byte) { area[0x18] = 99 }),
			[]model.ProbeMemory{dimmWanted(func(m *model.ProbeMemory) { m.SerialNumber = "" })},
		},
		"a table of version 2.1, which lacks later fields": {
			join([]byte{17, 0x15, 0, 0, 0, 0, 0, 0, 64, 0, 64, 0, 0, 1, 9, 0, 1, 0, 0x0f, 0, 0}, []byte("DIMM0\x00\x00")),
			[]model.ProbeMemory{{Size: 256 << 20, DeviceSet: "None", DeviceLocator: "DIMM0", MemoryType: "SDRAM"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := tree{"sys/firmware/dmi/tables/DMI": string(test.table)}.host(t)
			if diff := cmp.Diff(test.want, memory(h.smbios())); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
		})
	}
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func FuzzStructures(f *testing.F) {
	f.Add(dimm(nil))
	f.Add(join([]byte{11, 4, 0, 0, 0, 0}, dimm(nil), []byte{127, 4, 0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, table []byte) {
		for _, m := range memory(structures(table)) {
			if m.Size < 0 || m.PartNumber != clean(m.PartNumber) {
				t.Errorf("memory device %+v", m)
			}
		}
	})
}
