package sim_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model/must"
)

func TestFaultsAreListedInOrderAndSaid(t *testing.T) {
	names := sim.Faults()
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	page := must.Get(os.ReadFile("../../docs/simulator.md"))(t)
	for _, k := range sim.FaultKinds() {
		if k.About == "" || len(k.About) > 80 {
			t.Errorf("%s: %q", k.Name, k.About)
		}
		if !strings.Contains(string(page), "| `"+string(k.Name)+"` |") {
			t.Errorf("docs/simulator.md does not say what %s is", k.Name)
		}
	}
	for _, kind := range sim.Personalities() {
		if !strings.Contains(string(page), "| `"+kind+"` |") {
			t.Errorf("docs/simulator.md does not say what the personality %s is", kind)
		}
	}
}

func TestParseFault(t *testing.T) {
	tests := map[string]struct {
		want sim.FaultSetting
		err  string
	}{
		"hang":                            {want: sim.FaultSetting{Fault: sim.FaultHang}},
		"slow,delay=5s,on=rack1-bmc-01":   {want: sim.FaultSetting{On: "rack1-bmc-01", Fault: sim.FaultSlow, FaultArgs: sim.FaultArgs{Delay: 5 * time.Second}}},
		"slow-part,part=Memory,delay=1ms": {want: sim.FaultSetting{Fault: sim.FaultSlowPart, FaultArgs: sim.FaultArgs{Part: "Memory", Delay: time.Millisecond}}},
		"paging,size=2":                   {want: sim.FaultSetting{Fault: sim.FaultPaging, FaultArgs: sim.FaultArgs{Size: 2}}},
		"reset-executed-answer-lost":      {want: sim.FaultSetting{Fault: sim.FaultResetDropped}},
		"wipe-fails,disk=1":               {want: sim.FaultSetting{Fault: sim.FaultWipeFails, FaultArgs: sim.FaultArgs{Disk: 1}}},
		"drop-sessions,requests=many":     {err: `requests "many": want a number such as 3`},
		"slow,delay=long":                 {err: `delay "long": want one such as 500ms or 2s`},
		"slow,delay=-1s":                  {err: "cannot be negative"},
		"slow,delay=48h":                  {err: "is more than"},
		"slow,disk=1":                     {err: `there is no argument "disk": it takes on, delay`},
		"slwo":                            {err: `there is no fault "slwo": did you mean slow?`},
		"gremlins":                        {err: "there are blades-swapped"},
		"":                                {err: `there is no fault ""`},
	}
	for text, tt := range tests {
		got, err := sim.ParseFault(text)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, want %s", text, err, tt.err)
		}
	}
}

func TestAFaultOfEveryBMC(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2})
	must.Do(t, rack.SetFault(sim.FaultSetting{Fault: sim.FaultUUIDZero}))
	for _, s := range rack.Servers() {
		if len(s.Faults()) != 1 {
			t.Errorf("%s has %v", s.Name(), s.Faults())
		}
	}
	if err := rack.SetFault(sim.FaultSetting{On: "nobody", Fault: sim.FaultSlow}); err == nil {
		t.Error("set on nobody")
	}
}

// What lags is shown late and is in force at once.
func TestPatchLag(t *testing.T) {
	s := start(t, sim.Options{}).Servers()[0]
	c := simtest.Dial(t, s.BMC())
	set(t, s, sim.FaultPatchLag, sim.FaultArgs{Delay: 300 * time.Millisecond})
	began := time.Now()
	c.Do("PATCH", system, `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"},"IndicatorLED":"Lit"}`)
	shown := func() (any, any) {
		body := c.Get(system)
		return body["Boot"].(map[string]any)["BootSourceOverrideTarget"], body["IndicatorLED"]
	}
	target, led := shown()
	if (target != "None" || led != "Off") && time.Since(began) < 300*time.Millisecond {
		t.Errorf("at once it shows %v, %v", target, led)
	}
	if _, target, _ := s.Override(); target != "Pxe" || s.Indicator() != "Lit" {
		t.Errorf("in force is %s, %s", target, s.Indicator())
	}
	simtest.Eventually(t, "it shows what was written", func() bool {
		target, led := shown()
		return target == "Pxe" && led == "Lit"
	})
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("after %v", took)
	}
}

func TestSlowPart(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultSlowPart, sim.FaultArgs{Part: "/Memory", Delay: 200 * time.Millisecond})
	for path, slow := range map[string]bool{system: false, system + "/Memory": true, system + "/Processors": false} {
		began := time.Now()
		c.Get(path)
		if took := time.Since(began); slow != (took >= 200*time.Millisecond) {
			t.Errorf("%s took %v", path, took)
		}
	}
}

func TestGzip(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultGzip)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+b.Addr()+system, nil))(t)
	req.SetBasicAuth("admin", "ingot-sim")
	req.Header.Set("Accept-Encoding", "identity")
	resp := must.Get(c.HTTP.Do(req))(t)
	defer resp.Body.Close()
	z := must.Get(gzip.NewReader(resp.Body))(t)
	raw, err := io.ReadAll(z)
	if etag := resp.Header.Get("ETag"); err != nil || !json.Valid(raw) || resp.Header.Get("Content-Encoding") != "gzip" || !strings.HasSuffix(etag, `-gzip"`) {
		t.Errorf("%v, ETag %s: %s", err, etag, raw)
	}
	if a := c.Do("PATCH", system, `{"AssetTag":"x"}`, "If-Match", resp.Header.Get("ETag")); a.Status != http.StatusPreconditionFailed {
		t.Errorf("with the ETag that it gave: %d", a.Status)
	}
}

func TestPaging(t *testing.T) {
	b := start(t, sim.Options{SystemsPerBMC: 3}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultPaging, sim.FaultArgs{Size: 2})
	first := c.Get("/redfish/v1/Systems")
	next, _ := first["Members@odata.nextLink"].(string)
	if len(first["Members"].([]any)) != 2 || first["Members@odata.count"] != float64(3) || next == "" {
		t.Fatalf("first page %v", first)
	}
	second := c.Get(next)
	if len(second["Members"].([]any)) != 1 || second["Members@odata.nextLink"] != nil {
		t.Errorf("second page %v", second)
	}
}

func TestFaultsThatAPersonalityCannotHave(t *testing.T) {
	s := start(t, sim.Options{Personality: "cisco"}).Servers()[0]
	if err := s.SetFault(sim.FaultOverrideInSettings); err == nil || !strings.Contains(err.Error(), "cisco has no settings object") {
		t.Error(err)
	}
}

// An override to a UEFI device path or to BootNext is followed, and wants its property.
func TestOverridesByOption(t *testing.T) {
	for kind, tests := range map[string]map[string]int{ // what is sent, and the status
		"dell": {
			`{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiTarget"}`: 400,
			`{"HttpBootUri":"http://127.0.0.1/"}`:                                          400,
			`{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiTarget","UefiTargetBootSourceOverride":"MAC(021E07000000)/IPv4(0.0.0.0)"}`: 200,
		},
		"supermicro": {
			`{"BootNext":"Boot9999"}`: 400,
			`{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiBootNext","BootNext":"Boot0002"}`: 200,
		},
		"cisco": {
			`{"BootSourceOverrideMode":"UEFI"}`:                                     400,
			`{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}`: 200,
		},
	} {
		s := start(t, sim.Options{Personality: kind}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		for _, boot := range slices.SortedFunc(maps.Keys(tests), func(a, b string) int { return len(a) - len(b) }) {
			if a := c.Do("PATCH", s.URI(), `{"Boot":`+boot+`}`); a.Status != tests[boot] {
				t.Errorf("%s %s: %d %v", kind, boot, a.Status, a.Body)
			}
		}
		simtest.Reset(t, s, "On")
		if b := lastBoot(t, s, 1); !strings.Contains(b.Error, "/ipxe/") {
			t.Errorf("%s does not ask the network: %+v", kind, b)
		}
	}
}
