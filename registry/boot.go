package registry

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"ingot/model"
)

// Offer returns the newest boot ticket of the server with this system UUID, in
// either byte order, or with a network interface of this MAC address; open or not,
// and how far the server has come with it. When no server has the UUID or MAC
// address, or several do, there is no offer.
func (r *Registry) Offer(id string) (model.Offer, bool) {
	rec, progress := r.identified(id)
	if rec == nil || rec.Ticket == nil {
		return model.Offer{}, false
	}
	if progress != nil && progress.Ticket != rec.Ticket.ID {
		progress = nil
	}
	return model.Offer{Ticket: rec.Ticket, Progress: progress}, true
}

// identified returns the one server with a system UUID or MAC address.
func (r *Registry) identified(id string) (*model.ServerRecord, *model.Progress) {
	if mac, ok := parseMAC(id); ok {
		return r.memory.serverWith(mac)
	}
	uuid, err := canonicalUUID(id)
	if err != nil {
		return nil, nil
	}
	return r.memory.server(uuid)
}

// Note records, durably before it returns, that a server reached a stage with a
// ticket. Each stage is recorded once, and one of its firmware's only while no
// later stage was reached. The client may be unknown: the zero value. The error is ErrTicketSpent when the
// ticket is no longer the server's or no longer to be booted with.
func (r *Registry) Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	now := r.options.Clock()
	err := r.write(ctx, func(d *draft) (batch, error) { return noteProgress(d, t, stage, client, now) })
	if err != nil {
		return fmt.Errorf("note %s of server %s: %w", stage, t.Server, err)
	}
	return nil
}

// Pinned returns a ticket that lets its server fetch the layer or manifest with
// this digest, so that the boot service need not serve anything else.
func (r *Registry) Pinned(repository, digest string) (*model.Ticket, bool) {
	t := r.memory.pinned(blob{repository, digest})
	return t, t != nil
}

// noteProgress is the edit of Note.
func noteProgress(d *draft, t *model.Ticket, stage model.BootStage, client netip.Addr, now time.Time) (batch, error) {
	rec := drafted[model.ServerRecord](d, key{bucketServer, string(t.Server)})
	if rec == nil || !usable(rec.Ticket) || rec.Ticket.ID != t.ID {
		return nil, ErrTicketSpent
	}
	k := key{bucketProgress, string(t.Server)}
	progress := drafted[model.Progress](d, k)
	if progress == nil || progress.Ticket != t.ID {
		progress = &model.Progress{Ticket: t.ID}
	}
	next, isNew := progress.Reached(stage, now)
	if !isNew || isLate(next, stage) {
		return nil, nil
	}
	if client.IsValid() && !client.IsUnspecified() { // before DHCP there is none
		next.Client = client.String()
	}
	var e encoder
	e.set(k.bucket, k.name, next)
	return e.batch, e.err
}

// isLate reports whether stage is of firmware, and p has a later one: then it is of
// another boot than that, or was told late, and would stand after what came of it.
func isLate(p model.Progress, stage model.BootStage) bool {
	switch stage {
	case model.StageDHCP, model.StageTFTP, model.StageHTTPBoot:
		last, _ := p.Last()
		return last != stage
	default:
		return false
	}
}
