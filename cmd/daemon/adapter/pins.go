package adapter

import (
	"sync"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// LastPinned returns a function that finds the image that the newest boot ticket for a
// reference pinned.
func LastPinned(observed func() *model.Observed) func(ref, architecture string) (model.PinnedImage, bool) {
	return func(ref, architecture string) (model.PinnedImage, bool) {
		var newest *model.Ticket
		for _, rec := range observed().Servers {
			t := rec.Boot.Ticket
			if t != nil && t.Image.Ref == ref && t.Image.Architecture == architecture && (newest == nil || t.ArmedAt.After(newest.ArmedAt)) {
				newest = t
			}
		}
		if newest == nil {
			return model.PinnedImage{}, false
		}
		return newest.Image, true
	}
}

// Pins are the digests of the layers and disk images that tickets in use pin, which the caches
// must keep.
type Pins struct {
	Observed func() *model.Observed

	mu      sync.Mutex // guards what is below
	of      *model.Observed
	digests map[string]bool
}

// Spare reports whether a ticket in use pins a digest.
func (p *Pins) Spare(digest string) bool {
	o := p.Observed()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != o {
		p.of, p.digests = o, pinnedLayers(o)
	}
	return p.digests[digest]
}

// pinnedLayers returns the digests of the layers that tickets in use pin.
func pinnedLayers(o *model.Observed) map[string]bool {
	pinned := make(map[string]bool)
	for _, rec := range o.Servers {
		if rec.Boot.Ticket == nil || !netboot.InUse(rec.Boot.Ticket) {
			continue
		}
		if rec.Boot.Ticket.Disk != nil {
			pinned[rec.Boot.Ticket.Disk.Digest] = true
		}
		img := &rec.Boot.Ticket.Image
		for _, layer := range []*model.Layer{img.Kernel, img.Initrd, img.Squashfs, img.UKI} {
			if layer != nil {
				pinned[layer.Digest] = true
			}
		}
	}
	return pinned
}
