package bmc

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"
)

func TestDecode(t *testing.T) {
	type part struct {
		Name   string
		Count  int
		Active bool
		Names  []string
		Up     link
		Inner  struct {
			Size int
			Tags []int
		}
	}
	tests := map[string]struct {
		raw  string
		want part
		odd  []string
	}{
		"what fits stays":                      {raw: `{"Name":"a","Count":2}`, want: part{Name: "a", Count: 2}},
		"null is nothing (B27)":                {raw: `{"Name":null,"Count":"2","Names":null}`, want: part{Count: 2}},
		"a number in quotes (B27)":             {raw: `{"Count":"16"}`, want: part{Count: 16}},
		"a number with a fraction that is nil": {raw: `{"Count":16.0}`, want: part{Count: 16}},
		"a number for a text":                  {raw: `{"Name":16}`, want: part{Name: "16"}},
		"a truth in quotes":                    {raw: `{"Active":"true"}`, want: part{Active: true}},
		"a list for a text":                    {raw: `{"Name":["a","b"]}`, want: part{Name: "a"}},
		"a list of objects for a text":         {raw: `{"Name":[{"Member":"x86-64"}]}`, want: part{Name: "x86-64"}},
		"a text for a list":                    {raw: `{"Names":"a"}`, want: part{Names: []string{"a"}}},
		"a list with a hole": {
			raw: `{"Names":["a",{"x":1,"y":2},"c"]}`, want: part{Names: []string{"a", "c"}}, odd: []string{"Names[1]"},
		},
		"a URI for a link": {raw: `{"Up":"/redfish/v1"}`, want: part{Up: link{"/redfish/v1"}}},
		"one odd field of an object costs only itself": {
			raw: `{"Name":"a","Inner":{"Size":"many","Tags":["1",2]}}`, odd: []string{"Inner.Size"},
			want: func() (p part) { p.Name = "a"; p.Inner.Tags = []int{1, 2}; return p }(),
		},
		"an odd field is named": {raw: `{"Name":"a","Count":{"of":1,"what":2}}`, want: part{Name: "a"}, odd: []string{"Count"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, odd, err := decode[part]([]byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.odd, odd); diff != "" {
				t.Errorf("odd (-want +got):\n%s", diff)
			}
		})
	}
	for _, raw := range []string{"", "{", "true", `"text"`} {
		if got, _, err := decode[part]([]byte(raw)); err == nil {
			t.Errorf("%q: got %+v, want an error", raw, got)
		}
	}
}

// FuzzDecode: whatever a BMC sends, decode neither panics nor hands out an error
// for an object of which something fits.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"InstructionSet":[{"Member":"x86"}],"TotalCores":"8"}`, `{"VLAN":{"VLANId":-1}}`, `[]`, `{"a":[[[[[[[[1]]]]]]]]}`,
		`{"@Message.ExtendedInfo":{"Message":"off"},"Members":[{"@odata.id":"/a"}]}`, `{"RelatedItem":"/x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &object) == nil && object != nil
		try := func(what string, err error) {
			if isObject && err != nil {
				t.Errorf("%s of %q: %v", what, raw, err)
			}
		}
		_, _, err := decode[system](raw)
		try("system", err)
		_, _, err = decode[collection](raw)
		try("collection", err)
		_, _, err = decode[schemas.Processor](raw)
		try("processor", err)
		_, _, err = decode[schemas.EthernetInterface](raw)
		try("network interface", err)
		_, _, err = decode[gofish.Service](raw)
		try("service root", err)
		asMember(raw)
		messages(400, raw)
	})
}
