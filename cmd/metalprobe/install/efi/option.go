// Package efi gives a UEFI firmware an entry for what was installed, through the variables that
// Linux shows in efivarfs (UEFI specification 2.10 §3.1 and §3.3).
package efi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/google/uuid"
)

// Loader is a program on a partition of a disk with a GUID partition table.
type Loader struct {
	Partition      uint32
	First, Sectors uint64
	GUID           string // of the partition
	Path           string // with backslashes, from the root of its filesystem
}

// Types of nodes of a device path (UEFI specification §10.3).
const (
	nodeMessaging = 3
	nodeMedia     = 4
	nodeEnd       = 0x7f

	mediaDrive = 1
	mediaFile  = 4
	endWhole   = 0xff
)

// networkNodes are those of a device path that leads through a network: MAC address, IPv4, IPv6,
// URI (UEFI specification §10.3.4).
var networkNodes = []byte{11, 12, 13, 24}

const active = 1 // attribute of an entry that the firmware may start by itself

// Option is a load option (UEFI specification §3.1.3).
type Option struct {
	Attributes uint32
	Label      string
	Path       []byte // of device path nodes
	Data       []byte // handed to the program
}

// NewOption returns the load option that starts a loader.
func NewOption(label string, l Loader) (Option, error) {
	id, err := uuid.Parse(l.GUID)
	if err != nil {
		return Option{}, fmt.Errorf("GUID of the partition: %w", err)
	}
	drive := make([]byte, 0, 38)
	drive = binary.LittleEndian.AppendUint32(drive, l.Partition)
	drive = binary.LittleEndian.AppendUint64(drive, l.First)
	drive = binary.LittleEndian.AppendUint64(drive, l.Sectors)
	drive = binary.LittleEndian.AppendUint32(drive, binary.BigEndian.Uint32(id[0:]))
	drive = binary.LittleEndian.AppendUint16(drive, binary.BigEndian.Uint16(id[4:]))
	drive = binary.LittleEndian.AppendUint16(drive, binary.BigEndian.Uint16(id[6:]))
	drive = append(drive, id[8:]...)
	drive = append(drive, 2, 2) // a GUID partition table, named by a GUID
	path := node(nodeMedia, mediaDrive, drive)
	path = append(path, node(nodeMedia, mediaFile, text(l.Path))...)
	path = append(path, node(nodeEnd, endWhole, nil)...)
	return Option{Attributes: active, Label: label, Path: path}, nil
}

func node(kind, subkind byte, data []byte) []byte {
	b := []byte{kind, subkind, 0, 0}
	binary.LittleEndian.PutUint16(b[2:], uint16(len(data)+4))
	return append(b, data...)
}

// text is UTF-16 with a zero at its end.
func text(s string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return append(b, 0, 0)
}

// Encode returns the option as a variable has it.
func (o Option) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, o.Attributes)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(o.Path)))
	b = append(b, text(o.Label)...)
	return append(append(b, o.Path...), o.Data...)
}

// ParseOption reads a load option.
func ParseOption(b []byte) (Option, error) {
	if len(b) < 8 {
		return Option{}, errors.New("load option is too short")
	}
	o := Option{Attributes: binary.LittleEndian.Uint32(b)}
	length := int(binary.LittleEndian.Uint16(b[4:]))
	var label []uint16
	b = b[6:]
	for {
		if len(b) < 2 {
			return Option{}, errors.New("label of a load option does not end")
		}
		unit := binary.LittleEndian.Uint16(b)
		b = b[2:]
		if unit == 0 {
			break
		}
		label = append(label, unit)
	}
	if len(b) < length {
		return Option{}, errors.New("device path of a load option does not end")
	}
	o.Label, o.Path, o.Data = string(utf16.Decode(label)), b[:length], b[length:]
	return o, nil
}

// Network reports whether the option starts from a network.
func (o Option) Network() bool {
	for b := o.Path; len(b) >= 4; {
		length := int(binary.LittleEndian.Uint16(b[2:]))
		if length < 4 || length > len(b) {
			return false
		}
		for _, subkind := range networkNodes {
			if b[0] == nodeMessaging && b[1] == subkind {
				return true
			}
		}
		b = b[length:]
	}
	return false
}
