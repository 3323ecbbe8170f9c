package report

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/world"
)

// MaintenanceStatus is what is so of a ServerMaintenance.
type MaintenanceStatus struct {
	State   string    `json:"state"` // Pending, InMaintenance
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"` // what it is pending for
	Since   time.Time `json:"since,omitzero"`
}

func (v *view) maintenanceDocument(m *world.Maintenance) *Document {
	d := newDocument(model.KindServerMaintenance, m.Manifest.Name)
	d.Spec = m.Manifest.Spec
	status := MaintenanceStatus{State: "Pending"}
	pending := func(format string, args ...any) { status.Message = fmt.Sprintf(format, args...) }
	s := v.servers[m.Server]
	awaits := s != nil && !m.Refused && s.Approval != nil && s.Record.Maintenance.Awaits.Maintenance == m.Manifest.Name
	if awaits {
		status.Reason, status.Message, status.Since = s.Approval.Reason, shownText(s.Approval.Text()), s.Approval.Since.UTC().Truncate(time.Second)
	}
	switch {
	case s == nil:
		pending("%s", m.Unknown)
	case s.Record.Life.State == model.StateMaintenance && s.Record.Maintenance.By == m.Manifest.Name:
		status.State = "InMaintenance"
	case m.Refused:
		pending("refused: server %s serves no claim of those below %s, who may define no Server (git.tenants)", m.Server, m.Manifest.Tenant)
	case awaits:
	case s.Record.Life.State == model.StateMaintenance:
		pending("server %s is in Maintenance already, for %s", m.Server, s.Record.Maintenance.By)
	default:
		pending("server %s is %s", m.Server, s.Record.Life.State)
	}
	d.Status = status
	return d
}
