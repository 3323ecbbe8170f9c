package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// readBack is the largest file of the status branch that is read back, in bytes.
const readBack = 1 << 20

// long is what somebody hostile calls things: as much as a report may hold.
var long = strings.Repeat("ä\x01\n", 1<<10)

func manyDisks(n int, result string) []model.DiskWipe {
	var disks []model.DiskWipe
	for range n {
		disks = append(disks, model.DiskWipe{Name: long, Serial: long, Model: long, Method: long, Result: result, Error: long})
	}
	return disks
}

// No file may grow beyond what is read back, whatever BMCs, probes and manifests say:
// with the file its record would be lost.
func TestNoFileOutgrowsWhatIsReadBack(t *testing.T) {
	const name = model.ServerName("bmc00000-system-0")
	tests := map[string]struct {
		change func(in *world.Input, rec *model.ServerRecord)
		path   string
		says   string // of what is left out
	}{
		"1500 neighbours": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				probe := &model.ProbeReport{Data: model.ProbeData{
					NetworkInterfaces: []model.ProbeNetworkInterface{{Name: "eth0"}}, LLDP: []model.ProbeLLDP{{Name: "eth0"}},
				}}
				for i := range 1500 {
					probe.Data.LLDP[0].Neighbors = append(probe.Data.LLDP[0].Neighbors, model.ProbeNeighbor{
						ChassisID: fmt.Sprint(i), SystemName: strings.Repeat("n", 400), SystemDescription: strings.Repeat("d", 400),
					})
				}
				in.Observed.Probes[name] = probe
			},
			path: "servers/" + string(name) + ".yaml",
			says: "of 1500 neighbours of eth0",
		},
		"many interfaces with many addresses": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				probe := &model.ProbeReport{}
				for range 4096 {
					n := model.ProbeNetworkInterface{Name: long, MACAddress: long, CarrierStatus: long}
					for range 100 {
						n.IPAddresses = append(n.IPAddresses, long)
					}
					probe.Data.NetworkInterfaces = append(probe.Data.NetworkInterfaces, n)
				}
				in.Observed.Probes[name] = probe
			},
			path: "servers/" + string(name) + ".yaml",
			says: "of 4096 network interfaces",
		},
		"a BMC that shows all too much": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				inv := &model.Inventory{
					Manufacturer: long, Model: long, SKU: long, SerialNumber: long, BIOSVersion: long, IndicatorLED: long,
				}
				for range 4096 {
					inv.BootOrder = append(inv.BootOrder, long)
				}
				for range 100 {
					inv.Processors = append(inv.Processors, model.Processor{ID: long, Type: long, Model: long})
					s := model.Storage{Name: long, State: long}
					for range 100 {
						s.Drives = append(s.Drives, model.Drive{Name: long, Model: long})
						s.Volumes = append(s.Volumes, model.Volume{Name: long})
					}
					inv.Storages = append(inv.Storages, s)
				}
				in.Observed.ServerFacts[name] = &model.ServerFacts{Name: name, Inventory: inv}
			},
			path: "servers/" + string(name) + ".yaml",
			says: "of 10000 drives",
		},
		"a wipe of many disks": {
			change: func(in *world.Input, rec *model.ServerRecord) {
				rec.Life.State, rec.Boot.Ticket = model.StateCleanup, &model.Ticket{ID: "t", Purpose: model.PurposeCleanup}
				w := &model.WipeProgress{Ticket: "t"}
				for range 4096 {
					w.Disks = append(w.Disks, model.DiskProgress{Name: long, Serial: long, Method: long})
				}
				in.Observed.WipeProgress[name] = w
				rec.Disks.Wiped = manyDisks(1024, model.WipeDone)
			},
			path: "servers/" + string(name) + ".yaml",
			says: "of 4096 disks",
		},
		"texts without end": {
			change: func(_ *world.Input, rec *model.ServerRecord) {
				endless := strings.Repeat(long, 400)
				rec.Life.State, rec.Life.Reason, rec.Life.Message = model.StateError, "CleanupFailed", endless
				rec.Boot.Problem = &model.BootProblem{Message: endless}
				rec.Boot.NoDiskBoot = &model.NoDiskBoot{Message: endless}
				rec.Requests.Operation = &model.Operation{Message: endless}
				rec.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Message: endless}
			},
			path: "servers/" + string(name) + ".yaml",
		},
		"a thousand rules that it is not ready for": {
			change: func(in *world.Input, rec *model.ServerRecord) {
				for i := range 1000 {
					rule := &model.ServerReadinessRule{Meta: model.Meta{Name: fmt.Sprint("rule", i)}}
					rule.Spec.Taint = model.Taint{Key: "t"}
					for j := range model.MaxRequiredConditions {
						rule.Spec.Conditions = append(rule.Spec.Conditions, model.RequiredCondition{
							Type: fmt.Sprint(strings.Repeat("d", 200), "/", strings.Repeat("k", 60), j), RequiredStatus: model.StatusTrue,
						})
					}
					in.Desired.Add(rule)
				}
				for i := range model.MaxBootstrapCompleted {
					rec.Life.BootstrapCompleted = append(rec.Life.BootstrapCompleted, fmt.Sprint(strings.Repeat("r", 250), i))
				}
			},
			path: "servers/" + string(name) + ".yaml",
			says: "of 1000 taints",
		},
		"problems of 30 files of 190 wrong claims": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				for i := range 30 * 190 {
					in.Desired.Problems = append(in.Desired.Problems, model.Problem{
						Severity: model.SeverityError, File: fmt.Sprintf("claims/%d.yaml", i/190), Line: i % 190,
						Message: strings.Repeat("x", 300),
					})
				}
			},
			path: model.ReportFleet,
			says: "problemsLeftOut: 5",
		},
		"a few problems without end": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				for range 900 {
					in.Desired.Problems = append(in.Desired.Problems, model.Problem{File: long, Object: long, Field: long, Message: long})
				}
			},
			path: model.ReportFleet,
			says: "problemsLeftOut: 8",
		},
		"a guard that holds a whole fleet": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				var steps []model.Disruption
				for i := range 10_000 {
					steps = append(steps, model.Disruption{
						Action: "release", Server: model.ServerName(fmt.Sprintf("rack-%05d-system-0", i)),
						Claim: model.ClaimName(fmt.Sprintf("default/claim-%05d", i)),
						At:    time.Now(), Revision: model.Revision("main@sha1:" + strings.Repeat("a", 40)),
					})
				}
				f := &in.Observed.Fleet
				f.ApprovedSteps, f.Done = steps, steps
				for range model.MaxHolds {
					f.Holds = append(f.Holds, model.GuardHold{Token: "t", Steps: steps})
				}
				for i := range model.MaxAbsent {
					f.Absent = append(f.Absent, model.Absence{
						Identity: model.Identity{Kind: model.KindServerClaim, Namespace: "default", Name: fmt.Sprintf("claim-%05d", i)},
						Blob:     strings.Repeat("b", 40), Cause: model.AbsentHistoryRewritten, Token: strings.Repeat("t", 26),
					})
				}
			},
			path: model.ReportFleet,
			says: "leftOut: 9",
		},
		"removals of a whole fleet": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				for i := range 10_000 {
					in.Observed.Fleet.Removed = append(in.Observed.Fleet.Removed, model.RemovedObject{
						Identity: model.Identity{Kind: model.KindServerClaim, Namespace: "default", Name: fmt.Sprintf("claim-%05d", i)},
						Removal:  model.Removal{Revision: model.Revision("main@sha1:" + strings.Repeat("a", 40)), At: time.Now()},
					})
				}
			},
			path: model.ReportFleet,
		},
		"a fleet whose records cannot be read": {
			change: func(in *world.Input, _ *model.ServerRecord) {
				for i := range 10_000 {
					in.Observed.Fleet.Unreadable = append(in.Observed.Fleet.Unreadable, model.UnreadableRecord{
						Server: model.ServerName(fmt.Sprintf("rack-%05d-system-0", i)),
						Claim:  model.ClaimName(fmt.Sprintf("default/claim-%05d", i)),
						Since:  time.Now(), Token: strings.Repeat("t", 20),
					})
				}
			},
			path: model.ReportFleet,
			says: "holdsLeftOut: 9",
		},
	}
	everything := tests["removals of a whole fleet"]
	var changes []func(in *world.Input, rec *model.ServerRecord)
	for _, test := range tests {
		if test.path == model.ReportFleet {
			changes = append(changes, test.change)
		}
	}
	everything.change = func(in *world.Input, rec *model.ServerRecord) {
		for _, change := range changes {
			change(in, rec)
		}
		for i := range 10_000 {
			in.Desired.LastGood = append(in.Desired.LastGood, model.LastGood{
				Identity: model.ClaimName(fmt.Sprintf("default/claim-%05d", i)).Identity(), Path: "claims.yaml", Behind: []string{"a.yaml", "b.yaml"},
			})
		}
	}
	tests["all of the fleet at once"] = everything
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			in := plantest.BigFleet(3, 1)
			fleettest.ChangeRecord(in.Observed, 0, func(rec *model.ServerRecord) {
				rec.Requests.HandledReprovision, rec.Requests.HandledBefore = "3", []string{"operation=power-cycle-server#1"}
				for i := range 1024 {
					rec.Disks.Missing = append(rec.Disks.Missing, model.MissingDisk{
						Name: fmt.Sprint(i), Serial: strings.Repeat("s", 100), Gone: i%2 == 0,
					})
				}
				test.change(in, rec)
			})
			files := fleettest.Rendered(t, reportOf(in))
			for path, content := range files {
				if len(content) > readBack {
					t.Errorf("%s has %d bytes, at most %d are read back", path, len(content), readBack)
				}
			}
			if !strings.Contains(string(files[test.path]), test.says) {
				t.Errorf("%s does not say what is left out: want %q", test.path, test.says)
			}
			records, problems := ReadBranch(files)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, want := *records.Servers[name], *in.Observed.Servers[name]
			for _, rec := range []*model.ServerRecord{&got, &want} { // what is only told
				rec.Life.Message, rec.Disks.Wiped = "", nil
				rec.Boot.Problem, rec.Boot.NoDiskBoot, rec.Requests.Operation, rec.Doubt = nil, nil, nil, nil
				rec.Life.Since, rec.Claim.BoundAt, rec.Power.Asked = time.Time{}, time.Time{}, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("record read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedWipesAreShownFirst(t *testing.T) {
	all := append(manyDisks(1000, model.WipeDone), manyDisks(3, model.WipeFailed)...)
	before := slices.Clone(all)
	shown := shownWipes(all)
	if len(shown) == len(all) || len(shown) < 4 || shown[2].Result != model.WipeFailed || shown[3].Result != model.WipeDone {
		t.Errorf("%d of %d are shown, the third is %s", len(shown), len(all), shown[2].Result)
	}
	if diff := cmp.Diff(before, all); diff != "" {
		t.Errorf("the record changed:\n%s", diff)
	}
}

func TestErrorsAreShownBeforeWarnings(t *testing.T) {
	in, r := plantest.BigFleet(1, 0), new(plan.Result)
	in.Desired.Problems = []model.Problem{{Severity: model.SeverityError, File: "z", Message: "wrong"}}
	shown := func() *Fleet {
		_, docs := new(Projector).Report(in, r, 1, model.Holder{})
		return docs.Fleet
	}
	r.Unmatched = []model.Problem{{Severity: model.SeverityWarning, File: "a", Message: "not known"}}
	if diff := cmp.Diff([]model.Problem{r.Unmatched[0], in.Desired.Problems[0]}, shown().Problems); diff != "" {
		t.Errorf("two problems are not in the order of files:\n%s", diff)
	}
	for range 2000 {
		r.Unmatched = append(r.Unmatched, r.Unmatched[0])
	}
	if doc := shown(); doc.Problems[0] != in.Desired.Problems[0] || len(doc.Problems) < 250 || len(doc.Problems) > 450 || doc.ProblemsLeftOut != 2002-len(doc.Problems) {
		t.Errorf("%d are shown, the first is %q", len(doc.Problems), doc.Problems[0])
	}
}

func TestTheNewestOfWhatTheGuardLetPassIsKept(t *testing.T) {
	var rec model.FleetRecord
	for i := range 5000 {
		rec.Done = append(rec.Done, model.Disruption{Action: "release", Server: model.ServerName(fmt.Sprint(i))})
	}
	done := decidedFleet(rec).Done
	if len(done) == 0 || len(done) == 5000 || done[len(done)-1].Server != "4999" || len(rec.Done) != 5000 {
		t.Errorf("%d are kept, of %d", len(done), len(rec.Done))
	}
	if short := decidedFleet(model.FleetRecord{Done: rec.Done[:3]}).Done; len(short) != 3 {
		t.Errorf("%d of 3 are kept", len(short))
	}
}

func TestTheReadmeIsCutAfterALine(t *testing.T) {
	page := strings.Repeat("| row |\n", 1<<16)
	cut := shownReadme(page)
	if len(cut) > maxReadme+100 || !strings.HasSuffix(cut, "| row |\n\nThe page is cut here; the folders hold all.\n") {
		t.Errorf("%d bytes, ending %q", len(cut), cut[len(cut)-80:])
	}
	if short := "# Fleet\n"; shownReadme(short) != short {
		t.Errorf("a short page became %q", shownReadme(short))
	}
}
