package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"ingot/cmd/daemon/admin"
	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// fleet is what the API and the page show: the last report, and what is of no report.
type fleet struct {
	daemon *daemon
	taking sync.Mutex // of reports by rows, or an older one could follow on a newer
	rows   *query.Keeper
	leases kept[*query.Lease]
	pools  kept[*query.Pool]
	images kept[*query.Image]
	since  time.Time // when the process began
}

func newFleet(d *daemon) *fleet { return &fleet{daemon: d, rows: query.NewKeeper(), since: d.clock()} }

// Rows implements admin.Fleet.
func (f *fleet) Rows() *query.Rows {
	f.taking.Lock()
	defer f.taking.Unlock()
	r := f.daemon.reporter.Report()
	if r == nil {
		return &query.Rows{}
	}
	return f.rows.Rows(r.Report, r.Input.Desired)
}

// Summary implements admin.Fleet.
func (f *fleet) Summary() report.Summary {
	var s report.Summary
	if r := f.daemon.reporter.Report(); r != nil {
		s = report.SummaryOf(r.Report)
	} else {
		state := f.daemon.source.State()
		s.Source = &state
	}
	s.CommitStatus = f.CommitStatus()
	return s
}

// CommitStatus implements admin.Fleet.
func (f *fleet) CommitStatus() *report.Trouble {
	if f.daemon.poster == nil {
		return nil
	}
	since, why := f.daemon.poster.Failing()
	if why == "" {
		return nil
	}
	return &report.Trouble{Message: why, Since: since}
}

// Changed implements admin.Fleet.
func (f *fleet) Changed() <-chan struct{} { return f.daemon.loop.Shown() }

// Explain implements admin.Fleet.
func (f *fleet) Explain(kind, name string) (e report.Explanation, err error) {
	if r := f.daemon.reporter.Report(); r == nil {
		err = fmt.Errorf("%s %s is %w yet: no revision was read; see /readyz", kind, name, report.ErrUnknownObject)
	} else {
		e, err = report.Explain(r.Report, kind, name)
		e.AddUses(func(server model.ServerName) []string { return report.TicketUses(r.Input.Observed.Progress[server]) })
	}
	if kind == "endpoint" {
		return f.explainEndpoint(name, e, err)
	}
	return e, err
}

// parts are what the daemon's readiness depends on.
func (d *daemon) parts() admin.Parts {
	p := admin.Parts{Store: d.registry, Publisher: d.publisher, RecordsRead: d.recordsRead, Source: d.source, LoadersThere: d.loadersThere}
	if d.dhcp != nil {
		p.NetworksServed = d.dhcp.Healthy
	}
	return p
}

// recordsRead returns nil once the records were read, or why they were not.
func (d *daemon) recordsRead() error {
	select {
	case <-d.ready:
		return nil
	default:
	}
	if s := d.present(); cmp.Or(s.ObserveOnly, s.HealOnly) != "" {
		return errors.New(cmp.Or(s.ObserveOnly, s.HealOnly))
	}
	return errors.New("records were not read yet: waiting for the lead, or for the status branch")
}
