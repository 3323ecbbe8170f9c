package bootsvc

import "testing"

func TestWhatAClientReads(t *testing.T) {
	const media = "application/vnd.coreos.ignition+json"
	payload := `{"zzz":[1,{"ignition":{}}],"ignition":{"version":"3.3.0"}}`
	for title, tc := range map[string]struct {
		accept []string
		want   string // what is said to be read, "" for served
	}{
		"T13: a client that reads just this version": {accept: []string{media + ";version=3.3.0, */*;q=0.1"}},
		"T13: a client that reads a newer version":   {accept: []string{media + "; version=3.6.0"}},
		"T13: a client that reads only older ones": {
			accept: []string{media + ";version=3.2.0, */*;q=0.1"},
			want:   "at most 3.2.0",
		},
		"T13: the newest of several ranges counts": {
			accept: []string{media + ";version=3.1.0;q=0.9, " + media + ";version=3.2.0;q=0.5"}, want: "at most 3.2.0",
		},
		"T13: one range of several is enough": {
			accept: []string{media + ";version=3.1.0", "text/html, " + media + ";version=3.4.0;q=0.1"},
		},
		"T13: a range of quality 0 is none": {
			accept: []string{media + ";version=3.4.0;q=0, " + media + ";version=3.2.0"}, want: "at most 3.2.0",
		},
		"T13: a client that refuses all Ignition":                {accept: []string{media + ";q=0"}, want: "none"},
		"versions are numbers, not text":                         {accept: []string{media + ";version=3.10.0"}},
		"an experimental version reads what was released before": {accept: []string{media + ";version=3.7.0-experimental"}},
		"a version before the release is older": {
			accept: []string{media + ";version=3.3.0-experimental"},
			want:   "at most 3.3.0-experimental",
		},
		"media types have no case": {
			accept: []string{"Application/VND.CoreOS.Ignition+JSON;Version=3.2.0"}, want: "at most 3.2.0",
		},
		"a client that names no version reads it all": {accept: []string{media}},
		"a client that accepts anything":              {accept: []string{"*/*"}},
		"a client that says nothing":                  {},
		"a header that is no media type":              {accept: []string{media + ";version="}},
		"a version that is none":                      {accept: []string{media + ";version=new"}},
		"a quality that is none":                      {accept: []string{media + ";version=3.3.0;q=much"}},
	} {
		reads, have, ok := acceptable(tc.accept, payload)
		if reads != tc.want || ok != (tc.want == "") || !ok && have != "3.3.0" {
			t.Errorf("%s: got %q, %q, %t", title, reads, have, ok)
		}
	}
	for _, broken := range []string{"", "[]", "{", `{"a":`, `{"ignition":3}`} {
		if v := ignitionVersion(broken); v != "" {
			t.Errorf("%q has version %s", broken, v)
		}
	}
}
