package daemon

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"ingot/cmd/daemon/admin/page"
	"ingot/cmd/daemon/notify"
	"ingot/model"
	"ingot/reconcile/report"
)

// openNotify makes what tells people of what needs them.
func (d *daemon) openNotify() {
	o := &d.opts.Notify
	if len(o.Webhooks) == 0 {
		return
	}
	policy := report.NoticePolicy{ClaimWaiting: o.ClaimWaiting, BMCLost: time.Minute}
	if d.opts.Tuning.Fast {
		policy.BMCLost = time.Second
	}
	d.notices = notify.New(notify.Options{
		Webhooks: o.Targets(), Title: o.Title, Source: cmp.Or(d.opts.Admin.URL, "urn:ingot:"+url.PathEscape(cmp.Or(o.Title, d.holder.Host))),
		Policy: policy, Dir: filepath.Join(d.opts.State.Dir, "notify"), Report: d.reported, Leading: d.registry.Leading, Fence: d.registry.Fence,
		Link: pageLink(d.opts.Admin.URL), Log: d.log, Registerer: d.metrics, Clock: d.clock, Fast: d.opts.Tuning.Fast,
	})
}

// reported is the last report, nil while there is none.
func (d *daemon) reported() *model.Report {
	if r := d.reporter.Report(); r != nil {
		return r.Report
	}
	return nil
}

// pageLink returns what links to an object's page, where people can reach the admin listener.
func pageLink(base string) func(object, name string) string {
	if base == "" {
		return nil
	}
	base = strings.TrimRight(base, "/")
	return func(object, name string) string { return base + cmp.Or(page.Path(object, name), "/") }
}
