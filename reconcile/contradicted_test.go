package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

const (
	bmcUUID      = "b0000000-0000-4000-8000-000000000001"
	otherBMCUUID = "b0000000-0000-4000-8000-000000000002"
)

func named(d *model.Desired, bmc model.BMCName, uuid string) {
	b := *d.BMCs[bmc]
	b.Source, b.Spec.BMCUUID = "bmcs/b.yaml:1", uuid
	d.Add(&b)
}

// whyText is what is said of a machine's server.
func (w *loopWorld) whyText(i int) string {
	for _, s := range w.plan().Servers {
		if s.Name == w.machine(i).name {
			return s.Why.Reason + ": " + s.Why.Message
		}
	}
	return ""
}

// leftAlone has a claim's server lose its power, and then its claim, and checks that nothing
// is done to it.
func (w *loopWorld) leftAlone(why ...string) {
	w.t.Helper()
	pass(time.Minute)
	for _, want := range append(why, model.ReasonIdentityMismatch) {
		if got := w.whyText(0); !strings.Contains(got, want) {
			w.t.Errorf("it is said %q, not %q", got, want)
		}
	}
	w.change(0, func(m *machine) { m.power = model.PowerOff })
	before := w.seen(0)
	pass(time.Hour)
	w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
	pass(time.Hour)
	if now := w.seen(0); now.ons != before.ons || now.offs != before.offs || now.sets != before.sets || now.disk != before.disk {
		w.t.Errorf("it was touched: it was %+v and is %+v", before, now)
	}
}

func TestABMCOfAnotherUUIDThanInGit(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.uuids = map[model.BMCName]string{"bmc00": bmcUUID} }, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		on := w.seen(0)
		w.commit(func(d *model.Desired) { named(d, "bmc00", strings.ToUpper(bmcUUID)) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if why := w.why(0); why != "" {
			t.Errorf("with its own UUID: %s", why)
		}
		w.commit(func(d *model.Desired) { named(d, "bmc00", otherBMCUUID) })
		w.leftAlone(bmcUUID, otherBMCUUID, "bmcs/b.yaml:1")
		if why := w.bmcWhy("bmc00"); why.Reason != model.ReasonIdentityMismatch {
			t.Errorf("of the BMC it is said: %+v", why)
		}
		w.commit(func(d *model.Desired) { named(d, "bmc00", bmcUUID) })
		w.expect(20*time.Second, 0, "Available Off")
		if now := w.seen(0); now.ons != on.ons+1 {
			t.Errorf("it was powered on %d times, and then %d times", on.ons, now.ons)
		}
	})
}

// misnamed is a world of ten minutes whose BMC is one, while Git says that it is another.
func misnamed(t *testing.T, is, said string, test func(t *testing.T, w *loopWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.uuids = map[model.BMCName]string{"bmc00": is}
		named(w.desired, "bmc00", said)
		w.start()
		defer w.stop()
		pass(10 * time.Minute)
		test(t, w)
	})
}

// The certificate of another BMC than Git names is not pinned, and what it shows makes no
// servers: the right one is known by its own, wherever Git says that it is.
func TestTheWrongBMCIsNotPinned(t *testing.T) {
	misnamed(t, otherBMCUUID, bmcUUID, func(t *testing.T, w *loopWorld) {
		o := w.Observed()
		if len(o.Servers) > 0 || o.BMCs["bmc00"].Fingerprint != "" {
			t.Fatalf("servers %v, BMC %+v", o.Servers, o.BMCs["bmc00"])
		}
		if n := w.discoveries(); n < 8 || n > 12 {
			t.Errorf("the BMC was read %d times in 10 minutes, want once a minute", n)
		}
		w.mu.Lock()
		w.uuids["bmc00"] = bmcUUID
		w.mu.Unlock()
		w.commit(func(d *model.Desired) {
			b := *d.BMCs["bmc00"]
			b.Spec.Protocol.Port++
			d.Add(&b)
		})
		w.expect(time.Minute, 0, "Available Off")
		if rec := w.Observed().BMCs["bmc00"]; rec.Fingerprint != "f" {
			t.Errorf("the right BMC is not pinned: %+v", rec)
		}
	})
}

// A UUID that is corrected in Git makes the BMC that answers the right one, which is pinned
// then.
func TestACorrectedBMCUUID(t *testing.T) {
	misnamed(t, bmcUUID, otherBMCUUID, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { named(d, "bmc00", bmcUUID) })
		w.expect(time.Minute, 0, "Available Off")
		if rec := w.Observed().BMCs["bmc00"]; rec.Fingerprint != "f" {
			t.Errorf("it is not pinned: %+v", rec)
		}
		read := w.discoveries()
		pass(10 * time.Minute)
		if n := w.discoveries(); n != read {
			t.Errorf("it was read %d more times", n-read)
		}
	})
}

// The right BMC in the place of a wrong one that was pinned is let in once a commit names it, and
// not before. What is pinned of the one that Git names is kept.
func TestTheRightBMCAfterTheWrongOneWasPinned(t *testing.T) {
	for name, tt := range map[string]struct {
		commit string // the UUID, "" = nothing is committed
		want   string // what is pinned then
	}{
		"without a commit":             {want: "f"},
		"once Git names it":            {commit: bmcUUID, want: "g"},
		"once Git names the wrong one": {commit: otherBMCUUID, want: "f"},
	} {
		t.Run(name, func(t *testing.T) {
			prepared(t, 1, func(w *loopWorld) { w.uuids = map[model.BMCName]string{"bmc00": otherBMCUUID} }, func(t *testing.T, w *loopWorld) {
				pass(10 * time.Minute)
				w.mu.Lock()
				w.uuids["bmc00"], w.cert = bmcUUID, "g"
				w.mu.Unlock()
				pass(2 * time.Hour)
				if rec := w.Observed().BMCs["bmc00"]; rec.Reason != model.ReasonCertificateChanged || rec.Fingerprint != "f" {
					t.Fatalf("before the commit: %+v", rec)
				}
				if tt.commit != "" {
					w.commit(func(d *model.Desired) { named(d, "bmc00", tt.commit) })
				}
				pass(15 * time.Minute)
				if rec := w.Observed().BMCs["bmc00"]; rec.Fingerprint != tt.want || (rec.Reason == "") != (tt.want == "g") {
					t.Errorf("afterwards: %+v", rec)
				}
			})
		})
	}
}

// A BMC that shows no UUID cannot be compared, which is said and holds up nothing.
func TestABMCWithoutAUUID(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { named(w.desired, "bmc00", bmcUUID) }, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		if doc := w.document("bmcs/bmc00.yaml"); !strings.Contains(doc, "it shows no UUID, so spec.bmcUUID "+bmcUUID) {
			t.Errorf("the status branch says:\n%s", doc)
		}
	})
}

// What Git says of a server is true, or nothing is done to it until somebody has found out
// which machine is meant.
func TestAServerThatIsNotWhatGitSays(t *testing.T) {
	const own, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-0000000000ff"
	const elsewhere = "/redfish/v1/Systems/1"
	says := func(uuid, bmc, uri string) func(d *model.Desired) {
		return func(d *model.Desired) {
			s := &model.Server{Meta: model.Meta{Name: "bmc00-system-0", Source: "servers/s.yaml:1"}}
			s.Spec.SystemUUID, s.Spec.SystemURI = uuid, uri
			if bmc != "" {
				s.Spec.BMCRef = &model.LocalRef{Name: bmc}
			}
			d.Add(s)
		}
	}
	for name, tt := range map[string]struct {
		says func(d *model.Desired)
		want string // "" = it is so, or cannot be told
	}{
		"another BMC":                   {says(own, "bmc01", ""), "says that it is behind BMC bmc01, and BMC bmc00 shows it"},
		"another BMC and no UUID":       {says("", "bmc01", ""), "says that it is behind BMC bmc01, and BMC bmc00 shows it"},
		"another system":                {says(own, "bmc00", elsewhere), "says that it is system " + elsewhere + ", and BMC bmc00 shows it as /redfish/v1/Systems/0"},
		"another UUID":                  {says(other, "", ""), "no server has that, while the server of this name has UUID " + own},
		"the UUID of another server":    {says("00000000-0000-4000-8000-000000000002", "", ""), "server bmc01-system-0 has that"},
		"all as it is":                  {says(strings.ToUpper(own), "bmc00", "/redfish/v1/Systems/0"), ""},
		"another spelling of its place": {says(own, "bmc00", "/redfish/v1/systems/0/"), ""},
		"a BMC that is not in Git":      {says(own, "bmc77", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 2, func(t *testing.T, w *loopWorld) {
				w.expect(2*time.Minute, 1, "Available Off")
				w.commit(func(d *model.Desired) {
					d.Add(claim("web", on("bmc00-system-0")))
					d.Add(&model.Server{Meta: model.Meta{Name: "bmc01-system-0"}})
				})
				w.expect(time.Minute, 0, "Reserved On default/web")
				before := w.seen(0)
				w.commit(tt.says)
				if tt.want == "" {
					w.expect(time.Hour, 0, "Reserved On default/web")
					if why := w.whyText(0); why != ": " {
						t.Errorf("it is said: %s", why)
					}
					return
				}
				w.leftAlone(tt.want, "servers/s.yaml:1")
				w.commit(says(own, "bmc00", "/redfish/v1/Systems/0"))
				w.expect(30*time.Minute, 0, "Available Off")
				if now := w.seen(0); now.ons != before.ons+1 || now.installs != before.installs {
					t.Errorf("it was powered on %d times, installed %d times", now.ons-before.ons, now.installs-before.installs)
				}
			})
		})
	}
}

// No claim gets a server that is not the machine that Git describes.
func TestAContradictedServerIsNotBound(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			s := &model.Server{Meta: model.Meta{Name: "bmc00-system-0"}, Spec: model.ServerSpec{SystemURI: "/redfish/v1/Systems/1"}}
			d.Add(s)
			d.Add(claim("web"))
		})
		w.expect(10*time.Minute, 0, "Available Off")
		if doc := w.document("serverclaims/default/web.yaml"); !strings.Contains(doc, "1 not the machine that Git describes") {
			t.Errorf("the claim says:\n%s", doc)
		}
		w.commit(func(d *model.Desired) { delete(d.Servers, "bmc00-system-0") })
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

// The power of a server that has a claim is the claim's to say, which is said of the one
// that names another.
func TestThePowerOfAManifestIsTheClaimsToSay(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			d.Add(&model.Server{Meta: model.Meta{Name: "bmc00-system-0", Source: "servers/s.yaml:1"}, Spec: model.ServerSpec{Power: model.PowerOff}})
		})
		w.expect(time.Minute, 0, "Available Off")
		if doc := w.document("servers/bmc00-system-0.yaml"); strings.Contains(doc, "PowerIgnored") {
			t.Errorf("without a claim the server says:\n%s", doc)
		}
		w.serve("web")
		const want = "spec.power Off of Server bmc00-system-0 (servers/s.yaml:1) is ignored: ServerClaim default/web decides, and says On"
		var p report.Projector
		says := func() string {
			in := w.loop.Input(time.Now())
			files := rendered(t, reportBy(&p, in))
			return strings.Join(strings.Fields(string(files["servers/bmc00-system-0.yaml"])), " ")
		}
		if doc := says(); !strings.Contains(doc, want) {
			t.Errorf("the server says:\n%s", doc)
		}
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		if doc := says(); !strings.Contains(doc, "default/web decides, and says Off") {
			t.Errorf("once the claim says something else, the server says:\n%s", doc)
		}
	})
}
