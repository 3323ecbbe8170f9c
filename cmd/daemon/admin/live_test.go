package admin

import (
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// live is a fleet that changes.
type live struct {
	keeper *query.Keeper

	commits *report.Trouble

	mu      sync.Mutex // guards what is below
	report  *model.Report
	changed chan struct{}
	looks   int
}

func newLive(n int) *live {
	docs := map[string]*model.Document{
		model.ReportRevision: {Object: &report.Revision{Applied: "main@sha1:0123", Decided: model.FleetRecord{}}},
		model.ReportProblems: {Object: &report.Problems{Problems: []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Line: 3, Column: 5, Message: "wrong"}}}},
		model.ReportReadme:   {Text: "# Fleet\n"},
	}
	for i := range n {
		docs[serverPath(i)] = serverDocument(i, model.StateReserved)
		docs[fmt.Sprintf("bmcs/b%d.yaml", i)] = &model.Document{Object: &report.Document{
			Kind: "BMC", Metadata: report.Metadata{Name: fmt.Sprint("b", i)}, Spec: report.BMCSpec{Protocol: model.Protocol{Name: "Redfish", Port: 443}},
			Status:  report.BMCStatus{State: "Enabled", IP: "192.0.2.1", Servers: []model.ServerName{model.ServerName(fmt.Sprint("s", i))}},
			Decided: &model.BMCRecord{},
		}}
		docs[fmt.Sprintf("serverclaims/default/c%d.yaml", i)] = &model.Document{Object: &report.Document{
			Kind: "ServerClaim", Metadata: report.Metadata{Name: fmt.Sprint("c", i), Namespace: "default", Labels: map[string]string{"team": "web"}},
			Spec: model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
			Status: report.ClaimStatus{Phase: "Bound", Server: model.ServerName(fmt.Sprint("s", i)), Conditions: []metav1.Condition{
				{Type: "Bound", Status: metav1.ConditionTrue, Reason: "Bound", LastTransitionTime: metav1.NewTime(since)},
				{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Booted", LastTransitionTime: metav1.NewTime(since)},
			}},
			Decided: &model.ClaimRecord{},
		}}
	}
	docs["endpoints/e.yaml"] = &model.Document{Object: &report.Document{
		Kind: "Endpoint", Metadata: report.Metadata{Name: "e"}, Spec: report.EndpointSpec{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.9"},
		Status: report.EndpointStatus{Network: "bmcs", Since: since, Conditions: []metav1.Condition{
			{Type: "Recognised", Status: metav1.ConditionFalse, Reason: model.ReasonNoMACPrefix, Message: "no entry (to act: rack operator)", LastTransitionTime: metav1.NewTime(since)},
		}},
		Decided: &model.EndpointRecord{},
	}}
	docs["endpoints/port-7.yaml"] = &model.Document{Object: &report.Document{
		Kind: "Endpoint", Metadata: report.Metadata{Name: "port-7"}, Spec: report.EndpointSpec{IP: "192.0.2.7"},
		Status: report.EndpointStatus{Conditions: []metav1.Condition{
			{Type: "Recognised", Status: metav1.ConditionFalse, Reason: model.ReasonAwaitingDevice, Message: "waits for a device (to act: rack operator)"},
		}},
	}}
	return &live{keeper: query.NewKeeper(), report: &model.Report{Documents: docs}, changed: make(chan struct{})}
}

var since = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func serverPath(i int) string { return fmt.Sprintf("servers/s%d.yaml", i) }

func serverDocument(i int, state model.ServerState) *model.Document {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: string(state), LastTransitionTime: metav1.NewTime(since)}
	if state == model.StateError {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, model.ReasonCleanupFailed, "its disk cannot be wiped (to act: rack operator)"
	}
	return &model.Document{Object: &report.Document{
		Kind:     "Server",
		Metadata: report.Metadata{Name: fmt.Sprint("s", i), Labels: map[string]string{"rack": fmt.Sprint("r", i%10), "location": "berlin"}},
		Spec:     report.ServerSpec{SystemUUID: "u", BMCRef: &model.LocalRef{Name: fmt.Sprint("b", i)}},
		Status:   report.ServerStatus{State: state, PowerState: model.PowerOn, Manufacturer: "Contoso", Conditions: []metav1.Condition{ready}},
		Decided:  &model.ServerRecord{Life: model.RecordLife{Since: since}, Claim: model.RecordClaim{Name: model.ClaimName(fmt.Sprint("default/c", i))}},
	}}
}

func (l *live) set(i int, state model.ServerState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	docs := maps.Clone(l.report.Documents)
	docs[serverPath(i)] = serverDocument(i, state)
	l.report = &model.Report{Documents: docs}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *live) remove(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	docs := maps.Clone(l.report.Documents)
	delete(docs, serverPath(i))
	l.report = &model.Report{Documents: docs}
}

func (l *live) now() *model.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

func (l *live) Summary() report.Summary {
	s := report.SummaryOf(l.now())
	s.CommitStatus = l.commits
	return s
}

func (l *live) CommitStatus() *report.Trouble { return l.commits }

func (l *live) Explain(kind, name string) (report.Explanation, error) {
	return report.Explain(l.now(), kind, name)
}

func (l *live) Card(mac string) (report.Card, bool) {
	events := []model.CardEvent{{At: since, Last: since, Times: 2, Protocol: model.CardTFTP, Asked: "ipxe.efi", From: "10.0.0.7", Result: model.CardFailed, Answer: "timeout", Bytes: 1, Seconds: 1}}
	return report.Card{MAC: mac, Server: "s1", Limited: "x", Since: since, Events: events}, true
}

func (l *live) Rows() *query.Rows {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return l.keeper.Rows(l.report, nil)
}

func (l *live) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Networks are those that are configured: bmcs was, and its leases have not ended.
func (l *live) Networks() []string { return []string{"hosts", "mgmt"} }

func (l *live) Leases() []*query.Lease {
	return []*query.Lease{query.Leases.Ready(&query.Lease{
		Common: query.Common{Name: "192.0.2.9", State: query.LeaseLive, Since: since}, Network: "bmcs", Role: "bmc", MAC: "02:00:00:00:00:01", Renewed: since, Expires: since.Add(time.Hour),
	})}
}

func (l *live) Pools() []*query.Pool {
	return query.PoolRows([]model.PoolFacts{{Network: "bmcs", Subnet: "192.0.2.0/24", Size: 3, Used: 3, Exhausted: since, Refused: 1}})
}

func (l *live) Images() []*query.Image {
	return []*query.Image{query.Images.Ready(&query.Image{
		Common: query.Common{Name: "sha256:a", State: query.ImageComplete}, Image: "os:1", Part: "kernel", Size: 5, Fetched: 5, Used: since, Pinned: true,
	})}
}

func (l *live) looked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}
