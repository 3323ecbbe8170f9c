package page

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/gitsource/forge"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const hostile = `<script>alert("1")</script>`

// aFleet is a fleet of which all is known.
type aFleet struct {
	report   *model.Report
	keeper   *query.Keeper
	desired  *model.Desired
	git      Git
	history  map[string][]Commit
	requests map[string]Requests
	uses     []string
	cards    map[string]report.Card // by the name of their Endpoint, or their own
}

func (f *aFleet) Report() *model.Report  { return f.report }
func (f *aFleet) Leases() []*query.Lease { return nil }
func (f *aFleet) Images() []*query.Image { return nil }
func (f *aFleet) Networks() []string     { return []string{"hosts", "mgmt"} }
func (f *aFleet) Git() Git               { return f.git }

func (f *aFleet) Rows() *query.Rows {
	if f.report == nil {
		return &query.Rows{}
	}
	return f.keeper.Rows(f.report, f.desired)
}

func (f *aFleet) Pools() []*query.Pool {
	p := &query.Pool{Common: query.Common{Name: "10.0.0.0/24", State: query.PoolHasRoom}, Network: "bmc", Size: 200, Used: 13}
	return []*query.Pool{query.Pools.Ready(p)}
}

func (f *aFleet) Explain(kind, name string) (report.Explanation, error) {
	e, err := report.Explain(f.report, kind, name)
	e.AddUses(func(model.ServerName) []string { return f.uses })
	switch c, has := f.cards[name]; {
	case !has || kind != "endpoint":
	case err != nil:
		return report.ExplainCard(c), nil
	default:
		e.AddCard(c)
	}
	return e, err
}

func (f *aFleet) History(name string, most int) []Commit {
	h := f.history[name]
	return h[:min(len(h), most)]
}

func (f *aFleet) Requests(bmc string) (Requests, bool) {
	r, ok := f.requests[bmc]
	return r, ok
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)}
}

func document(kind model.Kind, namespace, name string, labels map[string]string, spec, status, record any) *model.Document {
	return &model.Document{Object: &report.Document{
		APIVersion: model.APIVersion, Kind: string(kind), Metadata: report.Metadata{Name: name, Namespace: namespace, Labels: labels},
		Spec: spec, Status: status, Decided: record,
	}}
}

func serverDocument(name string, state model.ServerState, labels map[string]string, conds ...metav1.Condition) *model.Document {
	return document(model.KindServer, "", name, labels,
		report.ServerSpec{SystemUUID: "0c0ffee0-0000-4000-8000-000000000000", BMCRef: &model.LocalRef{Name: name + "-bmc"}},
		report.ServerStatus{State: state, PowerState: model.PowerOn, Manufacturer: "Acme", Model: "One", SerialNumber: "S-" + name, Conditions: conds},
		&model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: model.ServerName(name)}, Life: model.RecordLife{State: state, Since: now.Add(-time.Hour)}})
}

func shownFleet() *aFleet {
	five, armed := now.Add(-5*time.Minute), now.Add(-3*time.Minute)
	booting := document(model.KindServer, "", "rack1-02", map[string]string{"rack": "r1", "location": "berlin", "shelf": "3"},
		report.ServerSpec{BMCRef: &model.LocalRef{Name: "rack1-02-bmc"}, ServerClaimRef: &model.ObjectRef{Namespace: "default", Name: "web"}},
		report.ServerStatus{
			State: model.StateReserved, PowerState: model.PowerOn,
			BootTimeline: []model.BootStep{{Stage: model.StageArmed, At: armed}, {Stage: model.StageDHCP, At: armed.Add(40 * time.Second)}, {Stage: model.StageScript, At: armed.Add(42 * time.Second)}},
			Conditions: []metav1.Condition{
				condition("Ready", metav1.ConditionFalse, model.ReasonWaitingForBoot, "it boots", five),
				condition("BootProgress", metav1.ConditionFalse, "IPXEScript", "last seen: iPXE script", armed),
			},
			NetworkInterfaces: []model.NetworkInterface{{Name: "eth0", MACAddress: "02:00:00:00:00:01", IPs: []string{"10.1.0.7"}}},
			Storages:          []report.StorageStatus{{Name: "nvme", Drives: []report.DriveStatus{{Name: "Disk 1", Capacity: "937692504Ki", Model: hostile}}}},
		},
		&model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "rack1-02"}, Life: model.RecordLife{State: model.StateReserved, Since: five}, Claim: model.RecordClaim{Name: "default/web"}, Boot: model.RecordBoot{Ticket: &model.Ticket{ID: "t1", Purpose: model.PurposeClaim, ArmedAt: armed}}})
	failed := serverDocument("rack1-03", model.StateError, map[string]string{"rack": "r1", "location": "berlin", "shelf": "5", "owner": hostile},
		condition("Ready", metav1.ConditionFalse, model.ReasonCleanupFailed, "disk S-77 was not wiped (to act: rack operator)", five))
	percent := 40
	wiping := document(model.KindServer, "", "rack1-04", nil, report.ServerSpec{BMCRef: &model.LocalRef{Name: "rack1-04-bmc"}}, report.ServerStatus{
		State: model.StateCleanup, Cleanup: &report.CleanupStatus{Mode: "secure", Disks: []report.DiskStatus{{Name: "sda", Serial: "S-9", SizeBytes: 1 << 40, Method: "overwrite", Percent: &percent}}},
	}, &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "rack1-04"}, Life: model.RecordLife{State: model.StateCleanup, Since: five}})
	hold := model.GuardHold{
		Token: "X4YRGUC5KSZPNQ2M", Revision: "main@sha1:8c1f0a2b3c4d5e6f", Since: five, Limit: 1,
		Steps: []model.Disruption{{Action: "release", Server: "rack1-02", Claim: "default/web"}},
	}
	docs := map[string]*model.Document{
		"servers/rack1-01.yaml": serverDocument("rack1-01", model.StateAvailable, map[string]string{"rack": "r1", "location": "berlin", "shelf": "1"}),
		"servers/rack1-02.yaml": booting, "servers/rack1-03.yaml": failed, "servers/rack1-04.yaml": wiping,
		"bmcs/rack1-02-bmc.yaml": document(model.KindBMC, "", "rack1-02-bmc", nil, report.BMCSpec{}, report.BMCStatus{
			State: "Enabled", IP: "10.0.0.2", Servers: []model.ServerName{"rack1-02"}, FirmwareVersion: "1.2",
			Conditions: []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Connected", "", five)},
		}, nil),
		"endpoints/e1.yaml": document(model.KindEndpoint, "", "e1", nil, report.EndpointSpec{MACAddress: "02:00:00:00:00:09", IP: "10.0.0.9"}, report.EndpointStatus{
			Network: "bmc", Conditions: []metav1.Condition{condition("Recognised", metav1.ConditionFalse, model.ReasonNoMACPrefix, "no entry of the MAC prefix database (to act: rack operator)", five)},
		}, nil),
		"serverclaims/default/web.yaml": document(model.KindServerClaim, "default", "web", nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
			Phase: "Bound", Server: "rack1-02",
			Conditions: []metav1.Condition{condition("Bound", metav1.ConditionTrue, "Bound", "bound to server rack1-02", five), condition("Ready", metav1.ConditionFalse, model.ReasonWaitingForBoot, "it boots", five)},
		}, &model.ClaimRecord{Name: "default/web"}),
		"serverclaims/default/db.yaml": document(model.KindServerClaim, "default", "db", nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
			Phase:      "Unbound",
			Conditions: []metav1.Condition{condition("Bound", metav1.ConditionFalse, model.ReasonNoServerFree, "4 servers: 2 Reserved, 1 lack label rack=r9, 1 cordoned (to act: rack operator)", five)},
		}, &model.ClaimRecord{Name: "default/db"}),
		model.ReportRevision: {Object: &report.Revision{
			Observed: "main@sha1:9999999999999999", Applied: "main@sha1:8c1f0a2b3c4d5e6f", Decided: model.FleetRecord{Holds: []model.GuardHold{hold}},
			Guard: []report.Guard{{Message: "1 step"}},
		}},
		model.ReportProblems: {Object: &report.Problems{Problems: []model.Problem{
			{Severity: model.SeverityWarning, File: "bmcs/a.yaml", Line: 3, Message: "spec.power has no effect"},
			{Severity: model.SeverityError, File: "claims/web.yaml", Line: 7, Column: 3, Object: "ServerClaim default/web", Field: "spec.imge", Message: `unknown field, did you mean "image"? ` + hostile},
		}}},
	}
	return &aFleet{
		report: &model.Report{Documents: docs}, keeper: query.NewKeeper(),
		git: Git{
			Seen: "main@sha1:9999999999999999", InForce: now.Add(-2 * time.Hour), Fetched: now.Add(-20 * time.Second),
			Status: Commit{"5ca1ab1e5ca1ab1e", now.Add(-time.Minute), []string{"rack1-03: Cleanup → Error " + hostile}},
		},
		history:  map[string][]Commit{"rack1-02": {{"5ca1ab1e00", five, []string{"rack1-02: Available → Reserved for default/web"}}}},
		requests: map[string]Requests{"rack1-02-bmc": {12, 2, 1}},
		cards: map[string]report.Card{"e1": {
			MAC: "02:00:00:00:00:09", Since: now.Add(-time.Hour), Limited: "DHCPv4 over rateLimit.client: since 11:58:00Z 3 times",
			Events: []model.CardEvent{
				{At: now.Add(-10 * time.Minute), Protocol: model.CardDHCPv4, Asked: "DISCOVER by pxe", From: "rack1, relay 10.0.0.1 port Eth1/7", Result: model.CardAnswered, Answer: "OFFER 10.0.0.9, boots undionly.kpxe"},
				{At: now.Add(-9 * time.Minute), Protocol: model.CardTFTP, Asked: "undionly.kpxe", From: "10.0.0.9", Result: model.CardServed, Bytes: 71_680, Seconds: 0.4},
				{At: now.Add(-2 * time.Minute), Last: now.Add(-time.Minute), Times: 12, Protocol: model.CardHTTP, Asked: hostile, Result: model.CardRefused, Answer: hostile},
			},
		}},
		uses: []string{"iPXE script for 10.1.0.7, once at 2026-11-26T11:58:00Z, served"},
	}
}

func handlerOf(f Fleet) http.Handler {
	web, err := forge.NewWeb("https://github.com/infra/metal", "", "")
	if err != nil {
		panic(err)
	}
	return New(Options{Fleet: f, Web: web, StatusBranch: "status", Clock: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
}

func shown(t *testing.T, h http.Handler, target string, code int) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	body := must.Get(io.ReadAll(w.Body))(t)
	if w.Code != code {
		t.Fatalf("GET %s: %d, want %d\n%s", target, w.Code, code, body)
	}
	return strings.Join(strings.Fields(string(body)), " ")
}

func says(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		without, absent := strings.CutPrefix(w, "!")
		if strings.Contains(page, without) == absent {
			t.Errorf("the page does not agree with %q:\n%s", w, page)
		}
	}
}
