package report

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// MaintenanceStatus is what is so of a ServerMaintenance.
type MaintenanceStatus struct {
	Overview
	State string `json:"state"` // Pending, InMaintenance
}

func (v *view) maintenanceDocument(m *world.Maintenance) *Document {
	d := newDocument(model.KindServerMaintenance, m.Manifest.Name)
	d.Spec = m.Manifest.Spec
	status := MaintenanceStatus{State: "Pending"}
	pending := func(format string, args ...any) {
		status.wait(proposal.Why{Reason: model.ReasonPending, Message: fmt.Sprintf(format, args...)}, ways{})
	}
	s := v.servers[m.Server]
	awaits := s != nil && !m.Refused && s.Approval != nil && s.Record.Maintenance.Awaits.Maintenance == m.Manifest.Name
	if awaits {
		status.wait(*s.Approval, ways{})
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
	status.Summary = Summary{State: status.State, Server: m.Server}
	d.Status = status
	return d
}
