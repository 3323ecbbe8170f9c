package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// within is a Server that describes the BMC of a world's machine i within itself, and has the
// name that the world has for that BMC.
func within(i int, change ...func(*model.Server)) *model.Server {
	s := &model.Server{Meta: model.Meta{Name: fmt.Sprintf("bmc%02d", i), Source: "servers/s.yaml:1"}}
	s.Spec.BMC = &model.BMCAccess{
		Address: "192.0.2.1", Protocol: model.Protocol{Name: "Redfish", Port: int32(1000 + i), Scheme: "https"},
		BMCSecretRef: model.LocalRef{Name: "s"},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// newWithin is a world of one machine whose Server describes its BMC.
func newWithin(t *testing.T, change ...func(*model.Server)) *loopWorld {
	w := newLoopWorld(t, 1)
	delete(w.desired.BMCs, "bmc00")
	w.desired.Add(within(0, change...))
	w.machine(0).name = "bmc00"
	w.start()
	return w
}

func TestAServerThatDescribesItsBMC(t *testing.T) {
	const own, place = "00000000-0000-4000-8000-000000000001", "/redfish/v1/Systems/0"
	for name, says := range map[string]func(*model.Server){
		"and nothing else":     func(*model.Server) {},
		"and its UUID":         func(s *model.Server) { s.Spec.SystemUUID = own },
		"and its place behind": func(s *model.Server) { s.Spec.SystemURI = place + "/" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWithin(t, says)
				defer w.stop()
				w.serve("web")
				if why := w.whyText(0); why != ": " {
					t.Errorf("it is said: %s", why)
				}
				if doc := w.document("bmcs/bmc00.yaml"); strings.Contains(doc, "Complete") {
					t.Errorf("the BMC says:\n%s", doc)
				}
			})
		})
	}
}

// Without its Server the BMC is gone from Git, and what was behind it is left as it is.
func TestAServerThatDescribedItsBMC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWithin(t)
		defer w.stop()
		w.serve("web")
		before := w.seen(0)
		w.commit(func(d *model.Desired) {
			delete(d.Servers, "bmc00")
			delete(d.BMCs, "bmc00")
		})
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		pass(time.Hour)
		if now := w.seen(0); w.why(0) != model.ReasonOrphaned || now.ons != before.ons || now.offs != before.offs {
			t.Errorf("it is %s, and was %+v and is %+v", w.why(0), before, now)
		}
		w.commit(func(d *model.Desired) { d.Add(within(0)) })
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

// A server that was known before by a name of its BMC's is the Server that describes it now.
func TestABMCThatIsMovedIntoItsServer(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.commit(func(d *model.Desired) {
			delete(d.BMCs, "bmc00")
			d.Add(within(0, func(s *model.Server) { s.Spec.Unclaimable = true }))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		if doc := w.document("servers/bmc00-system-0.yaml"); !strings.Contains(doc, "unclaimable: true") {
			t.Errorf("the server says:\n%s", doc)
		}
	})
}

// Which of a BMC's systems is meant has to be said where there are more than one, or another.
func TestAServerThatIsNoneOfItsBMCsSystems(t *testing.T) {
	for want, says := range map[string]func(*model.Server){
		"it shows 2 systems: say by spec.systemUUID or spec.systemURI which is Server bmc00 (servers/s.yaml:1)": func(*model.Server) {},
		"none of its systems has spec.systemUUID 00000000-0000-4000-8000-0000000000ff of Server bmc00": func(s *model.Server) {
			s.Spec.SystemUUID = "00000000-0000-4000-8000-0000000000ff"
		},
		"it shows no system /redfish/v1/Systems/7, which Server bmc00 (servers/s.yaml:1) says that it is": func(s *model.Server) {
			s.Spec.SystemURI = "/redfish/v1/Systems/7"
		},
		"": func(s *model.Server) { s.Spec.SystemURI = "/redfish/v1/Systems/1" },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newLoopWorld(t, 2)
			clear(w.desired.BMCs)
			w.desired.Add(within(0, says))
			w.machine(1).bmc = "bmc00"
			w.machine(1).name = "bmc00-system-1"
			if want == "" {
				w.machine(1).name = "bmc00"
			}
			w.start()
			defer w.stop()
			w.expect(2*time.Minute, 0, "Available Off")
			w.expect(0, 1, "Available Off")
			doc := strings.Join(strings.Fields(w.document("bmcs/bmc00.yaml")), " ")
			if !strings.Contains(doc, want) || want == "" && strings.Contains(doc, "Complete") {
				t.Errorf("want %q, got:\n%s", want, doc)
			}
		})
	}
}

// A tenant who may define no BMCs has nothing sent to one, whatever was in force before.
func TestATenantsBMCWithinAServer(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.tenants = model.Tenants{{Path: "t", Kinds: []model.Kind{model.KindServer, model.KindBMCSecret}}}
		delete(w.desired.BMCs, "bmc00")
		w.desired.BMCSecrets["s"].Tenant = "t"
		w.desired.Add(within(0, func(s *model.Server) { s.Tenant = "t" }))
	}, func(t *testing.T, w *loopWorld) {
		pass(10 * time.Minute)
		why, read := w.bmcWhy("bmc00"), w.discoveries()
		if why.Reason != model.ReasonAddressNotAllowed || !strings.Contains(why.Message, "below t only") || read > 0 {
			t.Errorf("the BMC was read %d times, and says %+v", read, why)
		}
	})
}

// A BMC within a Server that has the address of another is not spoken to, and the Server is
// behind that one.
func TestABMCWithinAServerAtATakenAddress(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		for _, name := range []string{"a", "bmc00-system-0"} {
			w.desired.Add(within(0, func(s *model.Server) { s.Name = name }))
		}
	}, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		if why := w.whyText(0); why != ": " {
			t.Errorf("it is said: %s", why)
		}
		for _, name := range []string{"a", "bmc00-system-0"} {
			if why := w.bmcWhy(name); !strings.Contains(why.Message, "BMC bmc00 has the address 192.0.2.1:1000") {
				t.Errorf("BMC %s: %+v", name, why)
			}
			if w.Observed().BMCFacts[model.BMCName(name)] != nil {
				t.Errorf("BMC %s was read", name)
			}
		}
	})
}
