package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
)

var mergeNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at makes a version.
func at(fence, seq uint64) model.Version { return model.Version{Fence: fence, Seq: seq} }

// copyOf is a copy of server s1's record.
func copyOf(v model.Version, state model.ServerState, claim model.ClaimName, edit ...func(*model.ServerRecord)) *model.ServerRecord {
	r := &model.ServerRecord{Version: v, Name: "s1", State: state, Claim: claim}
	for _, e := range edit {
		e(r)
	}
	return r
}

func recordsOf(servers ...*model.ServerRecord) model.Records {
	r := model.NewObserved().Records
	for _, s := range servers {
		if s != nil {
			r.Servers[s.Name] = s
		}
	}
	return r
}

// store5 was published last by leader 5, as of version 5.100.
var store5 = model.Published{Commit: "c5", Version: at(5, 100), Fence: 5, Holder: model.Holder{ID: "h5"}}

// branchOf is a branch that the leader of fence wrote, whose ID is as store5's.
func branchOf(fence uint64, servers ...*model.ServerRecord) *report.BranchRecords {
	b := &report.BranchRecords{
		Records: recordsOf(servers...), Head: "head", Fence: fence, MirrorFirst: true, Holder: model.Holder{ID: fmt.Sprint("h", fence)},
	}
	b.Version = slices.MaxFunc(append(b.Versions(), at(5, 100)), model.Version.Compare)
	return b
}

// applied is the store once it took over what was merged.
func applied(store *model.Records, r Result) *model.Records {
	out := recordsOf()
	for _, from := range []*model.Records{store, &r.Records} {
		maps.Copy(out.Servers, from.Servers)
		maps.Copy(out.BMCs, from.BMCs)
		maps.Copy(out.Claims, from.Claims)
		maps.Copy(out.Endpoints, from.Endpoints)
	}
	out.Fleet = r.Records.Fleet
	return &out
}

// reasons are what a merge told, without repetition.
func reasons(r Result) string {
	var all []string
	for _, e := range r.Events {
		all = append(all, string(e.Reason))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// again merges once more and fails if that changes anything.
func again(t *testing.T, in Input, r Result) {
	t.Helper()
	in.Store, in.Seed, in.Now = applied(in.Store, r), in.Seed+"!", in.Now.Add(time.Minute)
	in.StoreUnreadable, in.Published = nil, r.Published
	twice := Records(in)
	if n := len(twice.Records.Servers) + len(twice.Records.BMCs) + len(twice.Records.Claims) + len(twice.Records.Endpoints); n > 0 ||
		!reflect.DeepEqual(twice.Records.Fleet, in.Store.Fleet) {
		t.Errorf("merging again changes %d records, and the fleet's to %+v: %+v", n, twice.Records.Fleet, twice.Events)
	}
}

func TestTheNewestRecordOfAServerWins(t *testing.T) {
	const web, db = "default/web", "default/db"
	reserved, available, cleanup := model.StateReserved, model.StateAvailable, model.StateCleanup
	unreadableThere := func(b *report.BranchRecords) *report.BranchRecords {
		b.Unreadable = []string{"servers/s1.yaml"}
		return b
	}
	// later is a branch that shows more than the store ever knew.
	later := func(b *report.BranchRecords) *report.BranchRecords {
		b.Version = at(6, 200)
		return b
	}
	// setBack is a branch that shows less than it is known to have shown.
	setBack := func(s1 *model.ServerRecord) *report.BranchRecords {
		b := branchOf(4, s1)
		b.Version = at(4, 12)
		return b
	}
	by := func(holder string, b *report.BranchRecords) *report.BranchRecords {
		b.Holder.ID = holder
		return b
	}
	with := func(b *report.BranchRecords, more ...*model.ServerRecord) *report.BranchRecords {
		for _, r := range more {
			b.Servers[r.Name] = r
		}
		return b
	}
	other := func(v model.Version) *model.ServerRecord {
		return &model.ServerRecord{Version: v, Name: "s2", State: available}
	}
	type want struct {
		version model.Version // zero: it was kept as it is in the store
		state   model.ServerState
		claim   model.ClaimName
		doubt   model.DoubtReason
		told    string
	}
	tests := map[string]struct {
		store      *model.ServerRecord
		branch     *report.BranchRecords
		unreadable bool // in the store
		want       want
		names      []model.ServerName // that cannot be read
	}{
		"the same version is the store's": {
			store: copyOf(at(5, 90), reserved, web), branch: branchOf(5, copyOf(at(5, 90), reserved, web)),
			want: want{state: reserved, claim: web},
		},
		"what only the store has newer stays as it was": {
			store: copyOf(at(5, 120), reserved, web), branch: branchOf(5, copyOf(at(5, 90), available, "")),
			want: want{state: reserved, claim: web},
		},
		"what is newer on the branch comes from there: the store was put back": {
			store: copyOf(at(5, 90), available, ""), branch: branchOf(5, copyOf(at(5, 150), reserved, web)),
			want: want{at(5, 150), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"and also if its own unpublished change is older than the branch of the same Ingot": {
			store: copyOf(at(5, 110), reserved, db), branch: branchOf(5, copyOf(at(5, 150), reserved, web)),
			want: want{at(5, 150), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"and also if it was put back by more than one leader": {
			store: copyOf(at(5, 90), reserved, db), branch: branchOf(9, copyOf(at(8, 150), reserved, web)),
			want: want{at(8, 150), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"an unpublished change that the branch's writer knew is merely older": {
			store: copyOf(at(5, 110), reserved, db), branch: with(branchOf(6, copyOf(at(6, 130), reserved, web)), other(at(5, 115))),
			want: want{at(6, 130), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"what another Ingot changed and this one did not comes from the branch, however few its writes": {
			store: copyOf(at(5, 90), available, ""), branch: branchOf(6, copyOf(at(6, 3), reserved, web)),
			want: want{at(6, 3), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"what this Ingot changed and another did not stays as it was": {
			store: copyOf(at(5, 110), reserved, web), branch: branchOf(6, copyOf(at(4, 90), available, "")),
			want: want{state: reserved, claim: web},
		},
		"what the branch's writer saw is of its line, even if that record is gone": {
			store: copyOf(at(8, 160), reserved, web), branch: func() *report.BranchRecords {
				b := branchOf(9, copyOf(at(7, 130), available, ""))
				b.Version = at(8, 165)
				return b
			}(),
			want: want{state: reserved, claim: web},
		},
		"a leader that was killed before it noted its push goes on": {
			store: copyOf(at(6, 160), reserved, web), branch: branchOf(6, copyOf(at(6, 130), available, "")),
			want: want{state: reserved, claim: web},
		},
		"and so does one that was killed after another that was": {
			store: copyOf(at(7, 160), reserved, web), branch: branchOf(7, copyOf(at(6, 130), available, "")),
			want: want{state: reserved, claim: web},
		},
		"two copies by one leader are in order, whoever published after": {
			store: copyOf(at(6, 160), reserved, web), branch: branchOf(9, copyOf(at(6, 130), available, "")),
			want: want{state: reserved, claim: web},
		},
		"a branch that does not say who wrote it is by the last that did": {
			store: copyOf(at(5, 110), reserved, db), branch: by("", branchOf(5, copyOf(at(5, 130), reserved, web))),
			want: want{at(5, 130), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"a Disputed server stays so when the copies agree by chance": {
			store: copyOf(at(5, 110), reserved, web, func(r *model.ServerRecord) {
				r.Doubt = &model.Doubt{
					Reason:       model.DoubtDisputed,
					Alternatives: []model.Alternative{{Token: "t", State: reserved, Claim: web}, {Token: "u", State: available}},
				}
			}),
			branch: branchOf(6, copyOf(at(6, 3), reserved, web)),
			want:   want{at(6, 3), reserved, web, model.DoubtDisputed, "Disputed"},
		},
		"a branch that was set back disputes nothing": {
			store: copyOf(at(0, 0), reserved, web), branch: setBack(copyOf(at(0, 0), available, "")),
			want: want{state: reserved, claim: web, told: "StatusBranchSetBack"},
		},
		"what the store has lost comes from the branch": {
			branch: branchOf(5, copyOf(at(5, 90), reserved, web)),
			want:   want{at(5, 90), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"what the store cannot read comes from the branch": {
			branch: branchOf(5, copyOf(at(5, 90), reserved, web)), unreadable: true,
			want: want{at(5, 90), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"what is missing on the branch stays": {
			store: copyOf(at(5, 90), reserved, web), branch: branchOf(5),
			want: want{state: reserved, claim: web},
		},
		"what cannot be read on the branch stays": {
			store: copyOf(at(5, 90), reserved, web), branch: unreadableThere(branchOf(5)),
			want: want{state: reserved, claim: web},
		},
		"what an older store has and the branch cannot be read for is disputed": {
			store: copyOf(at(5, 90), available, ""), branch: later(unreadableThere(branchOf(6))),
			want: want{at(5, 90), available, "", model.DoubtDisputed, "Disputed"},
		},
		"and so is what the branch lacks": {
			store: copyOf(at(5, 90), reserved, web), branch: later(branchOf(6)),
			want: want{at(5, 90), reserved, web, model.DoubtDisputed, "Disputed"},
		},
		"and what both have alike may be older than what is lost": {
			store: copyOf(at(5, 90), reserved, web), branch: later(branchOf(5, copyOf(at(5, 90), reserved, web))),
			want: want{at(5, 90), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"what neither can be read from is named": {
			branch: unreadableThere(branchOf(5)), unreadable: true,
			want: want{told: "RecordUnreadable"}, names: []model.ServerName{"s1"},
		},
		"what the store lacks and the branch cannot be read for is named": {
			branch: unreadableThere(branchOf(5)),
			want:   want{told: "RecordUnreadable"}, names: []model.ServerName{"s1"},
		},
		"what the store cannot read and the branch lacks is named": {
			branch: branchOf(5), unreadable: true,
			want: want{told: "RecordUnreadable"}, names: []model.ServerName{"s1"},
		},
		"changed here and elsewhere, the branch newer: its copy, disputed": {
			store: copyOf(at(5, 110), reserved, web), branch: branchOf(6, copyOf(at(6, 3), reserved, db)),
			want: want{at(6, 3), reserved, db, model.DoubtDisputed, "Disputed"},
		},
		"changed here and elsewhere, the store newer: its copy, disputed": {
			store: copyOf(at(7, 110), reserved, web), branch: branchOf(6, copyOf(at(6, 3), available, "")),
			want: want{at(7, 110), reserved, web, model.DoubtDisputed, "Disputed"},
		},
		"changed here and elsewhere to another state for one claim: disputed": {
			store: copyOf(at(5, 110), reserved, web), branch: branchOf(6, copyOf(at(6, 3), model.StateReleased, web)),
			want: want{at(6, 3), model.StateReleased, web, model.DoubtDisputed, "Disputed"},
		},
		"changed here and elsewhere to the same: the higher version in doubt": {
			store: copyOf(at(5, 110), reserved, web), branch: branchOf(6, copyOf(at(6, 3), reserved, web)),
			want: want{at(6, 3), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"changed here and elsewhere to the same, the store newer: in doubt too": {
			store: copyOf(at(7, 110), reserved, web), branch: branchOf(6, copyOf(at(6, 3), reserved, web)),
			want: want{at(7, 110), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"a server that is out of service where the other copy has it in service is not disputed": {
			store:  copyOf(at(5, 110), model.StateMaintenance, web, func(r *model.ServerRecord) { r.Back = reserved }),
			branch: branchOf(6, copyOf(at(6, 3), reserved, web)),
			want:   want{at(6, 3), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"another number is another leader, even if it does not say who it is": {
			store: copyOf(at(5, 110), reserved, web), branch: by("", branchOf(6, copyOf(at(6, 3), reserved, db))),
			want: want{at(6, 3), reserved, db, model.DoubtDisputed, "Disputed"},
		},
		"two leaders with one number are told apart by who they are": {
			store: copyOf(at(5, 160), reserved, web), branch: by("somebody else", branchOf(5, copyOf(at(5, 130), reserved, db))),
			want: want{at(5, 160), reserved, web, model.DoubtDisputed, "Disputed"},
		},
		"two copies of one version that contradict each other are disputed": {
			store: copyOf(at(5, 90), reserved, web), branch: branchOf(5, copyOf(at(5, 90), reserved, db)),
			want: want{at(5, 90), reserved, web, model.DoubtDisputed, "Disputed"},
		},
		"records from before there were versions are disputed if they differ": {
			store: copyOf(at(0, 0), reserved, web), branch: branchOf(5, copyOf(at(0, 0), available, "")),
			want: want{state: reserved, claim: web, doubt: model.DoubtDisputed, told: "Disputed"},
		},
		"and pass if they do not": {
			store: copyOf(at(0, 0), reserved, web), branch: branchOf(5, copyOf(at(0, 0), reserved, web)),
			want: want{state: reserved, claim: web},
		},
		"what has a version is newer than what has none": {
			store: copyOf(at(0, 0), available, ""), branch: branchOf(5, copyOf(at(5, 7), reserved, web)),
			want: want{at(5, 7), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"Cleanup in the store and an older Reserved on the branch is a Cleanup": {
			store: copyOf(at(5, 110), cleanup, ""), branch: branchOf(5, copyOf(at(5, 90), reserved, web)),
			want: want{state: cleanup},
		},
		"Reserved in the store and a newer Cleanup on the branch is a Cleanup": {
			store: copyOf(at(5, 50), reserved, web), branch: branchOf(5, copyOf(at(5, 90), cleanup, "")),
			want: want{at(5, 90), cleanup, "", model.DoubtFromStatusBranch, "FromStatusBranch"},
		},
		"a branch that was set back changes nothing": {
			store: copyOf(at(5, 90), reserved, web), branch: setBack(copyOf(at(4, 10), available, "")),
			want: want{state: reserved, claim: web, told: "StatusBranchSetBack"},
		},
		"a branch that is gone changes nothing": {
			store: copyOf(at(5, 120), reserved, web),
			want:  want{state: reserved, claim: web, told: "StatusBranchSetBack"},
		},
		"a branch that was set back fills a hole all the same": {
			branch: setBack(copyOf(at(4, 10), reserved, web)),
			want:   want{at(4, 10), reserved, web, model.DoubtFromStatusBranch, "FromStatusBranch StatusBranchSetBack"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			store := recordsOf(tc.store)
			store.Fleet.Version = at(5, 1)
			in := Input{Store: &store, Published: store5, Branch: tc.branch, Now: mergeNow, Seed: "seed"}
			if tc.unreadable {
				in.StoreUnreadable = []report.RecordName{{Kind: report.RecordServer, Name: "s1"}}
			}
			r := Records(in)
			var unreadable []model.ServerName
			for _, u := range r.Records.Fleet.Unreadable {
				unreadable = append(unreadable, u.Server)
			}
			if !slices.Equal(unreadable, tc.names) {
				t.Errorf("unreadable: %v, want %v", unreadable, tc.names)
			}
			merged := applied(&store, r)
			again(t, in, r)
			got := merged.Servers["s1"]
			if got == nil {
				if tc.want.state != "" || reasons(r) != tc.want.told {
					t.Fatalf("there is no record, told %q: %+v", reasons(r), r.Events)
				}
				return
			}
			if tc.want.doubt == "" && got != tc.store {
				t.Errorf("the store's record was changed: %+v", got)
			}
			version := tc.want.version
			if version.IsZero() && tc.store != nil {
				version = tc.store.Version
			}
			var doubt model.DoubtReason
			if got.Doubt != nil {
				doubt = got.Doubt.Reason
			}
			wanted := tc.want
			wanted.version = version
			if is := (want{got.Version, got.State, got.Claim, doubt, reasons(r)}); is != wanted {
				t.Errorf("got %+v, want %+v", is, wanted)
			}
		})
	}
}

func TestABranchIsSetBackIfItLacksWhatItShowed(t *testing.T) {
	published := model.Published{Commit: "c7", Version: at(5, 100), Fence: 7}
	for name, tc := range map[string]struct {
		fence   uint64
		version model.Version
		want    string
	}{
		"it is as it was":                           {7, at(5, 100), ""},
		"it went on":                                {8, at(8, 120), ""},
		"an earlier leader's head":                  {6, at(5, 100), "StatusBranchSetBack"},
		"an older head of the same leader":          {7, at(5, 99), "StatusBranchSetBack"},
		"a later leader that began with an old one": {8, at(4, 300), "StatusBranchSetBack"},
	} {
		t.Run(name, func(t *testing.T) {
			store, b := recordsOf(), branchOf(tc.fence)
			store.Fleet.Version, b.Version = at(5, 1), tc.version
			if got := reasons(Records(Input{Store: &store, Published: published, Branch: b, Now: mergeNow})); got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAMergeSaysWhyItTakesTheBranchsCopy(t *testing.T) {
	for want, lost := range map[string][]report.RecordName{
		"the store has no record of it":          nil,
		"its record in the store cannot be read": {{Kind: report.RecordServer, Name: "s1"}},
	} {
		store := recordsOf()
		store.Fleet.Version = at(5, 1)
		r := Records(Input{
			Store: &store, Published: store5, StoreUnreadable: lost,
			Branch: branchOf(5, copyOf(at(5, 90), model.StateAvailable, "")), Now: mergeNow,
		})
		if len(r.Events) != 1 || !strings.HasPrefix(r.Events[0].Message, want+", so it is taken") {
			t.Errorf("told %+v, want %q", r.Events, want)
		}
	}
}

func TestADisputedServerListsWhatItsCopiesSay(t *testing.T) {
	store := recordsOf(copyOf(at(5, 110), model.StateReserved, "default/web"))
	in := Input{Store: &store, Published: store5, Branch: branchOf(6, copyOf(at(6, 3), model.StateAvailable, "")), Now: mergeNow, Seed: "a"}
	d := Records(in).Records.Servers["s1"].Doubt
	for i := range d.Alternatives {
		if got := d.Alternatives[i].Token; len(got) != 26 || !strings.Contains(d.Message, got) {
			t.Errorf("token %q is not of 26 characters, or the message lacks it: %s", got, d.Message)
		}
		d.Alternatives[i].Token = ""
	}
	want := []model.Alternative{
		{From: "store", State: model.StateReserved, Claim: "default/web"},
		{From: "status branch", State: model.StateAvailable},
	}
	if !slices.Equal(d.Alternatives, want) {
		t.Errorf("got %+v, want %+v", d.Alternatives, want)
	}
	one := Records(in).Records.Servers["s1"].Doubt.Alternatives[0].Token
	in.Seed = "b"
	if two := Records(in).Records.Servers["s1"].Doubt.Alternatives[0].Token; one == two {
		t.Error("the token does not depend on the seed, so it can be known beforehand")
	}
}

func TestAClaimOfTwoServersIsDisputedOnBoth(t *testing.T) {
	first, second := copyOf(at(5, 50), model.StateReserved, "default/web"), copyOf(at(5, 150), model.StateReserved, "default/web")
	second.Name = "s2"
	store := recordsOf(first)
	in := Input{Store: &store, Published: store5, Branch: branchOf(5, second), Now: mergeNow, Seed: "seed"}
	r := Records(in)
	for name, from := range map[model.ServerName]string{"s1": "store", "s2": "status branch"} {
		rec := r.Records.Servers[name]
		if rec == nil || !plan.Disputed(rec) || rec.Claim != "default/web" {
			t.Errorf("%s is %+v, want it Disputed, with its claim", name, rec)
			continue
		}
		var says []string
		for _, a := range rec.Doubt.Alternatives {
			says = append(says, fmt.Sprint(a.From, " ", a.State, " ", a.Claim))
		}
		if want := []string{from + " Reserved default/web", "neither Cleanup "}; !slices.Equal(says, want) {
			t.Errorf("%s has the alternatives %q, want %q", name, says, want)
		}
	}
	again(t, in, r)
}

func TestAServerThatIsTakenFromItsClaimContestsItWithNobody(t *testing.T) {
	for _, state := range []model.ServerState{model.StateReleased, model.StateReserved} { // kept, or still to be released
		had, has := copyOf(at(5, 50), state, "default/web"), copyOf(at(5, 150), model.StateReserved, "default/web")
		had.Release = &model.Release{Claim: "default/web"}
		has.Name = "s2"
		store := recordsOf(had)
		r := Records(Input{Store: &store, Published: store5, Branch: branchOf(5, had, has), Now: mergeNow, Seed: "seed"})
		for name, rec := range r.Records.Servers {
			if plan.Disputed(rec) {
				t.Errorf("%s, beside one that is %s: %s", name, state, rec.Doubt.Message)
			}
		}
	}
}

func TestWhatComesFromTheBranchIsDoubted(t *testing.T) {
	armed := &model.Ticket{ID: "t", Purpose: model.PurposeCleanup}
	asked := &model.PowerAsked{Want: model.PowerOn}
	wiping := copyOf(at(5, 150), model.StateCleanup, "", func(r *model.ServerRecord) { r.Ticket, r.Asked = armed, asked })
	noted := copyOf(at(5, 150), model.StateReserved, "default/web", func(r *model.ServerRecord) {
		r.Operation = &model.Operation{Value: "power-cycle", NotedAt: mergeNow}
	})
	take := func(rec *model.ServerRecord, mirrorFirst bool) *model.ServerRecord {
		store := recordsOf()
		b := branchOf(5, rec)
		b.MirrorFirst = mirrorFirst
		return Records(Input{Store: &store, Published: store5, Branch: b, Now: mergeNow, Seed: "seed"}).Records.Servers["s1"]
	}
	t.Run("a wipe is begun anew", func(t *testing.T) {
		if got := take(wiping, true); got.Ticket.Open() || got.Asked != nil || got.State != model.StateCleanup {
			t.Errorf("got %+v with ticket %+v", got, got.Ticket)
		}
		if !armed.Open() {
			t.Error("the branch's own record was changed")
		}
	})
	t.Run("an operation without an outcome is not asked for again", func(t *testing.T) {
		if got := take(noted, true); got.Operation.Outcome != model.OutcomeUnknown {
			t.Errorf("got %+v", got.Operation)
		}
	})
	t.Run("a maintenance switches nothing on under somebody's hands", func(t *testing.T) {
		due := &model.MaintenancePower{Want: model.PowerOn, Due: true}
		got := take(copyOf(at(5, 150), model.StateMaintenance, "default/web", func(r *model.ServerRecord) { r.MaintenancePower = due }), true)
		if want := (model.MaintenancePower{Want: model.PowerOn}); got.MaintenancePower == nil || *got.MaintenancePower != want || !due.Due {
			t.Errorf("got %+v, the branch's record has %+v", got.MaintenancePower, due)
		}
	})
	for mirrorFirst, unannounced := range map[bool]bool{true: false, false: true} {
		t.Run(fmt.Sprintf("written with mirrorFirst %t it is unannounced: %t", mirrorFirst, unannounced), func(t *testing.T) {
			got := take(noted, mirrorFirst).Doubt
			want := model.Doubt{Reason: model.DoubtFromStatusBranch, Message: got.Message, Since: mergeNow, Unannounced: unannounced}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
	for state, why := range map[model.ServerState]model.DoubtReason{
		model.StateReserved: model.DoubtFromStatusBranch,
		model.StateReleased: model.DoubtDisputed,
	} {
		t.Run("what was changed here and elsewhere is unannounced as the branch is: "+string(why), func(t *testing.T) {
			for _, version := range []model.Version{at(5, 110), at(7, 110)} {
				store := recordsOf(copyOf(version, state, "default/web"))
				b := branchOf(6, copyOf(at(6, 3), model.StateReserved, "default/web"))
				b.MirrorFirst = false
				got := Records(Input{Store: &store, Published: store5, Branch: b, Now: mergeNow}).Records.Servers["s1"].Doubt
				if got.Reason != why || !got.Unannounced {
					t.Errorf("store %s: got %+v", version, got)
				}
			}
		})
	}
	t.Run("one that is Disputed stays so, with its tokens", func(t *testing.T) {
		d := &model.Doubt{Reason: model.DoubtDisputed, Unannounced: true, Alternatives: []model.Alternative{{Token: "known"}}}
		got := take(copyOf(at(5, 150), model.StateReserved, "default/web", func(r *model.ServerRecord) { r.Doubt = d }), true)
		if !plan.Disputed(got) || !got.Doubt.Unannounced || got.Doubt.Alternatives[0].Token != "known" {
			t.Errorf("got %+v", got.Doubt)
		}
	})
}

func TestWhatWasHandledInEitherCopyIsHandled(t *testing.T) {
	store := recordsOf(copyOf(at(5, 110), model.StateReserved, "default/web", func(r *model.ServerRecord) {
		r.HandledOperation, r.HandledReprovision, r.HandledBefore = "power-cycle#2", "1", []string{"operation=power-cycle"}
		r.HandledOverwrite = "yes"
		r.Serial, r.Missing = 7, []model.MissingDisk{{Name: "sdb", Serial: "B"}, {Name: "sdc", Serial: "C", Gone: true}}
		r.Disks, r.DisksAt = []model.Disk{{Name: "sda", Serial: "A"}, {Name: "sdb", Serial: "B"}}, mergeNow
		r.Operation = &model.Operation{Value: "power-cycle#2", AskedAt: mergeNow, Outcome: model.OutcomeDone}
		r.BootstrapCompleted = []string{"burn-in", "firmware"}
		r.ClaimCleanup, r.ShownOn = model.CleanupSecure, []string{"fans"}
	}))
	branch := branchOf(6, copyOf(at(6, 3), model.StateReserved, "default/web", func(r *model.ServerRecord) {
		r.HandledOperation, r.HandledDiscover = "force-off", "x"
		r.Serial, r.Missing = 4, []model.MissingDisk{{Name: "sda", Serial: "A"}}
		r.Disks = []model.Disk{{Name: "sda", Serial: "A"}, {Name: "sdd", Serial: "D"}}
		r.HandledDisks = "D"
		r.BootstrapCompleted = []string{"cabling", "firmware"}
		r.Operation = &model.Operation{Value: "power-cycle#2"}
		r.ClaimCleanup, r.ShownOn = model.CleanupQuick, []string{"disks"}
	}))
	in := Input{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "seed"}
	r := Records(in)
	got := r.Records.Servers["s1"]
	for _, v := range []struct{ asked, value string }{
		{asked: plan.AskedOperation, value: "power-cycle"}, {plan.AskedOperation, "power-cycle#2"}, {plan.AskedOperation, "force-off"},
		{plan.AskedReprovision, "1"}, {plan.AskedDiscover, "x"}, {plan.AskedDisks, "D"},
		{plan.AskedOverwrite, "yes"},
	} {
		if !plan.WasHandled(got, v.asked, v.value) {
			t.Errorf("%s %s is not handled: %+v", v.asked, v.value, got)
		}
	}
	if got.HandledOperation != "force-off" || got.Serial != 7 || got.Operation.Outcome != model.OutcomeDone {
		t.Errorf("got operation %q %+v and serial %d", got.HandledOperation, got.Operation, got.Serial)
	}
	if got.ClaimCleanup != model.CleanupSecure {
		t.Errorf("its claim asks for cleanup %q, want the stricter of both", got.ClaimCleanup)
	}
	if want := []string{"disks", "fans"}; !slices.Equal(got.ShownOn, want) {
		t.Errorf("the claim's owner was shown %v as leaving the server on, want %v", got.ShownOn, want)
	}
	if want := []model.MissingDisk{{Name: "sda", Serial: "A"}, {Name: "sdb", Serial: "B"}}; !slices.Equal(got.Missing, want) {
		t.Errorf("missing are %+v, want %+v", got.Missing, want)
	}
	if want := []string{"burn-in", "cabling", "firmware"}; !slices.Equal(got.BootstrapCompleted, want) {
		t.Errorf("it was ready for %v, want %v", got.BootstrapCompleted, want)
	}
	var serials []string
	for _, d := range got.Disks {
		serials = append(serials, d.Serial)
	}
	slices.Sort(serials)
	if want := []string{"A", "B", "D"}; !slices.Equal(serials, want) || !got.DisksAt.Equal(mergeNow) {
		t.Errorf("disks are %v, known at %s, want %v, at %s", serials, got.DisksAt, want, mergeNow)
	}
	again(t, in, r)

	for i := range 3 * maxJoined {
		rec := store.Servers["s1"]
		rec.HandledBefore = append(rec.HandledBefore, fmt.Sprint("operation=", i))
	}
	r = Records(in)
	if n := len(r.Records.Servers["s1"].HandledBefore); n != maxJoined {
		t.Errorf("%d values are kept, want %d", n, maxJoined)
	}
	again(t, in, r)
}

func TestClaimsBMCsAndEndpointsAreMergedByVersion(t *testing.T) {
	make2 := func(v model.Version, address string) model.Records {
		r := recordsOf()
		r.BMCs["b"] = &model.BMCRecord{Version: v, Name: "b", Address: address}
		r.Claims["default/c"] = &model.ClaimRecord{Version: v, Name: "default/c", Sequence: int64(v.Seq)}
		r.Endpoints["e"] = &model.EndpointRecord{Version: v, Name: "e", IP: address}
		return r
	}
	for name, tc := range map[string]struct {
		store, branch model.Version
		fence         uint64
		want          string
	}{
		"the newer of one line, here":         {store: at(5, 120), branch: at(5, 90), fence: 5, want: "store"},
		"the newer of one line, there":        {store: at(5, 90), branch: at(5, 150), fence: 5, want: "branch"},
		"the higher version of two, here":     {store: at(7, 120), branch: at(6, 3), fence: 6, want: "store"},
		"the higher version of two, there":    {store: at(5, 120), branch: at(6, 3), fence: 6, want: "branch"},
		"the store's of equal ones":           {store: at(5, 90), branch: at(5, 90), fence: 5, want: "store"},
		"the store's if neither has versions": {store: at(0, 0), branch: at(0, 0), fence: 5, want: "store"},
	} {
		t.Run(name, func(t *testing.T) {
			store := make2(tc.store, "store")
			b := branchOf(tc.fence)
			b.Records = make2(tc.branch, "branch")
			in := Input{Store: &store, Published: store5, Branch: b, Now: mergeNow}
			r := Records(in)
			got := applied(&store, r)
			version := tc.store
			if tc.want == "branch" {
				version = tc.branch
			}
			if got.BMCs["b"].Address != tc.want || got.Endpoints["e"].IP != tc.want || got.Claims["default/c"].Version != version {
				t.Errorf("got %+v, %+v and %+v, want those of the %s", got.BMCs["b"], got.Endpoints["e"], got.Claims["default/c"], tc.want)
			}
			again(t, in, r)
		})
	}
}

func TestTheFleetsRecordIsMerged(t *testing.T) {
	step := func(server string, minute int) model.Disruption {
		return model.Disruption{Action: "release", Server: model.ServerName(server), At: mergeNow.Add(time.Duration(minute) * time.Minute)}
	}
	gone := func(name, token string) model.Absence {
		return model.Absence{Identity: model.Identity{Kind: model.KindServerClaim, Namespace: "default", Name: name}, Token: token}
	}
	fleet := func(v model.Version, commit string, edit func(*model.FleetRecord)) model.FleetRecord {
		r := model.FleetRecord{Version: v, Applied: model.Applied{Branch: "main", Commit: commit}}
		edit(&r)
		return r
	}
	merge := func(s, b model.FleetRecord, fence uint64) (Input, Result) {
		store, branch := recordsOf(), branchOf(fence)
		store.Fleet, branch.Fleet = s, b
		in := Input{Store: &store, Published: store5, Branch: branch, Now: mergeNow, Seed: "seed"}
		return in, Records(in)
	}
	some := func(r *model.FleetRecord) {
		r.Sequence, r.Done = 4, []model.Disruption{step("s1", 1), step("s2", 3)}
		r.Absent, r.AbsentToken, r.Holds = []model.Absence{gone("a", "ta")}, "all", []model.GuardHold{{Token: "h1"}}
	}
	others := func(r *model.FleetRecord) {
		r.Sequence, r.Done = 3, []model.Disruption{step("s1", 1), step("s3", 2)}
		r.Absent, r.AbsentToken, r.Holds = []model.Absence{gone("a", "tx"), gone("b", "tb")}, "other", []model.GuardHold{{Token: "h2"}}
	}
	t.Run("of one line the newer is taken as it is", func(t *testing.T) {
		_, r := merge(fleet(at(5, 120), "x", some), fleet(at(5, 90), "y", others), 5)
		if want := fleet(at(5, 120), "x", some); !reflect.DeepEqual(r.Records.Fleet, want) {
			t.Errorf("got %+v, want %+v", r.Records.Fleet, want)
		}
		_, r = merge(fleet(at(5, 90), "x", some), fleet(at(5, 150), "y", others), 5)
		if want := fleet(at(5, 150), "y", others); !reflect.DeepEqual(r.Records.Fleet, want) {
			t.Errorf("got %+v, want %+v", r.Records.Fleet, want)
		}
	})
	t.Run("of two lines the newer is taken with the disruptions and absences of both", func(t *testing.T) {
		in, r := merge(fleet(at(5, 120), "x", others), fleet(at(6, 3), "y", some), 6)
		got := r.Records.Fleet
		if got.Applied.Commit != "y" || got.Sequence != 4 || !reflect.DeepEqual(got.Holds, []model.GuardHold{{Token: "h1"}}) {
			t.Errorf("got %+v", got)
		}
		if want := []model.Disruption{step("s1", 1), step("s3", 2), step("s2", 3)}; !slices.Equal(got.Done, want) {
			t.Errorf("done are %+v, want %+v", got.Done, want)
		}
		if want := []model.Absence{gone("a", "ta"), gone("b", "tb")}; !slices.Equal(got.Absent, want) {
			t.Errorf("absent are %+v, want %+v", got.Absent, want)
		}
		if got.AbsentToken == "all" || got.AbsentToken == "other" || got.AbsentToken == "" {
			t.Errorf("the longer list has token %q, which was shown with another", got.AbsentToken)
		}
		again(t, in, r)
	})
	t.Run("and merging again changes nothing if the store's is the newer", func(t *testing.T) {
		in, r := merge(fleet(at(7, 120), "x", some), fleet(at(6, 3), "y", others), 6)
		if got := r.Records.Fleet; got.Applied.Commit != "x" || len(got.Done) != 3 || len(got.Absent) != 2 {
			t.Errorf("got %+v", got)
		}
		again(t, in, r)
	})
	t.Run("the count of revisions is the higher one", func(t *testing.T) {
		if _, r := merge(fleet(at(5, 120), "x", some), fleet(at(6, 3), "y", others), 6); r.Records.Fleet.Sequence != 4 ||
			r.Records.Fleet.Applied.Commit != "y" {
			t.Errorf("got %+v", r.Records.Fleet)
		}
	})
	t.Run("of two from before there were versions the store's is taken, with what the other adds", func(t *testing.T) {
		in, r := merge(fleet(at(0, 0), "x", some), fleet(at(0, 0), "y", others), 5)
		if got := r.Records.Fleet; got.Applied.Commit != "x" || len(got.Done) != 3 || len(got.Absent) != 2 {
			t.Errorf("got %+v", got)
		}
		again(t, in, r)
	})
	t.Run("the newest disruptions are remembered, as many as one window may have", func(t *testing.T) {
		many := func(server string) func(*model.FleetRecord) {
			return func(r *model.FleetRecord) {
				for i := range plan.MaxDone {
					r.Done = append(r.Done, step(server, i))
				}
			}
		}
		_, r := merge(fleet(at(5, 120), "x", many("s1")), fleet(at(6, 3), "y", many("s2")), 6)
		if got := r.Records.Fleet.Done; len(got) != plan.MaxDone || !got[0].At.Equal(step("", plan.MaxDone/2).At) ||
			!got[plan.MaxDone-1].At.Equal(step("", plan.MaxDone-1).At) {
			t.Errorf("%d are remembered, from %v to %v", len(got), got[0].At, got[len(got)-1].At)
		}
	})
	t.Run("a record that one of two lines cannot read stays listed, with its token, until it is known", func(t *testing.T) {
		lost := func(tokens ...string) func(*model.FleetRecord) {
			return func(r *model.FleetRecord) {
				for _, token := range tokens {
					r.Unreadable = append(r.Unreadable, model.UnreadableRecord{Server: model.ServerName("s-" + token), Token: token})
				}
			}
		}
		for _, newer := range []model.Version{at(6, 3), at(4, 3)} {
			in, r := merge(fleet(at(5, 120), "x", lost("1", "2")), fleet(newer, "y", lost("2", "3")), 6)
			if newer.Fence < 5 {
				in.Published.Version = at(4, 1)
				r = Records(in)
			}
			var got []string
			for _, u := range r.Records.Fleet.Unreadable {
				got = append(got, u.Token)
			}
			slices.Sort(got)
			if !slices.Equal(got, []string{"1", "2", "3"}) {
				t.Errorf("listed are %q", got)
			}
			again(t, in, r)
		}
	})
	t.Run("the list of absences is bounded", func(t *testing.T) {
		many := func(prefix string) func(*model.FleetRecord) {
			return func(r *model.FleetRecord) {
				for i := range model.MaxAbsent - 1 {
					r.Absent = append(r.Absent, gone(fmt.Sprint(prefix, i), "t"))
				}
			}
		}
		for _, here := range []model.Version{at(5, 120), at(7, 120)} {
			in, r := merge(fleet(here, "x", many("a")), fleet(at(6, 3), "y", many("b")), 6)
			if got := r.Records.Fleet; len(got.Absent) != model.MaxAbsent || got.AbsentMore != model.MaxAbsent-2 {
				t.Errorf("%d are listed and %d counted", len(got.Absent), got.AbsentMore)
			}
			again(t, in, r)
		}
	})
	t.Run("one that is lost counts on from its claims", func(t *testing.T) {
		store := recordsOf()
		store.Claims["default/c"] = &model.ClaimRecord{Name: "default/c", Sequence: 9}
		r := Records(Input{Store: &store, Now: mergeNow})
		if r.Records.Fleet.Sequence != 9 || reasons(r) != "RecordUnreadable" {
			t.Errorf("fleet %+v, told %q", r.Records.Fleet, reasons(r))
		}
	})
}

func TestTheVeryFirstStartFindsNothing(t *testing.T) {
	empty := recordsOf()
	none := recordsOf()
	if r := Records(Input{Store: &empty, Now: mergeNow}); !reflect.DeepEqual(r, Result{Records: none}) {
		t.Errorf("got %+v", r)
	}
	for name, in := range map[string]Input{
		"a server's record that the store cannot read": {StoreUnreadable: []report.RecordName{{Kind: report.RecordServer, Name: "s1"}}},
		"a file that the branch cannot be read for":    {Branch: &report.BranchRecords{Unreadable: []string{"servers/s1.yaml"}}},
		"a server's record in the store":               {Store: new(recordsOf(copyOf(at(1, 1), model.StateAvailable, "")))},
		"a server's record on the branch":              {Branch: branchOf(1, copyOf(at(1, 1), model.StateAvailable, ""))},
	} {
		t.Run(name, func(t *testing.T) {
			in.Store = cmp.Or(in.Store, &empty)
			want := Event{
				RecordUnreadable, report.RecordName{Kind: report.RecordFleet},
				"its record can be read neither from the store nor from the status branch",
			}
			if r := Records(in); !slices.Contains(r.Events, want) {
				t.Errorf("the fleet's record is not missed: %+v", r.Events)
			}
		})
	}
}

// past is a random past of one store: what it held after each write, and what of that
// was published when.
type past struct {
	rnd      *rand.Rand
	records  []model.Records
	notes    []model.Published // as of each of records
	branches []*report.BranchRecords
	fence    uint64
	seq      uint64
}

func newPast(rnd *rand.Rand, from *model.Records, note model.Published, fence uint64) *past {
	return &past{rnd: rnd, records: []model.Records{*from}, notes: []model.Published{note}, fence: fence, seq: note.Version.Seq}
}

// write changes a random object, or publishes, or starts anew.
func (p *past) write() {
	last, note := p.records[len(p.records)-1], p.notes[len(p.notes)-1]
	next := recordsOf()
	maps.Copy(next.Servers, last.Servers)
	maps.Copy(next.Claims, last.Claims)
	next.Fleet = last.Fleet
	p.seq++
	v := at(p.fence, p.seq)
	switch p.rnd.IntN(8) {
	case 0:
		b := &report.BranchRecords{
			Records: last, Fence: p.fence, Holder: model.Holder{ID: fmt.Sprint(p.fence)}, MirrorFirst: true, Head: v.String(),
		}
		b.Version = slices.MaxFunc(append(b.Versions(), note.Version), model.Version.Compare)
		p.branches = append(p.branches, b)
		if p.rnd.IntN(5) > 0 { // else it was killed before it noted that
			note = model.Published{Commit: b.Head, Version: b.Version, Fence: b.Fence, Holder: b.Holder}
		}
	case 1:
		p.fence++
	case 2:
		next.Fleet.Version, next.Fleet.Sequence = v, next.Fleet.Sequence+1
	default:
		name := model.ServerName(fmt.Sprint("s", p.rnd.IntN(4)))
		rec := &model.ServerRecord{Version: v, Name: name, State: model.StateAvailable}
		if claim := model.ClaimName(fmt.Sprint("default/c", p.rnd.IntN(4))); p.rnd.IntN(2) > 0 && !held(&next, claim) {
			rec.State, rec.Claim = model.StateReserved, claim
			next.Claims[claim] = &model.ClaimRecord{Version: v, Name: claim, Sequence: next.Fleet.Sequence}
		}
		next.Servers[name] = rec
	}
	p.records, p.notes = append(p.records, next), append(p.notes, note)
}

func held(r *model.Records, claim model.ClaimName) bool {
	for _, s := range r.Servers {
		if s.Claim == claim {
			return true
		}
	}
	return false
}

// checkMerge looks for what a merge must never do, and returns the merged records.
func checkMerge(t *testing.T, in Input) *model.Records {
	t.Helper()
	r := Records(in)
	got := applied(in.Store, r)
	owner := make(map[model.ClaimName]*model.ServerRecord)
	for name, rec := range got.Servers {
		for _, old := range []*model.ServerRecord{in.Store.Servers[name], in.Branch.Servers[name]} {
			if old != nil && old.Version.After(rec.Version) {
				t.Errorf("%s went back from version %s to %s", name, old.Version, rec.Version)
			}
		}
		if other := owner[rec.Claim]; rec.Claim != "" && other != nil && !(plan.Disputed(rec) && plan.Disputed(other)) {
			t.Errorf("claim %s has servers %s and %s, which are not both Disputed", rec.Claim, other.Name, name)
		}
		owner[rec.Claim] = rec
	}
	for name, old := range in.Branch.Claims {
		if rec := got.Claims[name]; rec == nil || old.Version.After(rec.Version) {
			t.Errorf("claim %s of version %s became %+v", name, old.Version, rec)
		}
	}
	if got.Fleet.Version.Compare(in.Store.Fleet.Version) < 0 || got.Fleet.Version.Compare(in.Branch.Fleet.Version) < 0 {
		t.Errorf("the fleet's record went back to version %s", got.Fleet.Version)
	}
	again(t, in, r)
	return got
}

// One store, of which an older copy may have been put back, against a branch that may
// have been set back: of each record the newest of both is taken.
func TestMergeOfOneLineTakesTheNewest(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 91))
		empty := recordsOf()
		p := newPast(rnd, &empty, model.Published{}, 1)
		for range 5 + rnd.IntN(40) {
			p.write()
		}
		if len(p.branches) == 0 {
			continue
		}
		i := rnd.IntN(len(p.records))
		in := Input{Store: &p.records[i], Published: p.notes[i], Branch: p.branches[rnd.IntN(len(p.branches))], Now: mergeNow, Seed: "seed"}
		got := checkMerge(t, in)
		for name, rec := range got.Servers {
			s, b := in.Store.Servers[name], in.Branch.Servers[name]
			want := s
			if s == nil || b != nil && b.Version.After(s.Version) {
				want = b
			}
			if rec.Version != want.Version || rec.State != want.State || rec.Claim != want.Claim {
				t.Errorf("seed %d: %s is %+v, want %+v", seed, name, rec, want)
			}
			if want == s && rec != s && !plan.Disputed(rec) && rec.Doubt == nil {
				t.Errorf("seed %d: %s of the store was changed to %+v", seed, name, rec)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, store %d of %d", seed, i, len(p.records))
		}
	}
}

// Two stores that lived on from one: what both changed is disputed unless they agree.
func TestMergeOfTwoLinesDisputesWhatBothChanged(t *testing.T) {
	disputes := 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 92))
		empty := recordsOf()
		trunk := newPast(rnd, &empty, model.Published{}, 1)
		for range 5 + rnd.IntN(20) {
			trunk.write()
		}
		if len(trunk.branches) == 0 {
			continue
		}
		// The other one begins with what was published, under a number of its own; this
		// one goes on, and cannot publish any more.
		b := trunk.branches[len(trunk.branches)-1]
		note := model.Published{Commit: b.Head, Version: b.Version, Fence: b.Fence, Holder: b.Holder}
		other := newPast(rnd, &b.Records, note, trunk.fence+1)
		here := newPast(rnd, &trunk.records[len(trunk.records)-1], note, trunk.fence)
		here.seq = trunk.seq
		for range 4 + rnd.IntN(12) {
			other.write()
			here.write()
			here.notes[len(here.notes)-1], here.fence = note, trunk.fence
		}
		if len(other.branches) == 0 {
			continue
		}
		in := Input{
			Store: &here.records[len(here.records)-1], Published: note, Branch: other.branches[len(other.branches)-1],
			Now: mergeNow, Seed: "seed",
		}
		got := checkMerge(t, in)
		for name, rec := range got.Servers {
			s, o := in.Store.Servers[name], in.Branch.Servers[name]
			if s == nil || o == nil || !s.Version.After(note.Version) || !o.Version.After(note.Version) {
				continue
			}
			if differ := s.State != o.State || s.Claim != o.Claim; differ && !plan.Disputed(rec) {
				t.Errorf("seed %d: %s is %s for %q here (%s) and %s for %q there (%s), and is not Disputed",
					seed, name, s.State, s.Claim, s.Version, o.State, o.Claim, o.Version)
			} else if differ {
				disputes++
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if disputes < 100 {
		t.Errorf("only %d disputes: nothing was tried", disputes)
	}
}

func TestReadingTheBranchSkipsWhatIsBad(t *testing.T) {
	o := model.NewObserved()
	doc := func(record any) []byte {
		data, err := json.Marshal(map[string]any{"kind": "X", "record": record})
		if err != nil {
			t.Fatal(err)
		}
		data, err = yaml.JSONToYAML(data)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	fleet := model.FleetRecord{Version: at(7, 8), Sequence: 3}
	revision := append([]byte("fence: 9\nholder: {id: me, host: h}\nsequence: \"7.30\"\nmirrorFirst: true\n"), doc(fleet)...)
	server := &model.ServerRecord{Version: at(7, 20), Name: "s1", State: model.StateReserved, Claim: "default/web"}
	files := map[string][]byte{
		"revision.yaml":   revision,
		"README.md":       []byte("# fleet"),
		"problems.yaml":   []byte("problems: [{"),
		"servers/s1.yaml": doc(server),
		"servers/s2.yaml": []byte("record: {name: s2, state: Reserved"),
		"servers/s3.yaml": doc(&model.ServerRecord{Name: "s1", State: model.StateReserved}),
		"servers/s4.yaml": doc(&model.ServerRecord{Name: "s4", State: "Sleeping"}),
		"servers/s5.yaml": []byte("kind: Server\n"),
		"servers/s6.yaml": []byte("record: {name: s6, state: Reserved, version: 7}"),
		"servers/s7.yaml": append(doc(&model.ServerRecord{Name: "s7", State: model.StateInitial}),
			"#"+strings.Repeat("x", report.MaxFile)...),
		"servers/.yaml":                  []byte("{{{"),
		"bmcs/b1.yaml":                   doc(&model.BMCRecord{Name: "b1", Address: "a"}),
		"bmcs/b2.yaml":                   []byte("kind: BMC\n"),
		"endpoints/e1.yaml":              doc(&model.EndpointRecord{Name: "e1"}),
		"serverclaims/default/web.yaml":  doc(&model.ClaimRecord{Name: "default/web", Sequence: 2}),
		"servermaintenances/m.yaml":      []byte("{{{"),
		"serverbootconfigurations/x.yml": []byte("{{{"),
	}
	b, problems := report.ReadBranch(files)
	want := []string{"servers/s2.yaml", "servers/s3.yaml", "servers/s4.yaml", "servers/s5.yaml", "servers/s6.yaml", "servers/s7.yaml"}
	if !slices.Equal(b.Unreadable, want) || len(problems) != len(want) {
		t.Errorf("unreadable are %q with %v, want %q", b.Unreadable, problems, want)
	}
	o.Fleet = fleet
	o.Servers["s1"] = server
	o.BMCs["b1"] = &model.BMCRecord{Name: "b1", Address: "a"}
	o.Endpoints["e1"] = &model.EndpointRecord{Name: "e1"}
	o.Claims["default/web"] = &model.ClaimRecord{Name: "default/web", Sequence: 2}
	if !reflect.DeepEqual(b.Records, o.Records) {
		t.Errorf("got %+v, want %+v", b.Records, o.Records)
	}
	if b.Fence != 9 || b.Holder.ID != "me" || b.Version != at(7, 30) || !b.MirrorFirst {
		t.Errorf("written by fence %d, holder %+v, version %s, mirrorFirst %t", b.Fence, b.Holder, b.Version, b.MirrorFirst)
	}

	for name, broken := range map[string][]byte{
		"is garbled": []byte("record: {"), "has no record": []byte("fence: 9\n"), "is missing": nil,
	} {
		t.Run("a revision.yaml that "+name, func(t *testing.T) {
			some := maps.Clone(files)
			some["revision.yaml"] = broken
			if broken == nil {
				delete(some, "revision.yaml")
			}
			b, _ := report.ReadBranch(some)
			if !slices.Contains(b.Unreadable, "revision.yaml") || knownFleet(&b.Fleet) != nil || b.Servers["s1"] == nil ||
				b.Version.Compare(at(7, 20)) < 0 || b.Fence < 7 {
				t.Errorf("unreadable %q, fleet %+v, version %s, fence %d", b.Unreadable, b.Fleet, b.Version, b.Fence)
			}
		})
	}
	if b, problems := report.ReadBranch(nil); len(b.Unreadable) > 0 || len(problems) > 0 {
		t.Errorf("of an empty branch: %q, %v", b.Unreadable, problems)
	}
}

func TestWhatAnOlderStoreSaysOfAServerIsOneAlternativeOfSeveral(t *testing.T) {
	store := recordsOf(copyOf(at(5, 90), model.StateAvailable, ""))
	branch := &report.BranchRecords{
		Records: recordsOf(), Fence: 6, Version: at(6, 200), MirrorFirst: true, Unreadable: []string{"servers/s1.yaml"},
		Serves: map[model.ServerName]model.ClaimName{"s1": "default/web"},
	}
	rec := Records(Input{Store: &store, Branch: branch, Now: mergeNow, Seed: "seed"}).Records.Servers["s1"]
	if rec == nil {
		t.Fatal("it is taken as it is")
	}
	var says []string
	for _, a := range rec.Doubt.Alternatives {
		says = append(says, fmt.Sprintf("%s %s %s", a.From, a.State, a.Claim))
	}
	if want := []string{"store Available ", "status branch Reserved default/web", "neither Cleanup "}; !slices.Equal(says, want) {
		t.Errorf("to be chosen from are %q, want %q", says, want)
	}
	in := plantest.BigFleet(1, 0)
	in.Observed.Servers["s1"] = rec
	in.Desired.Add(fleettest.Claim("web"))
	in.Desired.Add(fleettest.Claim("db"))
	r := plan.Plan(in)
	if m := r.Moves["bmc00000-system-0"]; m == nil || m.Then.Claim != "default/db" {
		t.Errorf("the free server is planned %+v, want it for the claim that no other server may have", m)
	}
	if why := plantest.ClaimWhy(in, "default/web"); why.Reason != "Disputed" || !strings.Contains(why.Message, "s1") {
		t.Errorf("the other claim waits for %+v", why)
	}
}

// A leader is killed before it notes what it published, and those after it before they
// publish anything: all of them knew what the branch shows.
func TestLeadersThatAreKilledBeforeTheyPublish(t *testing.T) {
	shown := copyOf(at(5, 18), model.StateAvailable, "")
	branch := branchOf(5, shown)
	branch.Version, branch.Holder.ID, branch.Fleet.Version = shown.Version, "five", at(5, 2)
	store := recordsOf(shown)
	store.Fleet.Version = at(5, 2)
	note := model.Published{Commit: "three", Version: at(3, 9), Fence: 3, Holder: model.Holder{ID: "three"}}
	for fence := range uint64(4) {
		in := Input{Store: &store, Published: note, Branch: branch, Now: mergeNow, Seed: "seed"}
		r := Records(in)
		again(t, in, r)
		if len(r.Events) > 0 {
			t.Fatalf("leader %d finds %s: %s", 6+fence, reasons(r), r.Events[0].Message)
		}
		store, note = *applied(&store, r), r.Published
		rec := *store.Servers["s1"]
		if rec.Doubt != nil {
			t.Fatalf("leader %d doubts %+v", 6+fence, rec)
		}
		rec.Version, rec.Attempts = at(6+fence, 25+fence), rec.Attempts+1
		store.Servers["s1"] = &rec
	}
}

// What another Ingot publishes after the two were merged was not known to this one.
func TestAnotherPublishesAfterAMerge(t *testing.T) {
	store := recordsOf(copyOf(at(6, 25), model.StateReserved, "default/web"))
	note := model.Published{Commit: "three", Version: at(3, 9), Fence: 3, Holder: model.Holder{ID: "three"}, Seen: at(5, 20)}
	branch := branchOf(5, copyOf(at(5, 21), model.StateAvailable, ""))
	branch.Version, branch.Holder.ID = at(5, 21), "five"
	r := Records(Input{Store: &store, Published: note, Branch: branch, Now: mergeNow, Seed: "seed"})
	if rec := applied(&store, r).Servers["s1"]; !plan.Disputed(rec) {
		t.Errorf("it is %+v, found was %s", rec, reasons(r))
	}
}
