package plan

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

func TestWhoGivesAUUID(t *testing.T) {
	const one, two = "/redfish/v1/Systems/1", "/redfish/v1/Systems/2"
	board := model.Board{SerialNumber: "S1", Model: "M"}
	for name, tc := range map[string]struct {
		board   model.Board
		alone   bool
		servers []*model.Server
		want    string // the name of the server, or a part of the problem
	}{
		"the Server of its BMC": {
			board: board, alone: true, servers: []*model.Server{uuidOf("s", "b", "", fleettest.GivenUUID)},
			want: "s",
		},
		"the Server that describes its BMC": {
			board: board, alone: true, servers: []*model.Server{{
				Meta: model.Meta{Name: "b"}, Spec: model.ServerSpec{SystemUUID: fleettest.GivenUUID, BMC: &model.BMCAccess{}},
			}},
			want: "b",
		},
		"not that of another BMC": {
			board: board, alone: true, servers: []*model.Server{uuidOf("s", "c", "", fleettest.GivenUUID)},
			want: "write a Server with spec.bmcRef and",
		},
		"not that of another system": {
			board: board, alone: true, servers: []*model.Server{uuidOf("s", "b", two, fleettest.GivenUUID)},
			want: "write a Server",
		},
		"of two systems the one with its URI": {
			board: board,
			servers: []*model.Server{
				uuidOf("r", "b", two, "00000000-0000-4000-8000-00000000000b"), uuidOf("s", "b", one, fleettest.GivenUUID),
			},
			want: "s",
		},
		"of two systems none that does not say it": {
			board: board, servers: []*model.Server{uuidOf("s", "b", "", fleettest.GivenUUID)},
			want: "write a Server with spec.bmcRef, spec.systemURI and",
		},
		"nobody, a board without serial number": {
			board: model.Board{Model: "M"}, alone: true, servers: []*model.Server{uuidOf("s", "b", "", fleettest.GivenUUID)},
			want: "no serial number",
		},
		"nobody, a board with what its vendor left for a serial number": {
			board: model.Board{SerialNumber: "To be filled by O.E.M.", Model: "M"}, alone: true,
			servers: []*model.Server{uuidOf("s", "b", "", fleettest.GivenUUID)},
			want:    "no serial number of its own",
		},
		"nor one with another such": {
			board: model.Board{SerialNumber: " Default string", Model: "M"}, alone: true,
			servers: []*model.Server{uuidOf("s", "b", "", fleettest.GivenUUID)},
			want:    "no serial number of its own",
		},
		"nobody who does not say it": {
			board: board, alone: true, servers: []*model.Server{uuidOf("s", "b", "", "")},
			want: "write a Server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Input{
				Desired: model.NewDesired(), Observed: model.NewObserved(), Policy: proposal.DefaultPolicy(),
				Now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
			}
			for _, s := range tc.servers {
				in.Desired.Add(s)
			}
			facts := &model.BMCFacts{Name: "b", Systems: []model.SystemFact{{URI: one, Board: tc.board}}}
			if !tc.alone {
				facts.Systems = append(facts.Systems, model.SystemFact{URI: two, UUID: "00000000-0000-4000-8000-00000000000c"})
			}
			b := &bmcView{name: "b", spec: &model.BMC{}, facts: facts}
			f := withBMCs(&fleet{in: in}, b)
			var got string
			for name, rec := range f.admitted() {
				if rec.SystemURI == one {
					got = string(name)
				}
			}
			if got == "" {
				got = strings.Join(b.problems, "\n")
			}
			if got != tc.want && (len(tc.want) == 1 || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A BMC that shows a UUID one day, as after an update of its firmware, has to show the one
// that Git gave its machine.
func TestAMachineThatShowsItsUUIDLater(t *testing.T) {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{SystemURI: "/1", UUID: fleettest.GivenUUID, Board: &model.Board{SerialNumber: "S1"}}}
	for uuid, want := range map[string]place{fleettest.GivenUUID: shownItself, "00000000-0000-4000-8000-00000000000b": shownOther} {
		facts := &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", UUID: uuid}}}
		if got := shownAs(facts, rec); got != want {
			t.Errorf("one that shows %s is taken for %d, want %d", uuid, got, want)
		}
	}
}

// Two machines that Git says are in each other's place are followed there.
func TestAMachineWithoutAUUIDThatIsMoved(t *testing.T) {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s", BMC: "old", SystemURI: "/1", UUID: fleettest.GivenUUID, Board: &model.Board{SerialNumber: "S1"}}}
	is := func(serial string) *model.BMCFacts {
		return &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", Board: model.Board{SerialNumber: serial}}}}
	}
	in := &Input{
		Desired:  model.NewDesired(),
		Observed: &model.Observed{Records: model.Records{Servers: map[model.ServerName]*model.ServerRecord{"s": rec}}},
	}
	in.Desired.Add(uuidOf("s", "new", "", fleettest.GivenUUID))
	before, after := &bmcView{name: "old", spec: &model.BMC{}, facts: is("S1")}, &bmcView{name: "new", spec: &model.BMC{}, facts: is("S2")}
	at := func() model.BMCName {
		f := withBMCs(&fleet{in: in}, before, after)
		return f.admitted()["s"].BMC
	}
	if at := at(); at != "old" {
		t.Errorf("while its BMC shows it, it is looked for behind %s", at)
	}
	before.facts, after.facts = is("S2"), is("S1")
	if at := at(); at != "new" {
		t.Errorf("when its BMC shows another machine, it is looked for behind %s", at)
	}
}
