package bmcs

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// The readings of these tests are planned at plannedAt and end at settleNow.
var (
	settleNow = time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)
	plannedAt = settleNow.Add(-time.Second)
)

type bmcChange = func(*model.BMCRecord)

// bmcOf is the record of BMC b1.
func bmcOf(changes ...bmcChange) *model.BMCRecord {
	rec := &model.BMCRecord{Name: "b1", Address: "192.0.2.1:443", Fingerprint: "f", BMCScratch: model.BMCScratch{Since: plannedAt}}
	for _, change := range changes {
		change(rec)
	}
	return rec
}

// refusing is a BMC that failed several times in a row, the last time just now.
func refusing(times int, reason model.Reason, text string, since time.Time) bmcChange {
	return func(rec *model.BMCRecord) {
		rec.Failures, rec.Reason, rec.LastError, rec.Since = times, reason, text, since
		rec.NotBefore = settleNow.Add(policy.Backoff(rec.Name, times, policy.Default()))
	}
}

func TestReadingSettles(t *testing.T) {
	read := &model.BMCFacts{Name: "b1", UUID: "u1", Fingerprint: "new"}
	device := model.EndpointRecord{Name: "b1", Tried: []string{"c0"}, RefusedAt: []time.Time{plannedAt}}
	accepted, refused := device, device
	accepted.Credential = "c1"
	refused.Tried, refused.RefusedAt = []string{"c0", "c1"}, []time.Time{plannedAt, settleNow}

	failed := func(reason model.Reason, text string) proposal.Answer {
		return proposal.Answer{Failed: &proposal.Failure{Kind: proposal.FailureUnsure, Reason: reason, Text: text}}
	}
	answered, down := proposal.Answer{BMC: read}, failed(model.ReasonConnectionFailed, "refused")
	denied := failed(model.ReasonAuthenticationFailed, "wrong password")
	stopped := failed(model.ReasonAuthenticationFailed, "context canceled")
	stopped.Failed.Kind = proposal.FailureStopped

	unpinned := func(rec *model.BMCRecord) { rec.Fingerprint = "" }
	pinned := func(rec *model.BMCRecord) { rec.Fingerprint = "new" }
	sinceNow := func(rec *model.BMCRecord) { rec.Since = settleNow }
	sinceUnknown := func(rec *model.BMCRecord) { rec.Since = time.Time{} }
	retried := func(rec *model.BMCRecord) { rec.HandledOperation = "retry#1" }
	elsewhere := func(rec *model.BMCRecord) { rec.Address = "192.0.2.9:443" }
	silent := func(times int) bmcChange { return refusing(times, model.ReasonConnectionFailed, "earlier", plannedAt) }

	reads := func(rec *model.BMCRecord, devices ...*model.EndpointRecord) proposal.Settled {
		return proposal.Settled{Outcome: proposal.MoveDone, News: true, Changes: proposal.Changes{
			BMCs: []*model.BMCRecord{rec}, BMCFacts: []*model.BMCFacts{read}, Endpoints: devices,
		}}
	}
	fails := func(err string, rec *model.BMCRecord, devices ...*model.EndpointRecord) proposal.Settled {
		return proposal.Settled{
			Outcome: proposal.MoveFailed, Err: err, News: true, Changes: proposal.Changes{BMCs: []*model.BMCRecord{rec}, Endpoints: devices},
		}
	}
	isDown := refusing(1, model.ReasonConnectionFailed, "refused", settleNow)
	isDenied := refusing(1, model.ReasonAuthenticationFailed, "wrong password", settleNow)

	for name, tc := range map[string]struct {
		old, then *model.BMCRecord // then: nil = as it was
		known     *model.BMCFacts
		trial     bool // a credential of the MAC prefix database is tried
		answer    proposal.Answer
		want      proposal.Settled
	}{
		"the certificate of the first answer is pinned":   {then: bmcOf(unpinned), answer: answered, want: reads(bmcOf(pinned, sinceNow))},
		"another answer changes no certificate and time":  {old: bmcOf(), answer: answered, want: reads(bmcOf())},
		"an answer after failures makes the BMC usable":   {old: bmcOf(silent(1)), answer: answered, want: reads(bmcOf(sinceNow))},
		"a first answer after the store was lost":         {old: bmcOf(sinceUnknown), then: bmcOf(sinceUnknown), answer: answered, want: reads(bmcOf(sinceNow))},
		"a first failure is followed by a pause":          {old: bmcOf(), answer: down, want: fails("refused", bmcOf(isDown))},
		"further failures keep the first time and reason": {old: bmcOf(silent(1)), answer: down, want: fails("refused", bmcOf(silent(2)))},
		"an unknown error counts as a failed connection": {
			old: bmcOf(), answer: failed("", "EOF"), want: fails("EOF", bmcOf(refusing(1, model.ReasonConnectionFailed, "EOF", settleNow))),
		},
		"a retry that fails is handled, and the certificate is dropped": {
			old: bmcOf(), then: bmcOf(unpinned, retried), answer: down, want: fails("refused", bmcOf(unpinned, isDown, retried)),
		},
		"another BMC at the new address is refused, and the address is not kept": {
			old: bmcOf(elsewhere), then: bmcOf(), known: &model.BMCFacts{Name: "b1", UUID: "u0"}, answer: answered,
			want: fails(identityFailure, bmcOf(refusing(1, model.ReasonIdentityMismatch, identityFailure, settleNow), elsewhere)),
		},
		"an accepted credential is that of the device": {old: bmcOf(), trial: true, answer: answered, want: reads(bmcOf(), &accepted)},
		"a refused credential is not tried again":      {old: bmcOf(), trial: true, answer: denied, want: fails("wrong password", bmcOf(isDenied), &refused)},
		"a credential without an answer is kept":       {old: bmcOf(), trial: true, answer: down, want: fails("refused", bmcOf(isDown))},
		"refused credentials of Git change no device":  {old: bmcOf(), answer: denied, want: fails("wrong password", bmcOf(isDenied))},
		"a stop changes nothing":                       {old: bmcOf(), trial: true, answer: stopped, want: proposal.Settled{Outcome: proposal.MoveStopped, Err: "context canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			m := &Reading{Target: model.BMCTarget{Address: "192.0.2.1:443"}, Then: cmp.Or(tc.then, tc.old), Known: tc.known, old: tc.old, policy: &p}
			if tc.trial {
				m.Credential, m.device = "c1", &device
			}
			if diff := gocmp.Diff(tc.want, m.Settle(tc.answer, settleNow)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const identityFailure = "at 192.0.2.1:443 answers the BMC with UUID u1 and serial number unknown, " +
	"and not the one with UUID u0 and serial number unknown: nothing is done to its servers until that one answers; " +
	"if it was replaced, set annotation metal.ironcore.dev/operation: retry#1 on BMC b1 in Git"

// inputOf is an input with these manifests, and devices that DHCP found.
func inputOf(objects []model.Object, devices ...model.EndpointFacts) *Input {
	p := policy.Default()
	in := &Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Policy: &p, Now: settleNow}
	for _, o := range objects {
		in.Desired.Add(o)
	}
	for _, facts := range devices {
		in.Observed.EndpointFacts[facts.MACAddress] = &facts
	}
	return in
}

// addresses are the MAC and IP address of each endpoint by name.
func addresses(in *Input) map[string][2]string {
	all := make(map[string][2]string)
	for _, e := range Load(in).Endpoints() {
		all[e.Name] = [2]string{e.MAC, e.IP}
	}
	return all
}

func TestLastDeviceToGetAnAddressHasIt(t *testing.T) {
	const a, b, c, d, e = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03", "02:00:00:00:00:04", "02:00:00:00:00:05"
	want := map[string][2]string{
		"oob-020000000001": {a, ""}, "oob-020000000002": {b, "10.0.0.1"}, "oob-020000000003": {c, ""},
		"oob-020000000004": {d, "10.0.0.2"}, "oob-020000000005": {e, ""},
	}
	device := func(mac, ip string, since time.Time) model.EndpointFacts {
		return model.EndpointFacts{MACAddress: mac, IP: ip, Network: "oob", Since: since}
	}
	for range 20 { // the order of a map is random
		got := addresses(inputOf(nil, device(a, "10.0.0.1", plannedAt), device(b, "10.0.0.1", settleNow), device(c, "", plannedAt),
			device(d, "10.0.0.2", plannedAt), device(e, "10.0.0.2", plannedAt)))
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

func TestEndpointByReservedAddress(t *testing.T) {
	endpoint := func(name, mac, ip string) model.Object {
		return &model.Endpoint{Meta: model.Meta{Name: name}, Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	in := inputOf([]model.Object{
		endpoint("port-7", "", "192.0.2.7"), endpoint("port-8", "", "192.0.2.8"), endpoint("port-9", "", "192.0.2.9"),
		endpoint("own", "02:00:00:00:00:02", "192.0.2.99"),
	}, model.EndpointFacts{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.7", Reserved: "port-7"},
		model.EndpointFacts{MACAddress: "02:00:00:00:00:02", IP: "192.0.2.8", Reserved: "port-8"},
		model.EndpointFacts{MACAddress: "02:00:00:00:00:03", IP: "192.0.2.9"}) // had it before the reservation
	want := map[string][2]string{
		"port-7": {"02:00:00:00:00:01", "192.0.2.7"}, "port-8": {"", "192.0.2.8"}, "port-9": {"", "192.0.2.9"},
		"own": {"02:00:00:00:00:02", "192.0.2.8"}, "endpoint-020000000003": {"02:00:00:00:00:03", "192.0.2.9"},
	}
	if diff := gocmp.Diff(want, addresses(in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDeviceWithSeveralEndpoints: a device is the Endpoint with its leased address, else the one that a BMC names. The others
// name it.
func TestDeviceWithSeveralEndpoints(t *testing.T) {
	const mac = "02:00:00:00:00:01"
	endpoint := func(name, ip string) model.Object {
		return &model.Endpoint{Meta: model.Meta{Name: name}, Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	git := []model.Object{endpoint("a", "192.0.2.1"), endpoint("b", "198.51.100.1"), endpoint("c", "fd00::1")}
	names := func(name string) model.Object {
		return &model.BMC{Meta: model.Meta{Name: "b1"}, Spec: model.BMCSpec{EndpointRef: &model.LocalRef{Name: name}}}
	}
	leased := func(ip string) []model.EndpointFacts {
		return []model.EndpointFacts{{MACAddress: mac, IP: ip, Network: "oob"}}
	}
	for name, c := range map[string]struct {
		objects []model.Object
		facts   []model.EndpointFacts
		want    string
	}{
		"nothing is known":              {git, nil, "a"},
		"a BMC names one":               {append(git, names("b")), nil, "b"},
		"it has the address of one":     {git, leased("fd00::1"), "c"},
		"it has another than BMCs name": {append(git, names("b")), leased("192.0.2.1"), "a"},
		"it has none of the addresses":  {append(git, names("c")), leased("203.0.113.1"), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(c.objects, c.facts...)
			s := Load(in)
			all := s.Endpoints()
			if len(all) != 3 {
				t.Fatalf("%d Endpoints, want all of Git", len(all))
			}
			for _, e := range all {
				if is := e.Name == c.want; is != (e.Record != nil) || is == (e.Why.Reason == model.ReasonShadowedBy && e.DescribedBy == "") || e.MAC != mac {
					t.Errorf("%s: record %v, MAC address %s, %s", e.Name, e.Record != nil, e.MAC, e.Why.Reason)
				}
			}
			if b := s.Named("b1"); b != nil && (b.Endpoint == nil || b.Endpoint.Name != c.want) {
				t.Errorf("the BMC has %v", b.Endpoint)
			}
		})
	}
}

func TestSecretOfFoundBMC(t *testing.T) {
	in := inputOf(nil)
	in.Policy.Tenants = fleettest.Tenants
	for tenant, want := range map[string]bool{"ops": true, "beta": true, "gamma": false, "": false} {
		in.Desired.Add(&model.BMCSecret{Meta: model.Meta{Name: "bmc-1", Tenant: tenant}})
		if got := in.foundSecret("bmc-1"); (got != nil) != want {
			t.Errorf("of %q: got %v", tenant, got)
		}
	}
	in.Policy.Tenants = nil
	if in.foundSecret("bmc-1") == nil || in.foundSecret("bmc-2") != nil {
		t.Error("without tenants it is not the one of its name")
	}
}

// A BMC that shows a UUID one day, as after an update of its firmware, has to show the one
// that Git gave its machine.
func TestMachineThatShowsItsUUIDLater(t *testing.T) {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{SystemURI: "/1", UUID: fleettest.GivenUUID, Board: &model.Board{SerialNumber: "S1"}}}
	for uuid, want := range map[string]Place{fleettest.GivenUUID: ShownItself, "00000000-0000-4000-8000-00000000000b": ShownOther} {
		facts := &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", UUID: uuid}}}
		if got := ShownAs(facts, rec); got != want {
			t.Errorf("one that shows %s is taken for %d, want %d", uuid, got, want)
		}
	}
}
