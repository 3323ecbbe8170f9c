package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalUUID(t *testing.T) {
	const canonical = "123e4567-e89b-12d3-a456-426614174000"
	tests := map[string]struct{ in, want string }{
		"as it is":                  {canonical, canonical},
		"upper case":                {"123E4567-E89B-12D3-A456-426614174000", canonical},
		"without dashes":            {"123e4567e89b12d3a456426614174000", canonical},
		"in braces":                 {"{123e4567-e89b-12d3-a456-426614174000}", canonical},
		"half a brace is refused":   {"{123e4567-e89b-12d3-a456-426614174000", ""},
		"a dash that is a digit":    {"123e4567-e89b-12d30a456-426614174000", ""},
		"a digit that is a dash":    {"123e4567-e89b-12d3-a456-42661417-000", ""},
		"moved dashes are refused":  {"123e456-7e89b-12d3-a456-426614174000", ""},
		"other letters are refused": {"123e4567-e89b-12d3-a456-42661417400g", ""},
		"a URN":                     {"URN:UUID:" + canonical, canonical},
		"a URN alone is refused":    {"urn:uuid:", ""},
		"nothing is refused":        {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := CanonicalUUID(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q and error %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestUUIDsThatFirmwareShows(t *testing.T) {
	const straight, swapped = "4c4c4544-0042-3010-8057-b5c04f4e3532", "44454c4c-4200-1030-8057-b5c04f4e3532"
	if diff := cmp.Diff([]string{straight, swapped}, UUIDVariants("4C4C4544-0042-3010-8057-B5C04F4E3532")); diff != "" {
		t.Error(diff)
	}
	if got := UUIDVariants("11111111-2222-3333-8057-b5c04f4e3532"); len(got) != 1 {
		t.Errorf("got %v, want one variant of a UUID that reads the same both ways", got)
	}
	if got := UUIDVariants("x"); got != nil {
		t.Errorf("got %v, want no variants of what is no UUID", got)
	}
	same := map[string]struct {
		a, b string
		want bool
	}{
		"itself":                  {straight, straight, true},
		"in another case":         {straight, "4C4C45440042301080" + "57B5C04F4E3532", true},
		"with its bytes swapped":  {straight, swapped, true},
		"and swapped back":        {swapped, straight, true},
		"another":                 {straight, "4c4c4544-0042-3010-8057-b5c04f4e3533", false},
		"all zeros are nobody":    {"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", false},
		"all ones are nobody":     {"ffffffff-ffff-ffff-ffff-ffffffffffff", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", false},
		"AMI's default is nobody": {"03000200-0400-0500-0006-000700080009", "03000200-0400-0500-0006-000700080009", false},
		"and its other order":     {"00020003-0004-0005-0006-000700080009", "00020003-0004-0005-0006-000700080009", false},
		"a MAC among zeros":       {"00000000-0000-0000-0000-AC1F6B000001", "00000000-0000-0000-0000-ac1f6b000001", true},
		"none is the same as any": {"", "", false},
	}
	for name, tt := range same {
		if got := SameUUID(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
