package inventory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"ingot/model"
)

// Structure types of SMBIOS (DSP0134 §7).
const (
	smbiosMemoryDevice = 17
	smbiosEndOfTable   = 127
)

// structure is one SMBIOS structure (DSP0134 §6.1).
type structure struct {
	kind    byte
	area    []byte   // formatted area with its header; offsets of the standard count from its begin
	strings []string // numbered from 1
}

// smbios returns the structures of the machine's SMBIOS table.
func (h *Host) smbios() []structure {
	const largest = 1 << 20 // tables of big machines have some 100 KiB
	return structures(h.read(largest, "sys/firmware/dmi/tables/DMI"))
}

// structures takes an SMBIOS table apart, up to the first structure that is not
// whole.
func structures(table []byte) []structure {
	const header = 4
	var all []structure
	for len(table) >= header && len(all) < maxEntries {
		kind, length := table[0], int(table[1])
		if kind == smbiosEndOfTable || length < header || length > len(table) {
			break
		}
		s := structure{kind: kind, area: table[:length]}
		var whole bool
		if s.strings, table, whole = stringSet(table[length:]); !whole {
			break
		}
		all = append(all, s)
	}
	return all
}

// stringSet splits off the strings that follow a formatted area; an empty string
// ends them, and a structure without strings has two zero bytes (DSP0134 §6.1.3).
func stringSet(b []byte) (set []string, rest []byte, whole bool) {
	end := bytes.Index(b, []byte{0, 0})
	if end < 0 {
		return nil, nil, false
	}
	for s := range bytes.SplitSeq(b[:end], []byte{0}) {
		set = append(set, clean(string(s)))
	}
	return set, b[end+2:], true
}

// The accessors return zero for a field that this version of the table lacks.

func (s structure) byte(at int) byte {
	if at >= len(s.area) {
		return 0
	}
	return s.area[at]
}

func (s structure) word(at int) uint16 {
	if at+2 > len(s.area) {
		return 0
	}
	return binary.LittleEndian.Uint16(s.area[at:])
}

func (s structure) dword(at int) uint32 {
	if at+4 > len(s.area) {
		return 0
	}
	return binary.LittleEndian.Uint32(s.area[at:])
}

func (s structure) string(at int) string {
	n := int(s.byte(at))
	if n == 0 || n > len(s.strings) {
		return ""
	}
	return s.strings[n-1]
}

// memory lists the memory devices; sockets without one are left out.
func memory(table []structure) []model.ProbeMemory {
	list := []model.ProbeMemory{}
	for _, s := range table {
		if s.kind == smbiosMemoryDevice && s.word(0x0c) != 0 {
			list = append(list, memoryDevice(s))
		}
	}
	return list
}

// memoryDevice reads a Memory Device (DSP0134 §7.18).
func memoryDevice(s structure) model.ProbeMemory {
	return model.ProbeMemory{
		Size:                  memorySize(s),
		DeviceSet:             deviceSet(s.byte(0x0f)),
		DeviceLocator:         s.string(0x10),
		BankLocator:           s.string(0x11),
		MemoryType:            memoryTypes[s.byte(0x12)],
		Speed:                 memorySpeed(s.word(0x15), s.dword(0x54)),
		Vendor:                s.string(0x17),
		SerialNumber:          s.string(0x18),
		AssetTag:              s.string(0x19),
		PartNumber:            s.string(0x1a),
		ConfiguredMemorySpeed: memorySpeed(s.word(0x20), s.dword(0x58)),
		MinimumVoltage:        voltage(s.word(0x22)),
		MaximumVoltage:        voltage(s.word(0x24)),
		ConfiguredVoltage:     voltage(s.word(0x26)),
	}
}

// memorySize returns a memory device's size in bytes, 0 when it is not known
// (DSP0134 §7.18, Size, and §7.18.5, Extended Size).
func memorySize(s structure) int64 {
	const (
		unknown  = 0xffff
		extended = 0x7fff
		inKiB    = 0x8000
	)
	switch size := s.word(0x0c); {
	case size == unknown:
		return 0
	case size == extended:
		return int64(s.dword(0x1c)&0x7fff_ffff) << 20
	case size&inKiB != 0:
		return int64(size&^inKiB) << 10
	default:
		return int64(size) << 20
	}
}

func deviceSet(n byte) string {
	switch n {
	case 0:
		return "None"
	case 0xff:
		return "Unknown"
	default:
		return strconv.Itoa(int(n))
	}
}

// memorySpeed is in megatransfers a second; the extended field counts when the
// word is all ones.
func memorySpeed(speed uint16, extended uint32) string {
	n := uint32(speed)
	if speed == 0xffff {
		n = extended & 0x7fff_ffff
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d MT/s", n)
}

func voltage(millivolts uint16) string {
	if millivolts == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(millivolts)/1000, 'f', -1, 64) + " V"
}

// memoryTypes are the names of DSP0134 §7.18.2.
var memoryTypes = map[byte]string{
	0x01: "Other", 0x02: "Unknown", 0x03: "DRAM", 0x04: "EDRAM", 0x05: "VRAM", 0x06: "SRAM", 0x07: "RAM",
	0x08: "ROM", 0x09: "FLASH", 0x0a: "EEPROM", 0x0b: "FEPROM", 0x0c: "EPROM", 0x0d: "CDRAM", 0x0e: "3DRAM",
	0x0f: "SDRAM", 0x10: "SGRAM", 0x11: "RDRAM", 0x12: "DDR", 0x13: "DDR2", 0x14: "DDR2 FB-DIMM", 0x18: "DDR3",
	0x19: "FBD2", 0x1a: "DDR4", 0x1b: "LPDDR", 0x1c: "LPDDR2", 0x1d: "LPDDR3", 0x1e: "LPDDR4",
	0x1f: "Logical non-volatile device", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3",
}
