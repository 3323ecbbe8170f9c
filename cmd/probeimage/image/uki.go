package image

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// section is a part of a unified kernel image.
type section struct {
	name    string // at most 8 bytes
	content []byte
}

// pageSize is what sections begin at a multiple of in memory.
const pageSize = 4096

// Offsets in the optional header of a PE file (PE format, "Optional Header
// Windows-Specific Fields").
const (
	sizeOfImageAt   = 56
	sizeOfHeadersAt = 60
	checkSumAt      = 64
)

// addSections returns the stub, a UEFI program, with sections after its own: a unified
// kernel image (UAPI Group specification 5). The kernel's has to be the last, because it
// needs free memory after it.
func addSections(stub []byte, sections []section) ([]byte, error) {
	file, err := pe.NewFile(bytes.NewReader(stub))
	if err != nil {
		return nil, fmt.Errorf("read UEFI stub: %w", err)
	}
	optional, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || optional.FileAlignment == 0 || len(file.Sections) == 0 {
		return nil, errors.New("the UEFI stub is no 64 bit UEFI program")
	}
	table := int(binary.LittleEndian.Uint32(stub[0x3c:])) + 4 + binary.Size(pe.FileHeader{}) + int(file.SizeOfOptionalHeader)
	optionalAt := table - int(file.SizeOfOptionalHeader)
	count := len(file.Sections) + len(sections)
	size := binary.Size(pe.SectionHeader32{})
	align := func(n, to uint32) uint32 { return (n + to - 1) / to * to }

	headers := align(uint32(table+count*size), optional.FileAlignment)
	if headers > file.Sections[0].VirtualAddress {
		return nil, fmt.Errorf("the UEFI stub has no room for the headers of %d more sections", len(sections))
	}
	out := slices.Clone(stub[:table])
	var body bytes.Buffer
	var end uint32 // of what is in memory
	place := func(h pe.SectionHeader32, content []byte) {
		h.SizeOfRawData, h.PointerToRawData = align(uint32(len(content)), optional.FileAlignment), 0
		if len(content) > 0 {
			h.PointerToRawData = headers + uint32(body.Len())
		}
		body.Write(content)
		body.Write(make([]byte, int(h.SizeOfRawData)-len(content)))
		end = max(end, h.VirtualAddress+max(h.VirtualSize, h.SizeOfRawData))
		out, _ = binary.Append(out, binary.LittleEndian, h) // a struct of fixed size
	}
	for _, s := range file.Sections {
		content, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("read UEFI stub, section %s: %w", s.Name, err)
		}
		h := pe.SectionHeader32{VirtualSize: s.VirtualSize, VirtualAddress: s.VirtualAddress, Characteristics: s.Characteristics}
		copy(h.Name[:], s.Name)
		place(h, content)
	}
	for _, s := range sections {
		h := pe.SectionHeader32{
			VirtualSize: uint32(len(s.content)), VirtualAddress: align(end, pageSize),
			Characteristics: pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ,
		}
		copy(h.Name[:], s.name)
		place(h, s.content)
	}
	out = append(out, make([]byte, int(headers)-len(out))...)
	binary.LittleEndian.PutUint16(out[optionalAt-binary.Size(pe.FileHeader{})+2:], uint16(count))
	binary.LittleEndian.PutUint32(out[optionalAt-binary.Size(pe.FileHeader{})+8:], 0) // no symbols
	binary.LittleEndian.PutUint32(out[optionalAt-binary.Size(pe.FileHeader{})+12:], 0)
	binary.LittleEndian.PutUint32(out[optionalAt+sizeOfImageAt:], align(end, optional.SectionAlignment))
	binary.LittleEndian.PutUint32(out[optionalAt+sizeOfHeadersAt:], headers)
	binary.LittleEndian.PutUint32(out[optionalAt+checkSumAt:], 0) // UEFI does not check it
	return append(out, body.Bytes()...), nil
}
