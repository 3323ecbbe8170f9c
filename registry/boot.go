package registry

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
	"ingot/registry/store"
)

// Find returns the server with this system UUID, in either byte order, or with a
// network interface of this MAC address; its newest boot ticket, open or not, if it
// ever had one; and how far it has come with that. When no server has the UUID or MAC
// address, or several do, none is known.
func (r *Registry) Find(id string) (holder model.TicketHolder, known bool) {
	if mac, ok := model.ParseMAC(id); ok {
		return r.memory.serverWith(mac)
	}
	uuid, ok := model.ParseUUID(id)
	if !ok {
		return model.TicketHolder{}, false
	}
	return r.memory.server(uuid)
}

// Namesakes returns what Find does of each server with this system UUID, in either byte
// order: one, unless several share it.
func (r *Registry) Namesakes(uuid string) []model.TicketHolder { return r.memory.namesakes(uuid) }

// Named reports whether a server has this system UUID, in either byte order, or this MAC
// address. Of several that share it Find knows none, and yet it is no stranger's.
func (r *Registry) Named(id string) bool { return r.memory.named(id) }

// MACs returns the MAC addresses that count as a server's and as no other's, canonical:
// those of its record, or, where that has none, those that asked under its UUID since it
// was powered on to be discovered.
func (r *Registry) MACs(server model.ServerName) []string { return r.memory.macsOf(server) }

// Note records, durably before it returns, that a server reached a stage with a
// ticket. Each stage is recorded once, and one of its firmware's only while no
// later stage was reached; a script after the configuration begins another boot. The client may be unknown: the zero value. The error is
// model.ErrTicketSpent when the ticket is no longer the server's or no longer to be booted
// with.
func (r *Registry) Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	now := r.options.Clock()
	err := r.write(ctx, func(d *draft) (store.Batch, error) { return noteProgress(d, t, stage, client, now) })
	if err != nil {
		return fmt.Errorf("note %s of server %s: %w", stage, t.Server, err)
	}
	return nil
}

// NoteFirmware records, durably before it returns, what DHCP received from the firmware of
// a server that boots with a ticket, unless that is known. It is kept when the server
// gets another ticket. The error is model.ErrTicketSpent as for Note.
func (r *Registry) NoteFirmware(ctx context.Context, t *model.Ticket, f model.BootFirmware) error {
	err := r.write(ctx, func(d *draft) (store.Batch, error) { return noteFirmware(d, t, f) })
	if err != nil {
		return fmt.Errorf("note the firmware of server %s: %w", t.Server, err)
	}
	return nil
}

// NoteSighting records, durably before it returns, that a network card asked for a boot
// file under the UUID of the server that boots with a ticket, unless the card is known to
// be that server's. The error is model.ErrTicketSpent as for Note.
func (r *Registry) NoteSighting(ctx context.Context, t *model.Ticket, mac string) error {
	if slices.Contains(r.recordedMACs(t.Server), mac) {
		return nil
	}
	now := r.options.Clock().UTC()
	err := r.write(ctx, func(d *draft) (store.Batch, error) { return noteSighting(d, t, mac, now) })
	if err != nil {
		return fmt.Errorf("note that %s asked as server %s: %w", mac, t.Server, err)
	}
	return nil
}

// recordedMACs are the MAC addresses of a server's record.
func (r *Registry) recordedMACs(server model.ServerName) []string {
	rec, _ := r.memory.meaning(store.Key{Bucket: store.BucketServer, Name: string(server)}).(*model.ServerRecord)
	if rec == nil {
		return nil
	}
	macs := make([]string, len(rec.MACs))
	for i, mac := range rec.MACs {
		macs[i] = mac.Address
	}
	return macs
}

// Pinned returns a ticket that lets its server fetch the layer or manifest with
// this digest, so that the boot service need not serve anything else.
func (r *Registry) Pinned(repository, digest string) (*model.Ticket, bool) {
	t := r.memory.pinned(blob{repository, digest})
	return t, t != nil
}

// noteProgress is the edit of Note.
func noteProgress(d *draft, t *model.Ticket, stage model.BootStage, client netip.Addr, now time.Time) (store.Batch, error) {
	newest, progress := newestTicket(d, t.Server)
	if newest == nil || newest.ID != t.ID || !usable(newest) {
		return nil, model.ErrTicketSpent
	}
	next, isNew := progress.Reached(stage, now)
	if !isNew || isLate(next, stage) {
		return nil, nil
	}
	if text := clientText(client); text != "" {
		next.Client = text
	}
	var e encoder
	e.set(store.BucketProgress, string(t.Server), next)
	return e.batch, e.err
}

// noteFirmware is the edit of NoteFirmware.
func noteFirmware(d *draft, t *model.Ticket, f model.BootFirmware) (store.Batch, error) {
	newest, progress := newestTicket(d, t.Server)
	if newest == nil || newest.ID != t.ID || !usable(newest) {
		return nil, model.ErrTicketSpent
	}
	if progress.Firmware != nil && *progress.Firmware == f {
		return nil, nil
	}
	progress.Firmware = &f
	var e encoder
	e.set(store.BucketProgress, string(t.Server), progress)
	return e.batch, e.err
}

// noteSighting is the edit of NoteSighting.
func noteSighting(d *draft, t *model.Ticket, mac string, now time.Time) (store.Batch, error) {
	newest, progress := newestTicket(d, t.Server)
	if newest == nil || newest.ID != t.ID || !usable(newest) {
		return nil, model.ErrTicketSpent
	}
	next, isNew := progress.Sighted(mac, now)
	if !isNew {
		return nil, nil
	}
	var e encoder
	e.set(store.BucketProgress, string(t.Server), next)
	return e.batch, e.err
}

// newestTicket returns the newest ticket of a server, nil if it has none, and how far
// the server has come with it. What Progress points to is not to be changed.
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

// isLate reports whether stage is of firmware, and p has a later one: then it is of
// another boot than that, or was reported late, and would stand after what came of it.
func isLate(p model.Progress, stage model.BootStage) bool {
	switch stage {
	case model.StageDHCP, model.StageTFTP, model.StageHTTPBoot:
		last, _ := p.Last()
		return last != stage
	default:
		return false
	}
}
