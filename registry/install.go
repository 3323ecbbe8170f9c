package registry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ingot/model"
	"ingot/registry/store"
)

// installEvery is how often at least it is written how far an install is while reports of it
// come, and no stage of it changes.
const installEvery = 10 * time.Second

// noteInstall makes durable how far the probe has come that writes t's disk image, unless that
// is no news. The error is model.ErrTicketSpent when the ticket has meanwhile ended, or is no
// longer the server's.
func (r *Registry) noteInstall(ctx context.Context, t *model.Ticket, told *model.ProbeInstall) error {
	now, level := r.options.Clock().UTC(), slog.LevelDebug
	var is *model.DiskInstall
	err := r.write(ctx, func(d *draft) (store.Batch, error) {
		newest, progress := newestTicket(d, t.Server)
		if !newest.Open() || newest.ID != t.ID || newest.Disk == nil {
			return nil, model.ErrTicketSpent
		}
		was, next := progress.Install, progress.Install.Told(told, progress.Boots, newest.Disk.Data, now)
		if !isInstallNews(was, &next, newest.Disk.Data) {
			return nil, nil
		}
		if is = &next; was == nil || was.Stage != next.Stage || was.Reason != next.Reason {
			level = slog.LevelInfo
		}
		progress.Install = &next
		var e encoder
		e.set(store.BucketProgress, string(t.Server), progress)
		return e.batch, e.err
	})
	if err != nil {
		return fmt.Errorf("note the install of server %s: %w", t.Server, err)
	}
	if is != nil {
		r.log.Log(ctx, level, "install reported", "server", string(t.Server), "claim", string(t.Claim), "ticket", t.ID,
			"stage", string(is.Stage), "done", is.Done, "reason", is.Reason)
	}
	return nil
}

// isInstallNews reports whether an install has come further by so much that it is to be
// written: by a stage, by a hundredth of its data, or by some time.
func isInstallNews(was, is *model.DiskInstall, data uint64) bool {
	if was == nil {
		return true
	}
	same := *was
	same.Done, same.ReportedAt = is.Done, is.ReportedAt
	same.Tenths, same.TenthAt = is.Tenths, is.TenthAt
	switch {
	case !sameJSON(same, is):
		return true
	case is.Done-was.Done >= max(data/100, 1):
		return true
	}
	return is.ReportedAt.Sub(was.ReportedAt) >= installEvery || is.ReportedAt.Before(was.ReportedAt)
}
