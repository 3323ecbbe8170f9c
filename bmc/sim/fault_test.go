package sim_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

type target interface {
	SetFault(sim.Fault, ...sim.FaultArgs) error
	ClearFault(sim.Fault) error
	Faults() []sim.Fault
}

func set(t *testing.T, on target, f sim.Fault, args ...sim.FaultArgs) {
	t.Helper()
	must.Do(t, on.SetFault(f, args...))
}

func unset(t *testing.T, on target, f sim.Fault) {
	t.Helper()
	must.Do(t, on.ClearFault(f))
}

func TestABMCThatRefusesConnectionsComesBackWhereItWas(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	c.Get(system)
	addr := b.Addr()
	set(t, b, sim.FaultRefuse)
	if _, err := c.Try("GET", system, ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want connection refused", err)
	}
	unset(t, b, sim.FaultRefuse)
	c.Get(system)
	if b.Addr() != addr {
		t.Errorf("moved from %s to %s", addr, b.Addr())
	}
}

func TestABMCWaitsForAPortThatWasLentMeanwhile(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	set(t, b, sim.FaultRefuse)
	other := must.Get(net.Listen("tcp", b.Addr()))(t)
	back := make(chan error, 1)
	go func() { back <- b.ClearFault(sim.FaultRefuse) }()
	select {
	case err := <-back:
		t.Fatalf("it came back on a port that another holds: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	_ = other.Close()
	must.Do(t, receive(t, back))
	simtest.Dial(t, b).Get(system)
}

func TestABMCThatHangsAnswersOnceItIsCleared(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultHang)
	status := make(chan int, 1)
	go func() {
		a, _ := c.Try("GET", system, "")
		status <- a.Status
	}()
	simtest.Eventually(t, "the request arrives", func() bool { return b.Requests() == 1 })
	select {
	case s := <-status:
		t.Fatalf("answered %d while it hangs", s)
	case <-time.After(50 * time.Millisecond):
	}
	unset(t, b, sim.FaultHang)
	if s := receive(t, status); s != 200 {
		t.Errorf("after that: %d", s)
	}
}

func TestAHangingBMCLetsGoOfAClientThatLeaves(t *testing.T) {
	rack := must.Get(sim.New(sim.Options{}))(t)
	done := make(chan error, 1)
	go func() { done <- rack.Run(context.Background()) }()
	b := rack.BMCs()[0]
	set(t, b, sim.FaultHang)
	failed := make(chan error, 1)
	go func() {
		_, err := simtest.Dial(t, b).Try("GET", system, "")
		failed <- err
	}()
	simtest.Eventually(t, "the request arrives", func() bool { return b.Requests() == 1 })
	rack.Close()
	if err := receive(t, failed); err == nil {
		t.Error("a closed rack answered")
	}
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
	rack.Close() // again is fine
}

func TestFaultsOfABMC(t *testing.T) {
	tests := []struct {
		fault  sim.Fault
		args   []sim.FaultArgs
		method string
		path   string
		body   string
		status int
	}{
		{fault: sim.FaultUnauthorized, method: "GET", path: system, status: 401},
		{fault: sim.FaultUnauthorized, method: "GET", path: "/redfish/v1/", status: 200},
		{
			fault: sim.FaultUnauthorized, method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin","Password":"ingot-sim"}`, status: 401,
		},
		{
			fault: sim.FaultSessionLimit, method: "POST", path: "/redfish/v1/SessionService/Sessions",
			body: `{"UserName":"admin","Password":"ingot-sim"}`, status: 503,
		},
		{fault: sim.FaultSessionLimit, method: "GET", path: system, status: 200},
		{fault: sim.FaultServerError, method: "GET", path: system, status: 500},
		{fault: sim.FaultNotFound, method: "GET", path: system, status: 404},
		{fault: sim.FaultNotFound, method: "GET", path: "/redfish/v1/", status: 200},
		{fault: sim.FaultUnavailable, method: "GET", path: "/redfish/v1/", status: 503},
		{fault: sim.FaultServerError, method: "GET", path: "/redfish/v1/", status: 200},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault)+" "+tt.path, func(t *testing.T) {
			b := start(t, sim.Options{}).BMCs()[0]
			c := simtest.Dial(t, b)
			set(t, b, tt.fault, tt.args...)
			if a := c.Do(tt.method, tt.path, tt.body); a.Status != tt.status {
				t.Errorf("%d, want %d", a.Status, tt.status)
			}
			if !slices.Equal(b.Faults(), []sim.Fault{tt.fault}) {
				t.Errorf("faults %v", b.Faults())
			}
			unset(t, b, tt.fault)
			if a := c.Do(tt.method, tt.path, tt.body); a.Status >= 400 {
				t.Errorf("%d once it is cleared", a.Status)
			}
		})
	}
}

func TestASlowBMCTakesItsTime(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultSlow, sim.FaultArgs{Delay: 80 * time.Millisecond})
	began := time.Now()
	c.Get(system)
	if took := time.Since(began); took < 80*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
}

func TestDroppedSessionsMustBeOpenedAgain(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	token := func() string {
		return c.Do("POST", "/redfish/v1/SessionService/Sessions", `{"UserName":"admin","Password":"ingot-sim"}`).Header.Get("X-Auth-Token")
	}
	get := func(token string) int { return c.Do("GET", system, "", "X-Auth-Token", token).Status }

	one := token()
	set(t, b, sim.FaultDropSessions)
	if got := get(one); got != 401 {
		t.Errorf("a dropped session: %d", got)
	}
	if two := token(); get(two) != 200 || len(b.Faults()) != 0 {
		t.Error("it happens more than once")
	}
	set(t, b, sim.FaultDropSessions, sim.FaultArgs{Requests: 2})
	three := token()
	if got := []int{get(three), get(three), get(three)}; !slices.Equal(got, []int{200, 200, 401}) {
		t.Errorf("a session of two requests: %v", got)
	}
}

func TestANewCertificateIsSeenByTheNextRequest(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	c.Get(system)
	before, addr := b.Fingerprint(), b.Addr()
	set(t, b, sim.FaultNewCertificate)
	c.Get(system)
	if b.Fingerprint() == before || b.Addr() != addr || b.Connections() != 2 {
		t.Errorf("fingerprint changed: %v, address %s to %s, %d connections", b.Fingerprint() != before, addr, b.Addr(), b.Connections())
	}
}

func TestABMCMovesToAnotherAddress(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	before := b.Addr()
	set(t, b, sim.FaultNewAddress)
	if b.Addr() == before {
		t.Fatal("it did not move")
	}
	simtest.Dial(t, b).Get(system)
}

const networkOnce = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiHttp"}}`

func TestFaultsOfTheOverride(t *testing.T) {
	tests := []struct {
		fault   sim.Fault
		status  int
		message []string
		kept    string // target afterwards
	}{
		{fault: sim.FaultOverrideNotKept, status: 200, kept: "None"},
		{fault: sim.FaultOverrideIgnored, status: 200, kept: "UefiHttp"},
		{fault: sim.FaultOverrideNeedsMode, status: 400, message: []string{"Base.1.8.PropertyMissing"}, kept: "None"},
		{fault: sim.FaultOverrideInSettings, status: 400, message: []string{"Base.1.8.OperationSupportedInFutureStateURI"}, kept: "None"},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			s := start(t, sim.Options{}).Servers()[0]
			set(t, s, tt.fault)
			a := simtest.Dial(t, s.BMC()).Do("PATCH", s.URI(), networkOnce)
			if _, target, _ := s.Override(); a.Status != tt.status || !cmp.Equal(a.MessageIDs(), tt.message) || target != tt.kept {
				t.Errorf("%d %v, target %s", a.Status, a.MessageIDs(), target)
			}
		})
	}
	t.Run("the ways round are open", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		set(t, s, sim.FaultOverrideNeedsMode)
		a := c.Do("PATCH", s.URI(),
			`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe","BootSourceOverrideMode":"UEFI"}}`)
		if a.Status != 200 {
			t.Errorf("with a mode: %d", a.Status)
		}
		unset(t, s, sim.FaultOverrideNeedsMode)
		set(t, s, sim.FaultOverrideInSettings)
		a = c.Do("PATCH", s.URI()+"/Settings", networkOnce)
		if _, target, _ := s.Override(); a.Status != 200 || target != "UefiHttp" {
			t.Errorf("in the settings object: %d, target %s", a.Status, target)
		}
	})
	t.Run("a boot order is taken in the settings object alone, for the next start", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		set(t, s, sim.FaultBootOrderInSettings)
		const networkFirst = `{"Boot":{"BootOrder":["Boot0002","Boot0001"]}}`
		a := c.Do("PATCH", s.URI(), networkFirst)
		if want := []string{"Base.1.8.OperationSupportedInFutureStateURI"}; a.Status != 400 || !cmp.Equal(a.MessageIDs(), want) {
			t.Errorf("in the system: %d %v", a.Status, a.MessageIDs())
		}
		if a = c.Do("PATCH", s.URI()+"/Settings", networkFirst); a.Status != 200 || s.NetworkFirst() {
			t.Errorf("in the settings object: %d, network first %v", a.Status, s.NetworkFirst())
		}
		s.PressPower()
		simtest.Eventually(t, "the firmware has the network first", s.NetworkFirst)
	})
	t.Run("firmware that ignores it boots from disk and clears it", func(t *testing.T) {
		svc := newBootService(t)
		s := start(t, sim.Options{BootURL: svc.URL}).Servers()[0]
		svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
		set(t, s, sim.FaultOverrideIgnored)
		bootOnce(t, s)
		booted(t, s, 1, sim.BootRecord{From: sim.BootFromNothing, Outcome: sim.OutcomeNoDevice})
		if enabled, _, _ := s.Override(); enabled != "Disabled" {
			t.Errorf("override is %s", enabled)
		}
	})
}

func TestFaultsOfPower(t *testing.T) {
	t.Run("graceful requests are ignored", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		s.SetRunning("debian")
		set(t, s, sim.FaultGracefulIgnored)
		simtest.Reset(t, s, "GracefulShutdown")
		if s.Power() != model.PowerOn || !s.Resets()[0].Ignored {
			t.Errorf("power %s, resets %+v", s.Power(), s.Resets())
		}
		simtest.Reset(t, s, "ForceOff")
		simtest.Powered(t, s, model.PowerOff)
	})
	t.Run("all requests to power off are ignored", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		s.SetRunning("debian")
		set(t, s, sim.FaultPowerOffIgnored)
		simtest.Reset(t, s, "ForceOff")
		simtest.Reset(t, s, "GracefulShutdown")
		if s.Power() != model.PowerOn {
			t.Errorf("power %s", s.Power())
		}
	})
	t.Run("requests to power on are ignored", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		set(t, s, sim.FaultPowerOnIgnored)
		simtest.Reset(t, s, "On")
		if s.Power() != model.PowerOff || s.PowerOns() != 0 {
			t.Errorf("power %s", s.Power())
		}
	})
	t.Run("readings flap after a reset", func(t *testing.T) {
		s := start(t, sim.Options{}).Servers()[0]
		c := simtest.Dial(t, s.BMC())
		s.SetRunning("debian")
		set(t, s, sim.FaultPowerFlaps, sim.FaultArgs{Delay: time.Hour})
		if got := c.Get(s.URI())["PowerState"]; got != "On" {
			t.Errorf("before a reset: %v", got)
		}
		simtest.Reset(t, s, "ForceOff")
		var got []any
		for range 4 {
			got = append(got, c.Get(s.URI())["PowerState"])
		}
		if !cmp.Equal(got, []any{"On", "Off", "On", "Off"}) {
			t.Errorf("readings %v", got)
		}
	})
}

func TestFaultsOfTheUUID(t *testing.T) {
	s := start(t, sim.Options{}).Servers()[0]
	c := simtest.Dial(t, s.BMC())
	set(t, s, sim.FaultUUIDZero)
	if got := c.Get(s.URI())["UUID"]; got != "00000000-0000-0000-0000-000000000000" {
		t.Errorf("zero: %v", got)
	}
	set(t, s, sim.FaultUUIDMissing)
	if got, there := c.Get(s.URI())["UUID"]; there {
		t.Errorf("missing: %v", got)
	}
	unset(t, s, sim.FaultUUIDMissing)
	unset(t, s, sim.FaultUUIDZero)
	if got := c.Get(s.URI())["UUID"]; got != s.UUID() {
		t.Errorf("cleared: %v", got)
	}
}

func TestFaultOfMACs(t *testing.T) {
	s := start(t, sim.Options{}).Servers()[0]
	c := simtest.Dial(t, s.BMC())
	nic := func() map[string]any { return c.Get(s.URI() + "/EthernetInterfaces/NIC1") }
	set(t, s, sim.FaultMACsHidden)
	if mac, there := nic()["MACAddress"]; there {
		t.Errorf("hidden: %v", mac)
	}
	unset(t, s, sim.FaultMACsHidden)
	if got := nic()["MACAddress"]; got != strings.ToUpper(s.MAC(0)) {
		t.Errorf("cleared: %v, want that of its card %s", got, s.MAC(0))
	}
}

func TestFaultsOfABoot(t *testing.T) {
	hung := func(stages ...model.BootStage) sim.BootRecord {
		return sim.BootRecord{From: sim.BootFromNetwork, Stages: stages, Outcome: sim.OutcomeHung}
	}
	done := sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll}
	probe, installed := done, done
	probe.Outcome, installed.Outcome = sim.OutcomeProbe, sim.OutcomeInstalled
	tests := []struct {
		fault sim.Fault
		image bool
		want  sim.BootRecord
	}{
		{sim.FaultHangAfterScript, true, hung(model.StageScript)},
		{sim.FaultHangAfterKernel, true, hung(model.StageScript, model.StageKernel)},
		{sim.FaultProbeSilent, false, probe},
		{sim.FaultBootStateSilent, true, installed},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			svc := newBootService(t)
			s := start(t, sim.Options{BootURL: svc.URL}).Servers()[0]
			svc.offer(s.UUID(), svc.probeIgnition(s.UUID()))
			if tt.image {
				svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
			}
			set(t, s, tt.fault)
			bootOnce(t, s)
			booted(t, s, 1, tt.want)
			if len(svc.registrations)+len(svc.bootStates) != 0 {
				t.Error("it reported all the same")
			}
			s.PowerCut()
			unset(t, s, tt.fault)
			bootOnce(t, s)
			if tt.image {
				receive(t, svc.bootStates)
			} else {
				receive(t, svc.registrations)
			}
		})
	}
}

func TestAProbeMayReportAsAnother(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BMCs: 2, BootURL: svc.URL})
	s, other := rack.Servers()[0], rack.Servers()[1]
	svc.offer(s.UUID(), svc.probeIgnition(s.UUID()))
	set(t, s, sim.FaultProbeOtherUUID, sim.FaultArgs{UUID: other.UUID()})
	bootOnce(t, s)
	if got := receive(t, svc.registrations); got.SystemUUID != other.UUID() {
		t.Errorf("reported as %s, want %s", got.SystemUUID, other.UUID())
	}
}

func TestAFaultIsSetWhereItBelongs(t *testing.T) {
	rack := start(t, sim.Options{SystemsPerBMC: 2})
	b, s := rack.BMCs()[0], rack.Servers()[0]
	for name, err := range map[string]error{
		"unknown":              b.SetFault("gremlins"),
		"of a BMC on a server": s.SetFault(sim.FaultHang),
		"a disk too many":      s.SetFault(sim.FaultWipeFails, sim.FaultArgs{Disk: 7}),
		"a negative delay":     b.SetFault(sim.FaultSlow, sim.FaultArgs{Delay: -1}),
		"arguments twice":      b.SetFault(sim.FaultSlow, sim.FaultArgs{}, sim.FaultArgs{}),
		"clearing the unknown": s.ClearFault("gremlins"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	set(t, b, sim.FaultUUIDZero)
	for _, s := range rack.Servers() {
		if !slices.Equal(s.Faults(), []sim.Fault{sim.FaultUUIDZero}) {
			t.Errorf("%s has %v", s.Name(), s.Faults())
		}
	}
}

func TestACloseBeforeRunLeavesNothingOpen(t *testing.T) {
	rack := must.Get(sim.New(sim.Options{BMCs: 2}))(t)
	addr := rack.BMCs()[0].Addr()
	rack.Close()
	if _, err := http.Get("http://" + addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want connection refused", err)
	}
	if err := rack.Run(context.Background()); err == nil {
		t.Error("a closed rack runs")
	}
}
