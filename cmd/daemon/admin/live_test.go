package admin

import (
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

// live is a fleet that changes.
type live struct {
	mu      sync.Mutex // guards the fields below
	servers []*report.Document
	others  []*report.Document
	fleet   *report.Fleet
	docs    *report.Documents // nil after a change
	changed chan struct{}
	reads   int
}

var since = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func newLive(n int) *live {
	l := &live{changed: make(chan struct{}), fleet: &report.Fleet{
		Source: report.Source{Applied: "main@sha1:0123", Trouble: &report.Trouble{Reason: model.SourceFetchFailed, Message: "connection refused", Since: since}},
		Counts: report.Counts{Servers: map[model.ServerState]int{model.StateReserved: n}},
		Holds: []report.Hold{{
			Subject: "1 step held by the guard", Approve: proposal.ApproveLine("abc"), Revert: "git revert 0123", Since: since,
			Effects: []report.Effect{{Server: "s1", Text: "server s1 is powered off"}},
		}},
		Problems: []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Line: 3, Column: 5, Message: "wrong"}},
	}}
	for i := range n {
		l.servers = append(l.servers, serverDocument(i, model.StateReserved))
		l.others = append(l.others, &report.Document{
			APIVersion: model.APIVersion, Kind: "BMC", Metadata: report.Metadata{Name: fmt.Sprint("b", i)},
			Spec:   report.BMCSpec{Protocol: model.Protocol{Name: "Redfish", Port: 443}},
			Status: report.BMCStatus{Overview: overview("Enabled"), State: "Enabled", IP: "192.0.2.1"}, Decided: &model.BMCRecord{},
		}, &report.Document{
			APIVersion: model.APIVersion, Kind: "ServerClaim",
			Metadata: report.Metadata{Name: fmt.Sprint("c", i), Namespace: "default", Labels: map[string]string{"team": "web"}},
			Spec:     model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
			Status:   report.ClaimStatus{Overview: overview(report.ClaimBooted), Phase: "Bound", Server: model.ServerName(fmt.Sprint("s", i))}, Decided: &model.ClaimRecord{},
		})
	}
	waits := report.Overview{Summary: report.Summary{State: report.EndpointAwaited}, Waiting: []report.Waiting{{Reason: model.ReasonAwaitingDevice, Message: "waits for a device", Actor: proposal.RackOperator}}}
	l.others = append(l.others, &report.Document{
		APIVersion: model.APIVersion, Kind: "Endpoint", Metadata: report.Metadata{Name: "port-7"}, Spec: report.EndpointSpec{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.7"},
		Status: report.EndpointStatus{Overview: waits},
	}, &report.Document{
		APIVersion: model.APIVersion, Kind: "ServerBootConfiguration", Metadata: report.Metadata{Name: "c0", Namespace: "default"},
		Spec: report.BootConfigurationSpec{}, Status: report.BootConfigurationStatus{State: "Ready"},
	}, &report.Document{
		APIVersion: model.APIVersion, Kind: "ServerMaintenance", Metadata: report.Metadata{Name: "disk"}, Spec: model.ServerMaintenanceSpec{}, Status: report.MaintenanceStatus{State: "Pending"},
	}, &report.Document{
		APIVersion: model.APIVersion, Kind: "ServerReadinessRule", Metadata: report.Metadata{Name: "burn-in"}, Spec: model.ServerReadinessRuleSpec{Conditions: []model.RequiredCondition{}}, Status: report.ReadinessRuleStatus{},
	})
	return l
}

func overview(state string) report.Overview {
	return report.Overview{Summary: report.Summary{State: state, Since: since}}
}

func serverDocument(i int, state model.ServerState) *report.Document {
	o := overview(string(state))
	if state == model.StateError {
		o.Waiting = []report.Waiting{{Reason: model.ReasonCleanupFailed, Message: "its disk cannot be wiped", Actor: proposal.RackOperator}}
	}
	return &report.Document{
		APIVersion: model.APIVersion, Kind: "Server",
		Metadata: report.Metadata{Name: fmt.Sprint("s", i), Labels: map[string]string{"rack": fmt.Sprint("r", i%10)}},
		Spec:     report.ServerSpec{SystemUUID: "u"},
		Status: report.ServerStatus{
			Overview: o, State: state, Manufacturer: "Contoso",
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: string(state), LastTransitionTime: metav1.NewTime(since)}},
		},
		Decided: &model.ServerRecord{},
	}
}

func (l *live) set(i int, state model.ServerState) {
	l.change(func() { l.servers[i] = serverDocument(i, state) })
}

func (l *live) remove(i int) { l.change(func() { l.servers = slices.Delete(l.servers, i, i+1) }) }

func (l *live) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers, l.docs = slices.Clone(l.servers), nil
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *live) Documents() *report.Documents {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.docs == nil {
		l.docs = report.NewDocuments(l.fleet, slices.Concat(l.servers, l.others))
	}
	return l.docs
}

func (l *live) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *live) Card(mac string) (report.Card, bool) {
	events := []model.CardEvent{{At: since, Last: since, Times: 2, Protocol: model.CardTFTP, Asked: "ipxe.efi", From: "10.0.0.7", Result: model.CardFailed, Answer: "timeout", Bytes: 1, Seconds: 1}}
	return report.Card{MAC: mac, Server: "s1", Limited: "x", Since: since, Events: events, TicketUses: []string{"kernel"}}, mac == "02:00:00:00:00:01"
}

func (l *live) Leases() []report.LeaseRow {
	return []report.LeaseRow{{Row: report.Row{Name: "192.0.2.9", State: report.LeaseLive, Since: since}, Network: "bmcs", Role: "bmc", MAC: "02:00:00:00:00:01", Renewed: since, Expires: since.Add(time.Hour)}}
}

func (l *live) Pools() []report.PoolRow {
	return report.PoolRows([]model.PoolFacts{{Network: "bmcs", Subnet: "192.0.2.0/24", Size: 3, Used: 3, Exhausted: since, Refused: 1}})
}

func (l *live) Images() []report.ImageRow {
	return []report.ImageRow{{Row: report.Row{Name: "sha256:a", State: report.ImageComplete}, Image: "os:1", Part: "kernel", Size: 5, Fetched: 5, Used: since, Pinned: true}}
}

// readCount is how often the documents were read.
func (l *live) readCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}
