package gpt

import (
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"
)

// Types of partitions, as Partition.Type has them.
const (
	TypeESP       = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b" // EFI system partition
	TypeBIOSBoot  = "21686148-6449-6e6f-744e-656564454649" // where GRUB has its core on machines with a BIOS
	TypeLinuxData = "0fc63daf-8483-4772-8e79-3d69d8477de4"
	TypeBasicData = "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7" // FAT and what else is everybody's
)

// zeroGUID is the type of an entry that is not used.
const zeroGUID = "00000000-0000-0000-0000-000000000000"

// guidText returns a GUID as people write it, in lower case. Its first three numbers are stored
// little endian (UEFI specification appendix A).
func guidText(raw []byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(raw),
		binary.LittleEndian.Uint16(raw[4:]), binary.LittleEndian.Uint16(raw[6:]), raw[8:10], raw[10:16])
}

// putGUID stores what guidText returned.
func putGUID(to []byte, text string) error {
	id, err := uuid.Parse(text)
	if err != nil {
		return fmt.Errorf("GUID %.40q: %w", text, err)
	}
	binary.LittleEndian.PutUint32(to, binary.BigEndian.Uint32(id[0:]))
	binary.LittleEndian.PutUint16(to[4:], binary.BigEndian.Uint16(id[4:]))
	binary.LittleEndian.PutUint16(to[6:], binary.BigEndian.Uint16(id[6:]))
	copy(to[8:16], id[8:])
	return nil
}
