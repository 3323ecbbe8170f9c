package model

import (
	"net"
	"testing"
)

// TestCanonicalMAC is M03: one MAC address in all spellings.
func TestCanonicalMAC(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"colons":                         {"00:1A:2B:3c:4D:5E", "00:1a:2b:3c:4d:5e"},
		"dashes":                         {"00-1A-2B-3C-4D-5E", "00:1a:2b:3c:4d:5e"},
		"dots":                           {"001A.2B3C.4D5E", "00:1a:2b:3c:4d:5e"},
		"bare digits":                    {"001A2B3C4D5E", "00:1a:2b:3c:4d:5e"},
		"mixed separators are refused":   {"00:1A-2B:3C:4D:5E", ""},
		"a digit too few is refused":     {"0:1A:2B:3C:4D:5E", ""},
		"a digit too many is refused":    {"000:1A:2B:3C:4D:5E", ""},
		"an octet too few is refused":    {"00:1A:2B:3C:4D", ""},
		"an octet too many is refused":   {"00:1A:2B:3C:4D:5E:6F", ""},
		"other letters are refused":      {"00:1A:2B:3C:4D:5G", ""},
		"moved separators are refused":   {"001:A2:B3:C4:D5E:", ""},
		"other scripts are refused":      {"００:1A:2B:3C", ""},
		"bare digits hold no separators": {"00:1A:2B:3C4", ""},
		"nothing is refused":             {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := CanonicalMAC(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q and error %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestAMACAddressOfOneDevice(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string // "" when it is none
	}{
		"of a device, in any spelling":    {" 00-1A-2B-3C-4D-5E ", "00:1a:2b:3c:4d:5e"},
		"that somebody made up":           {"02:00:00:00:00:01", "02:00:00:00:00:01"},
		"of a group is none":              {"01:00:5e:00:00:01", ""},
		"of everybody is none":            {"ff:ff:ff:ff:ff:ff", ""},
		"that is blank is none":           {"00:00:00:00:00:00", ""},
		"with a digit too few is no such": {"00:1a:2b:3c:4d:5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := StationMAC(tc.text); got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tc.want)
			}
		})
	}
}

func TestParseMACTakesWhatTheStandardLibraryTakes(t *testing.T) {
	for _, good := range []string{"00:1a:2B:3c:4d:5e", "00-1A-2b-3C-4D-5E", "001a.2b3c.4d5e"} {
		for i := range len(good) {
			for _, c := range []byte("09afAFgG:-. /@`\x00\xff") {
				changed := good[:i] + string([]byte{c}) + good[i+1:]
				want, err := net.ParseMAC(changed)
				m, ok := ParseMAC(changed)
				if ok != (err == nil) || ok && m != MAC(want) {
					t.Errorf("%q: %v %t, want %v %v", changed, m, ok, want, err)
				}
			}
		}
	}
}
