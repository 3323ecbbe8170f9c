package model

import (
	"slices"
	"strings"
	"testing"
)

func TestArrangedBoot(t *testing.T) {
	now := []string{"Boot0003", "Boot0001", "Boot0002"}
	options := []BootOption{
		{Reference: "Boot0001", Name: "Hard Drive 1", DevicePath: "HD(1)"},
		{Reference: "Boot0002", Name: "Network Card", DevicePath: "MAC(1)"},
		{Reference: "Boot0004", Name: "Network Card", DevicePath: "MAC(2)"},
	}
	first := func(device string) []BootOrder { return []BootOrder{{Name: "x", Device: device}} }
	tests := map[string]struct {
		want  []BootOrder
		order []string
		says  string // the error
	}{
		"by reference":                     {want: first("Boot0002"), order: []string{"Boot0002", "Boot0003", "Boot0001"}},
		"by reference in small letters":    {want: first("boot0001"), order: []string{"Boot0001", "Boot0003", "Boot0002"}},
		"by the name for people":           {want: first("hard drive 1"), order: []string{"Boot0001", "Boot0003", "Boot0002"}},
		"by device path":                   {want: first("MAC(2)"), order: []string{"Boot0004", "Boot0003", "Boot0001", "Boot0002"}},
		"by name where there is no device": {want: []BootOrder{{Name: "Boot0001", Device: "Hdd"}}, order: []string{"Boot0001", "Boot0003", "Boot0002"}},
		"that is in the order alone":       {want: first("Boot0003"), order: now},
		"by priority": {
			want:  []BootOrder{{Name: "b", Device: "Boot0002", Priority: 7}, {Name: "a", Device: "Boot0001", Priority: -1}},
			order: []string{"Boot0001", "Boot0002", "Boot0003"},
		},
		"that is not there": {
			want: first("Hard Drve 1"), says: `no boot option is called "Hard Drve 1" or "x", did you mean "Hard Drive 1"?; there are Boot0001 (Hard Drive 1)`,
		},
		"that is there twice": {want: first("Network Card"), says: "name of several boot options"},
		"that two name": {
			want: []BootOrder{{Name: "a", Device: "Boot0001"}, {Name: "b", Device: "HD(1)", Priority: 1}}, says: "which another names",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ArrangedBoot(tt.want, now, options)
			if !slices.Equal(got, tt.order) || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tt.order, tt.says)
			}
		})
	}
}
