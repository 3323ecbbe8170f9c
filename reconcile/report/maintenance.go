package report

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
)

// MaintenanceStatus is what is so of a ServerMaintenance.
type MaintenanceStatus struct {
	State   string    `json:"state"` // Pending, InMaintenance
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"` // what it is pending for
	Since   time.Time `json:"since,omitzero"`
}

func (v *view) maintenanceDocument(m *plan.Maintenance) *Document {
	d := newDocument(model.KindServerMaintenance, m.Name)
	d.Spec = m.Manifest.Spec
	pending := func(format string, args ...any) {
		d.Status = MaintenanceStatus{State: "Pending", Message: fmt.Sprintf(format, args...)}
	}
	switch s := v.servers[m.Server]; {
	case s == nil:
		pending("%s", m.Unknown)
	case s.Record.State == model.StateMaintenance && s.Record.MaintainedBy == m.Name:
		d.Status = MaintenanceStatus{State: "InMaintenance"}
	case m.Refused:
		pending("refused: server %s serves no claim of those below %s, who may define no Server (git.tenants)", m.Server, m.Manifest.Tenant)
	case s.Approval != nil && s.Record.AwaitedApproval.Maintenance == m.Name:
		pending("%s", shownText(s.Approval.Text()))
		status := d.Status.(MaintenanceStatus)
		status.Reason, status.Since = s.Approval.Reason, s.Approval.Since.UTC().Truncate(time.Second)
		d.Status = status
	case s.Record.State == model.StateMaintenance:
		pending("server %s is in Maintenance already, for %s", m.Server, s.Record.MaintainedBy)
	default:
		pending("server %s is %s", m.Server, s.Record.State)
	}
	return d
}
