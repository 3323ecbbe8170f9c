package sim_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

// truth are the events but for notes, in short.
func truth(s *sim.Server) []string {
	var all []string
	for _, e := range s.Events() {
		if e.Kind == sim.EventNote {
			continue
		}
		path := ""
		if u, err := url.Parse(e.URL); err == nil && e.URL != "" {
			path = u.RequestURI()
		}
		words := []string{string(e.Kind), string(e.Cause), e.Reset, path, e.Image}
		all = append(all, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	}
	return all
}

// The log of a server tells its whole life, with what had its power change.
func TestTheGroundTruthOfALife(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL, BMCs: 2})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
	bootOnce(t, s)
	receive(t, svc.bootStates)
	simtest.Reset(t, s, "ForceRestart")
	booted(t, s, 2, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	simtest.Reset(t, s, "GracefulShutdown")
	simtest.Powered(t, s, model.PowerOff)
	s.PressPower()
	booted(t, s, 3, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	s.PowerCut()
	svc.offer(s.UUID(), svc.wipeIgnition(s.UUID(), "quick"))
	bootOnce(t, s)
	receive(t, svc.wipes)
	image := "sha256:" + sum("blob kernel")
	fetched := []string{
		"Fetched /ipxe/" + s.UUID(), "Fetched /image?layer=kernel", "Fetched /image?layer=initrd",
		"Fetched /image?layer=squashfs", "Fetched /ignition/" + s.UUID(),
	}
	want := []string{"Request redfish", "PowerOn redfish On", "Request redfish On"}
	want = append(want, fetched...)
	want = append(want, "Installed "+image,
		"Restart redfish ForceRestart", "Request redfish ForceRestart", "DiskBoot "+image,
		"Request redfish GracefulShutdown", "PowerOff redfish GracefulShutdown",
		"PowerPressed button", "PowerOn button PushPowerButton", "DiskBoot "+image,
		"PowerOff power loss", "Request redfish", "PowerOn redfish On", "Request redfish On")
	want = append(want, fetched...)
	want = append(want, "ProbeRuns", "Wiped "+image)
	// A request is noted once it is answered, which the machine does not wait for.
	requests := func(all []string) (some, others []string) {
		for _, e := range all {
			if strings.HasPrefix(e, "Request") {
				some = append(some, e)
			} else {
				others = append(others, e)
			}
		}
		return some, others
	}
	wantRequests, wantEvents := requests(want)
	gotRequests, gotEvents := requests(truth(s))
	if diff := cmp.Diff(wantEvents, gotEvents); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantRequests, gotRequests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	other := rack.Servers()[1]
	other.SetRunning("debian")
	all := rack.Events()
	if last := all[len(all)-1]; last.Server != other ||
		!slices.IsSortedFunc(all, func(a, b sim.RackEvent) int { return int(a.Seq) - int(b.Seq) }) {
		t.Errorf("the rack's last event is %+v", last)
	}
	if diff := cmp.Diff([]string{"Installed test debian", "PowerOn test"}, truth(other)); diff != "" {
		t.Errorf("events of the other (-want +got):\n%s", diff)
	}
}

// The answer to a reset can be lost though it is carried out.
func TestLostAnswersToResets(t *testing.T) {
	tests := map[sim.Fault]int{ // the status that the client sees; 0 = none
		sim.FaultResetFails:   http.StatusInternalServerError,
		sim.FaultResetDropped: 0,
		sim.FaultResetHangs:   0,
		sim.FaultResetLate:    http.StatusNoContent,
	}
	for fault, want := range tests {
		t.Run(string(fault), func(t *testing.T) {
			rack := start(t, sim.Options{})
			s := rack.Servers()[0]
			must.Do(t, s.SetFault(fault, sim.FaultArgs{Requests: 1, Delay: 50 * time.Millisecond}))
			c := simtest.Dial(t, s.BMC())
			if fault == sim.FaultResetHangs {
				c.HTTP.Timeout = 200 * time.Millisecond
			}
			a, err := c.Try("POST", s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
			if a.Status != want || (err != nil) != (want == 0) {
				t.Errorf("answered %d, %v; want %d", a.Status, err, want)
			}
			if off := s.Power() == model.PowerOff; fault == sim.FaultResetLate && !off {
				t.Error("it is on already")
			}
			simtest.Powered(t, s, model.PowerOn)
			if s.PowerOns() != 1 || len(s.Faults()) != 0 {
				t.Errorf("%d times on, faults %v left", s.PowerOns(), s.Faults())
			}
			simtest.Reset(t, s, "ForceOff") // with an answer
		})
	}
}

func TestFalseReadings(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 2})
	s, other := rack.Servers()[0], rack.Servers()[1]
	s.SetRunning("debian")
	c := simtest.Dial(t, s.BMC())
	set := func(f sim.Fault, a sim.FaultArgs) {
		t.Helper()
		must.Do(t, s.BMC().SetFault(f, a))
	}
	set(sim.FaultFalseOff, sim.FaultArgs{Requests: 2})
	var powers []any
	for range 3 {
		powers = append(powers, c.Get(s.URI())["PowerState"])
	}
	if diff := cmp.Diff([]any{"Off", "Off", "On"}, powers); diff != "" || s.Power() != model.PowerOn {
		t.Errorf("power (-want +got):\n%s", diff)
	}
	set(sim.FaultUUIDSwapped, sim.FaultArgs{})
	if got := c.Get(s.URI())["UUID"]; got != other.UUID() {
		t.Errorf("UUID %v, want %s", got, other.UUID())
	}
	set(sim.FaultUUIDSwapped, sim.FaultArgs{UUID: "4c4c4544-0059-3110-8035-b4c04f4d4232"})
	if got := c.Get(s.URI())["UUID"]; got != "4c4c4544-0059-3110-8035-b4c04f4d4232" {
		t.Errorf("UUID %v", got)
	}
	set(sim.FaultCollectionEmpty, sim.FaultArgs{})
	if got := c.Get("/redfish/v1/Systems"); got["Members@odata.count"] != float64(1) || len(got["Members"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	set(sim.FaultOKError, sim.FaultArgs{})
	if got := c.Get(s.URI()); got["error"] == nil || got["PowerState"] != nil {
		t.Errorf("%v", got)
	}
	unset(t, s.BMC(), sim.FaultOKError)
	set(sim.FaultNoSystems, sim.FaultArgs{})
	if got := c.Get("/redfish/v1/Systems")["Members@odata.count"]; got != float64(0) {
		t.Errorf("%v systems", got)
	}
}

// Machines that are swapped are in each other's places, with all that is asked of them.
func TestBladesSwapped(t *testing.T) {
	rack := start(t, sim.Options{BMCs: 1, SystemsPerBMC: 2})
	first, second := rack.Servers()[0], rack.Servers()[1]
	place := first.URI()
	c := simtest.Dial(t, first.BMC())
	if got := c.Get(place)["UUID"]; got != first.UUID() {
		t.Errorf("UUID %v, want %s", got, first.UUID())
	}
	set(t, first.BMC(), sim.FaultBladesSwapped)
	got := c.Get(place)
	if got["UUID"] != second.UUID() || got["@odata.id"] != place || got["Id"] != path.Base(place) || second.URI() != place {
		t.Errorf("%v at %s, and the second machine at %s; want %s", got["UUID"], got["@odata.id"], second.URI(), second.UUID())
	}
	c.Do("POST", place+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	if n := len(first.Resets()); n != 0 || len(second.Resets()) != 1 {
		t.Errorf("%d resets of the first machine, %d of the second", n, len(second.Resets()))
	}
}

// Firmware asks a boot server that does not answer a few times. Then it stands at "no
// bootable device", on, until its power is cycled.
func TestABootServerThatDoesNotAnswer(t *testing.T) {
	for name, answer := range map[string]int{
		"that is not ready":  http.StatusServiceUnavailable,
		"that is not there":  0,
		"that knows nothing": http.StatusNotFound,
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(answer)
			}))
			t.Cleanup(server.Close)
			tries := map[int]int64{http.StatusServiceUnavailable: 3, http.StatusNotFound: 1}[answer]
			if answer == 0 {
				server.Close()
			}
			rack := start(t, sim.Options{BootURL: server.URL})
			s := rack.Servers()[0]
			bootOnce(t, s)
			if last := lastBoot(t, s, 1); last.Outcome != sim.OutcomeNoDevice || s.Power() != model.PowerOn || asked.Load() != tries {
				t.Errorf("%+v, power %s, asked %d times; want %d", last, s.Power(), asked.Load(), tries)
			}
			again := 0
			for _, e := range s.Events() {
				if strings.Contains(e.What, "tries again") {
					again++
				}
			}
			if want := 2; answer != http.StatusNotFound && again != want {
				t.Errorf("tried again %d times, want %d", again, want)
			}
		})
	}
	t.Run("that is back in time boots the machine", func(t *testing.T) {
		svc := newBootService(t)
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			svc.Config.Handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		rack := start(t, sim.Options{BootURL: server.URL})
		s := rack.Servers()[0]
		svc.offer(s.UUID(), svc.probeIgnition(s.UUID()))
		bootOnce(t, s)
		booted(t, s, 1, sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll, Outcome: sim.OutcomeProbe})
	})
}
