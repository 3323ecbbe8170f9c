package merge

import (
	"slices"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestAServerWhoseRecordCannotBeReadIsListedWithTheClaimItServes(t *testing.T) {
	store, branch := recordsOf(), branchOf(5)
	branch.Unreadable = []string{"servers/s1.yaml", "servers/s2.yaml"}
	branch.Serves = map[model.ServerName]model.ClaimName{"s2": "default/web"}
	in := Input{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "a"}
	got := Records(in).Records.Fleet.Unreadable
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
	for _, u := range Records(in).Records.Fleet.Unreadable {
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
	in := Input{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "a"}
	got := Records(in).Records.Fleet.Unreadable
	if len(got) != 2 || got[0] != old || got[1].Server != "s2" {
		t.Errorf("got %+v", got)
	}
	if spare := store.Fleet.Unreadable[:2][1]; spare.Server != "" {
		t.Errorf("the store's own list was written to: %+v", spare)
	}
}

func TestABrokenFileOfTheStatusBranchLosesOnlyItself(t *testing.T) {
	files := map[string][]byte{
		"servers/a.yaml":   []byte("record: {name: a, state: Reserved, claim: default/web}"),
		"servers/b.yaml":   []byte("record: [1"),
		"servers/c.yaml":   []byte("status: {}"),
		"README.md":        []byte("# Fleet"),
		"revision.yaml":    []byte("record: {applied: {branch: main, commit: '1'}, sequence: 4}"),
		"endpoints/x.yaml": []byte("spec: {}"),
	}
	branch, problems := report.ReadBranch(files)
	none := model.NewObserved().Records
	r := Records(Input{Store: &none, Branch: &branch, Now: mergeNow, Seed: "seed"}).Records
	if len(problems) != 2 || len(r.Servers) != 1 || r.Servers["a"].Doubt == nil || r.Fleet.Sequence != 4 {
		t.Errorf("got %d problems %v, servers %v, fleet %+v", len(problems), problems, r.Servers, r.Fleet)
	}
}
