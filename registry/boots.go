package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
	"ingot/registry/store"
)

// Boots finds servers and their boot tickets, and records what servers report, and request with a ticket.
type Boots struct {
	*database
	clock func() time.Time
	uses  pendingUses
}

// Find returns the server with this system UUID, in either byte order, or with this MAC address: its
// newest boot ticket, open or not, and its progress with that. A UUID or MAC address that several servers
// have identifies none.
func (b *Boots) Find(id string) (holder model.TicketHolder, known bool) {
	holders := b.memory.holders(id)
	if len(holders) != 1 {
		return model.TicketHolder{}, false
	}
	return holders[0], true
}

// Namesakes returns the servers with this system UUID, in either byte order.
func (b *Boots) Namesakes(uuid string) []model.TicketHolder { return b.memory.holders(uuid) }

// Named reports whether one or several servers have this system UUID, in either byte order, or this MAC
// address.
func (b *Boots) Named(id string) bool { return len(b.memory.holders(id)) > 0 }

// MACs returns the canonical MAC addresses that belong to a server only: those of its record or, if it has
// none, those that asked under its UUID since it was powered on for its discovery.
func (b *Boots) MACs(server model.ServerName) []string { return b.memory.macsOf(server) }

// Pinned returns a ticket that lets its server fetch the layer or manifest with this digest. The boot
// service serves nothing else.
func (b *Boots) Pinned(repository, digest string) (*model.Ticket, bool) {
	t := b.memory.pinned(repository, digest)
	return t, t != nil
}

// Note records durably that a server reached a stage with a ticket. Each stage is recorded once, and a
// stage of its firmware only before all later stages. A script after the configuration begins another
// boot. The client may be the zero value. The error is model.ErrTicketSpent if the ticket is not the
// server's newest, or not usable.
func (b *Boots) Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	now := b.clock()
	err := b.editProgress(ctx, t, usable, func(p *model.Progress) bool {
		next, isNew := p.Reached(stage, now)
		if !isNew || isLate(&next, stage) {
			return false
		}
		if text := clientText(client); text != "" {
			next.Client = text
		}
		*p = next
		return true
	})
	if err != nil {
		return fmt.Errorf("note %s of server %s: %w", stage, t.Server, err)
	}
	return nil
}

// isLate reports whether stage is of the firmware, and p has a later stage. Then it belongs to another
// boot, or was reported late.
func isLate(p *model.Progress, stage model.BootStage) bool {
	switch stage {
	case model.StageDHCP, model.StageTFTP, model.StageHTTPBoot:
		last, _ := p.Last()
		return last != stage
	default:
		return false
	}
}

// NoteFirmware records durably what DHCP received from the firmware of a server with a ticket. It is kept
// when the server gets another ticket. Errors are as for Note.
func (b *Boots) NoteFirmware(ctx context.Context, t *model.Ticket, f model.BootFirmware) error {
	err := b.editProgress(ctx, t, usable, func(p *model.Progress) bool {
		isNew := p.Firmware == nil || *p.Firmware != f
		p.Firmware = &f
		return isNew
	})
	if err != nil {
		return fmt.Errorf("note the firmware of server %s: %w", t.Server, err)
	}
	return nil
}

// NoteSighting records durably that a NIC requested a boot file under the UUID of the server with a
// ticket, unless the NIC is in the server's record. Errors are as for Note.
func (b *Boots) NoteSighting(ctx context.Context, t *model.Ticket, mac string) error {
	rec, _ := b.memory.value(store.Key{Bucket: store.BucketServer, Name: string(t.Server)}).(*model.ServerRecord)
	if rec != nil && slices.ContainsFunc(rec.MACs, func(m model.ServerMAC) bool { return m.Address == mac }) {
		return nil
	}
	now := b.clock().UTC()
	err := b.editProgress(ctx, t, usable, func(p *model.Progress) (isNew bool) {
		*p, isNew = p.Sighted(mac, now)
		return isNew
	})
	if err != nil {
		return fmt.Errorf("note that %s asked as server %s: %w", mac, t.Server, err)
	}
	return nil
}

// editProgress changes durably how far a server has come with t, its newest ticket, which must be
// accepted. The function change gets a copy, and reports whether the copy must be saved. It must not change
// the values that the copy points to.
func (b *Boots) editProgress(ctx context.Context, t *model.Ticket, accepts func(*model.Ticket) bool, change func(*model.Progress) bool) error {
	return b.write(ctx, func(d *draft) (store.Batch, error) {
		newest, progress := newestTicket(d, t.Server)
		if newest == nil || newest.ID != t.ID || !accepts(newest) {
			return nil, model.ErrTicketSpent
		}
		if !change(&progress) {
			return nil, nil
		}
		var e encoder
		e.set(store.BucketProgress, string(t.Server), progress)
		return e.batch, e.err
	})
}

// newestTicket returns the newest ticket of a server, nil if it has none, and a copy of its progress with
// that.
func newestTicket(d *draft, server model.ServerName) (*model.Ticket, model.Progress) {
	rec := drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: string(server)})
	if rec == nil || rec.Boot.Ticket == nil {
		return nil, model.Progress{}
	}
	progress := drafted[model.Progress](d, store.Key{Bucket: store.BucketProgress, Name: string(server)})
	switch {
	case progress == nil:
		return rec.Boot.Ticket, model.Progress{Ticket: rec.Boot.Ticket.ID}
	case progress.Ticket != rec.Boot.Ticket.ID: // the machine is the same
		return rec.Boot.Ticket, model.Progress{Ticket: rec.Boot.Ticket.ID, Firmware: progress.Firmware}
	}
	return rec.Boot.Ticket, *progress
}

// Probe returns the report of a server's probe, nil if it has none.
func (b *Boots) Probe(server model.ServerName) *model.ProbeReport {
	probe, _ := b.memory.value(store.Key{Bucket: store.BucketProbe, Name: string(server)}).(*model.ProbeReport)
	return probe
}

// SaveReport makes a report of a server with t durable, unless it repeats an earlier one. The error is
// model.ErrTicketSpent if the ticket has ended, or is no longer the server's.
func (b *Boots) SaveReport(ctx context.Context, t *model.Ticket, what model.ServerReport) error {
	switch v := what.(type) {
	case *model.ProbeInstall:
		return b.noteInstall(ctx, t, v)
	case *model.ProbeReport:
		return saveReport(ctx, b.database, t, report[model.ProbeReport]{
			bucket: store.BucketProbe, value: v,
			repeats: func(old *model.ProbeReport) bool { return old.Ticket == v.Ticket && sameJSON(old.Data, v.Data) },
		})
	case *model.BootState:
		return saveReport(ctx, b.database, t, report[model.BootState]{
			bucket: store.BucketBootState, value: v, afterBooted: v.CloudInit != nil,
			repeats: func(old *model.BootState) bool { return bootStateRepeats(v, old) },
		})
	case *model.WipeReport: // it ends the progress
		return saveReport(ctx, b.database, t, report[model.WipeReport]{
			bucket: store.BucketWipe, value: v, ends: []store.Bucket{store.BucketWipeProgress},
			repeats: func(old *model.WipeReport) bool {
				return old.Ticket == v.Ticket && old.Mode == v.Mode && sameJSON(old.Disks, v.Disks)
			},
		})
	case *model.WipeProgress:
		return saveReport(ctx, b.database, t, report[model.WipeProgress]{
			bucket: store.BucketWipeProgress, value: v, level: slog.LevelDebug,
			repeats: func(old *model.WipeProgress) bool { return wipeRepeats(v, old) },
			isLate: func(d *draft) bool {
				outcome := drafted[model.WipeReport](d, store.Key{Bucket: store.BucketWipe, Name: string(t.Server)})
				return outcome != nil && outcome.Ticket == v.Ticket
			},
		})
	}
	panic(fmt.Sprintf("report of server %s: %T", t.Server, what))
}

// cloudInitEvery is the minimum time between two results of cloud-init of one server. Its ticket has
// ended, so nothing else limits them.
const cloudInitEvery = time.Minute

// bootStateRepeats reports whether a boot state adds nothing to the old one of its ticket. It keeps the time
// at which the server was first up.
func bootStateRepeats(v, old *model.BootState) bool {
	if old.Ticket != v.Ticket {
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

// wipeEvery is the time between two records of a wipe without progress. A wipe that sends no reports is
// assumed to hang.
const wipeEvery = 2 * time.Minute

func wipeRepeats(v, old *model.WipeProgress) bool {
	return old.Ticket == v.Ticket && old.Mode == v.Mode && v.ReceivedAt.Sub(old.ReceivedAt).Abs() < wipeEvery && sameJSON(old.Disks, v.Disks)
}

type report[V any] struct {
	bucket  store.Bucket
	value   *V
	repeats func(old *V) bool   // whether it adds nothing to the stored one
	isLate  func(d *draft) bool // optional: whether it is too late
	ends    []store.Bucket      // deleted with it
	level   slog.Level
	// afterBooted accepts it after its ticket ended as Booted, while the server is bound to the
	// ticket's claim.
	afterBooted bool
}

func (v *report[V]) accepts(rec *model.ServerRecord, ticket string) bool {
	if rec == nil || rec.Boot.Ticket == nil || rec.Boot.Ticket.ID != ticket {
		return false
	}
	t := rec.Boot.Ticket
	return t.Open() || v.afterBooted && t.Ended == model.TicketBooted && rec.Claim.Name == t.Claim && rec.Release == nil
}

// saveReport makes a report of a server with t durable, unless it repeats an earlier one or is too late.
func saveReport[V any](ctx context.Context, db *database, t *model.Ticket, v report[V]) error {
	k, isNew := store.Key{Bucket: v.bucket, Name: string(t.Server)}, false
	err := db.write(ctx, func(d *draft) (store.Batch, error) {
		if !v.accepts(drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: k.Name}), t.ID) {
			return nil, model.ErrTicketSpent
		}
		old := drafted[V](d, k)
		if old != nil && v.repeats(old) || v.isLate != nil && v.isLate(d) {
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
		db.log.Log(ctx, v.level, "server reported", "server", string(t.Server), "report", string(v.bucket), "ticket", t.ID)
	}
	return nil
}

// sameJSON reports whether two values have the same stored form.
func sameJSON(a, b any) bool {
	rawA, errA := json.Marshal(a)
	rawB, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(rawA) == string(rawB)
}

// installEvery is the maximum time between two records of an installation in one stage, while its reports
// arrive.
const installEvery = 10 * time.Second

// noteInstall records durably how far the probe has written t's disk image, unless that adds nothing. The
// error is model.ErrTicketSpent if the ticket has ended, or is no longer the server's.
func (b *Boots) noteInstall(ctx context.Context, t *model.Ticket, r *model.ProbeInstall) error {
	now, level := b.clock().UTC(), slog.LevelDebug
	var saved *model.DiskInstall
	writesDisk := func(t *model.Ticket) bool { return t.Open() && t.Disk != nil }
	err := b.editProgress(ctx, t, writesDisk, func(p *model.Progress) bool {
		was, next := p.Install, p.Install.Told(r, p.Boots, t.Disk.Data, now)
		if !isInstallNew(was, &next, t.Disk.Data) {
			return false
		}
		if p.Install, saved = &next, &next; was == nil || was.Stage != next.Stage || was.Reason != next.Reason {
			level = slog.LevelInfo
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("note the install of server %s: %w", t.Server, err)
	}
	if saved != nil {
		b.log.Log(ctx, level, "install reported", "server", string(t.Server), "claim", string(t.Claim), "ticket", t.ID,
			"stage", string(saved.Stage), "done", saved.Done, "reason", saved.Reason)
	}
	return nil
}

// isInstallNew reports whether an installation has advanced enough to be recorded: by a stage, by a
// hundredth of its data, or by installEvery.
func isInstallNew(was, is *model.DiskInstall, data uint64) bool {
	if was == nil {
		return true
	}
	same := *was
	same.Done, same.ReportedAt = is.Done, is.ReportedAt
	same.Tenths, same.TenthAt = is.Tenths, is.TenthAt
	since := is.ReportedAt.Sub(was.ReportedAt)
	return !sameJSON(same, is) || is.Done-was.Done >= max(data/100, 1) || since >= installEvery || since < 0
}
