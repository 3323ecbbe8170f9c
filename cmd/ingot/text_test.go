package main

import "testing"

func TestPrintable(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"text":                        {"web-1: Größe, 東京, e\u0301, ✓", "web-1: Größe, 東京, e\u0301, ✓"},
		"line ends and tabs":          {"a\nb\r\nc\td", "a b  c d"},
		"line ends of Unicode":        {"a\u2028b\u2029c\u0085d", "a b c d"},
		"spaces of Unicode":           {"a\u00a0b\u3000c", "a b c"},
		"an escape sequence":          {"\x1b[31mred", "�[31mred"},
		"a control sequence of C1":    {"\u009b31mred", "�31mred"},
		"a delete":                    {"a\x7f", "a�"},
		"another order":               {"web\u202e1-ksid", "web�1-ksid"},
		"isolates":                    {"a\u2066b\u2069", "a�b�"},
		"marks of direction":          {"a\u200eb\u200f", "a�b�"},
		"what has no width":           {"a\u200bb\ufeff", "a�b�"},
		"tags":                        {"a\U000e0041", "a�"},
		"private and unassigned":      {"\ue000\U000e0fff", "��"},
		"bytes that are no UTF-8":     {"a\xffb", "a�b"},
		"nothing":                     {"", ""},
		"a soft hyphen within a word": {"ser\u00adver", "ser�ver"},
		"an interlinear annotation":   {"\ufff9a\ufffb", "�a�"},
		"a vertical tab":              {"srv\v1", "srv 1"},
	} {
		if got := printable(tc.text); got != tc.want {
			t.Errorf("%s: %q became %q, want %q", name, tc.text, got, tc.want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for path, want := range map[string]string{
		"/srv/fleet-1": "/srv/fleet-1", "/home/Ada L/fleet": "'/home/Ada L/fleet'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "": "''",
	} {
		if got := shellWord(path); got != want {
			t.Errorf("%q became %s, want %s", path, got, want)
		}
	}
}
