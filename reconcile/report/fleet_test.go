package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

func TestHolds(t *testing.T) {
	since := entered
	effect := func(server model.ServerName, text string) Effect { return Effect{Server: server, Text: text} }
	approve := func(e Effect, token string) Effect {
		e.Approve = proposal.ApproveLine(token)
		return e
	}
	for name, tc := range map[string]struct {
		change func(in *world.Input)
		want   []Hold // a message needs to contain theirs
	}{
		"none": {func(*world.Input) {}, nil},
		"steps beyond the guard's limit": {
			func(in *world.Input) {
				in.Observed.Fleet.Holds = []model.GuardHold{{
					Token: "T", Revision: "main@sha1:abcdef", Since: since, Until: since.Add(1), Limit: 3, Scope: "team",
					Steps: []model.Disruption{{Action: proposal.StepPowerOff, Server: server0, Claim: claim0}, {Action: proposal.StepRelease, Server: server0, Claim: claim0}},
				}}
			},
			[]Hold{{
				Subject: "2 steps held by the guard", Message: "limit of 3 within the guard's window for namespace team; there is room at",
				Approve: "Ingot-Approve: T", Revert: "git revert abcdef", Since: since, Until: since.Add(1),
				Effects: []Effect{
					effect(server0, "server "+server0+" is powered off, as claim default/c00000 asks for"),
					effect(server0, "server "+server0+" is taken from claim default/c00000, powered off, wiped and free for others"),
				},
			}},
		},
		"unknown fleet": {
			func(in *world.Input) {
				waitingSince(in, since)
				in.Observed.Fleet.Unknown, in.Observed.Fleet.UnknownToken = since, "T"
			},
			[]Hold{{
				Subject: "that claims are bound", Message: "knew the fleet", Approve: "Ingot-Approve: T", Since: since,
				Effects: []Effect{effect("", "claim default/w00000 is given a free server, which is installed for it")},
			}},
		},
		"servers found running after a gap": {
			func(in *world.Input) {
				edit(1, func(rec *model.ServerRecord) { rec.Life.FoundRunning = since })(in)
				in.Observed.Fleet.GapToken = "T"
			},
			[]Hold{{
				Subject: "that servers are switched off", Message: "found running", Approve: "Ingot-Approve: T",
				Effects: []Effect{effect(server1, "server "+server1+", which was found running, is switched off, and may be wiped and bound")},
			}},
		},
		"unreadable record": {
			func(in *world.Input) {
				in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "s9", Since: since, Token: "T"}}
			},
			[]Hold{{
				Subject: "that the record of s9 is given up", Message: "server s9", Approve: "Ingot-Approve: T", Since: since,
				Effects: []Effect{effect("s9", "what was decided about server s9 is forgotten, also that a claim has it")},
			}},
		},
		"absences": {
			func(in *world.Input) {
				claim, m := absence(claim0), absence("")
				claim.Blob, m.Identity, m.Token, m.Since = "b", model.MaintenanceIdentity("m"), "M", since.Add(1)
				in.Observed.Fleet.Absent, in.Observed.Fleet.AbsentToken, in.Observed.Fleet.AbsentMore = []model.Absence{m, claim}, "T", 1
			},
			[]Hold{{
				Subject: "3 objects absent without a commit", Message: "3 objects in force though Git lacks them", Approve: "Ingot-Approve: T", Since: since, LeftOut: 1,
				Effects: []Effect{
					approve(effect("", "ServerMaintenance m is removed: its server goes back into service (since 2026-11-21T11:00:00Z, HistoryRewritten)"), "M"),
					approve(effect(server0, "ServerClaim default/c00000 becomes what Git has in its place; it has server "+server0+" (since 2026-11-21T11:00:00Z, HistoryRewritten)"), "ABSENT"),
				},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 1)
			tc.change(in)
			got := documentsOf(in).Fleet.Holds
			for i := range min(len(got), len(tc.want)) {
				if strings.Contains(got[i].Message, tc.want[i].Message) {
					tc.want[i].Message = got[i].Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLongHoldCountsOmittedEffects(t *testing.T) {
	in := plantest.BigFleet(1, 0)
	in.Observed.Fleet.Holds = []model.GuardHold{{Token: "T", Steps: make([]model.Disruption, 5000)}, {Token: "U", Steps: make([]model.Disruption, 3)}}
	holds := documentsOf(in).Fleet.Holds
	if n := len(holds[0].Effects); n == 0 || n == 5000 || holds[0].LeftOut != 5000-n || holds[1].LeftOut+len(holds[1].Effects) != 3 || holds[1].Token() != "U" {
		t.Errorf("%d effects are shown, %d and %d left out", n, holds[0].LeftOut, holds[1].LeftOut)
	}
	one := Hold{Subject: "2 objects", Approve: "Ingot-Approve: T"}.Alone(Effect{Text: "x", Approve: "Ingot-Approve: A"})
	if one.Subject != "one of 2 objects" || one.Token() != "A" || one.Effects[0].Token() != "A" {
		t.Errorf("an effect alone is %+v", one)
	}
}

func TestFleetCountsAndProblems(t *testing.T) {
	in := shownFleet()
	in.Desired.Source = model.SourceState{Reason: model.SourceFetchFailed, Message: "refused", Since: fleettest.Now}
	fleet := documentsOf(in).Fleet
	want := Counts{
		Servers: map[model.ServerState]int{model.StateAvailable: 4, model.StateReserved: 3, model.StateReleased: 1, model.StateError: 1},
		Claims:  map[string]int{ClaimBooted: 3, ClaimUnbound: 1},
	}
	if diff := cmp.Diff(want, fleet.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(in.Desired.Problems, fleet.Problems); diff != "" || fleet.ProblemsLeftOut > 0 {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Trouble{model.SourceFetchFailed, "refused", fleettest.Now}, fleet.Trouble); diff != "" {
		t.Errorf("trouble (-want +got):\n%s", diff)
	}
}
