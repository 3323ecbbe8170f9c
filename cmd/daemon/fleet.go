package daemon

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"ingot/cmd/daemon/admin"
	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/report"
)

// fleet is what the API and the page show: the documents of the last report, and facts that are in
// no report.
type fleet struct {
	daemon *daemon
	since  time.Time // when the process began
	leases kept[report.LeaseRow]
	pools  kept[report.PoolRow]
	images kept[report.ImageRow]

	mu      sync.Mutex // guards the fields below
	docs    *report.Documents
	of      *reconcile.Reported // that docs were made of
	trouble report.Trouble      // of commit statuses, in docs
	unread  model.SourceState   // in docs before the first report
}

func newFleet(d *daemon) *fleet { return &fleet{daemon: d, since: d.clock()} }

// Documents implements admin.Fleet.
func (f *fleet) Documents() *report.Documents {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, trouble := f.daemon.reporter.Report(), f.commitStatus()
	var unread model.SourceState
	if r == nil {
		unread = f.daemon.source.State()
	}
	if f.docs != nil && r == f.of && trouble == f.trouble && unread == f.unread {
		return f.docs
	}
	f.of, f.trouble, f.unread = r, trouble, unread
	if f.docs = report.NewDocuments(&report.Fleet{Problems: []model.Problem{}}, nil); r != nil {
		f.docs = r.Shown
	} else if unread.Reason != "" {
		f.docs.Fleet.Trouble = &report.Trouble{Reason: unread.Reason, Message: unread.Message, Since: unread.Since}
	}
	if trouble.Message != "" {
		f.docs = f.docs.WithCommitStatus(trouble)
	}
	return f.docs
}

// commitStatus is why the Git host shows no newer commit status; the zero value if it does.
func (f *fleet) commitStatus() (t report.Trouble) {
	if f.daemon.poster != nil {
		t.Since, t.Message = f.daemon.poster.Failing()
	}
	return t
}

// Changed implements admin.Fleet.
func (f *fleet) Changed() <-chan struct{} { return f.daemon.loop.Shown() }

func (d *daemon) parts() admin.Parts {
	p := admin.Parts{Store: d.registry.Lead, Publisher: d.publisher, RecordsRead: d.recordsRead, Source: d.source, LoadersThere: d.network.loadersThere}
	if d.clients.dhcp != nil {
		p.NetworksServed = d.clients.dhcp.Healthy
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
	if s := d.leader.present(); cmp.Or(s.ObserveOnly, s.HealOnly) != "" {
		return errors.New(cmp.Or(s.ObserveOnly, s.HealOnly))
	}
	return errors.New("records were not read yet: waiting for the lead, or for the status branch")
}
