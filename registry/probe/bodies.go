package probe

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"

	"ingot/model"
)

const (
	// maxBodies is how many bytes of reports may be held at once, maxClientBodies how
	// many of one client: room is taken before anything came, and is not all for one
	// that sends nothing.
	maxBodies       = 64 << 20
	maxClientBodies = maxBodies / 4
)

// bodies is the room for the bodies of reports that are being read.
type bodies struct {
	mu       sync.Mutex
	taken    int64 // bytes
	byClient map[netip.Addr]int64
}

func newBodies() *bodies { return &bodies{byClient: make(map[netip.Addr]int64)} }

var errBodies = errors.New("too many reports at once")

func (b *bodies) take(client netip.Addr, size int64) error {
	client = model.OneClient(client)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.byClient[client]+size > max(size, maxClientBodies):
		return refuse(http.StatusTooManyRequests, "too many reports at once from your address; try again")
	case b.taken+size > max(size, maxBodies):
		return errBodies
	}
	b.taken += size
	b.byClient[client] += size
	return nil
}

func (b *bodies) giveBack(client netip.Addr, size int64) {
	client = model.OneClient(client)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= size
	if b.byClient[client] -= size; b.byClient[client] <= 0 {
		delete(b.byClient, client)
	}
}
