package event_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// full is a server whose record has something in each part. It asked for its script 30 seconds after it
// was powered on with its ticket.
func full() *proposal.Server {
	hour, minute := now.Add(-time.Hour), now.Add(-time.Minute)
	problem := &model.SettingProblem{Reason: model.ReasonUnsupported}
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: "s1", BMC: "b1", SystemURI: "/1", UUID: "u", MACs: []model.ServerMAC{{Address: "old"}}, Orphaned: hour},
		Life: model.RecordLife{
			State: model.StateReserved, Since: hour, Reason: "Old", Message: "old", FoundRunning: hour, BootstrapCompleted: []string{"rule"},
			LifeScratch: model.LifeScratch{Failures: 2, NotBefore: now.Add(time.Minute), LastError: "no answer"},
		},
		Claim:   model.RecordClaim{Name: "default/web", BoundAt: hour, Tenant: "alpha", Power: model.PowerOn, Cleanup: model.CleanupSecure},
		Release: &model.Release{Claim: "default/web", At: hour},
		Power: model.RecordPower{
			PowerObserved: model.PowerObserved{Asked: &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: minute, Again: 2}},
			PowerScratch:  model.PowerScratch{NoShutdown: hour},
		},
		Boot: model.RecordBoot{
			Ticket: &model.Ticket{
				ID: "t", Purpose: model.PurposeClaim, Claim: "default/web", Digest: "new", ArmedAt: minute, Always: true,
				Target: &model.InstallTarget{RootDevice: "sda", Overwrite: "yes"},
			},
			Serial: 3, Problem: &model.BootProblem{Reason: model.ReasonImagePreparing}, Theft: &model.Theft{MAC: "m", Count: 2},
			BootObserved: model.BootObserved{OverrideVariant: "default", NoDiskBoot: &model.NoDiskBoot{Reason: "r"}},
			BootScratch:  model.BootScratch{Attempts: 2, BootsAfter: time.Minute},
		},
		Install: model.RecordInstall{
			Digest: "old", Unconfirmed: hour, RootDisk: &model.InstalledDisk{RootDisk: model.RootDisk{Name: "sdb"}}, Reprovision: "2", Replaces: "older",
		},
		Disks: model.RecordDisks{
			Known: []model.Disk{{Name: "sda"}}, KnownAt: hour, Wiped: []model.DiskWipe{{Name: "old"}}, Missing: []model.MissingDisk{{Name: "old"}},
		},
		Maintenance: model.RecordMaintenance{
			By: "old", Power: &model.MaintenancePower{Want: model.PowerOff}, Awaits: &model.AwaitedApproval{Maintenance: "m"},
			ShownOn: []string{"m"}, ServicedAt: hour,
		},
		Requests: model.RecordRequests{
			Operation: &model.Operation{Value: "o"}, HandledOperation: "o", HandledReprovision: "2", HandledDiscover: "d", HandledDisks: "d",
			HandledOverwrite: "old", HandledBefore: []string{"operation=1", "reprovision=1", "overwrite=1"},
		},
		Settings: model.RecordSettings{
			BootOrderSet:     "set",
			SettingsObserved: model.SettingsObserved{IndicatorProblem: problem, BootOrderProblem: problem, BootOrderPending: &model.PendingBootOrder{}},
		},
		Intent: &model.Intent{Kind: model.IntentReprovision, Value: "2", Revision: "main@sha1:0"},
		Doubt:  &model.Doubt{Reason: model.DoubtInstallUnknown},
	}
	desired, observed, options := model.NewDesired(), model.NewObserved(), policy.Default()
	desired.Revision = "main@sha1:1"
	observed.Progress["s1"] = &model.Progress{Ticket: "t", ScriptAt: minute.Add(30 * time.Second)}
	return &proposal.Server{
		Moment: &proposal.Moment{Now: now, Policy: &options, Desired: desired, Observed: observed}, Name: "s1", Record: rec, Stored: rec,
	}
}

// entered is what each change of state does.
func entered(rec *model.ServerRecord, s model.ServerState) {
	rec.Life.State, rec.Life.Since, rec.Life.Reason, rec.Life.Message, rec.Boot.Problem = s, now, "", "", nil
}

func closed(rec *model.ServerRecord, as model.TicketState) {
	t := *rec.Boot.Ticket
	t.Ended = as
	rec.Boot.Ticket = &t
}

// TestAfter compares the whole record, so that a part that an event must not change is compared, too.
func TestAfter(t *testing.T) {
	claim := &model.ServerClaim{
		Meta: model.Meta{Name: "db", Namespace: "default", Tenant: "beta", Annotations: map[string]string{
			model.AnnotationReprovision: "9", model.AnnotationCleanup: model.CleanupQuick,
		}},
		Spec: model.ServerClaimSpec{Power: model.PowerOff},
	}
	owned := model.RecordClaim{Name: "default/db", BoundAt: now, Tenant: "beta", Power: model.PowerOff, Cleanup: model.CleanupQuick}
	intent := func(kind model.IntentKind, value string) *model.Intent {
		return &model.Intent{Kind: kind, Value: value, Revision: "main@sha1:1"}
	}
	noThefts := &model.Theft{MAC: "m"}
	wiped, missing := []model.DiskWipe{{Name: "sda"}}, []model.MissingDisk{{Name: "sdb"}}
	failed := func(s *server) {
		s.Record.Power.Asked, s.Record.Doubt, s.Record.Boot.Problem.Reason = nil, nil, model.ReasonBootTimeout
	}
	served := func(s *server) { s.Observed.Progress["s1"].IgnitionAt = now.Add(-time.Second) }

	retried := func(rec *model.ServerRecord) {
		rec.Life.NotBefore, rec.Life.Failures, rec.Life.LastError = time.Time{}, 0, ""
		rec.Boot.Attempts, rec.Boot.Problem, rec.Boot.NoDiskBoot, rec.Boot.Theft = 0, nil, nil, noThefts
		rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem = nil, nil
	}
	type record = *model.ServerRecord
	for _, c := range []struct {
		name  string
		event event.Event
		from  model.ServerState
		given func(s *server)  // nil = full
		then  func(rec record) // what the event changes
	}{
		{"Bound", event.Event{Kind: event.Bound, Claim: claim}, model.StateAvailable, nil, func(rec record) {
			entered(rec, model.StateReserved)
			rec.Claim, rec.Release, rec.Intent = owned, nil, intent(model.IntentBind, "default/db")
			rec.Boot.Attempts, rec.Install = 0, model.RecordInstall{Replaces: "older"}
			rec.Requests.HandledReprovision, rec.Requests.HandledOverwrite, rec.Requests.HandledBefore = "9", "", []string{"operation=1"}
		}},
		{"Adopted", event.Event{Kind: event.Adopted, Claim: claim, Value: "runs"}, model.StateInitial, nil, func(rec record) {
			entered(rec, model.StateReserved)
			rec.Life.FoundRunning = time.Time{}
			rec.Claim, rec.Intent = owned, intent(model.IntentAdopt, "default/db")
			rec.Install.Digest, rec.Install.Unconfirmed = "runs", time.Time{}
			rec.Requests.HandledReprovision, rec.Requests.HandledBefore = "9", []string{"operation=1", "overwrite=1"}
		}},
		{"Renamed", event.Event{Kind: event.Renamed, Claim: claim}, model.StateReserved, nil, func(rec record) {
			closed(rec, "")
			rec.Claim.Name, rec.Boot.Ticket.Claim = "default/db", "default/db"
		}},
		{"Renamed, its binding not shown yet, with a ticket of no claim", event.Event{Kind: event.Renamed, Claim: claim}, model.StateReserved, func(s *server) {
			s.Record.Intent.Value, s.Record.Boot.Ticket.Claim = "default/web", ""
		}, func(rec record) {
			rec.Claim.Name, rec.Intent = "default/db", &model.Intent{Kind: model.IntentReprovision, Value: "default/db", Revision: "main@sha1:0"}
		}},
		{"Released", event.Event{Kind: event.Released, Release: &model.Release{Retain: true}}, model.StateReserved, nil, func(rec record) {
			closed(rec, model.TicketSpent)
			rec.Boot.Ticket.Always, rec.Boot.Problem = false, nil
			rec.Life.NotBefore, rec.Life.Failures, rec.Life.LastError = time.Time{}, 0, ""
			rec.Release, rec.Intent = &model.Release{Retain: true}, intent(model.IntentRelease, "default/web")
		}},
		{"GivenUp", event.Event{Kind: event.GivenUp}, model.StateReserved, nil, func(rec record) {
			entered(rec, model.StateCleanup)
			rec.Claim.Name, rec.Claim.Tenant, rec.Claim.Power = "", "", ""
			rec.Install.Digest, rec.Install.Unconfirmed, rec.Doubt = "", time.Time{}, nil
		}},
		{"Freed", event.Event{Kind: event.Freed, Proof: &proposal.Proof{Reported: wiped, Missing: missing}}, model.StateCleanup, nil, func(rec record) {
			entered(rec, model.StateAvailable)
			closed(rec, model.TicketBooted)
			rec.Claim.Cleanup, rec.Boot.Attempts, rec.Install.RootDisk = "", 0, nil
			rec.Disks.Wiped, rec.Disks.Missing, rec.Release, rec.Intent = wiped, missing, nil, nil
		}},
		{"Discovered", event.Event{Kind: event.Discovered, MACs: []model.ServerMAC{{Address: "new"}}}, model.StateDiscovery, nil, func(rec record) {
			entered(rec, model.StateAvailable)
			closed(rec, model.TicketBooted)
			rec.Boot.Attempts, rec.Boot.Theft, rec.Boot.BootsAfter = 0, noThefts, 30*time.Second
			rec.MACs, rec.Intent = []model.ServerMAC{{Address: "new"}}, nil
		}},
		{"Discovered, with a ticket that ended and no request seen", event.Event{Kind: event.Discovered}, model.StateDiscovery, func(s *server) {
			s.Record.Boot.Ticket.Ended = model.TicketSpent
			s.Observed.Progress["s1"].ScriptAt = s.Record.Power.Asked.At
		}, func(rec record) {
			entered(rec, model.StateAvailable)
			rec.Boot.Attempts, rec.Boot.Theft, rec.MACs, rec.Intent = 0, noThefts, nil, nil
		}},
		{"FoundRunning", event.Event{Kind: event.FoundRunning, Value: "it is On"}, model.StateInitial, nil, func(rec record) {
			closed(rec, model.TicketSpent)
			rec.Life.FoundRunning, rec.Life.Message = now, "it is On"
		}},
		{"Retried, not known to be installed", event.Event{Kind: event.Retried}, model.StateError, func(s *server) { s.Record.Life.Back = model.StateReserved }, func(rec record) {
			entered(rec, model.StateReserved)
			closed(rec, model.TicketSpent)
			again := *rec.Power.Asked
			again.Again = 0
			rec.Power.Asked = &again
			rec.Life.Back, rec.Doubt = "", nil
			retried(rec)
		}},
		{"Retried, in no error, with a lost answer and another doubt", event.Event{Kind: event.Retried}, model.StateReserved, func(s *server) {
			s.Record.Power.Asked.Unsure, s.Record.Doubt.Reason = true, model.DoubtUnreadable
		}, func(rec record) {
			rec.Power.Asked = nil
			retried(rec)
		}},
		{"Retried, after a boot that failed", event.Event{Kind: event.Retried}, model.StateReserved, failed, func(rec record) {
			closed(rec, model.TicketSpent)
			retried(rec)
		}},
		{"Retried, after a boot that failed once its configuration was served", event.Event{Kind: event.Retried}, model.StateReserved, func(s *server) {
			failed(s)
			served(s)
		}, retried},
		{"Installed", event.Event{Kind: event.Installed}, model.StateReserved, nil, func(rec record) {
			rec.Boot.Attempts, rec.Boot.Problem, rec.Boot.BootsAfter = 0, nil, 30*time.Second
			rec.Install = model.RecordInstall{Digest: "new", Unconfirmed: now, Replaces: "older"}
		}},
		{"Installed from a disk image", event.Event{Kind: event.Installed}, model.StateReserved, func(s *server) {
			s.Record.Boot.Ticket.Disk = &model.DiskImage{}
			s.Observed.Progress["s1"].Install = &model.DiskInstall{Disk: &model.RootDisk{Name: "sda"}}
		}, func(rec record) {
			rec.Boot.Attempts, rec.Boot.Problem, rec.Boot.BootsAfter = 0, nil, 30*time.Second
			rec.Install = model.RecordInstall{
				Digest: "new", Unconfirmed: now, Replaces: "older",
				RootDisk: &model.InstalledDisk{RootDisk: model.RootDisk{Name: "sda"}, RootDevice: "sda", VerifiedAt: now},
			}
			rec.Requests.HandledOverwrite = "yes"
			rec.Requests.HandledBefore = []string{"operation=1", "reprovision=1", "overwrite=1", "overwrite=old"}
		}},
		{"MaintenanceBegun", event.Event{Kind: event.MaintenanceBegun, Value: "m", Power: model.PowerOn}, model.StateReserved, nil, func(rec record) {
			entered(rec, model.StateMaintenance)
			closed(rec, model.TicketSpent)
			rec.Life.Back = model.StateReserved
			rec.Maintenance.By, rec.Maintenance.Power = "m", &model.MaintenancePower{Want: model.PowerOn, Due: true}
		}},
		{"MaintenanceBegun, Off, once the configuration was served", event.Event{Kind: event.MaintenanceBegun, Value: "m", Power: model.PowerOff}, model.StateReserved, served, func(rec record) {
			entered(rec, model.StateMaintenance)
			rec.Life.Back, rec.Maintenance.By = model.StateReserved, "m"
		}},
		{"MaintenanceEnded", event.Event{Kind: event.MaintenanceEnded}, model.StateMaintenance, func(s *server) { s.Record.Life.Back = model.StateReserved }, func(rec record) {
			entered(rec, model.StateReserved)
			rec.Life.Back, rec.Maintenance.By, rec.Maintenance.Power, rec.Maintenance.ServicedAt, rec.Intent = "", "", nil, now, nil
		}},
		{"MaintenanceEnded, parked, with a lost answer", event.Event{Kind: event.MaintenanceEnded}, model.StateMaintenance, func(s *server) {
			s.Record.Life.Back, s.Record.Maintenance.By, s.Record.Power.Asked.Unsure = model.StateAvailable, model.OperationPark, true
		}, func(rec record) {
			entered(rec, model.StateAvailable)
			rec.Life.Back, rec.Maintenance.By, rec.Maintenance.Power, rec.Intent, rec.Power.Asked = "", "", nil, nil, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := func() *proposal.Server {
				s := full()
				s.Record.Life.State = c.from
				if c.given != nil {
					c.given(s)
				}
				return s
			}
			before, want := given(), *given().Record
			c.then(&want)
			if diff := cmp.Diff(&want, event.After(before, c.event).Record); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(given().Record, before.Record); diff != "" {
				t.Errorf("the record before the event was changed:\n%s", diff)
			}
		})
	}
}
