package reconcile

import (
	"sync"

	"ingot/model"
)

// Digests remembers by what boots are known, for to hash every Secret anew for each
// plan costs more than all the rest of it. It is safe for concurrent use, and nil
// remembers nothing.
type Digests struct {
	mu            sync.Mutex
	of            *model.Desired // of which now is
	now, previous map[digestKey]string
}

// digestKey is what a digest is made from. An object of the desired state is never
// changed, so that its address stands for what it holds while it is remembered.
type digestKey struct {
	image, arguments string
	secret           *model.Secret
}

// digest is bootDigest, remembered for as long as the desired state has the same.
func (d *Digests) digest(desired *model.Desired, b *Boot) string {
	if d == nil {
		return bootDigest(*b)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != desired {
		d.of, d.now, d.previous = desired, make(map[digestKey]string), d.now
	}
	key := digestKey{b.Image, b.KernelArguments, b.secret}
	sum, known := d.now[key]
	if !known {
		if sum, known = d.previous[key]; !known {
			sum = bootDigest(*b)
		}
		d.now[key] = sum
	}
	return sum
}

// digest is by what a boot is known.
func (s *server) digest(b *Boot) string { return s.fleet.in.Digests.digest(s.fleet.in.Desired, b) }
