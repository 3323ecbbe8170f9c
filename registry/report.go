package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ingot/model"
	"ingot/registry/store"
)

// SaveReport makes what a server reported with t durable, unless it is no news. The
// error is model.ErrTicketSpent when the ticket has meanwhile ended, or is no longer the
// server's.
func (r *Registry) SaveReport(ctx context.Context, t *model.Ticket, what model.ServerReport) error {
	switch v := what.(type) {
	case *model.ProbeInstall:
		return r.noteInstall(ctx, t, v)
	case *model.ProbeReport:
		return saveReport(ctx, r, t, report[model.ProbeReport]{
			bucket: store.BucketProbe, value: v,
			repeats: func(_ *draft, old *model.ProbeReport) bool {
				return old != nil && old.Ticket == v.Ticket && sameJSON(old.Data, v.Data)
			},
		})
	case *model.BootState:
		return saveReport(ctx, r, t, report[model.BootState]{
			bucket: store.BucketBootState, value: v, afterBooted: v.CloudInit != nil,
			repeats: func(_ *draft, old *model.BootState) bool { return bootStateRepeats(v, old) },
		})
	case *model.WipeReport: // how far it was is of no interest any more
		return saveReport(ctx, r, t, report[model.WipeReport]{
			bucket: store.BucketWipe, value: v, ends: []store.Bucket{store.BucketWipeProgress},
			repeats: func(_ *draft, old *model.WipeReport) bool {
				return old != nil && old.Ticket == v.Ticket && old.Mode == v.Mode && sameJSON(old.Disks, v.Disks)
			},
		})
	case *model.WipeProgress:
		return saveReport(ctx, r, t, report[model.WipeProgress]{
			bucket: store.BucketWipeProgress, value: v, level: slog.LevelDebug,
			repeats: func(d *draft, old *model.WipeProgress) bool { return wipeRepeats(d, t.Server, v, old) },
		})
	}
	panic(fmt.Sprintf("report of server %s: %T", t.Server, what))
}

// cloudInitEvery is how often at most another result of cloud-init is taken from a server: its
// ticket has ended, so that nothing else keeps it from being written without end.
const cloudInitEvery = time.Minute

// bootStateRepeats reports whether a boot state is no news, and keeps in it when the server
// said first that it was up.
func bootStateRepeats(v, old *model.BootState) bool {
	if old == nil || old.Ticket != v.Ticket {
		return false
	}
	v.ReceivedAt = old.ReceivedAt
	was, is := old.CloudInit, v.CloudInit
	switch {
	case is == nil:
		return true
	case was == nil:
		return false
	}
	same := slices.Equal(was.Errors, is.Errors) && was.ErrorsMore == is.ErrorsMore
	return same || is.ReceivedAt.Sub(was.ReceivedAt).Abs() < cloudInitEvery
}

// wipeEvery is how often a wipe that gets no further is written: that it is still heard of is news
// after some time, because one that is silent is taken to hang.
const wipeEvery = 2 * time.Minute

// wipeRepeats reports whether how far a wipe is is no news. After the outcome was
// reported, what was on its way then is late.
func wipeRepeats(d *draft, server model.ServerName, v, old *model.WipeProgress) bool {
	outcome := drafted[model.WipeReport](d, store.Key{Bucket: store.BucketWipe, Name: string(server)})
	switch {
	case outcome != nil && outcome.Ticket == v.Ticket:
		return true
	case old == nil || old.Ticket != v.Ticket || old.Mode != v.Mode:
		return false
	}
	return v.ReceivedAt.Sub(old.ReceivedAt).Abs() < wipeEvery && sameJSON(old.Disks, v.Disks)
}

// report is what a server reported, and how it is kept.
type report[V any] struct {
	bucket store.Bucket
	value  *V
	// repeats reports whether it is no news; old is nil when there is none.
	repeats func(d *draft, old *V) bool
	ends    []store.Bucket // what it puts an end to
	level   slog.Level
	// afterBooted lets it come after its ticket ended as Booted, for as long as the server is
	// its claim's.
	afterBooted bool
}

// takes reports whether the report is taken with a ticket that the server's record has.
func (v *report[V]) takes(rec *model.ServerRecord, ticket string) bool {
	if rec == nil || rec.Boot.Ticket == nil || rec.Boot.Ticket.ID != ticket {
		return false
	}
	t := rec.Boot.Ticket
	return t.Open() || v.afterBooted && t.Ended == model.TicketBooted && rec.Claim.Name == t.Claim && rec.Release == nil
}

// saveReport makes what a server reported with t durable, unless it is no news or
// comes too late for its ticket.
func saveReport[V any](ctx context.Context, r *Registry, t *model.Ticket, v report[V]) error {
	k, isNew := store.Key{Bucket: v.bucket, Name: string(t.Server)}, false
	err := r.write(ctx, func(d *draft) (store.Batch, error) {
		if rec := drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: string(t.Server)}); !v.takes(rec, t.ID) {
			return nil, model.ErrTicketSpent
		}
		if v.repeats(d, drafted[V](d, k)) {
			return nil, nil
		}
		isNew = true
		var e encoder
		e.set(k.Bucket, k.Name, v.value)
		e.drop(k.Name, v.ends...)
		return e.batch, e.err
	})
	if err != nil {
		return fmt.Errorf("save %s of server %s: %w", v.bucket, t.Server, err)
	}
	if isNew {
		r.log.Log(ctx, v.level, "server reported", "server", string(t.Server), "report", string(v.bucket), "ticket", t.ID)
	}
	return nil
}

// sameJSON reports whether two values are stored as the same bytes.
func sameJSON(a, b any) bool {
	rawA, errA := json.Marshal(a)
	rawB, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(rawA) == string(rawB)
}
