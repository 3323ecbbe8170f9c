package model

import "testing"

func TestWhatIsOneDisk(t *testing.T) {
	tests := map[string]struct {
		a, b Disk
		want bool
	}{
		"the serial number is the same":              {a: Disk{Serial: "S1"}, b: Disk{Serial: "S1"}, want: true},
		"blanks, dashes and case make no difference": {a: Disk{Serial: " wd-ab 12"}, b: Disk{Serial: "WDAB12"}, want: true},
		"another serial number":                      {a: Disk{Serial: "S1"}, b: Disk{Serial: "S2"}},
		"no serial number is none to compare":        {a: Disk{}, b: Disk{}},
		"the serial number of the board is added": {
			a: Disk{Serial: "ZC1A2B3C", Model: "ST4000"}, b: Disk{Serial: "ZC1A2B3C0000C9", Model: "SEAGATE ST4000"},
			want: true,
		},
		"not to that of another model": {
			a: Disk{Serial: "ZC1A2B3C", Model: "ST4000"}, b: Disk{Serial: "ZC1A2B3C0000C9", Model: "MG08"},
		},
		"a short serial number begins many": {a: Disk{Serial: "ZC1"}, b: Disk{Serial: "ZC1A2B3C"}},
		"the world-wide name is the same": {
			a: Disk{Serial: "a", IDs: []string{"0025385b71b00001"}}, b: Disk{Serial: "b", IDs: []string{"0025385b71b00001"}},
			want: true,
		},
		"a BMC and a system name a SAS disk by other ports": {
			a: Disk{IDs: []string{"5000c500a1b2c3d4"}, FromBMC: true}, b: Disk{IDs: []string{"5000c500a1b2c3d7"}},
			want: true,
		},
		"a system names neighbours so": {
			a: Disk{IDs: []string{"5002538e40a1b2c3"}}, b: Disk{IDs: []string{"5002538e40a1b2c4"}},
		},
		"so does a BMC that has other serial numbers": {
			a: Disk{Serial: "S1", IDs: []string{"5002538e40a1b2c3"}, FromBMC: true},
			b: Disk{Serial: "S2", IDs: []string{"5002538e40a1b2c4"}},
		},
		"logical drives have their controller's serial": {
			a: Disk{Serial: "P1", IDs: []string{"600508b1001c0001"}}, b: Disk{Serial: "P1", IDs: []string{"600508b1001c0002"}},
		},
		"a BMC names an NVMe disk in its own way": {
			a:    Disk{Serial: "S1", IDs: []string{"0025385b71b00001"}, FromBMC: true},
			b:    Disk{Serial: "S1", IDs: []string{"36344830571000010025384700000001"}},
			want: true,
		},
		"a placeholder is no serial number": {a: Disk{Serial: "N/A"}, b: Disk{Serial: "N/A"}},
		"nor are zeros":                     {a: Disk{Serial: "0000 0000"}, b: Disk{Serial: "0000 0000"}},
		"the last digit of another kind of name does": {
			a: Disk{IDs: []string{"0025385b71b00001"}}, b: Disk{IDs: []string{"0025385b71b00002"}},
		},
		"one of several names is enough": {
			a: Disk{IDs: []string{"5000c500a1b2c3d4", "0025385b71b00001"}}, b: Disk{IDs: []string{"0025385b71b00001"}},
			want: true,
		},
		"a world-wide name is not compared to serial number": {
			a: Disk{IDs: []string{"0025385b71b00001"}},
			b: Disk{Serial: "0025385b71b00001"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Same(tc.b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := tc.b.Same(tc.a); got != tc.want {
				t.Errorf("the other way round: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWorldWideNames(t *testing.T) {
	tests := map[string]string{
		"naa.5000C500A1B2C3D4":                 "5000c500a1b2c3d4",
		"0x5000c500a1b2c3d4":                   "5000c500a1b2c3d4",
		"eui.0025385b71b00001":                 "0025385b71b00001",
		"50:00:c5:00:a1:b2:c3:d4":              "5000c500a1b2c3d4",
		"6842b2b0-5e4f-1100-2b7a-000102030405": "6842b2b05e4f11002b7a000102030405",
		"t10.ATA     QEMU HARDDISK   QM00001":  "",
		"nvme.8086-50484d42":                   "",
		"0000000000000000":                     "",
		"5000c500":                             "",
		"":                                     "",
		"5000c500a1b2c3d45000c500a1b2c3d45000": "",
	}
	for text, want := range tests {
		if got := WorldWideName(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsVirtualMedia(t *testing.T) {
	tests := []struct {
		vendor, model string
		want          bool
	}{
		{"AMI", "Virtual CDROM0", true},
		{"AMI", "Virtual HDisk0", true},
		{"iDRAC", "LCDRIVE", true},
		{"iLO", "Virtual USB Key", true},
		{"Linux", "File-Stor Gadget", true},
		{"ATEN", "Virtual CDROM YS0J", true},
		{"VMware", "Virtual disk", false},
		{"Msft", "Virtual Disk", false},
		{"QEMU", "QEMU HARDDISK", false},
		{"SanDisk", "Cruzer Fit", false},
	}
	for _, tc := range tests {
		if got := VirtualMedia(tc.vendor, tc.model); got != tc.want {
			t.Errorf("%s %s: got %v, want %v", tc.vendor, tc.model, got, tc.want)
		}
	}
}
