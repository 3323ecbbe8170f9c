package stages

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// slowStore takes a while for each note.
type slowStore struct {
	takes   time.Duration
	sighted []string
}

func (s *slowStore) Note(context.Context, *model.Ticket, model.BootStage, netip.Addr) error {
	return nil
}

func (s *slowStore) NoteFirmware(context.Context, *model.Ticket, model.BootFirmware) error {
	return nil
}

func (s *slowStore) NoteSighting(ctx context.Context, _ *model.Ticket, mac string) error {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.sighted = append(s.sighted, mac)
	return nil
}

func TestWhatDHCPSawIsSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		takes   time.Duration
		settled bool
		waits   time.Duration
	}{
		"as soon as it is written down":        {takes: 100 * time.Millisecond, settled: true, waits: 200 * time.Millisecond},
		"but a machine does not wait for ever": {takes: time.Minute, settled: false, waits: settleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{takes: tc.takes}
				r := NewRecorder(store, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go func() { _ = r.Run(ctx) }()
				for _, mac := range []string{"02:00:00:00:00:01", "02:00:00:00:00:02"} {
					r.SawDHCP(netboot.Answer{Ticket: &model.Ticket{Server: "s1"}, MAC: mac}, netip.Addr{})
				}
				began := time.Now()
				r.Settle(ctx)
				if waited := time.Since(began); waited != tc.waits {
					t.Errorf("it was waited for %s, want %s", waited, tc.waits)
				}
				if got := slices.Contains(store.sighted, "02:00:00:00:00:02"); got != tc.settled {
					t.Errorf("what was seen last is written down: %t, want %t", got, tc.settled)
				}
			})
		})
	}
}
