package wipe

import (
	"errors"
	"testing"
)

func TestSCSICommandsOnTheWire(t *testing.T) {
	for what, tc := range map[string]struct {
		command   scsiCommand
		cdb, data string
	}{
		"SANITIZE, BLOCK ERASE":         {sanitizeSCSI(scsiBlockErase), "48 a2 0000000000 0000 00", ""},
		"SANITIZE, CRYPTOGRAPHIC ERASE": {sanitizeSCSI(scsiCryptoErase), "48 a3 0000000000 0000 00", ""},
		"SANITIZE, OVERWRITE once":      {sanitizeSCSI(scsiOverwrite), "48 a1 0000000000 0008 00", "01 00 0004 00000000"},
		"SANITIZE, EXIT FAILURE MODE":   {sanitizeSCSI(scsiExitFailure), "48 1f 0000000000 0000 00", ""},
	} {
		golden(t, what, tc.command.cdb, tc.cdb)
		golden(t, what+", data", tc.command.data, tc.data)
	}
	golden(t, "REPORT SUPPORTED OPERATION CODES", supports(scsiBlockErase).cdb, "a3 0c 02 48 0002 00000040 00 00")
	golden(t, "REQUEST SENSE", requestSense().cdb, "03 00 00 00 40 00")
}

func fixed(key byte, code uint16, progress ...byte) []byte {
	b := make([]byte, 64)
	b[0], b[2], b[7], b[12], b[13] = 0x70, key, 10, byte(code>>8), byte(code)
	copy(b[15:18], progress)
	return b
}

func TestParseSense(t *testing.T) {
	for title, tc := range map[string]struct {
		data   []byte
		want   sanitizing
		failed bool // with errSanitize
		err    bool // with another
	}{
		"a quarter is done":       {data: fixed(2, 0x041b, 0x80, 0x40, 0), want: sanitizing{true, 25}},
		"under way, no word more": {data: fixed(2, 0x041b), want: sanitizing{true, -1}},
		"done":                    {data: fixed(0, 0)},
		"failed":                  {data: fixed(3, 0x3103), failed: true},
		"nothing":                 {err: true},
		"a reset comes first":     {data: fixed(6, 0x2900), err: true},
		"becoming ready":          {data: fixed(2, 0x0401), err: true},
	} {
		got, err := parseSense(tc.data)
		if got != tc.want || errors.Is(err, errSanitize) != tc.failed || (err != nil) != (tc.failed || tc.err) {
			t.Errorf("%s: %+v, %v", title, got, err)
		}
	}
	if !parseSupport([]byte{0, 3}) || parseSupport([]byte{0, 1}) || parseSupport(nil) {
		t.Error("a command's support is misread")
	}
}
