package lease

import (
	"testing"

	"ingot/model"
)

func TestMACAddressesAreReadAsModelReadsThem(t *testing.T) {
	for _, text := range []string{
		"02:00:5e:10:00:aB", "02-00-5E-10-00-AB", "0200.5e10.00ab", "02005e1000ab",
		"", "02:00:5e:10:00", "02:00-5e:10:00:ab", "02:00:5e:10:00:ag", "02:00:5e:10:00:a ", "0:200:5e:10:00:ab",
	} {
		canonical, err := model.CanonicalMAC(text)
		mac, ok := ParseMAC(text)
		if ok != (err == nil) || ok && mac.String() != canonical {
			t.Errorf("%q: %s %v, want %q %v", text, mac, ok, canonical, err)
		}
	}
}
