package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

// database makes a MAC prefix database whose entry for a0369f has these passwords.
func database(t *testing.T, passwords ...string) *model.MACPrefixes {
	t.Helper()
	text := "macPrefixes:\n- macPrefix: a0369f\n  manufacturer: Sim\n  protocol: Redfish\n  port: 443\n  type: bmc\n  defaultCredentials:\n"
	for _, p := range passwords {
		text += "  - {username: root, password: \"" + p + "\"}\n"
	}
	db, problems := model.DecodeMACPrefixes("macdb.yaml", []byte(text), model.NewTokenKey([]byte(strings.Repeat("k", 32))))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return db
}

func macOf(i int) string { return fmt.Sprintf("a0:36:9f:00:00:%02x", i) }

func ipOf(i int) string { return fmt.Sprintf("192.0.2.%d", 10+i) }

func foundAs(i int) string { return fmt.Sprintf("oob-a0369f0000%02x", i) }

// newNetwork is a world of BMCs that nobody wrote a manifest for, none of which has
// asked for an address yet.
func newNetwork(t *testing.T, servers int) *loopWorld {
	w := newLoopWorld(t, servers)
	w.desired.BMCs, w.desired.BMCSecrets = map[model.BMCName]*model.BMC{}, map[string]*model.BMCSecret{}
	w.devices = make(map[string]*device)
	w.database = database(t, "calvin")
	for i := range servers {
		w.machine(i).name = model.ServerName(foundAs(i) + "-system-0")
	}
	return w
}

// device is the BMC of a machine, plugged in at an address.
func (w *loopWorld) plugIn(i int, password string) *device {
	d := &device{
		mac: macOf(i), uuid: fmt.Sprintf("b0000000-0000-4000-8000-%012d", i+1),
		password: password, uri: fmt.Sprintf("/redfish/v1/Systems/%d", i),
	}
	w.lease(d, ipOf(i))
	return d
}

// lease gives a device an address, as DHCP does.
func (w *loopWorld) lease(d *device, ip string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer signal(w.stored)
	for at, other := range w.devices {
		if at == ip && other != d {
			if facts := w.observed.EndpointFacts[other.mac]; facts != nil {
				cleared := *facts
				cleared.IP = ""
				w.observed.EndpointFacts[other.mac] = &cleared
			}
		}
		if other == d {
			delete(w.devices, at)
		}
	}
	w.devices[ip] = d
	w.observed.EndpointFacts[d.mac] = &model.EndpointFacts{MACAddress: d.mac, IP: ip, Network: "oob", Since: time.Now()}
}

// refusals are when a device refused a password.
func (w *loopWorld) refusals(d *device) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(d.refused)
}

// lastTried is the password that was tried last on a device, if it was refused.
func (w *loopWorld) lastTried(d *device) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return d.last
}

// rename says under which name a machine is to become known.
func (w *loopWorld) rename(i int, name model.ServerName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machine(i).name = name
}

// network runs a world of BMCs without manifests.
func network(t *testing.T, servers int, test func(t *testing.T, w *loopWorld), change ...func(*loopWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, servers)
		for _, f := range change {
			f(w)
		}
		w.start()
		test(t, w)
		w.stop()
	})
}

func (w *loopWorld) endpoint(name string) model.EndpointRecord {
	if r := w.Observed().Endpoints[name]; r != nil {
		return *r
	}
	return model.EndpointRecord{}
}

func secretFor(name, password string) *model.BMCSecret {
	return &model.BMCSecret{Meta: model.Meta{Name: name}, Values: map[string]model.Sensitive{
		"username": model.NewSensitive("root"), "password": model.NewSensitive(password),
	}}
}

// credential is the ID of a credential of the database, for the devices that are plugged in.
func (w *loopWorld) credential(n int) string {
	prefix, _ := w.database.Lookup(macOf(0))
	return prefix.Credentials[n].ID
}

func TestABMCThatIsPluggedInBecomesAServerWithoutAnyoneTyping(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		start := time.Now()
		w.expect(2*time.Minute, 0, "Available Off")
		want := model.EndpointRecord{
			Name: foundAs(0), MACAddress: macOf(0), IP: ipOf(0), Network: "oob", Since: start,
			Prefix: "a0369f", Credential: w.credential(0),
		}
		if diff := cmp.Diff(want, w.endpoint(foundAs(0))); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		for path, texts := range map[string][]string{
			"endpoints/" + foundAs(0) + ".yaml": {
				"macAddress: " + macOf(0), "ip: " + ipOf(0), "network: oob", "bmc: " + foundAs(0), "manufacturer: Sim", "reason: MACPrefix",
			},
			"bmcs/" + foundAs(0) + ".yaml": {
				"state: Enabled", "ip: " + ipOf(0), "macAddress: " + macOf(0), "name: " + foundAs(0), "port: 443",
			},
		} {
			for _, text := range texts {
				if got := w.document(path); !strings.Contains(got, text) {
					t.Errorf("%s lacks %q:\n%s", path, text, got)
				}
			}
		}
		if strings.Contains(w.document("endpoints/"+foundAs(0)+".yaml")+w.document("bmcs/"+foundAs(0)+".yaml"), "calvin") {
			t.Error("the password is on the status branch")
		}
		w.mu.Lock()
		saves := w.saves
		w.mu.Unlock()
		pass(50 * time.Minute)
		if w.saves != saves {
			t.Errorf("%d writes in 50 minutes in which nothing changed", w.saves-saves)
		}
	})
}

func TestADeviceOfAnUnknownVendorIsSaidToBeNoBMC(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.lease(&device{mac: "02:00:00:00:00:01", uri: "/x"}, "192.0.2.9")
		pass(time.Minute)
		got := w.document("endpoints/oob-020000000001.yaml")
		if !strings.Contains(got, "reason: NoMACPrefix") || !strings.Contains(w.document(model.ReportReadme), "oob-020000000001") {
			t.Errorf("got\n%s\n%s", got, w.document(model.ReportReadme))
		}
		if w.asks != 0 {
			t.Errorf("it was asked %d times", w.asks)
		}
	})
}

func TestCredentialsAreTriedOnceEachAndNeverMoreThanThreeInHalfAnHour(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "five")
		pass(5 * time.Minute)
		if len(w.refusals(d)) != 3 {
			t.Fatalf("%d passwords were tried in 5 minutes, want 3", len(w.refusals(d)))
		}
		why := w.bmcWhy(foundAs(0))
		if why.Reason != model.ReasonAuthenticationFailed || !strings.Contains(why.Message, "3 of the 5 credentials") ||
			!strings.Contains(why.Message, "a BMCSecret "+foundAs(0)+" in Git is used at once") {
			t.Errorf("got %+v", why)
		}
		w.stop()
		w.start()
		pass(10 * time.Minute)
		if len(w.refusals(d)) != 3 {
			t.Fatalf("%d passwords were tried by 15 minutes and a restart, want 3", len(w.refusals(d)))
		}
		w.expect(25*time.Minute, 0, "Available Off")
		if len(w.refusals(d)) != 4 || w.lastTried(d) != "four" {
			t.Errorf("%d passwords were refused, want 4", len(w.refusals(d)))
		}
		refused := w.refusals(d)
		for i := 3; i < len(refused); i++ {
			if within := refused[i].Sub(refused[i-3]); within < 30*time.Minute {
				t.Errorf("4 refused within %v", within)
			}
		}
		if rec := w.endpoint(foundAs(0)); rec.Credential != w.credential(4) || len(rec.Tried) != 4 {
			t.Errorf("got %+v", rec)
		}
	}, func(w *loopWorld) { w.database = database(w.t, "one", "two", "three", "four", "five") })
}

func TestABMCThatRefusesAllWaitsForABMCSecretAndTakesItAtOnce(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "changed")
		pass(24 * time.Hour)
		if len(w.refusals(d)) != 3 {
			t.Fatalf("%d passwords were tried in a day, want each of 3 once", len(w.refusals(d)))
		}
		if why := w.bmcWhy(foundAs(0)); why.Reason != model.ReasonAuthenticationFailed || why.Actor != proposal.RackOperator {
			t.Errorf("got %+v", why)
		}
		w.commit(func(d *model.Desired) { d.Add(secretFor(foundAs(0), "changed")) })
		w.expect(time.Minute, 0, "Available Off")
		if len(w.refusals(d)) != 3 {
			t.Errorf("%d passwords were refused in all", len(w.refusals(d)))
		}
	}, func(w *loopWorld) { w.database = database(w.t, "one", "two", "three") })
}

func TestABMCSecretInGitIsUsedAtOnceThoughThreeWereJustRefused(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "changed")
		for range 200 {
			if pass(100 * time.Millisecond); len(w.refusals(d)) == 3 {
				break
			}
		}
		w.commit(func(d *model.Desired) { d.Add(secretFor(foundAs(0), "changed")) })
		pass(time.Second)
		if why := w.bmcWhy(foundAs(0)); why.Reason != "" {
			t.Errorf("after a second: %+v", why)
		}
	}, func(w *loopWorld) { w.database = database(w.t, "one", "two", "three", "four") })
}

func TestACorrectedPasswordOfTheDatabaseIsTried(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "changed")
		pass(time.Hour)
		w.stop()
		w.database = database(t, "changed")
		w.start()
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestADatabasesPasswordIsNotTriedWhereGitMayNameAnother(t *testing.T) {
	for name, hide := range map[string]func(*model.Desired){
		"its BMCSecret is quarantined": func(d *model.Desired) {
			d.Quarantined[model.Identity{Kind: model.KindBMCSecret, Name: foundAs(0)}] = []string{""}
		},
		"a BMC is quarantined": func(d *model.Desired) {
			d.Quarantined[model.Identity{Kind: model.KindBMC, Name: "x"}] = []string{""}
		},
		"Git was not read since the restart": func(d *model.Desired) { d.KeptOverRestart = true },
	} {
		t.Run(name, func(t *testing.T) {
			network(t, 1, func(t *testing.T, w *loopWorld) {
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				pass(time.Minute)
				w.commit(hide)
				d := w.plugIn(0, "changed")
				pass(time.Hour)
				if len(w.refusals(d)) != 0 {
					t.Errorf("%d passwords were tried", len(w.refusals(d)))
				}
			})
		})
	}
}

// bmcFile is a BMC in Git for a device that DHCP found.
func bmcFile(name string, i int) *model.BMC {
	return &model.BMC{Meta: model.Meta{Name: name}, Spec: model.BMCSpec{
		Access:       &model.InlineEndpoint{MACAddress: macOf(i), IP: ipOf(i)},
		BMCSecretRef: model.LocalRef{Name: "s"}, Protocol: model.Protocol{Name: "Redfish", Port: 443},
	}}
}

func TestABMCInGitOfTheSameMACAddressTakesTheServersOverAsTheyAre(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.serve("web")
		m := w.machine(0)
		ons, installs := m.ons, m.installs
		w.commit(func(d *model.Desired) {
			d.Add(bmcFile("rack7", 0))
			d.Add(secretFor("s", "calvin"))
		})
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if b := w.bmcWhy("rack7"); b.Reason != "" {
			t.Errorf("the BMC in Git: %+v", b)
		}
		if b := w.bmcWhy(foundAs(0)); b.Reason != "unknown" {
			t.Errorf("the BMC that was found is still there: %+v", b)
		}
		all := w.plan().Servers
		if len(all) != 1 || all[0].Record.BMC != "rack7" || all[0].Why.Reason != "" {
			t.Errorf("%d servers, the first behind %s: %+v", len(all), all[0].Record.BMC, all[0].Why)
		}
		if got := w.document("endpoints/" + foundAs(0) + ".yaml"); !strings.Contains(got, "reason: ShadowedBy") ||
			!strings.Contains(got, "bmc: rack7") {
			t.Errorf("got\n%s", got)
		}
		w.commit(func(d *model.Desired) { delete(d.BMCs, "rack7") })
		w.expect(2*time.Hour, 0, "Reserved On default/web")
		if m.ons != ons || m.installs != installs || m.forced != 0 {
			t.Errorf("powered on %d times, installed %d times, forced off %d times", m.ons-ons, m.installs-installs, m.forced)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

func TestABMCInGitThatDoesNotAnswerKeepsTheServersAsTheyAre(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.serve("web")
		w.commit(func(d *model.Desired) {
			d.Add(bmcFile("rack7", 0))
			delete(d.Claims, "default/web")
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		why := w.plan().Servers[0].Why
		if why.Reason != "Orphaned" || !strings.Contains(why.Message, "BMC rack7 in Git") {
			t.Errorf("got %+v", why)
		}
	})
}

func TestABMCsEndpointRefMayNameADeviceThatDHCPFound(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			b := bmcFile("rack7", 0)
			b.Spec.Access, b.Spec.EndpointRef = nil, &model.LocalRef{Name: foundAs(0)}
			d.Add(b)
			d.Add(secretFor("s", "calvin"))
		})
		w.rename(0, "rack7-system-0")
		w.plugIn(0, "calvin")
		w.expect(2*time.Minute, 0, "Available Off")
		files := w.files()
		w.loseStore(files)
		w.expect(10*time.Minute, 0, "Available Off")
		if why := w.bmcWhy("rack7"); why.Reason != "" {
			t.Errorf("after the loss of the store: %+v", why)
		}
	})
}

func TestADeviceIsKnownAfterTheStoreWasLostAndBeforeItsLeaseIsRenewed(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "two")
		w.serve("web")
		installs := w.machine(0).installs
		before := w.endpoint(foundAs(0))
		w.loseStore(w.files())
		w.set(w.machine(0), model.PowerOff)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if diff := cmp.Diff(before, w.endpoint(foundAs(0)), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Errorf("record (-before +after):\n%s", diff)
		}
		if m := w.machine(0); m.installs != installs {
			t.Error("it was installed again")
		}
	}, func(w *loopWorld) { w.database = database(w.t, "one", "two") })
}

func TestADeviceThatMovesIsFollowed(t *testing.T) {
	network(t, 2, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "calvin")
		w.plugIn(1, "calvin")
		w.serve("web")
		w.lease(d, "192.0.2.99")
		pass(time.Minute)
		w.set(w.machine(0), model.PowerOff)
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if rec := w.endpoint(foundAs(0)); rec.IP != "192.0.2.99" {
			t.Errorf("got %+v", rec)
		}
	})
}

func TestADeviceWhoseAddressAnotherOneGotIsWaitedFor(t *testing.T) {
	network(t, 2, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "calvin")
		other := w.plugIn(1, "calvin")
		w.serve("web")
		w.lease(other, ipOf(0))
		w.set(w.machine(0), model.PowerOff)
		w.expect(20*time.Minute, 0, "Reserved Off default/web")
		if why := w.bmcWhy(foundAs(0)); why.Reason != model.ReasonAddressLost {
			t.Errorf("got %+v", why)
		}
		w.lease(d, ipOf(1)) // they have changed places
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(claim("db")) })
		w.expect(5*time.Minute, 1, "Reserved On default/db")
	})
}

func TestAnAddressAtWhichAnotherBMCAnswersIsRefusedByName(t *testing.T) {
	network(t, 2, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "calvin")
		w.plugIn(1, "calvin")
		w.serve("web")
		w.mu.Lock() // the lease says so, but it is the other BMC that uses the address
		w.observed.EndpointFacts[macOf(1)] = &model.EndpointFacts{MACAddress: macOf(1), IP: "192.0.2.50", Network: "oob", Since: time.Now()}
		w.observed.EndpointFacts[macOf(0)] = &model.EndpointFacts{MACAddress: macOf(0), IP: ipOf(1), Network: "oob", Since: time.Now()}
		delete(w.devices, ipOf(0))
		w.mu.Unlock()
		signal(w.stored)
		w.set(w.machine(0), model.PowerOff)
		w.expect(20*time.Minute, 0, "Reserved Off default/web")
		why := w.bmcWhy(foundAs(0))
		for _, text := range []string{
			"b0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002", "which is BMC " + foundAs(1),
		} {
			if why.Reason != model.ReasonIdentityMismatch || !strings.Contains(why.Message, text) {
				t.Errorf("%q is missing in %+v", text, why)
			}
		}
		w.mu.Lock()
		w.devices["192.0.2.50"], w.devices[ipOf(1)] = w.devices[ipOf(1)], d
		w.mu.Unlock()
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	})
}

func TestALostDatabaseLeavesWhatItRecognisedAsItIs(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.serve("web")
		db := w.database
		w.stop()
		w.database = nil
		w.start()
		w.set(w.machine(0), model.PowerOff)
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if got := w.document("endpoints/" + foundAs(0) + ".yaml"); !strings.Contains(got, "reason: NoMACPrefix") ||
			!strings.Contains(got, "entry a0369f") {
			t.Errorf("got\n%s", got)
		}
		w.stop()
		w.database = db
		w.start()
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	})
}

func TestAnEndpointInGitNamesADeviceThatWasFoundBefore(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "calvin")
		w.serve("web")
		w.commit(func(d *model.Desired) {
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "slot-7"}, Spec: model.EndpointSpec{MACAddress: macOf(0), IP: "192.0.2.200"}})
		})
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		all := w.plan().Servers
		if len(all) != 1 || all[0].Record.BMC != "slot-7" || all[0].Why.Reason != "" {
			t.Errorf("server %+v: %+v", all[0].Record, all[0].Why)
		}
		want := []string{"slot-7"}
		var got []string
		for name := range w.Observed().Endpoints {
			got = append(got, name)
		}
		if rec := w.endpoint("slot-7"); !slices.Equal(got, want) || rec.IP != ipOf(0) || rec.Credential == "" {
			t.Errorf("endpoints %v, record %+v; want the lease's address", got, rec)
		}
		w.lease(d, "192.0.2.200")
		w.set(w.machine(0), model.PowerOff)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if len(w.refusals(d)) != 0 {
			t.Error("a credential was tried anew")
		}
	})
}

func TestTheManifestsAddressCountsWhereIngotGivesNoLeases(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.rename(0, "slot-7-system-0")
		w.commit(func(d *model.Desired) { // before it is found, or it has another name
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "slot-7"}, Spec: model.EndpointSpec{MACAddress: macOf(0), IP: "192.0.2.200"}})
		})
		d := w.plugIn(0, "calvin")
		w.mu.Lock()
		w.devices = map[string]*device{"192.0.2.200": d}
		w.mu.Unlock()
		w.expect(10*time.Minute, 0, "Available Off")
	}, func(w *loopWorld) { w.networks = []string{"other"} })
}

func TestADeviceThatOnlyGitNamedAndThatNeverAnsweredIsForgottenWithItsFile(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "typo"}, Spec: model.EndpointSpec{MACAddress: macOf(5), IP: "192.0.2.66"}})
		})
		pass(time.Minute)
		if w.endpoint("typo").Prefix != "a0369f" {
			t.Fatal("it was not recognised")
		}
		w.commit(func(d *model.Desired) { delete(d.Endpoints, "typo") })
		pass(time.Minute)
		if n := len(w.Observed().Endpoints); n != 0 {
			t.Errorf("%d endpoints are on record", n)
		}
	})
}

func TestAPoolWithoutAddressesIsSaidOnTheStatusBranch(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		pass(time.Minute)
		drain(w.loop.dirty)
		since := time.Now()
		full := model.PoolFacts{Network: "oob", Subnet: "10.0.0.0/24", Size: 101, Used: 101, Exhausted: since, Refused: 1}
		w.stop()
		w.pools = []model.PoolFacts{full}
		w.start()
		pass(time.Second)
		for _, path := range []string{model.ReportReadme, model.ReportFleet} {
			if got := w.document(path); !strings.Contains(got, "10.0.0.0/24") || !strings.Contains(got, "none of the 101 addresses") {
				t.Errorf("%s:\n%s", path, got)
			}
		}
		before := w.document(model.ReportFleet) + w.document(model.ReportReadme)
		full.Refused, full.Used = 900, 100
		w.stop()
		w.pools = []model.PoolFacts{full}
		w.start()
		if after := w.document(model.ReportFleet) + w.document(model.ReportReadme); after != before {
			t.Errorf("each refused device changes the status branch:\n%s", cmp.Diff(before, after))
		}
	})
}

func TestLeasedAddressIsPublished(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		pass(time.Hour)
		published := func() bool {
			select {
			case <-w.loop.dirty:
				return true
			default:
				return false
			}
		}
		published()
		for _, address := range []string{"10.0.0.7", "10.0.0.8"} {
			w.address.Store(new(netip.MustParseAddr(address)))
			pass(3 * time.Minute) // a regular plan
			if got := w.document("serverclaims/default/web.yaml"); !published() || !strings.Contains(got, "- "+address+"\n") {
				t.Errorf("%s is not published:\n%s", address, got)
			}
		}
		if pass(3 * time.Minute); published() {
			t.Error("the same address is published again")
		}
	})
}

func TestTheSecondLookAtDevicesChangesNothing(t *testing.T) {
	network(t, 3, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.plugIn(1, "changed")
		w.lease(&device{mac: "02:00:00:00:00:01", uri: "/x"}, "192.0.2.9")
		pass(time.Hour)
		in := w.loop.Input(time.Now())
		if d := plan.Plan(in).Decided; len(d.Endpoints)+len(d.DropEndpoints)+len(d.BMCs) > 0 {
			t.Errorf("got %+v", d)
		}
		var p report.Projector
		again := w.loop.Input(time.Now())
		first, second := reportBy(&p, in), reportBy(&p, again)
		for path, d := range second.Documents {
			if first.Documents[path] != d {
				t.Errorf("%s was made anew", path)
			}
		}
	})
}

func TestNobodyIsSentAPasswordWhoHasTheAddressOfAnother(t *testing.T) {
	network(t, 2, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(1, "its own")
		w.commit(func(d *model.Desired) {
			d.Add(secretFor("slot-7", "secret of slot 7"))
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "slot-7"}, Spec: model.EndpointSpec{MACAddress: macOf(0), IP: ipOf(1)}})
		})
		pass(time.Hour)
		if w.lastTried(d) == "secret of slot 7" {
			t.Error("the password went to the device that has leased the address")
		}
		if why := w.bmcWhy("slot-7"); why.Reason != model.ReasonAddressLost || !strings.Contains(why.Message, macOf(1)) {
			t.Errorf("got %+v", why)
		}
	})
}

func TestADeviceThatIsRenamedIsKnownByTheSameCertificate(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.expect(2*time.Minute, 0, "Available Off")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) {
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "slot-7"}, Spec: model.EndpointSpec{MACAddress: macOf(0), IP: ipOf(0)}})
		})
		pass(time.Hour)
		if b := w.Observed().BMCs["slot-7"]; b == nil || b.Fingerprint != "f" {
			t.Errorf("got %+v", b)
		}
	})
}

func TestABMCThatIsNoLongerRecognisedHoldsUpNobodyAfterTheStoreWasLost(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.serve("web")
		files := w.files()
		w.database = nil
		w.loseStore(files)
		pass(time.Minute)
		if why := w.plan().ObserveOnly; why.Reason != "" {
			t.Errorf("got %+v", why)
		}
	})
}

func TestALeasesAddressOutlivesTheStore(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		w.plugIn(0, "calvin")
		w.rename(0, "slot-7-system-0")
		w.commit(func(d *model.Desired) {
			d.Add(&model.Endpoint{Meta: model.Meta{Name: "slot-7"}, Spec: model.EndpointSpec{MACAddress: macOf(0), IP: "192.0.2.200"}})
		})
		w.expect(2*time.Minute, 0, "Available Off")
		w.loseStore(w.files())
		pass(time.Minute)
		if rec := w.endpoint("slot-7"); rec.IP != ipOf(0) {
			t.Errorf("got %+v", rec)
		}
	})
}

func TestWhoAnswersAtANewAddressIsLookedAtBeforeAnythingIsDoneThere(t *testing.T) {
	network(t, 1, func(t *testing.T, w *loopWorld) {
		d := w.plugIn(0, "calvin")
		w.serve("web")
		w.stop()
		w.set(w.machine(0), model.PowerOff)
		w.lease(d, "192.0.2.99")
		in := w.loop.Input(time.Now())
		saved := plan.Plan(in)
		if len(saved.Decided.Endpoints) != 1 || len(saved.Readings) != 0 {
			t.Fatalf("first %+v, want the new address on record", saved.Decided)
		}
		w.observed.Endpoints[foundAs(0)] = saved.Decided.Endpoints[0]
		r := plan.Plan(w.loop.Input(time.Now().Add(time.Hour))) // every poll is due
		m := r.Readings[model.BMCName(foundAs(0))]
		if len(r.Moves) != 0 || m == nil || m.Target.Address != "192.0.2.99:443" || m.Known == nil {
			t.Errorf("servers %v, reading %+v; want a reading that checks who answers, and nothing else", r.Moves, m)
		}
		w.start()
	})
}
