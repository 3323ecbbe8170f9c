package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bmc/sim/recorded"
	"ingot/model"
	"ingot/model/must"
)

// The goals for the requests to one BMC, from the first to a claimed server that is Booted, by how names of
// recordings begin.
var goalRequestsOf = map[string]float64{"dell-r750": 32, "hpe-dl": 26, "lenovo-sr": 26}

const (
	goalRequestsSimulated = 24
	requestsLimit         = 2 * time.Minute
	requestsVariable      = "REQUESTS_BENCH_VERBOSE" // prints each request to recordings whose name contains the value
)

// subject is a BMC with one server whose requests are counted.
type subject struct {
	title    string
	name     string // of the BMC
	target   model.BMCTarget
	goal     float64
	machine  *sim.Server // which boots
	requests func() int64

	onboarded, booted int64 // requests until the server was off again, and until its claim was Booted; 0 = not yet
}

// BenchmarkRequests counts, once, what is asked of each recorded BMC and of each personality of the simulator, from
// the first request to a claimed server that is Booted. The daemon has the shipped intervals.
func BenchmarkRequests(b *testing.B) {
	f := &fleet{TB: b}
	f.startRack(1)
	f.begin(build(b), "guard: {maxConcurrentPowerOns: 100}\n")
	all := simulated(b, f)
	folder := os.Getenv("INGOT_MOCKUPS")
	if folder == "" {
		b.Log("NOT MEASURED: recordings, because INGOT_MOCKUPS does not name a folder with recordings of BMCs")
	} else {
		all = append(all, played(b, f, folder)...)
	}
	files := make(map[string]string)
	for _, s := range all {
		s.manifests(files, f.image)
	}
	f.commit(files, "add BMCs and claims")
	f.follow(all)

	t := &table{TB: b, title: "requests until a claim is Booted"}
	for _, s := range all {
		if s.booted == 0 {
			b.Logf("NOT MEASURED: %s: its claim is not Booted after %s", s.title, requestsLimit)
			continue
		}
		t.number(s.title, float64(s.booted), s.goal, none)
		t.number("  of it until its probe has reported and it is off", float64(s.onboarded), none, none)
	}
	t.print(os.Stderr)
	b.ReportMetric(0, "ns/op")
}

func isBooted(s *sim.Server) bool {
	return slices.ContainsFunc(s.Events(), func(e sim.Event) bool { return e.What == "posted boot state" })
}

// follow notes the requests of each subject at the moment when its machine is as it should be, until all are.
func (f *fleet) follow(all []*subject) {
	for deadline := time.Now().Add(requestsLimit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left := 0
		for _, s := range all {
			if s.onboarded == 0 && wasProbed(s.machine) {
				s.onboarded = s.requests()
			}
			if s.booted == 0 && isBooted(s.machine) {
				s.booted = s.requests()
			}
			if s.booted == 0 {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
}

func (s *subject) manifests(files map[string]string, image string) {
	host, port, _ := net.SplitHostPort(s.target.Address)
	files["bmcs/"+s.name+".yaml"] = fmt.Sprintf(`apiVersion: %s
kind: BMC
metadata: {name: %s}
spec:
  access: {ip: %q}
  bmcSecretRef: {name: %s}
  protocol: {name: Redfish, scheme: https, port: %s}
`, model.APIVersion, s.name, host, s.name, port)
	files["claims/"+s.name+".yaml"] = fmt.Sprintf(`apiVersion: %s
kind: ServerClaim
metadata: {name: %s, namespace: default}
spec: {power: "On", image: %q, serverRef: {name: %s-system-0}}
`, model.APIVersion, s.name, image, s.name)
	files["secrets/"+s.name+".yaml"] = fmt.Sprintf(`apiVersion: %s
kind: BMCSecret
metadata: {name: %s}
stringData: {username: %q, password: %q}
`, model.APIVersion, s.name, s.target.Username, s.target.Password.Reveal())
}

// rackOf is a running rack of one server, whose machine boots from the daemon.
func rackOf(b *testing.B, f *fleet, o sim.Options) *sim.Server {
	b.Helper()
	o.BootURL, o.Delays = f.rack.BootURL(), sim.FastDelays()
	rack := must.Get(sim.New(o))(b)
	var running sync.WaitGroup
	running.Go(func() {
		if err := rack.Run(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		rack.Close()
		running.Wait()
	})
	return rack.Servers()[0]
}

func simulated(b *testing.B, f *fleet) (all []*subject) {
	for i, personality := range sim.Personalities() {
		if !sim.TraitsOf(personality).UUID {
			b.Logf("NOT MEASURED: simulated %s: its systems have no UUID", personality)
			continue
		}
		s := rackOf(b, f, sim.Options{Personality: personality, Seed: int64(i + 2)})
		all = append(all, &subject{
			title: "simulated " + personality, name: "sim-" + personality, target: s.Target().BMC, goal: goalRequestsSimulated,
			machine: s, requests: s.BMC().Requests,
		})
	}
	return all
}

// played are the recordings of BMCs that have one server with a UUID. The server is off at first, and a simulated
// machine boots in its place.
func played(b *testing.B, f *fleet, folder string) (all []*subject) {
	for i, r := range must.Get(recorded.All(folder))(b) {
		uri, why := onlySystem(r)
		if why != "" {
			b.Logf("NOT MEASURED: %s: %s", r.Name, why)
			continue
		}
		id, _ := model.ParseUUID(strings.TrimSpace(recorded.Text(r.Resource(uri)["UUID"])))
		machine := rackOf(b, f, sim.Options{Seed: int64(i + 100), UUIDs: []string{id.String()}})
		machine.SetNetworkFirst(true)
		r.PowerOff(uri)
		r.Reset = func(resetType string) {
			if strings.HasSuffix(resetType, "On") || resetType == "PushPowerButton" && machine.Power() == model.PowerOff {
				machine.PressPower()
			} else {
				machine.PowerCut()
			}
		}
		s := &subject{title: r.Name, name: "rec-" + strings.NewReplacer(".", "-", "_", "-").Replace(r.Name), target: r.Serve(b), goal: none, machine: machine}
		s.requests = func() int64 { return int64(len(r.Requests())) }
		for begins, goal := range goalRequestsOf {
			if strings.HasPrefix(r.Name, begins) {
				s.goal = goal
			}
		}
		if v := os.Getenv(requestsVariable); v != "" && strings.Contains(r.Name, v) {
			b.Cleanup(func() { fmt.Fprintf(os.Stderr, "%s:\n  %s\n", r.Name, strings.Join(r.Requests()[:s.booted], "\n  ")) })
		}
		all = append(all, s)
	}
	return all
}

func onlySystem(r *recorded.BMC) (uri, why string) {
	members, _ := r.Resource(recorded.LinkOf(r.Resource("/redfish/v1"), "Systems"))["Members"].([]any)
	if len(members) != 1 {
		return "", fmt.Sprintf("it has %d systems", len(members))
	}
	member, _ := members[0].(map[string]any)
	uri = recorded.Text(member["@odata.id"])
	if id, ok := model.ParseUUID(strings.TrimSpace(recorded.Text(r.Resource(uri)["UUID"]))); !ok || !id.IsUsable() {
		return "", "its system has no UUID"
	}
	return uri, ""
}
