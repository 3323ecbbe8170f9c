package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeDocument(t *testing.T) {
	type document struct {
		Spec    any        `json:"spec"`
		Status  any        `json:"status"`
		Decided *BMCRecord `json:"decided"`
	}
	rec := &BMCRecord{Name: "b1", Address: "192.0.2.1:443"}
	const good = "decided: {name: b1, address: '192.0.2.1:443'}\n"
	for _, tc := range []struct {
		name, file string
		want       document
		err        string
	}{
		{"all is read", "spec: {name: s}\nstatus: [a, b]\n" + good, document{Removal{}, []string{"a", "b"}, rec}, ""},
		{"an unknown field of another section is skipped", "status: [a]\nnews: {}\n" + good, document{Removal{}, []string{"a"}, rec}, ""},
		{"a wrong type in another section is skipped", "status: {a: b}\n" + good, document{Removal{}, []string(nil), rec}, ""},
		{"an unknown decision", "status: [a]\ndecided:\n  name: b1\n  adress: x\n", document{Removal{}, []string{"a"}, &BMCRecord{Name: "b1"}},
			`bmcs/b1.yaml:4:3: decided.adress: unknown field, did you mean "address"?`},
		{"scratch", "decided:\n  name: b1\n  scratch: {failures: 3}\n", document{Removal{}, []string(nil), &BMCRecord{Name: "b1"}},
			"bmcs/b1.yaml:3:3: decided.scratch: unknown field"},
		{"a decision of the wrong type", "decided: {name: b1, address: 7}\n", document{Removal{}, []string(nil), &BMCRecord{Name: "b1"}},
			"bmcs/b1.yaml:1:30: decided.address: found the number 7, want a string"},
		{"decisions twice", good + good, document{Removal{}, []string(nil), rec}, "bmcs/b1.yaml:2:1: decided: is given twice, first in line 1"},
		{"a list of decisions", "decided: []\n", document{Removal{}, []string(nil), new(BMCRecord)}, "bmcs/b1.yaml:1:10: decided: found a list, want a mapping"},
		{"no decision", "status: [a]\n", document{Removal{}, []string{"a"}, nil}, ""},
		{"decisions that are null", "decided: null\n", document{Removal{}, []string(nil), nil}, ""},
		{"an empty file", "", document{Removal{}, []string(nil), nil}, ""},
		{"no YAML", "decided: {name: b1\n", document{Removal{}, []string(nil), nil}, "bmcs/b1.yaml:1:1: no valid YAML"},
		{"no mapping", "- decided: {}\n", document{Removal{}, []string(nil), nil}, "bmcs/b1.yaml:1:1: found a list, want a mapping"},
		{"a file that is too large", strings.Repeat("#", 1<<20+1), document{Removal{}, []string(nil), nil}, "bmcs/b1.yaml: the file has 1048577 bytes"},
		{"many mistakes in another section", "status:\n" + strings.Repeat("- {}\n", 300) + good, document{Removal{}, make([]string, 300), rec}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := document{Spec: Removal{}, Status: []string(nil)}
			err := DecodeDocument("bmcs/b1.yaml", []byte(tc.file), &doc)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
				t.Errorf("got %v, want %s", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, doc); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
