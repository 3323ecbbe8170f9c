package probe

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestEntriesOfAllListsAreCounted(t *testing.T) {
	for raw, want := range map[string]int{
		`1`:                                 0,
		`{"a":1,"b":2}`:                     0,
		`[]`:                                0,
		"[ \n]":                             0,
		`[1]`:                               1,
		` [ {"a":1,"b":[]} , null ] `:       2,
		`[[],[[]],[1,2,3]]`:                 7,
		`{"a":["[,]","\\",",\"["],"[":","}`: 3,
	} {
		if got := entries([]byte(raw)); got != want {
			t.Errorf("%s has %d entries, want %d", raw, got, want)
		}
	}
}

// Counting agrees with decoding, for whatever is valid.
func FuzzEntries(f *testing.F) {
	for _, seed := range []string{uuidBody(discovered, probed), `[[],[1,"]\\"],{"a":[{}]}]`, `"\ud800["`, `[1`} {
		f.Add([]byte(seed))
	}
	var count func(v any) int
	count = func(v any) (n int) {
		switch v := v.(type) {
		case []any:
			n = len(v)
			for _, item := range v {
				n += count(item)
			}
		case map[string]any:
			for _, item := range v {
				n += count(item)
			}
		}
		return n
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return
		}
		// A name that an object has twice is decoded once and counted twice.
		if got, want := entries(raw), count(v); got < want {
			t.Errorf("%q has %d entries, want at least %d", raw, got, want)
		}
	})
}

// A report is refused before it takes many times its size.
func TestReportsThatGrowWhenDecodedAreRefusedBefore(t *testing.T) {
	const most = 64 << 20 // of a body of 4 MiB, with what reading it takes
	list := func(before, entry, after string) string {
		n := (4<<20 - 1<<10) / (len(entry) + 1)
		return before + strings.Repeat(entry+",", n-1) + entry + after
	}
	memory := list(`,"data":{"memory":[`, "{}", `]}`)
	neighbours := list(`,"data":{"lldp":[`, `{"neighbors":[`+strings.Repeat("{},", 4000)+`{}]}`, `]}`)
	r := newRig(t, Options{})
	stranger := "/r/aaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, tc := range map[string]struct {
		path, body string
		code       int
		says       string
	}{
		"a stranger's":                      {stranger + "/register", uuidBody(discovered, memory), 403, "this token is not of"},
		"of a server that nobody knows":     {stranger + "/register", uuidBody(99, memory), 403, "this token is not of"},
		"a stranger's, of a wipe":           {stranger + "/wipe", uuidBody(cleaned, list(`,"disks":[`, "{}", `]`)), 403, "this token is not of"},
		"a stranger's, that cannot be read": {stranger + "/register", uuidBody(discovered, list(`,"data":{"cpu":[`, "1", `]}`)), 403, "this token is not of"},
		"with the token":                    {"/r/" + r.token(discovered) + "/register", uuidBody(discovered, memory), 400, "entries, allowed are 65536"},
		"with the token, in many lists":     {"/r/" + r.token(discovered) + "/register", uuidBody(discovered, neighbours), 400, "entries, allowed are 65536"},
		"of a wipe, with the token":         {"/r/" + r.token(cleaned) + "/wipe", uuidBody(cleaned, list(`,"mode":"quick","disks":[`, "{}", `]`)), 400, "entries, allowed are 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := r.do("POST", tc.path, tc.body)
			runtime.ReadMemStats(&after)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("answered %d %q, want %d with %q", w.Code, w.Body, tc.code, tc.says)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%d bytes took %d MiB, want at most %d", len(tc.body), took>>20, most>>20)
			}
		})
	}
	wantStored(t, r.Observed(), "")
}

// What all lists together may have is more than any machine does.
func TestLargeReportsAreTaken(t *testing.T) {
	r := newRig(t, Options{})
	var lists []string
	for _, name := range []string{"cpu", "networkInterfaces", "lldp", "storage", "memory", "nics", "pciDevices"} {
		lists = append(lists, fmt.Sprintf("%q:[{}%s]", name, strings.Repeat(",{}", maxListEntries-1)))
	}
	body := uuidBody(discovered, `,"data":{`+strings.Join(lists, ",")+`}`)
	if w := r.do("POST", "/r/"+r.token(discovered)+"/register", body); w.Code != 201 {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}
