package wipe

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/metalprobe/sg"
)

func TestATACommandsOnTheWire(t *testing.T) {
	data := make([]byte, ataSector)
	for what, tc := range map[string]struct {
		command ataCommand
		want    string
	}{
		"IDENTIFY DEVICE": {
			command: ataCommand{command: ataIdentify, protocol: pioDataIn, data: data},
			want:    "85 08 0e 0000 0001 0000 0000 0000 00 ec 00",
		},
		"SECURITY ERASE PREPARE": {
			command: ataCommand{command: ataErasePrepare, protocol: nonData},
			want:    "85 06 00 0000 0000 0000 0000 0000 00 f3 00",
		},
		"SECURITY ERASE UNIT": {
			command: ataCommand{command: ataEraseUnit, protocol: pioDataOut, data: data},
			want:    "85 0a 06 0000 0001 0000 0000 0000 00 f4 00",
		},
		"CRYPTO SCRAMBLE EXT":     {command: sanitizeATA(ATASanitizeCrypto), want: "85 07 20 0011 0010 4370 0079 0072 40 b4 00"},
		"BLOCK ERASE EXT":         {command: sanitizeATA(ATASanitizeBlock), want: "85 07 20 0012 0010 4272 0045 006b 40 b4 00"},
		"OVERWRITE EXT with zero": {command: sanitizeATA(ATASanitizeOverwrite), want: "85 07 20 0014 0011 0000 5700 4f00 40 b4 00"},
	} {
		golden(t, what, tc.command.cdb(), tc.want)
	}
	golden(t, "the user's password", securityData(false)[:40],
		"0000"+hex.EncodeToString([]byte(wipePassword))+strings.Repeat("00", 38-len(wipePassword)))
	if enhanced := securityData(true); len(enhanced) != ataSector || enhanced[0] != 2 {
		t.Errorf("enhanced erase: %d bytes that begin with %x", len(enhanced), enhanced[:2])
	}
	if len(wipePassword) > 32 {
		t.Errorf("the password has %d bytes, a disk keeps 32", len(wipePassword))
	}
}

func sense(r ataAnswer) []byte {
	b := []byte{0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 1, r.failure}
	b = binary.BigEndian.AppendUint16(b, r.count)
	for _, shift := range []int{24, 0, 32, 8, 40, 16} {
		b = append(b, byte(r.address>>shift))
	}
	return append(b, 0, r.status)
}

func TestWhatADiskAnswers(t *testing.T) {
	done := ataAnswer{status: 0x50, count: 0xc000, address: 0x112233445566}
	aborted := ataAnswer{status: 0x51, failure: 4}
	other := append([]byte{0x72, 1, 0, 0x1d, 0, 0, 0, 24, 0, 10}, make([]byte, 10)...)
	for title, tc := range map[string]struct {
		answer  sg.Answer
		want    ataAnswer
		aborted bool
	}{
		"good, without a word":          {answer: sg.Answer{}, want: ataAnswer{}, aborted: false},
		"registers that were asked for": {answer: sg.Answer{Status: sg.CheckCondition, Sense: sense(done)}, want: done, aborted: false},
		"after another descriptor": {
			answer: sg.Answer{Status: sg.CheckCondition, Sense: append(other, sense(done)[8:]...)}, want: done,
			aborted: false,
		},
		"aborted": {
			answer: sg.Answer{Status: sg.CheckCondition, Sense: sense(aborted)}, want: aborted, aborted: true,
		},
		"refused by what translates": {
			answer: sg.Answer{Status: sg.CheckCondition, Sense: []byte{0x70, 0, 5, 0, 0, 0, 0, 10}},
			want:   ataAnswer{}, aborted: true,
		},
		"a descriptor that is cut off": {
			answer: sg.Answer{Status: sg.CheckCondition, Sense: sense(done)[:12]}, want: ataAnswer{}, aborted: true,
		},
		"a descriptor that says it is long": {
			answer: sg.Answer{Status: sg.CheckCondition, Sense: []byte{0x72, 0, 0, 0, 0, 0, 0, 2, 9, 255}},
			want:   ataAnswer{}, aborted: true,
		},
	} {
		got, err := ataResult(tc.answer)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(ataAnswer{})); diff != "" || errors.Is(err, errAborted) != tc.aborted {
			t.Errorf("%s: error %v, registers (-want +got):\n%s", title, err, diff)
		}
	}
}

func identify(words map[int]uint16) []byte {
	b := make([]byte, ataSector)
	b[0] = 0x40
	for n, w := range words {
		binary.LittleEndian.PutUint16(b[2*n:], w)
	}
	return b
}

func TestParseIdentify(t *testing.T) {
	for title, tc := range map[string]struct {
		data []byte
		want ataIdentity
		none bool
	}{
		"a disk of qemu's": {data: identify(nil)},
		"security that is frozen, with times": {
			data: identify(map[int]uint16{128: 0x29, 89: 0x1e, 90: 1}),
			want: ataIdentity{security: true, frozen: true, enhanced: true, erase: time.Hour, enhancedErase: 2 * time.Minute},
		},
		"times in the other format": {
			data: identify(map[int]uint16{128: 1, 89: 0x8000 | 600}),
			want: ataIdentity{security: true, erase: 20 * time.Hour},
		},
		"locked, and no attempts left": {
			data: identify(map[int]uint16{128: 0x17}), want: ataIdentity{security: true, enabled: true, locked: true, expired: true},
		},
		"sanitize by block and by key": {
			data: identify(map[int]uint16{59: 0xb000}), want: ataIdentity{sanitizeKey: true, sanitizeBlock: true},
		},
		"sanitize commands without their feature set": {data: identify(map[int]uint16{59: 0xe000})},
		"a drive for discs":                           {data: identify(map[int]uint16{0: 0x85c0}), none: true},
		"nothing but zeros":                           {data: make([]byte, ataSector), none: true},
		"half a sector":                               {data: bytes.Repeat([]byte{1}, 256), none: true},
	} {
		got, ok := parseIdentify(tc.data)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(ataIdentity{})); diff != "" || ok == tc.none {
			t.Errorf("%s: ok %v (-want +got):\n%s", title, ok, diff)
		}
	}
}

func TestALockedDiskSaysWhatToDo(t *testing.T) {
	for title, tc := range map[string]struct {
		id   ataIdentity
		want string
	}{
		"a disk that is not locked":  {ataIdentity{enabled: true}, ""},
		"one with another's key":     {ataIdentity{enabled: true, locked: true}, "not Ingot's"},
		"one that is frozen besides": {ataIdentity{enabled: true, locked: true, frozen: true}, "freeze lock"},
		"one that was tried at":      {ataIdentity{enabled: true, locked: true, expired: true}, "takes no more attempts"},
	} {
		if got := ataAbilities(tc.id, "").Locked; !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", title, got, tc.want)
		}
	}
}
