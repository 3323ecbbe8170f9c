package lease

import "testing"

func TestRangeText(t *testing.T) {
	for _, text := range []string{"", "192.0.2.1-192.0.2.9", "fd00::1-fd00::9"} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if back, _ := r.MarshalText(); string(back) != text {
			t.Errorf("%q became %q", text, back)
		}
	}
	for _, text := range []string{
		"192.0.2.1", "a-b", "192.0.2.1-", "-192.0.2.1", "fe80::1%eth0-fe80::2", "192.0.2.1-192.0.2.2-192.0.2.3",
		"::ffff:192.0.2.1-::ffff:192.0.2.2",
	} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %v", text, r)
		}
	}
}
