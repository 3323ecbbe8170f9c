package daemon

import (
	"context"
	"net/http"

	"ingot/cmd/daemon/admin"
	"ingot/cmd/daemon/admin/page"
	"ingot/model"
	"ingot/reconcile/report"
)

func (d *daemon) page(f *fleet, index *admin.Index) http.Handler {
	web, err := d.opts.Git.Web()
	if err != nil {
		d.log.Warn("the web page has no links to the Git host", "err", err) // the configuration was checked
	}
	return page.New(page.Options{Fleet: pageFleet{f, index}, Web: web, StatusBranch: d.opts.Status.Branch, Clock: d.clock, Log: d.log})
}

// pageFleet is the fleet as the web page shows it: what the API shows, and how Git, the status
// branch and BMCs stand.
type pageFleet struct {
	*fleet
	index *admin.Index
}

// Generation implements page.Fleet.
func (f pageFleet) Generation() uint64 {
	_, generation := f.index.Now()
	return generation
}

// Source implements page.Fleet.
func (f pageFleet) Source(o *report.Document) string {
	r := f.daemon.reporter.Report()
	if r == nil {
		return ""
	}
	d, id := r.Input.Desired, model.Identity{Kind: model.Kind(o.Kind), Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	switch o.Folder() {
	case report.Servers:
		return sourceIn(d.Servers, model.ServerName(id.Name))
	case report.Claims, report.BootConfigurations:
		return sourceIn(d.Claims, id.ClaimName())
	case report.BMCs:
		return sourceIn(d.BMCs, model.BMCName(id.Name))
	case report.Endpoints:
		return sourceIn(d.Endpoints, id.Name)
	case report.Maintenances, report.ReadinessRules: // which have no page
	}
	return ""
}

func sourceIn[K comparable, O model.Object](all map[K]O, name K) string {
	if o, there := all[name]; there {
		return o.Metadata().Source
	}
	return ""
}

// Git implements page.Fleet.
func (f pageFleet) Git() page.Git {
	d := f.daemon
	g := page.Git{Source: d.source.State(), Seen: d.source.Seen(), Fetched: d.source.FetchedAt()}
	if desired := d.source.Desired(); desired != nil {
		g.InForce = desired.Time
	}
	if c, known := d.status.Newest(); known {
		g.Status = page.Commit(c)
	}
	g.FailingSince, g.Failing = d.publisher.Failing()
	return g
}

// History implements page.Fleet.
func (f pageFleet) History(name string, most int) (commits []page.Commit) {
	for _, c := range f.daemon.status.History(name, most) {
		commits = append(commits, page.Commit(c))
	}
	return commits
}

// Requests implements page.Fleet.
func (f pageFleet) Requests(bmc string) (page.Requests, bool) {
	s := f.daemon.pool.Stats(model.BMCName(bmc))
	return page.Requests(s), s.Requests > 0
}

// rememberStatus reads what the status branch said before this process began. It is told on
// the page alone, which does without.
func (d *daemon) rememberStatus(ctx context.Context) error {
	if err := d.status.Remember(ctx); err != nil && ctx.Err() == nil {
		d.log.Warn("the page does not show what happened before the start", "err", err)
	}
	return nil
}
