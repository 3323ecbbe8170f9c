package model

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// units is a type that parses itself, as sizes do.
type units struct{ text string }

func (u *units) UnmarshalText(b []byte) error {
	if strings.HasSuffix(string(b), "QiB") {
		return errors.New(`found the unit QiB, want MiB or GiB`)
	}
	u.text = string(b)
	return nil
}

type configBase struct {
	Name string `json:"name"`
}

type config struct {
	configBase `json:"-"`
	Common     struct {
		URL string `json:"url"`
	} `json:"git"`
	Interval time.Duration     `json:"interval"`
	Size     units             `json:"size"`
	Addr     netip.Addr        `json:"addr"`
	Rate     float64           `json:"rate"`
	Count    uint16            `json:"count"`
	Strict   bool              `json:"strict"`
	Archs    []string          `json:"archs"`
	Labels   map[string]string `json:"labels"`
	Limits   map[string]int    `json:"limits"`
	Nested   []struct {
		Port int `json:"port"`
	} `json:"nested"`
	Proxy    *configBase `json:"proxy"`
	Password Sensitive   `json:"password"`
	Ignored  string      `json:"-"`
}

func TestDecodeStrictReadsEveryType(t *testing.T) {
	got := config{Strict: true, Rate: 1, Archs: []string{"amd64"}, Proxy: &configBase{Name: "kept"}}
	got.Common.URL = "kept"
	problems := DecodeStrict("ingot.yaml", []byte(`# a comment
git: {}
interval: 1m30s
size: 20GiB
addr: fd00::1
rate: 0.5
count: 65535
archs: [arm64]
labels: {a: b, c: }
limits: {x: -1}
nested: [{port: 1}, {port: 2}]
proxy:
password: geheim
`), &got)
	want := config{
		Strict: true, Interval: 90 * time.Second, Size: units{"20GiB"}, Addr: netip.MustParseAddr("fd00::1"),
		Rate: 0.5, Count: 65535, Archs: []string{"arm64"}, Labels: map[string]string{"a": "b", "c": ""},
		Limits: map[string]int{"x": -1}, Proxy: &configBase{Name: "kept"}, Password: NewSensitive("geheim"),
	}
	want.Common.URL = "kept"
	want.Nested = []struct {
		Port int `json:"port"`
	}{{1}, {2}}
	all := cmp.AllowUnexported(config{}, units{}, Sensitive{})
	if diff := cmp.Diff(want, got, all, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || len(problems) > 0 {
		t.Errorf("want -, got +:\n%s%s", diff, problemLines(problems))
	}
}

func TestDecodeStrictExplainsMistakes(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"nothing is no mistake":   {data: "# nothing\n"},
		"an unknown key":          {data: "git: {urll: x}\n", want: `f:1:7: git.urll: unknown field, did you mean "url"?`},
		"a key in the wrong case": {data: "Git: {url: x}\n", want: `f:1:1: Git: unknown field, did you mean "git"?`},
		"a key that is like none": {data: "git: {xyzzy: x}\n", want: "f:1:7: git.xyzzy: unknown field, known here: url"},
		"a key given twice":       {data: "rate: 1\nrate: 2\n", want: "f:2:1: rate: is given twice, first in line 1"},
		"a duration without unit": {
			data: "interval: 60\n",
			want: "f:1:11: interval: found the number 60, want a duration with a unit, such as 60s, 5m or 1h30m",
		},
		"a duration of words": {
			data: "interval: often\n",
			want: `f:1:11: interval: found the string "often", want a duration with a unit, such as 60s, 5m or 1h30m`,
		},
		"a bool of YAML 1.1": {data: "strict: yes\n", want: `f:1:9: strict: found the string "yes", want true or false`},
		"a number for a string": {
			data: "git: {url: 1e3}\n",
			want: "f:1:12: git.url: found the number 1e3, want a string: write it in quotes",
		},
		"a string for a number": {
			data: "nested: [{port: \"80\"}]\n",
			want: `f:1:17: nested[0].port: found the string "80", want a whole number: write it without quotes`,
		},
		"a number out of range": {
			data: "count: 65536\n",
			want: "f:1:8: count: found the number 65536, which is out of range",
		},
		"a negative number": {data: "count: -1\n", want: "f:1:8: count: found the number -1, which is out of range"},
		"an octal number": {
			data: "count: 0o17\n",
			want: "f:1:8: count: found the number 0o17, want a whole number in decimal digits, without leading zeros",
		},
		"a number with underscores": {
			data: "count: 1_000\n",
			want: "f:1:8: count: found the number 1_000, want a whole number in decimal digits, without leading zeros",
		},
		"a type's own error":      {data: "size: 1QiB\n", want: "f:1:7: size: found the unit QiB, want MiB or GiB"},
		"an address that is none": {data: "addr: x\n", want: `f:1:7: addr: ParseAddr("x"): unable to parse IP`},
		"a mapping for a scalar":  {data: "size: {a: b}\n", want: "f:1:7: size: found a mapping, want a string"},
		"a password is not shown": {
			data: "password: 12345\n",
			want: "f:1:11: password: found a number (not shown: it may be secret), want a string: write it in quotes",
		},
		"an empty entry of a list": {data: "archs: [amd64, null]\n", want: "f:1:16: archs[1]: the entry is empty"},
		"a name with dots in brackets": {
			data: "labels: {a.b/c: 1}\n",
			want: "f:1:17: labels[a.b/c]: found the number 1, want a string: write it in quotes",
		},
		"a second document": {data: "rate: 1\n---\nrate: 2\n", want: "f:2:1: the file has a second document, want one"},
		"no YAML": {
			data: "rate: 1\n  count: 2\n",
			want: `f:2:3: no valid YAML: a value is not allowed here: check the indentation, and put text that holds ": " in quotes`,
		},
		"a field that is none in files": {
			data: "Ignored: x\n",
			want: "f:1:1: Ignored: unknown field, known here: addr, archs, count, git, interval, " +
				"labels, limits, nested, password, proxy, rate, size, strict",
		},
		"several mistakes, all of them": {
			data: "rate: x\ncount: x\n",
			want: "f:1:7: rate: found the string \"x\", want a number\nf:2:8: count: found the string \"x\", want a whole number",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.TrimSuffix(problemLines(DecodeStrict("f", []byte(tt.data), new(config))), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestDecodeStrictInlinesEmbeddedStructs(t *testing.T) {
	type outer struct {
		configBase
		Port int `json:"port"`
	}
	var got outer
	if problems := DecodeStrict("f", []byte("name: a\nport: 1\n"), &got); len(problems) > 0 || got.Name != "a" || got.Port != 1 {
		t.Errorf("got %+v, %v", got, problems)
	}
}
