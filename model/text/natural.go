package text

import (
	"cmp"
	"strings"
)

// CompareNatural compares names part by part, in which digits are numbers: rack2 is before
// rack10.
func CompareNatural(a, b string) int {
	whole := strings.Compare(a, b)
	same := shared(a, b)
	a, b = a[same:], b[same:]
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		a, b = a[len(x):], b[len(y):]
		c := strings.Compare(x, y)
		if digit(x[0]) && digit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), whole)
}

// shared is how long the parts are that two names begin with alike.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for last := n - 1; n > 0 && digit(a[n-1]) == digit(a[last]); { // it may go on in one of them
		n--
	}
	return n
}

// leading is what a name begins with: all digits, or none.
func leading(s string) string {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
