package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

var noticeNow = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noticeNow.Add(-d) }

// aReport has one document a path.
func aReport(documents map[string]any) *model.Report {
	r := &model.Report{Documents: make(map[string]*model.Document)}
	for path, object := range documents {
		r.Documents[path] = &model.Document{Object: object}
	}
	return r
}

func aServer(name string, rec model.ServerRecord, conds ...metav1.Condition) *Document {
	d := newDocument(model.KindServer, name)
	d.Status, d.Record = ServerStatus{State: rec.State, Conditions: conds}, &rec
	return d
}

func aClaim(conds ...metav1.Condition) *Document {
	d := newDocument(model.KindServerClaim, "web")
	d.Metadata.Namespace = "default"
	d.Status = ClaimStatus{Server: "s1", Conditions: conds}
	return d
}

func aBMC(state, reason string, since time.Time) *Document {
	d := newDocument(model.KindBMC, "b1")
	d.Status = BMCStatus{State: state, Conditions: []metav1.Condition{condition("Ready", false, reason, "no answer", since)}}
	return d
}

func TestWhatPeopleWantToBeToldOf(t *testing.T) {
	bound := condition("Bound", true, "Bound", "", before(72*time.Hour))
	held := &Revision{
		Guard:  []Guard{{Message: "4 steps would be more than the limit of 3", Approve: "Ingot-Approve: abcd"}},
		Record: model.FleetRecord{Holds: []model.GuardHold{{Token: "abcd", Since: before(time.Minute), Scope: "team"}}},
	}
	for name, tc := range map[string]struct {
		path   string
		object any
		want   []Notice
	}{
		"a server in Error": {
			path: "servers/s1.yaml",
			object: aServer("s1", model.ServerRecord{State: model.StateError, Reason: model.ReasonBootFailed, Message: "it hangs", Since: before(time.Hour)},
				condition("Ready", false, model.ReasonBootFailed, "it hangs; to act: rack operator", before(time.Hour))),
			want: []Notice{{
				Kind: NoticeServerError, Object: "server", Name: "s1", Reason: model.ReasonBootFailed, Since: before(time.Hour),
				Message: "it hangs; to act: rack operator",
			}},
		},
		"a server in Error whose BMC is lost is in Error since it was": {
			path: "servers/s1.yaml",
			object: aServer("s1", model.ServerRecord{State: model.StateError, Reason: model.ReasonBootFailed, Message: "it hangs", Since: before(time.Hour)},
				condition("Ready", false, "ConnectionFailed", "no answer", before(time.Minute))),
			want: []Notice{{
				Kind: NoticeServerError, Object: "server", Name: "s1", Reason: model.ReasonBootFailed, Since: before(time.Hour), Message: "it hangs",
			}},
		},
		"a server that was not wiped": {
			path:   "servers/s1.yaml",
			object: aServer("s1", model.ServerRecord{State: model.StateError, Reason: model.ReasonCleanupFailed, Message: "disk 7", Since: before(time.Hour)}),
			want: []Notice{{
				Kind: NoticeCleanupFailed, Object: "server", Name: "s1", Reason: model.ReasonCleanupFailed, Since: before(time.Hour), Message: "disk 7",
			}},
		},
		"a server whose ticket another asked for": {
			path: "servers/s1.yaml",
			object: aServer("s1", model.ServerRecord{State: model.StateReserved},
				condition(typeTicketRefused, true, "RefusedOther", "10.0.0.9 asked", before(time.Minute))),
			want: []Notice{{
				Kind: NoticeTicketRefused, Object: "server", Name: "s1", Reason: "RefusedOther", Since: before(time.Minute), Message: "10.0.0.9 asked",
			}},
		},
		"a server that is well": {path: "servers/s1.yaml", object: aServer("s1", model.ServerRecord{State: model.StateAvailable})},
		"what the guard holds": {
			path: model.ReportRevision, object: held,
			want: []Notice{{
				Kind: NoticeGuardHeld, Object: "guard", Name: "team", Reason: model.ReasonGuardHeld, Since: before(time.Minute),
				Message: "4 steps would be more than the limit of 3; in a commit message this line approves it: Ingot-Approve: abcd",
			}},
		},
		"a BMC that is lost": {
			path: "bmcs/b1.yaml", object: aBMC("Error", "ConnectionFailed", before(time.Minute)),
			want: []Notice{{Kind: NoticeBMCLost, Object: "bmc", Name: "b1", Reason: "ConnectionFailed", Since: before(time.Minute), Message: "no answer"}},
		},
		"a BMC that was lost a moment ago": {path: "bmcs/b1.yaml", object: aBMC("Error", "ConnectionFailed", before(59*time.Second))},
		"a BMC that is to be ignored":      {path: "bmcs/b1.yaml", object: aBMC("Error", model.ReasonIgnored, before(time.Hour))},
		"a BMC that was not read yet":      {path: "bmcs/b1.yaml", object: aBMC("Pending", model.ReasonPending, before(time.Hour))},
		"a claim that has no server for long": {
			path: "serverclaims/default/web.yaml", object: aClaim(condition("Bound", false, "NoMatch", "12 servers", before(time.Hour))),
			want: []Notice{{Kind: NoticeClaimWaiting, Object: "claim", Name: "default/web", Reason: "Waiting", Since: before(time.Hour), Message: "12 servers"}},
		},
		"a claim that has no server for a moment": {
			path: "serverclaims/default/web.yaml", object: aClaim(condition("Bound", false, "NoMatch", "12 servers", before(59*time.Minute))),
		},
		"a claim whose boot goes on, however long it is bound": {
			path: "serverclaims/default/web.yaml", object: aClaim(bound, condition("Ready", false, "WaitingForBoot", "", before(time.Minute))),
		},
		"a claim whose boot goes no further": {
			path: "serverclaims/default/web.yaml", object: aClaim(bound, condition("Ready", false, "WaitingForBoot", "", before(2*time.Hour))),
			want: []Notice{{
				Kind: NoticeClaimWaiting, Object: "claim", Name: "default/web", Reason: "Waiting", Since: before(2 * time.Hour), Message: "WaitingForBoot",
			}},
		},
		"a claim that is powered off, as it should be": {
			path: "serverclaims/default/web.yaml", object: aClaim(bound, condition("Ready", true, "PoweredOff", "", before(2*time.Hour))),
		},
		"a claim that booted, and whose secret another has": {
			path: "serverclaims/default/web.yaml",
			object: aClaim(bound, condition("Ready", true, "Booted", "", before(time.Hour)),
				condition("SecretExposed", true, model.ReasonTicketStolen, "rotate it", before(time.Minute))),
			want: []Notice{
				{Kind: NoticeTicketRefused, Object: "claim", Name: "default/web", Reason: model.ReasonTicketStolen, Since: before(time.Minute), Message: "rotate it"},
				{Kind: NoticeClaimBooted, Object: "claim", Name: "default/web", Reason: "Booted", Since: before(time.Hour), Message: "on server s1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := NoticesOf(aReport(map[string]any{tc.path: tc.object}), NoticePolicy{ClaimWaiting: time.Hour, BMCLost: time.Minute}, noticeNow)
			for i := range got {
				if len(got[i].ID) != 32 {
					t.Errorf("ID %q", got[i].ID)
				}
				got[i].ID = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestANoticeIsTheSameAsLongAsTheTroubleIs(t *testing.T) {
	id := func(since time.Time, reason, message string) string {
		r := aReport(map[string]any{"servers/s1.yaml": aServer("s1", model.ServerRecord{State: model.StateError, Reason: reason, Message: message, Since: since})})
		n := NoticesOf(r, NoticePolicy{}, noticeNow)[0]
		if n.Since.Nanosecond() != 0 {
			t.Errorf("since %s, which is not told to the second", n.Since)
		}
		return n.ID
	}
	first := id(before(time.Hour), "BootFailed", "it hangs")
	if again := id(before(time.Hour).Add(time.Millisecond), "BootFailed", "it still hangs"); again != first {
		t.Error("it is another one once there is more to say")
	}
	if id(before(time.Minute), "BootFailed", "it hangs") == first || id(before(time.Hour), "PowerFailed", "it hangs") == first {
		t.Error("other trouble is taken for the same")
	}
}
