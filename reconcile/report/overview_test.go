package report

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// Objects of the fleets of these tests.
const (
	server0, server1 = "bmc00000-system-0", "bmc00001-system-0"
	claim0, waiting0 = "default/c00000", "default/w00000"
)

// entered is when the servers of a big fleet entered their states.
var entered = fleettest.Now.Add(-time.Hour)

func edit(i int, change func(rec *model.ServerRecord)) func(in *world.Input) {
	return func(in *world.Input) { fleettest.ChangeRecord(in.Observed, i, change) }
}

// waitingSince adds a claim without a server to a fleet.
func waitingSince(in *world.Input, since time.Time) {
	plantest.Waiting(in, 1, nil)
	in.Observed.Claims[waiting0] = &model.ClaimRecord{Name: waiting0, FirstSeen: since}
}

func absence(name model.ClaimName) model.Absence {
	return model.Absence{Identity: name.Identity(), Since: entered, Cause: model.AbsentHistoryRewritten, Token: "ABSENT"}
}

// holdPowerOff has the guard hold the power-off of the first server, which has a step in another list as well.
func holdPowerOff(in *world.Input, h model.GuardHold) {
	c := *in.Desired.Claims[claim0]
	c.Spec.Power = model.PowerOff
	in.Desired.Add(&c)
	h.Token, h.Revision = "HELD", "main@sha1:abcdef"
	h.Steps = []model.Disruption{{Action: proposal.StepPowerOff, Server: server0, Claim: claim0, Value: string(model.PowerOff)}}
	other := model.GuardHold{Token: "OTHER", Revision: "main@sha1:1", Steps: []model.Disruption{{Action: proposal.StepOperation, Server: server0}}}
	in.Observed.Fleet.Holds = []model.GuardHold{other, h}
}

// TestWaiting compares the waiting lists of objects. A message needs to contain the one of the table.
func TestWaiting(t *testing.T) {
	since := entered.Add(time.Minute)
	type want map[string][]Waiting // by path
	server, claim, waiting := Servers.Path(server0), Claims.Path(claim0), Claims.Path(waiting0)
	held := Waiting{
		Reason: model.ReasonGuardHeld, Message: "by a commit whose message ends with Ingot-Approve: HELD", Since: since, Actor: proposal.RackOperator,
		Approve: "Ingot-Approve: HELD", Revert: "git revert abcdef",
	}
	for name, tc := range map[string]struct {
		change func(in *world.Input)
		want   want
	}{
		"nothing": {func(*world.Input) {}, want{server: nil, claim: nil, Servers.Path(server1): nil, "bmcs/bmc00000.yaml": nil}},
		"failed wipe": {
			edit(0, func(rec *model.ServerRecord) {
				rec.Life.State, rec.Life.Reason, rec.Life.Message = model.StateError, model.ReasonCleanupFailed, "disk sda"
			}),
			want{server: {{Reason: model.ReasonCleanupFailed, Message: "disk sda", Since: entered, Actor: proposal.RackOperator}}},
		},
		"power-off beyond the guard's limit": {
			func(in *world.Input) { holdPowerOff(in, model.GuardHold{Since: since}) },
			want{server: {held}, claim: {held}},
		},
		"claim absent without a commit": {
			func(in *world.Input) { in.Desired.Absent = []model.Absence{absence(claim0)} },
			want{claim: {{
				Reason: model.ReasonAbsentWithoutCommit, Message: "the claim is not in Git", Since: entered, Actor: proposal.RackOperator, Approve: "Ingot-Approve: ABSENT",
			}}},
		},
		"absent claim of which only the name is known": {
			func(in *world.Input) {
				in.Desired.Absent = []model.Absence{absence(claim0)}
				delete(in.Desired.Claims, claim0)
			},
			want{
				claim:  {{Reason: model.ReasonAbsentWithoutCommit, Message: "the claim is not in Git", Since: entered, Actor: proposal.RackOperator, Approve: "Ingot-Approve: ABSENT"}},
				server: {{Reason: model.ReasonAbsentWithoutCommit, Message: "its claim default/c00000", Since: entered, Actor: proposal.RackOperator, Approve: "Ingot-Approve: ABSENT"}},
			},
		},
		"unknown fleet": {
			func(in *world.Input) {
				waitingSince(in, since)
				edit(1, func(rec *model.ServerRecord) { rec.Life.State, rec.Life.FoundRunning = model.StateInitial, since })(in)
				in.Observed.Fleet.Applied = model.Applied{}
				in.Observed.Fleet.Unknown, in.Observed.Fleet.UnknownToken = since, "UNKNOWN"
			},
			want{waiting: {{Reason: model.ReasonFleetUnknown, Message: "knows the fleet", Since: since, Actor: proposal.RackOperator, Approve: "Ingot-Approve: UNKNOWN"}}},
		},
		"server found running after a gap": {
			func(in *world.Input) {
				waitingSince(in, entered)
				edit(1, func(rec *model.ServerRecord) { rec.Life.FoundRunning = since })(in)
				in.Observed.Fleet.GapToken = "GAP"
			},
			want{
				Servers.Path(server1): {{Reason: model.ReasonFoundRunning, Message: "covers all servers", Since: entered, Actor: proposal.RackOperator, Approve: "Ingot-Approve: GAP"}},
				waiting:               {{Reason: model.ReasonFoundRunning, Message: "may serve this claim", Since: since, Actor: proposal.RackOperator, Approve: "Ingot-Approve: GAP"}},
			},
		},
		"steps of a revision after a gap": {
			func(in *world.Input) {
				waitingSince(in, entered)
				holdPowerOff(in, model.GuardHold{Since: since, Gap: true})
			},
			want{waiting: {held}, server: {held}},
		},
		"unreadable record of the claim's server": {
			func(in *world.Input) {
				waitingSince(in, entered)
				in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "s9", Claim: waiting0, Since: since, Token: "UNREAD"}}
			},
			want{waiting: {{Reason: model.ReasonRecordUnreadable, Message: "server s9", Since: since, Actor: proposal.RackOperator, Approve: "Ingot-Approve: UNREAD"}}},
		},
		"no free server": {
			func(in *world.Input) {
				waitingSince(in, since)
				edit(1, func(rec *model.ServerRecord) { rec.Life.State = model.StateMaintenance })(in)
			},
			want{waiting: {{Reason: model.ReasonNoServerFree, Message: "2 servers", Since: since, Actor: proposal.RackOperator}}},
		},
		"changed image": {
			func(in *world.Input) { in.Desired.Claims[claim0].Spec.Image = "os:2" },
			want{claim: {{Reason: model.ReasonPendingReprovision, Message: "ingot/reprovision", Since: entered, Actor: proposal.Tenant}}},
		},
		"maintenance that needs the owner's approval": {
			func(in *world.Input) {
				in.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{
					ServerRef: model.LocalRef{Name: server0}, Policy: model.MaintenanceOwnerApproval,
				}})
				edit(0, func(rec *model.ServerRecord) {
					rec.Maintenance.Awaits = &model.AwaitedApproval{Maintenance: "m", Since: since}
				})(in)
			},
			func() want {
				w := []Waiting{{Reason: model.ReasonApprovalAwaited, Message: "waits for the approval", Since: since, Actor: proposal.Tenant}}
				return want{server: w, claim: w, "servermaintenances/m.yaml": w}
			}(),
		},
		"maintenance of an unknown server": {
			func(in *world.Input) {
				in.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "s9"}}})
			},
			want{"servermaintenances/m.yaml": {{Reason: model.ReasonPending, Message: "s9"}}},
		},
		"unreachable BMC": {
			func(in *world.Input) {
				in.Observed.BMCs["bmc00000"] = &model.BMCRecord{
					Name: "bmc00000", Address: "192.0.2.1:443", BMCScratch: model.BMCScratch{Reason: model.ReasonConnectionFailed, LastError: "no route", Since: since},
				}
			},
			want{
				"bmcs/bmc00000.yaml": {{Reason: model.ReasonConnectionFailed, Message: "no route", Since: since, Actor: proposal.RackOperator}},
				server:               {{Reason: model.ReasonConnectionFailed, Message: "no route", Since: since, Actor: proposal.RackOperator}},
				claim:                {{Reason: model.ReasonConnectionFailed, Message: "no route", Since: since, Actor: proposal.RackOperator}},
			},
		},
		"address of a device that another one has": {
			func(in *world.Input) {
				in.Desired.Add(&model.Endpoint{Meta: model.Meta{Name: "e"}, Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:0a", IP: "192.0.2.9"}})
				in.Observed.Endpoints["e"] = &model.EndpointRecord{Name: "e", MACAddress: "02:00:00:00:00:0a", Since: since}
				in.Observed.EndpointFacts["02:00:00:00:00:0b"] = &model.EndpointFacts{MACAddress: "02:00:00:00:00:0b", IP: "192.0.2.9"}
			},
			want{"endpoints/e.yaml": {
				{Reason: model.ReasonAddressLost, Message: "02:00:00:00:00:0b", Since: since, Actor: proposal.RackOperator},
				{Reason: model.ReasonNoMACPrefix, Message: "", Since: since, Actor: proposal.RackOperator},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 1)
			in.Observed.Servers[server0].Claim.BoundAt = entered
			tc.change(in)
			docs := reportOf(in).Documents
			for path, want := range tc.want {
				d := docs[path].Object.(*Document)
				got := d.Overview().Waiting
				for i := range min(len(got), len(want)) {
					if !strings.Contains(got[i].Message, want[i].Message) {
						t.Errorf("%s: message %q does not contain %q", path, got[i].Message, want[i].Message)
					}
					want[i].Next = adviceOn(want[i].Reason).Text
					if want[i].Actor == proposal.ActorNone {
						want[i].Next = ""
					}
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Waiting{}, "Message")); diff != "" {
					t.Errorf("%s waits (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

func TestWaitingOfABoot(t *testing.T) {
	for name, tc := range map[string]struct {
		change              func(in *world.Input, rec *model.ServerRecord)
		state, reason       string
		actor               proposal.Actor
		configuration, wait string // state of the boot configuration, and what it waits for
	}{
		"on its way": {func(*world.Input, *model.ServerRecord) {}, ClaimBound, model.ReasonWaitingForBoot, "", "Ready", ""},
		"image not found": {func(_ *world.Input, rec *model.ServerRecord) {
			rec.Boot.Problem, rec.Boot.Ticket = &model.BootProblem{
				Digest: rec.Boot.Ticket.Digest, Architecture: "amd64", Reason: model.ReasonNotFound, Image: "os:1", Message: "no such tag",
				ProblemScratch: model.ProblemScratch{NotBefore: fleettest.Now.Add(time.Minute)},
			}, nil
		}, ClaimBound, model.ReasonNotFound, proposal.Tenant, "Error", model.ReasonNotFound},
		"booted": {func(_ *world.Input, rec *model.ServerRecord) {
			rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
		}, ClaimBooted, "", "", "Ready", ""},
		"unconfirmed": {func(in *world.Input, rec *model.ServerRecord) {
			rec.Install.Digest, rec.Install.Unconfirmed, rec.Boot.Ticket.IgnitionAt = rec.Boot.Ticket.Digest, in.Now, entered
		}, ClaimUnconfirmed, model.ReasonUnconfirmed, proposal.Tenant, "Ready", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
			tc.change(in, rec)
			docs := documentsOf(in)
			got := docs.Get(Claims, claim0).Overview()
			if w := got.First(); got.Summary.State != tc.state || w.Reason != tc.reason || w.Actor != tc.actor || got.NeedsAction() != (tc.actor != "") {
				t.Errorf("claim: %+v", got)
			}
			if got := docs.Get(BootConfigurations, claim0).Overview(); got.Summary.State != tc.configuration || got.First().Reason != tc.wait {
				t.Errorf("boot configuration: %+v", got)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	in := plantest.BigFleet(2, 1)
	in.Desired.BMCs["bmc00000"].Labels = map[string]string{"location": "berlin", "rack": "r7", "shelf": "4"}
	in.Observed.Servers[server0].Claim.BoundAt = entered
	want := map[string]Summary{
		Servers.Path(server0): {State: "Reserved", Since: entered, Claim: claim0, BMC: "bmc00000", Power: model.PowerOn, Rack: "berlin/r7 U4"},
		Servers.Path(server1): {State: "Available", Since: entered, BMC: "bmc00001", Power: model.PowerOff, Rack: "1"},
		Claims.Path(claim0):   {State: ClaimBooted, Since: entered, Server: server0, Image: "os:1"},
		"bmcs/bmc00001.yaml":  {State: BMCEnabled, Addresses: []string{"192.0.2.1:443"}},
	}
	r := reportOf(in)
	for path, want := range want {
		if diff := cmp.Diff(want, r.Documents[path].Object.(*Document).Overview().Summary); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestLogin(t *testing.T) {
	for name, tc := range map[string]struct {
		image, secret   string // key of the claim's Secret
		user            string // of the catalogue's entry
		report, boot    string // where they came from
		other           string // where the report of another server came from
		want, addresses string
	}{
		"user of the image's name":             {image: "registry.example.com/debian:13", report: "192.0.2.7", want: "ssh debian@192.0.2.7", addresses: "192.0.2.7 (by its boot report)"},
		"last request of the boot":             {image: "registry.example.com/debian:13", boot: "192.0.2.8", want: "ssh debian@192.0.2.8", addresses: "192.0.2.8 (by its network boot)"},
		"report before the boot":               {image: "registry.example.com/debian:13", report: "2001:db8::7", boot: "192.0.2.8", want: "ssh debian@2001:db8::7", addresses: "2001:db8::7 (by its boot report)"},
		"user of Ignition":                     {image: "registry.example.com/os:1", secret: "ignition", report: "192.0.2.7", want: "ssh core@192.0.2.7", addresses: "192.0.2.7 (by its boot report)"},
		"user of the catalogue's entry":        {image: "registry.example.com/debian:13", secret: "ignition", user: "admin", report: "192.0.2.7", want: "ssh admin@192.0.2.7", addresses: "192.0.2.7 (by its boot report)"},
		"unknown user":                         {image: "registry.example.com/os:1", secret: "user-data", report: "192.0.2.7", addresses: "192.0.2.7 (by its boot report)"},
		"unknown address":                      {image: "registry.example.com/debian:13"},
		"address of a proxy of several":        {image: "registry.example.com/debian:13", report: "192.0.2.7", other: "192.0.2.7"},
		"address of no machine":                {image: "registry.example.com/debian:13", report: "127.0.0.1", boot: "not an address"},
		"several servers with their addresses": {image: "registry.example.com/debian:13", report: "192.0.2.7", other: "192.0.2.9", want: "ssh debian@192.0.2.7", addresses: "192.0.2.7 (by its boot report)"},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 2)
			c := in.Desired.Claims[claim0]
			c.Spec.Image = tc.image
			if tc.secret != "" {
				c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "s"}
				in.Desired.Secrets["default/s"] = &model.Secret{Values: map[string]model.Sensitive{tc.secret: model.NewSensitive("x")}}
			}
			for server, client := range map[model.ServerName]string{server0: tc.report, server1: tc.other} {
				rec := *in.Observed.Servers[server]
				if server == server0 {
					boot, _ := booting.BootOfClaim(in.Desired, c)
					rec.Install.Digest = booting.Digest(in.DigestKey, &boot)
				}
				if tc.user != "" {
					rec.Claim.Image = &model.CatalogImage{Name: "os", Image: tc.image, User: tc.user}
				}
				rec.Boot.Ticket = &model.Ticket{ID: "t-" + string(server), Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Image: model.PinnedImage{Ref: tc.image}, Ended: model.TicketBooted}
				in.Observed.Servers[server] = &rec
				if client != "" {
					in.Observed.BootStates[server] = &model.BootState{Ticket: rec.Boot.Ticket.ID, Client: client}
				}
			}
			if tc.boot != "" {
				in.Observed.Progress[server0] = &model.Progress{Ticket: "t-" + server0, Client: tc.boot}
			}
			docs := reportOf(in).Documents
			s := docs[Claims.Path(claim0)].Object.(*Document).Overview().Summary
			if s.State != ClaimBooted {
				s.Login = "not " + ClaimBooted + " but " + s.State
			}
			if s.Login != tc.want || s.AddressText() != tc.addresses {
				t.Errorf("got %q at %q, want %q at %q", s.Login, s.AddressText(), tc.want, tc.addresses)
			}
			if page := docs[model.ReportReadme].Text; tc.want != "" && !strings.Contains(page, " `"+tc.want+"` ") {
				t.Errorf("README.md cannot be copied from:\n%s", page)
			}
		})
	}
}

func TestSummaryAddresses(t *testing.T) {
	probed := func(ips ...string) *model.ProbeReport {
		return &model.ProbeReport{Data: model.ProbeData{NetworkInterfaces: []model.ProbeNetworkInterface{{Name: "eth0", IPAddresses: ips}}}}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("192.0.2.", 30-i))
	}
	for name, tc := range map[string]struct {
		leases []netip.Addr
		probe  *model.ProbeReport
		free   bool
		want   []string
	}{
		"none": {},
		"leased before reported": {
			leases: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.9")}, probe: probed("192.0.2.1"), want: []string{"192.0.2.9", "192.0.2.10"},
		},
		"reported without a lease": {
			probe: probed("2001:db8::1", "192.0.2.1", "192.0.2.1", "fe80::1", "127.0.0.1", "<b>"), want: []string{"192.0.2.1", "2001:db8::1"},
		},
		"at most eight":        {probe: probed(many...), want: []string{"192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14", "192.0.2.15", "192.0.2.16", "192.0.2.17", "192.0.2.18"}},
		"none without a claim": {leases: []netip.Addr{netip.MustParseAddr("192.0.2.9")}, probe: probed("192.0.2.1"), free: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(1, 1)
			if tc.free {
				in = plantest.BigFleet(1, 0)
			}
			in.Observed.Probes[server0], in.Addresses = tc.probe, map[model.ServerName][]netip.Addr{server0: tc.leases}
			r := reportOf(in)
			for _, path := range []string{Servers.Path(server0), Claims.Path(claim0)} {
				if tc.free && path == Claims.Path(claim0) {
					continue
				}
				if diff := cmp.Diff(tc.want, r.Documents[path].Object.(*Document).Overview().Summary.Addresses); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}
