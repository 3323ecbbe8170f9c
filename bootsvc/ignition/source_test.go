package ignition

import (
	"strings"
	"testing"
)

// Y06: of a value that a library quotes, nothing may be left where its quotation marks are
// those of the message.
func TestNoPartOfAValueIsShown(t *testing.T) {
	butane := func(uid string) string {
		return "variant: fcos\nversion: 1.5.0\npasswd:\n  users:\n    - name: core\n      uid: " + uid + "\n    - {name: other, uid: [1]}\n"
	}
	const oneLine = "line 6: cannot unmarshal !!str a value into int; line 7: cannot unmarshal !!seq into int"
	for title, tc := range map[string]struct{ source, want string }{
		"a value with a backtick":          {butane("\"a`S3cr3t-x\""), oneLine},
		"a value of three characters":      {butane("\"`S3\""), oneLine},
		"a long value with a backtick":     {butane("\"a`S3cr3t-is-long\""), oneLine},
		"a value with two":                 {butane("\"a`S3`t\""), oneLine},
		"a value that ends as the message": {butane("\"` into S3\""), oneLine},
		"a value with a line end":          {butane("\"a\\nS3cr3t-x\""), oneLine},
		"a long value with a line end":     {butane("\"a\\nS3cr3t-is-long\""), oneLine},
		"a date":                           {butane("2001-12-14"), "line 6: cannot unmarshal !!timestamp a value into int"},
		"a value with a tag of its own": {
			butane("!mine \"a`S3cr3t-x\""), "line 6: cannot unmarshal !mine a value into int",
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := toIgnition([]byte(tc.source), formatButane)
			if err == nil {
				t.Fatal("there is no error")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			for _, part := range []string{"S3", "cr3", "t-x", "2001", "2-14"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%q is of the value: %v", part, err)
				}
			}
		})
	}
}

func TestWithoutValues(t *testing.T) {
	const value = `say "S3cr3t", it's it`
	for message, want := range map[string]string{
		`found "say \"S3cr3t\", it's it" here`: "found a value here",
		"found '" + value + "' here":           "found a value here",
		"found " + value:                       "found [redacted]",
		`want ":" here`:                        `want ":" here`,
	} {
		if got := withoutValues(message, []string{value}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", message, got, want)
		}
	}
}
