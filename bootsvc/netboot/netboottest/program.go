// Package netboottest makes files that tests boot.
package netboottest

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"strings"
)

// Program is the smallest UEFI program, with an empty certificate table or one that names a
// signature.
func Program(signed bool) []byte {
	var b bytes.Buffer
	b.WriteString("MZ" + strings.Repeat("\x00", 0x3a) + "\x40\x00\x00\x00PE\x00\x00")
	h := pe.OptionalHeader64{Magic: 0x20b, SizeOfHeaders: 0x200, NumberOfRvaAndSizes: 16}
	if signed {
		h.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY] = pe.DataDirectory{VirtualAddress: 0x200, Size: 8}
	}
	for _, part := range []any{
		pe.FileHeader{Machine: pe.IMAGE_FILE_MACHINE_AMD64, SizeOfOptionalHeader: uint16(binary.Size(h))}, h,
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // of fixed size
		}
	}
	b.Write(make([]byte, 0x208-b.Len()))
	return b.Bytes()
}
