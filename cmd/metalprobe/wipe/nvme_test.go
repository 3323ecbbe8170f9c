package wipe

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// golden compares bytes with hexadecimal digits, in which spaces do not count.
func golden(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if text := hex.EncodeToString(got); text != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s: got\n%s\nwant\n%s", what, text, strings.ReplaceAll(want, " ", ""))
	}
}

func TestNVMeCommandsOnTheWire(t *testing.T) {
	if size := unsafe.Sizeof(nvmePassthrough{}); size != 72 {
		t.Errorf("struct nvme_passthru_cmd has %d bytes, want 72", size)
	}
	encode := func(c nvmeCommand) []byte {
		return must.Get(binary.Append(nil, binary.LittleEndian, c.passthrough(0x1122334455667788)))(t)
	}
	format := nvmeLayout{flbas: 0b0111_0010, dps: 0b1010}.format(7, eraseUserData)
	format.timeout = time.Minute
	golden(t, "Format NVM of layout 50 with extended metadata and protection 2, first in it", encode(format),
		"80 00 0000 07000000 00000000 00000000 0000000000000000 8877665544332211 00000000 00000000 "+
			"52330000 00000000 00000000 00000000 00000000 00000000 60ea0000 00000000")
	golden(t, "the Sanitize Status log page", encode(sanitizeLog()),
		"02 00 0000 ffffffff 00000000 00000000 0000000000000000 8877665544332211 00000000 00020000 "+
			"81007f00 00000000 00000000 00000000 00000000 00000000 30750000 00000000")
	for action, want := range map[uint32]uint32{exitFailureMode: 0x1, sanitizeByBlock: 0xa, sanitizeOverwrite: 0x1b, sanitizeByKey: 0xc} {
		if got := sanitize(action); got.opcode != 0x84 || got.dword10 != want {
			t.Errorf("sanitize action %d: opcode %#x, dword 10 %#x, want %#x", action, got.opcode, got.dword10, want)
		}
	}
	if got := (nvmeLayout{}).format(1, eraseKey).dword10; got != 0x400 {
		t.Errorf("format by key: dword 10 %#x, want 0x400", got)
	}
}

func TestParseController(t *testing.T) {
	page := func(change func(b []byte)) []byte {
		b := make([]byte, identifySize)
		change(b)
		return b
	}
	for title, tc := range map[string]struct {
		page []byte
		want nvmeController
	}{
		"one that can do nothing": {page: page(func([]byte) {}), want: nvmeController{}},
		"format, as qemu has it":  {page: page(func(b []byte) { b[256] = 0x2a }), want: nvmeController{format: true, management: true}},
		"format of all, by key": {
			page: page(func(b []byte) { b[256], b[524] = 2, 0b101 }),
			want: nvmeController{format: true, formatsAll: true, cryptoErase: true},
		},
		"erasing reaches all": {page: page(func(b []byte) { b[524] = 0b10 }), want: nvmeController{formatsAll: true}},
		"all kinds of sanitize": {
			page: page(func(b []byte) { b[328] = 0b111 }),
			want: nvmeController{sanitizeBlock: true, sanitizeKey: true, sanitizeWrite: true},
		},
		"one of two controllers":  {page: page(func(b []byte) { b[76] = 0b10 }), want: nvmeController{shared: true}},
		"an answer that is short": {page: make([]byte, 100), want: nvmeController{}},
	} {
		if diff := cmp.Diff(tc.want, parseController(tc.page), cmp.AllowUnexported(nvmeController{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestParseSanitizeLog(t *testing.T) {
	page := func(text string) []byte {
		b := must.Get(hex.DecodeString(strings.ReplaceAll(text, " ", "")))(t)
		return append(b, make([]byte, 512-len(b))...)
	}
	for title, tc := range map[string]struct {
		page []byte
		want nvmeSanitizing
	}{
		"half way through a block erase that takes two minutes": {
			page: page("0080 0200 0a000000 ffffffff 78000000 02000000"),
			want: nvmeSanitizing{
				sanitizing: sanitizing{running: true, percent: 50}, action: sanitizeByBlock, block: 2 * time.Minute,
				byKey: 2 * time.Second,
			},
		},
		"done": {
			page: page("ffff 0101 0c000000 00000000 00000000 00000000"),
			want: nvmeSanitizing{sanitizing: sanitizing{percent: 99}, completed: true, action: sanitizeByKey},
		},
		"done, and deallocated": {
			page: page("ffff 0400 0a000000 00000000 00000000 00000000"),
			want: nvmeSanitizing{sanitizing: sanitizing{percent: 99}, completed: true, action: sanitizeByBlock},
		},
		"failed":                {page: page("0000 0300 0b000000"), want: nvmeSanitizing{failed: true, action: sanitizeOverwrite}},
		"never sanitized":       {page: page(""), want: nvmeSanitizing{}},
		"an answer of no bytes": {page: nil, want: nvmeSanitizing{}},
	} {
		got := parseSanitizeLog(tc.page)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(nvmeSanitizing{}, sanitizing{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestParseNamespaces(t *testing.T) {
	list := func(ids ...uint32) []byte {
		b := make([]byte, identifySize)
		for i, id := range ids {
			binary.LittleEndian.PutUint32(b[4*i:], id)
		}
		return b
	}
	full := bytes.Repeat([]byte{1}, identifySize)
	for want, page := range map[int][]byte{0: list(), 1: list(1), 3: list(1, 2, 9), 1024: full} {
		if got := len(parseNamespaces(page)); got != want {
			t.Errorf("%d namespaces, want %d", got, want)
		}
	}
}

func FuzzFirmwareAnswers(f *testing.F) {
	f.Add(make([]byte, identifySize))
	f.Add([]byte{0x72, 0, 0, 0, 0, 0, 0, 14, 9, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50})
	f.Fuzz(func(t *testing.T, b []byte) {
		nvmeAbilities(parseController(b), parseSanitizeLog(b), len(parseNamespaces(b)) == 1)
		parseLayout(b)
		id, _ := parseIdentify(b)
		ataAbilities(id, "")
		parseATAAnswer(b)
		s, _ := parseSense(b)
		if s.percent < -1 || s.percent > 100 {
			t.Errorf("%d %%", s.percent)
		}
	})
}
