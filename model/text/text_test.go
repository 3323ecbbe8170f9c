package text

import (
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	for _, tc := range []struct{ name, got, want string }{
		{"one is singular", Plural(1, "server"), "1 server"},
		{"none is plural", Plural(0, "server"), "0 servers"},
		{"times are in UTC, to the second", Time(time.Date(2026, 11, 21, 12, 0, 0, 5, time.FixedZone("", 3600))), "2026-11-21T11:00:00Z"},
		{"a short list is whole", List([]string{"a", "b", "c"}, "; "), "a; b; c"},
		{"a long list says how many more there are", List([]string{"a", "b", "c", "d", "e"}, ", "), "a, b, c, 2 more"},
		{"what is clipped stays valid", Clip(" ää ", 3), "ä"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}
