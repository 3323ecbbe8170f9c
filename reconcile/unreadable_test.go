package reconcile

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

func TestAServerWhoseRecordCannotBeReadIsListedWithTheClaimItServes(t *testing.T) {
	store, branch := recordsOf(), branchOf(5)
	branch.Unreadable = []string{"servers/s1.yaml", "servers/s2.yaml"}
	branch.Serves = map[model.ServerName]model.ClaimName{"s2": "default/web"}
	in := MergeInput{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "a"}
	got := Merge(in).Records.Fleet.Unreadable
	tokens := make(map[string]bool)
	for i := range got {
		tokens[got[i].Token] = true
		if len(got[i].Token) != 26 {
			t.Errorf("%s has token %q", got[i].Server, got[i].Token)
		}
		got[i].Token = ""
	}
	want := []model.UnreadableRecord{{Server: "s1", Since: mergeNow}, {Server: "s2", Claim: "default/web", Since: mergeNow}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	in.Seed = "b"
	for _, u := range Merge(in).Records.Fleet.Unreadable {
		tokens[u.Token] = true
	}
	if len(tokens) != 4 {
		t.Errorf("two servers in two merges have the tokens %v, which can be known beforehand", tokens)
	}
}

func TestAServerThatStaysUnreadableKeepsItsTokenAndItsTime(t *testing.T) {
	store, branch := recordsOf(), branchOf(5)
	branch.Unreadable = []string{"servers/s1.yaml", "servers/s2.yaml"}
	old := model.UnreadableRecord{Server: "s1", Claim: "default/web", Since: mergeNow.Add(-time.Hour), Token: "known"}
	store.Fleet = model.FleetRecord{Version: at(5, 90), Unreadable: append(make([]model.UnreadableRecord, 0, 9), old)}
	in := MergeInput{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "a"}
	got := Merge(in).Records.Fleet.Unreadable
	if len(got) != 2 || got[0] != old || got[1].Server != "s2" {
		t.Errorf("got %+v", got)
	}
	if spare := store.Fleet.Unreadable[:2][1]; spare.Server != "" {
		t.Errorf("the store's own list was written to: %+v", spare)
	}
}

// What a branch shows of claims names servers also where a record cannot be read.
func TestTheFilesOfClaimsNameTheirServers(t *testing.T) {
	b, _ := ReadBranch(map[string][]byte{
		"serverclaims/default/web.yaml": []byte("record: {name: default/web}\nstatus: {server: s1}\n"),
		"serverclaims/default/db.yaml":  []byte("record: {name: 7}\nstatus: {server: s2}\n"),
		"serverclaims/default/new.yaml": []byte("record: {name: default/new}\nstatus: {phase: Pending}\n"),
		"serverclaims/default/odd.yaml": []byte("record: {name: default/odd}\nstatus: [s4]\n"),
		"servers/s5.yaml":               []byte("status: {server: s5}\n"),
	})
	if len(b.Serves) != 2 || b.Serves["s1"] != "default/web" || b.Serves["s2"] != "default/db" {
		t.Errorf("got %v", b.Serves)
	}
	if b.Claims["default/odd"] == nil {
		t.Error("a claim's record is lost with a status that cannot be read")
	}
}

// While a server is known by its name alone, any system that is seen for the first time
// may be that server, and its claim may be served already.
func TestWhatMayBeAnUnreadableServerIsLeftAloneUntilItIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.observed.Fleet.Unreadable = []model.UnreadableRecord{
			{Server: "lost", Claim: "default/web", Since: time.Now(), Token: "one"},
			{Server: "lost too", Since: time.Now(), Token: "two"},
		}
		w.desired.Add(claim("web"))
		w.start()
		defer w.stop()
		left := func(when, token string) {
			t.Helper()
			pass(time.Hour)
			if o := w.Observed(); len(o.Servers) > 0 || w.seen(0).ons > 0 {
				t.Errorf("%s: the system is taken for a new server: %+v", when, o.Servers)
			}
			f := newFleet(w.loop.Input(time.Now()))
			if said := f.bmcs[0].problems; len(said) != 1 || !strings.Contains(said[0], "Ingot-Approve: "+token) {
				t.Errorf("%s: its BMC says %q", when, said)
			}
		}
		left("at first", "one")
		if why := newFleet(w.loop.Input(time.Now())).withheldClaim("default/web"); why.Reason != string(model.DoubtUnreadable) || !strings.Contains(why.Message, "Ingot-Approve: one") {
			t.Errorf("the claim says %+v", why)
		}
		w.commit(func(d *model.Desired) { d.Approvals = []string{"one"} })
		left("with one of two given up", "two")
		w.commit(func(d *model.Desired) { d.Approvals = []string{"two"} })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if left := w.Observed().Fleet.Unreadable; len(left) > 0 {
			t.Errorf("still listed are %+v", left)
		}
	})
}

func TestAnUnreadableServerThatIsKnownAgainIsNotListed(t *testing.T) {
	in := &Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: mergeNow, Policy: DefaultPolicy()}
	in.Observed.Servers["s1"] = copyOf(at(5, 1), model.StateAvailable, "")
	in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "s1", Token: "one"}, {Server: "s2", Token: "two"}}
	got := Plan(in).Decided.Fleet
	if got == nil || len(got.Unreadable) != 1 || got.Unreadable[0].Server != "s2" {
		t.Errorf("got %+v", got)
	}
	if len(in.Observed.Fleet.Unreadable) != 2 || in.Observed.Fleet.Unreadable[0].Server != "s1" {
		t.Errorf("the record that is in force was changed: %+v", in.Observed.Fleet.Unreadable)
	}
	in.ObserveOnly = "waiting"
	if got := Plan(in).Decided.Fleet; got != nil {
		t.Errorf("one that only observes decided %+v", got)
	}
}
