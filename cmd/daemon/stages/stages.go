// Package stages records the boot stages that packet handlers see, without making the
// handlers wait for the store.
package stages

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// queueSize is how many stages may wait for the store.
const queueSize = 1024

// Store keeps what was seen.
type Store interface {
	Note(context.Context, *model.Ticket, model.BootStage, netip.Addr) error
	NoteFirmware(context.Context, *model.Ticket, model.BootFirmware) error
	NoteSighting(ctx context.Context, t *model.Ticket, mac string) error
}

// Recorder records the stages that packet handlers see, one after the other.
type Recorder struct {
	store Store
	queue chan entry
	log   *slog.Logger
}

// NewRecorder returns a recorder, which records nothing before Run.
func NewRecorder(store Store, log *slog.Logger) *Recorder {
	return &Recorder{store: store, queue: make(chan entry, queueSize), log: log}
}

// entry is one stage that was seen, with the firmware and the network card if these were
// seen as well; or a mark, when all before it is recorded.
type entry struct {
	mark     chan struct{} // closed when its turn comes; nil = it is a stage
	mac      string        // "" = not seen
	ticket   *model.Ticket
	stage    model.BootStage
	client   netip.Addr
	firmware *model.BootFirmware
}

// SawDHCP notes that DHCP answered a server with its boot file.
func (r *Recorder) SawDHCP(answer netboot.Answer, client netip.Addr) {
	seen := entry{ticket: answer.Ticket, stage: model.StageDHCP, client: client, mac: answer.MAC}
	if f, ok := answer.Arch.Firmware(); ok {
		seen.firmware = &f
	}
	r.add(seen)
}

// SawTFTP notes that a client was sent a boot loader.
func (r *Recorder) SawTFTP(t *model.Ticket, client netip.Addr) {
	r.add(entry{ticket: t, stage: model.StageTFTP, client: client})
}

// add queues a stage. When the store is far behind the stage is left out: firmware asks
// again, and only the timeline depends on it.
func (r *Recorder) add(s entry) {
	select {
	case r.queue <- s:
	default:
		r.log.Debug("boot stage not recorded, the store is behind", "server", string(s.ticket.Server), "stage", string(s.stage))
	}
}

// settleTimeout is how long a machine waits at most until what was seen of it is recorded.
const settleTimeout = 2 * time.Second

// Settle waits until what was seen before is recorded, unless the store is far behind.
func (r *Recorder) Settle(ctx context.Context) {
	mark := make(chan struct{})
	select {
	case r.queue <- entry{mark: mark}:
	default:
		return
	}
	timeout := time.NewTimer(settleTimeout)
	defer timeout.Stop()
	select {
	case <-mark:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// Run records what was seen until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.queue:
			if s.mark != nil {
				close(s.mark)
				continue
			}
			err := r.record(ctx, s)
			if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrTicketSpent) {
				r.log.Warn("boot stage not recorded", "server", string(s.ticket.Server), "stage", string(s.stage), "err", err)
			}
		}
	}
}

func (r *Recorder) record(ctx context.Context, s entry) error {
	if s.mac != "" { // first, for the machine is about to ask for more
		if err := r.store.NoteSighting(ctx, s.ticket, s.mac); err != nil {
			return err
		}
	}
	err := r.store.Note(ctx, s.ticket, s.stage, s.client)
	if err == nil && s.firmware != nil {
		err = r.store.NoteFirmware(ctx, s.ticket, *s.firmware)
	}
	return err
}
