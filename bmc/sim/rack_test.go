package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

func TestServersAreNamedAsIngotDerivesThem(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2, SystemsPerBMC: 2})
	var names []string
	for _, s := range rack.Servers() {
		names = append(names, string(s.Name()))
		if rack.Server(s.Name()) != s || rack.ServerByUUID(strings.ToUpper(s.UUID())) != s || rack.BMC(s.BMC().Name()) != s.BMC() {
			t.Errorf("%s is not found by its names", s.Name())
		}
	}
	want := []string{"rack1-bmc-01-system-0", "rack1-bmc-01-system-1", "rack1-bmc-02-system-0", "rack1-bmc-02-system-1"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestNoTwoMachinesAreAlike(t *testing.T) {
	rack := must.Get(sim.New(sim.Options{BMCs: 300, SystemsPerBMC: 4}))(t)
	defer rack.Close()
	seen := map[string]string{}
	claim := func(value, owner string) {
		if seen[value] != "" {
			t.Fatalf("%s belongs to %s and to %s", value, seen[value], owner)
		}
		seen[value] = owner
	}
	for _, b := range rack.BMCs() {
		claim(b.MAC(), string(b.Name()))
		claim(b.UUID(), string(b.Name()))
		claim(b.Fingerprint(), string(b.Name()))
	}
	for _, s := range rack.Servers() {
		for _, v := range []string{s.MAC(0), s.MAC(1), s.UUID(), s.SerialNumber()} {
			claim(v, string(s.Name()))
		}
	}
}

func TestTheSeedMakesTheMachines(t *testing.T) {
	uuid := func(seed int64) string {
		rack := must.Get(sim.New(sim.Options{Seed: seed}))(t)
		defer rack.Close()
		return rack.Servers()[0].UUID() + rack.Servers()[0].MAC(0)
	}
	one, same, two := uuid(1), uuid(1), uuid(2)
	if one != same || one == two {
		t.Errorf("seeds 1, 1, 2: %s, %s, %s", one, same, two)
	}
}

func TestTheManifestsAreWhatAUserWouldCommit(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2, Password: model.NewSensitive(`p"w: {`)})
	files := rack.Manifests()
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
	b := rack.BMCs()[1]
	var got, secret map[string]any
	for into, path := range map[*map[string]any]string{&got: "bmcs/rack1-bmc-02.yaml", &secret: "secrets/rack1-bmc-02.yaml"} {
		if err := yaml.Unmarshal([]byte(files[path]), into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	host, port, _ := strings.Cut(b.Addr(), ":")
	number, _ := strconv.Atoi(port)
	want := map[string]any{
		"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "BMC",
		"metadata": map[string]any{"name": "rack1-bmc-02", "labels": map[string]any{"rack": "rack1", "slot": "02"}},
		"spec": map[string]any{
			"access":       map[string]any{"macAddress": b.MAC(), "ip": host},
			"bmcSecretRef": map[string]any{"name": "rack1-bmc-02"},
			"protocol":     map[string]any{"name": "Redfish", "scheme": "https", "port": number},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("BMC (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"username": "admin", "password": `p"w: {`}, secret["stringData"]); diff != "" {
		t.Errorf("BMCSecret (-want +got):\n%s", diff)
	}
}

func TestTheBMCsListenOnThePortsThatWereAskedFor(t *testing.T) {
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := free.Addr().(*net.TCPAddr).Port
	if _, err := sim.New(sim.Options{Port: port}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port in use: %v", err)
	}
	free.Close()
	rack := start(t, sim.Options{Port: port})
	if got := rack.BMCs()[0].Addr(); got != fmt.Sprintf("127.0.0.1:%d", port) {
		t.Errorf("listens on %s, want port %d", got, port)
	}
}

func TestARackThatCannotBeIsRefused(t *testing.T) {
	for name, o := range map[string]sim.Options{
		"too many BMCs":       {BMCs: 100000},
		"negative systems":    {SystemsPerBMC: -1},
		"a host by name":      {Host: "localhost"},
		"unknown personality": {Personality: "acme"},
		"a port too high":     {BMCs: 2, Port: 65535},
		"a negative port":     {Port: -1},
		"a boot URL of FTP":   {BootURL: "ftp://x"},
	} {
		if rack, err := sim.New(o); err == nil {
			rack.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

func TestARackWithAFolderIsTheSameAfterARestart(t *testing.T) {
	svc := newBootService(t)
	dir := t.TempDir()
	o := sim.Options{BMCs: 2, BootURL: svc.URL, StateDir: dir, Delays: quick()}
	first := must.Get(sim.New(o))(t)
	t.Cleanup(first.Close)
	done := make(chan error, 1)
	go func() { done <- first.Run(context.Background()) }()
	s, probing := first.Servers()[0], first.Servers()[1]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
	svc.offer(probing.UUID(), svc.probeIgnition(probing.UUID()))
	bootOnce(t, s)
	bootOnce(t, probing)
	receive(t, svc.bootStates)
	receive(t, svc.registrations)
	simtest.Dial(t, s.BMC()).Do("PATCH", s.URI(), networkOnce)
	first.Close()
	<-done

	second := start(t, o)
	again := second.Servers()[0]
	if again.Power() != model.PowerOn || second.Servers()[1].Power() != model.PowerOff {
		t.Errorf("power %s and %s, want On and Off", again.Power(), second.Servers()[1].Power())
	}
	if diff := cmp.Diff(s.Disk(), again.Disk()); diff != "" || again.Disk() == nil {
		t.Errorf("disk (-first +second):\n%s", diff)
	}
	if _, target, _ := again.Override(); target != "UefiHttp" {
		t.Errorf("override target %s", target)
	}
	if a, b := first.BMCs()[0], second.BMCs()[0]; a.Addr() != b.Addr() || a.Fingerprint() != b.Fingerprint() {
		t.Errorf("the BMC was %s %s, is %s %s", a.Addr(), a.Fingerprint(), b.Addr(), b.Fingerprint())
	}
}

func TestAMachineThatLostPowerBeforeItsBootBeganStaysOff(t *testing.T) {
	rack := must.Get(sim.New(sim.Options{}))(t)
	t.Cleanup(rack.Close)
	cut, on := rack.BMCs()[0].Servers()[0], 0
	cut.PressPower() // nothing begins before Run
	cut.PowerCut()
	go func() { _ = rack.Run(context.Background()) }()
	simtest.Dial(t, rack.BMCs()[0]).Get(system) // Run has begun what was to begin
	for range 20 {
		if cut.Power() != model.PowerOff {
			on++
		}
		time.Sleep(time.Millisecond)
	}
	if on > 0 || len(cut.Boots()) > 0 {
		t.Errorf("it came on: power %s, boots %+v", cut.Power(), cut.Boots())
	}
}

func TestRequestsAndConnectionsAreCounted(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2})
	b := rack.BMCs()[1]
	c := simtest.Dial(t, b)
	for range 5 {
		c.Get(system)
	}
	want := sim.Counted{Total: 5, ByBMC: map[model.BMCName]int64{"rack1-bmc-01": 0, "rack1-bmc-02": 5}}
	if diff := cmp.Diff(want, rack.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if n := rack.Connections().Total; n != 1 {
		t.Errorf("%d connections, want 1: they are kept", n)
	}
	if n := b.MaxInFlight(); n != 1 {
		t.Errorf("%d requests at once", n)
	}
}

func TestSubscribersAreToldOfPower(t *testing.T) {
	events := make(chan map[string]any, 10)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { take(w, r, events, http.StatusOK) }))
	defer listener.Close()
	rack := start(t, sim.Options{})
	s := rack.Servers()[0]
	c := simtest.Dial(t, s.BMC())
	a := c.Do("POST", "/redfish/v1/EventService/Subscriptions", `{"Destination":"`+listener.URL+`","Protocol":"Redfish","Context":"ingot"}`)
	if a.Status != 201 || a.Header.Get("Location") == "" {
		t.Fatalf("subscribe: %d %v", a.Status, a.Body)
	}
	s.SetRunning("debian")
	got := receive(t, events)
	event := got["Events"].([]any)[0].(map[string]any)
	if got["Context"] != "ingot" || event["OriginOfCondition"].(map[string]any)["@odata.id"] != s.URI() {
		t.Errorf("event %v", got)
	}
	if a := c.Do("DELETE", a.Header.Get("Location"), ""); a.Status != 204 {
		t.Errorf("unsubscribe: %d", a.Status)
	}
}

func TestARackIsControlledOverHTTP(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2})
	control := httptest.NewServer(rack.ControlHandler())
	defer control.Close()
	defer http.DefaultClient.CloseIdleConnections()
	call := func(method, path, body string) (int, string) {
		t.Helper()
		req, _ := http.NewRequest(method, control.URL+path, bytes.NewReader([]byte(body)))
		resp := must.Get(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(raw)
	}
	const name = "rack1-bmc-02-system-0"
	s := rack.Server(name)
	tests := []struct {
		name, method, path, body string
		status                   int
		holds                    func(answer string) bool
	}{
		{
			name: "all servers", method: "GET", path: "/servers", body: "", status: 200,
			holds: func(a string) bool { return strings.Count(a, `"uuid"`) == 2 },
		},
		{
			name: "one server", method: "GET", path: "/servers/" + name, body: "", status: 200,
			holds: func(a string) bool { return strings.Contains(a, `"events"`) },
		},
		{
			name: "no such server", method: "GET", path: "/servers/x", body: "", status: 404,
			holds: func(a string) bool { return strings.Contains(a, "GET /servers") },
		},
		{
			name: "found running", method: "POST", path: "/servers/" + name + "/running", body: `{"image":"debian"}`,
			status: 200, holds: func(string) bool { return s.Power() == model.PowerOn && s.Disk().Image == "debian" },
		},
		{name: "running nothing", method: "POST", path: "/servers/" + name + "/running", body: `{}`, status: 400, holds: nil},
		{
			name: "power cut", method: "POST", path: "/servers/" + name + "/power-cut", body: "", status: 200,
			holds: func(string) bool { return s.Power() == model.PowerOff },
		},
		{
			name: "button", method: "POST", path: "/servers/" + name + "/press-power", body: "", status: 200,
			holds: func(string) bool { return s.PowerOns() == 1 },
		},
		{
			name: "BMCs", method: "GET", path: "/bmcs", body: "", status: 200,
			holds: func(a string) bool { return strings.Contains(a, rack.BMCs()[1].Addr()) },
		},
		{
			name: "a fault", method: "POST", path: "/faults",
			body: `{"target":"rack1-bmc-02","fault":"slow","delay":"1ms"}`, status: 200,
			holds: func(string) bool { return len(rack.BMCs()[1].Faults()) == 1 },
		},
		{
			name: "a fault of a server", method: "POST", path: "/faults",
			body: `{"target":"` + name + `","fault":"uuid-zero"}`, status: 200,
			holds: func(string) bool { return len(s.Faults()) == 1 },
		},
		{
			name: "which faults there are", method: "GET", path: "/faults", body: "", status: 200,
			holds: func(a string) bool { return strings.Contains(a, `"slow"`) && strings.Contains(a, `"known"`) },
		},
		{
			name: "a fault that is misspelt", method: "POST", path: "/faults", body: `{"target":"` + name + `","fault":"hagn"}`, status: 400,
			holds: func(a string) bool { return strings.Contains(a, "did you mean hang?") },
		},
		{
			name: "unplugged", method: "POST", path: "/bmcs/rack1-bmc-02/unplug", status: 200,
			holds: func(string) bool {
				return s.Power() == model.PowerOff && slices.Contains(rack.BMCs()[1].Faults(), sim.FaultRefuse)
			},
		},
		{
			name: "plugged in", method: "POST", path: "/bmcs/rack1-bmc-02/plug", status: 200,
			holds: func(string) bool {
				return s.Power() == model.PowerOff && !slices.Contains(rack.BMCs()[1].Faults(), sim.FaultRefuse)
			},
		},
		{name: "no such BMC", method: "POST", path: "/bmcs/x/plug", status: 404},
		{name: "no such target", method: "POST", path: "/faults", body: `{"target":"x","fault":"slow"}`, status: 404, holds: nil},
		{
			name: "no such field", method: "POST", path: "/faults", body: `{"targets":"x"}`, status: 400,
			holds: func(a string) bool { return strings.Contains(a, "targets") },
		},
		{
			name: "no such delay", method: "POST", path: "/faults",
			body: `{"target":"rack1-bmc-02","fault":"slow","delay":"long"}`, status: 400, holds: nil,
		},
		{
			name: "one fault is cleared", method: "DELETE", path: "/faults?target=rack1-bmc-02&fault=slow", body: "",
			status: 200, holds: func(string) bool { return len(rack.BMCs()[1].Faults()) == 0 },
		},
		{name: "a fault of nobody", method: "DELETE", path: "/faults?fault=slow", body: "", status: 400, holds: nil},
		{
			name: "all faults are cleared", method: "DELETE", path: "/faults", body: "", status: 200,
			holds: func(string) bool { return len(s.Faults()) == 0 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body := call(tt.method, tt.path, tt.body)
			if status != tt.status || tt.holds != nil && !tt.holds(body) || !json.Valid([]byte(body)) {
				t.Errorf("%d, want %d: %s", status, tt.status, body)
			}
		})
	}
}

// Two hundred BMCs answer within a second of New, and a server at rest is small.
func TestALargeRackStartsQuicklyAndIsSmall(t *testing.T) {
	const bmcs = 200
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	rack := start(t, sim.Options{BMCs: bmcs})
	c := simtest.Dial(t, rack.BMCs()[bmcs-1])
	c.Get("/redfish/v1/")
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perServer := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / bmcs
	t.Logf("%d BMCs in %v, %d bytes each", bmcs, took, perServer)
	if took > 5*time.Second { // far below a second where nothing else runs
		t.Errorf("%d BMCs took %v", bmcs, took)
	}
	if perServer > 40<<10 {
		t.Errorf("%d bytes for each server", perServer)
	}
}
