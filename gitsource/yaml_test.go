package gitsource

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"

	"ingot/model/must"
)

func TestMarshalYAML(t *testing.T) {
	t.Parallel()
	type inner struct {
		Name string   `json:"name"`
		Tags []string `json:"tags,omitempty"`
	}
	tests := map[string]struct {
		in   any
		want string
	}{
		"fields keep their order": {
			in: struct {
				Z int     `json:"z"`
				A inner   `json:"a"`
				L []inner `json:"l"`
			}{1, inner{"x", []string{"p", "q"}}, []inner{{"w", nil}, {"z", []string{"r"}}}},
			want: "z: 1\na:\n  name: x\n  tags:\n  - p\n  - q\nl:\n- name: w\n- name: z\n  tags:\n  - r\n",
		},
		"what looks like something else is quoted": {
			in: []string{
				"On", "off", "yes", "N", "null", "~", "", "1", "0x1f", "1e3", "1_000", "012", "0o7", "2026-11-21", "2026-11-21T07:00:00Z",
				"12:34:56", "- a", "a: b", "a #b", " a", "a ", "a:", "#a", "*a", "&a", "!a", "%a", "@a", "`a", "'a", `"a"`,
				"{a}", "[a", "<<", "=", "?", ".5", "-1", "+1", ".inf", "a\tb", "→\x7f",
			},
			want: `- "On"` + "\n" + `- "off"` + "\n" + `- "yes"` + "\n" + `- "N"` + "\n" + `- "null"` + "\n" +
				`- "~"` + "\n" + `- ""` + "\n" + `- "1"` + "\n" +
				`- "0x1f"` + "\n" + `- "1e3"` + "\n" + `- "1_000"` + "\n" + `- "012"` + "\n" + `- "0o7"` + "\n" + `- "2026-11-21"` + "\n" +
				`- "2026-11-21T07:00:00Z"` + "\n" + `- "12:34:56"` + "\n" +
				`- "- a"` + "\n" + `- "a: b"` + "\n" + `- "a #b"` + "\n" + `- " a"` + "\n" + `- "a "` + "\n" + `- "a:"` + "\n" +
				`- "#a"` + "\n" + `- "*a"` + "\n" + `- "&a"` + "\n" + `- "!a"` + "\n" + `- "%a"` + "\n" + `- "@a"` + "\n" +
				"- \"`a\"\n" + `- "'a"` + "\n" + `- "\"a\""` + "\n" + `- "{a}"` + "\n" + `- "[a"` + "\n" +
				`- "<<"` + "\n" + `- "="` + "\n" + `- "?"` + "\n" +
				`- ".5"` + "\n" + `- "-1"` + "\n" + `- "+1"` + "\n" + `- ".inf"` + "\n" + `- "a\tb"` + "\n" + `- "→\u007f"` + "\n",
		},
		"what is plain stays plain": {
			in: []string{
				"10.0.0.1", "aa:bb:cc:dd:ee:0f", "38947555-7742-3448-3784-823347823834", "main@sha1:abc", "default/web", "/redfish/v1",
				"ghcr.io/x/y:1.2", "512Gi", "a b, c", "v1",
			},
			want: "- 10.0.0.1\n- aa:bb:cc:dd:ee:0f\n- 38947555-7742-3448-3784-823347823834\n- main@sha1:abc\n- default/web\n" +
				"- /redfish/v1\n- ghcr.io/x/y:1.2\n- 512Gi\n- a b, c\n- v1\n",
		},
		"lines are a block":  {in: map[string]string{"m": "a\n  b\n\nc", "n": "x\n"}, want: "m: |-\n  a\n    b\n\n  c\n\"n\": |\n  x\n"},
		"nothing at all":     {in: map[string]any{"a": map[string]any{}, "b": []int{}, "c": nil}, want: "a: {}\nb: []\nc: null\n"},
		"lists within lists": {in: [][]int{{1, 2}, {}, {3}}, want: "- - 1\n  - 2\n- []\n- - 3\n"},
		"a value alone":      {in: "x", want: "x\n"},
		"an escaped letter":  {in: json.RawMessage(`{"\u0061":"\ud83d\ude00 \/"}`), want: "a: \"😀 /\"\n"},
		"numbers":            {in: []any{1.5, -3, 1e300, true}, want: "- 1.5\n- -3\n- 1e+300\n- true\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := must.Get(marshalYAML(tt.in))(t)
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestYAMLIsReadBack writes random values and reads them with two decoders, one of
// YAML 1.2 and one that reads YAML 1.1 booleans.
func TestYAMLIsReadBack(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		v := map[string]any{"v": randomValue(rng, 4)}
		out := must.Get(marshalYAML(v))(t)
		var want any
		must.Do(t, json.Unmarshal(must2(json.Marshal(v)), &want))
		var plainRead any
		if err := yaml.Unmarshal(out, &plainRead); err != nil {
			t.Fatalf("case %d: %v in\n%s", i, err, out)
		}
		var read any
		must.Do(t, json.Unmarshal(must2(json.Marshal(plainRead)), &read))
		var old any
		if err := sigs.Unmarshal(out, &old); err != nil {
			t.Fatalf("case %d: %v in\n%s", i, err, out)
		}
		if !cmp.Equal(want, read) || !cmp.Equal(want, old) {
			t.Fatalf("case %d:\n%s\nyaml.v3 (-want +got):\n%s\nsigs (-want +got):\n%s", i, out, cmp.Diff(want, read), cmp.Diff(want, old))
		}
	}
}

var nasty = []string{
	"", " ", "a", "On", "yes", "null", "~", "1", "0", "-", "- ", ":", ": ", "#", " #", "\n", "\n\n", "\t", "'", "\"", "\\",
	"{", "}", "[", "]", ",",
	"&", "*", "!", "|", ">", "%", "@", "`", "?", "2026-01-02", "1:2", ".", "e", "x", "_", "+", "=", "<<", "é", "→", "😀", "\u00a0",
	"\u2028", "\ufeff", "\x00", "\x7f", "\x85", "---", "...", "0x", "0b1", "0o", "inf", "nan",
}

func randomString(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(5) {
		b.WriteString(nasty[rng.IntN(len(nasty))])
	}
	return b.String()
}

func randomValue(rng *rand.Rand, depth int) any {
	n := rng.IntN(10)
	if depth == 0 {
		n = rng.IntN(6)
	}
	switch n {
	case 0:
		return rng.IntN(1 << 40)
	case 1:
		return rng.NormFloat64()
	case 2:
		return []any{true, false, nil}[rng.IntN(3)]
	case 6, 7:
		list := make([]any, rng.IntN(4))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	case 8, 9:
		m := make(map[string]any)
		for range rng.IntN(4) {
			m[randomString(rng)] = randomValue(rng, depth-1)
		}
		return m
	}
	return randomString(rng)
}

func FuzzMarshalYAML(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.ToValidUTF8(s, "\ufffd")
		out := must.Get(marshalYAML(map[string]string{"k": s}))(t)
		var got map[string]any
		if err := yaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		var viaJSON map[string]string
		if err := json.Unmarshal(must2(json.Marshal(map[string]string{"k": s})), &viaJSON); err == nil {
			want = viaJSON["k"]
		}
		if got["k"] != want {
			t.Errorf("%q became %q through %q", want, got["k"], out)
		}
	})
}

// serverDocument is a document of about 3 KB, as a server's status has.
func serverDocument(i int) map[string]any {
	conditions := make([]any, 6)
	for c := range conditions {
		conditions[c] = map[string]any{
			"type": fmt.Sprintf("Condition%d", c), "status": "True", "reason": "AllIsWell", "lastTransitionTime": "2026-11-21T07:00:00Z",
			"message": "12 servers: 5 Reserved, 4 lack label rack=b, 2 cordoned, 1 tainted.",
		}
	}
	nics := make([]any, 8)
	for n := range nics {
		nics[n] = map[string]any{
			"name":          fmt.Sprintf("eth%d", n),
			"macAddress":    fmt.Sprintf("aa:bb:cc:00:%02x:%02x", i%256, n),
			"carrierStatus": "up",
			"ips":           []string{fmt.Sprintf("10.%d.%d.%d", n, i/256%256, i%256)},
		}
	}
	return map[string]any{
		"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "Server", "metadata": map[string]any{"name": fmt.Sprintf("server-%d", i)},
		"spec":   map[string]any{"systemUUID": fmt.Sprintf("38947555-7742-3448-3784-%012d", i), "power": "On"},
		"status": map[string]any{"state": "Available", "powerState": "Off", "conditions": conditions, "networkInterfaces": nics},
	}
}

func BenchmarkMarshalYAML(b *testing.B) {
	doc := serverDocument(7)
	out := must2(marshalYAML(doc))
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			must2(marshalYAML(doc))
		}
		b.ReportMetric(float64(len(out)), "bytes")
	})
	b.Run("sigs", func(b *testing.B) {
		for b.Loop() {
			must2(sigs.Marshal(doc))
		}
	})
}
