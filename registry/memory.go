package registry

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"ingot/model"
	"ingot/registry/store"
)

// memory is the copy of the store that all reads come from: what the stored
// values mean, and indexes over that. Their bytes would take as much room again,
// so they are encoded again when a lost store is filled. Their digests show whether
// another value is the same.
type memory struct {
	snapshot atomic.Pointer[model.Observed] // nil after a change

	mu     sync.RWMutex
	raw    store.Contents       // the sealed values
	sums   map[store.Key]digest // of all other values
	state  model.Observed
	shared map[store.Bucket]bool                    // maps of state that a snapshot shares
	found  map[model.ServerName]*model.TicketHolder // what Find returns of each server
	byUUID map[model.UUID][]*model.TicketHolder     // of found, in both byte orders
	byBlob map[blob]map[model.ServerName]*model.Ticket
	byMAC  macIndex
	macs   map[model.ServerName][]knownMAC // what byMAC has of each

	byIP      map[string]string   // MAC address of the endpoint facts with an IP
	withoutIP map[string]struct{} // MAC addresses of those without

	decrypted decryptedValues
}

// digest is the SHA-256 of a value's bytes.
type digest [sha256.Size]byte

func newMemory() *memory {
	m := new(memory)
	m.clear()
	return m
}

func (m *memory) clear() {
	m.raw, m.sums, m.decrypted = store.NewContents(), make(map[store.Key]digest), newDecryptedValues()
	m.state, m.shared = *model.NewObserved(), make(map[store.Bucket]bool)
	m.found, m.byUUID = make(map[model.ServerName]*model.TicketHolder), make(map[model.UUID][]*model.TicketHolder)
	m.byBlob = make(map[blob]map[model.ServerName]*model.Ticket)
	m.byMAC, m.macs = make(macIndex), make(map[model.ServerName][]knownMAC)
	m.byIP, m.withoutIP = make(map[string]string), make(map[string]struct{})
}

// change with what its value means; v is nil for deletions and sealed buckets.
type decoded struct {
	store.Change
	v any
}

// corrupt is a stored value that means nothing.
type corrupt struct {
	store.Key
	err error
}

func (c corrupt) Error() string { return fmt.Sprintf("%s %s: %v", c.Bucket, c.Name, c.err) }

// decodePiece is how many values one goroutine decodes. Pieces are small because
// values of one kind stand together, and some kinds take much longer than others.
const decodePiece = 128

// decodeAll reads the values of b, in parallel when there are many. Values that
// mean nothing are left out and returned beside.
func (m *memory) decodeAll(b store.Batch) ([]decoded, []corrupt) {
	out := make([]decoded, len(b))
	errs := make([]error, len(b))
	var wg sync.WaitGroup
	for from := 0; from < len(b); from += decodePiece {
		wg.Go(func() {
			for i := from; i < min(from+decodePiece, len(b)); i++ {
				out[i], errs[i] = m.decodeOne(b[i])
			}
		})
	}
	wg.Wait()
	var bad []corrupt
	good := out[:0]
	for i, err := range errs {
		if err != nil {
			bad = append(bad, corrupt{b[i].Key, err})
			continue
		}
		good = append(good, out[i])
	}
	return good, bad
}

func (m *memory) decodeOne(ch store.Change) (decoded, error) {
	column, meaning := columns[ch.Bucket]
	if !meaning || ch.Value == nil {
		return decoded{Change: ch}, nil
	}
	v, err := column.decode(ch.Value)
	return decoded{ch, v}, err
}

// reset makes c all that is in memory.
func (m *memory) reset(c store.Contents) []corrupt {
	var all store.Batch
	for b, values := range c {
		for name, value := range values {
			all = append(all, store.Change{Key: store.Key{Bucket: b, Name: name}, Value: value})
		}
	}
	changes, bad := m.decodeAll(all)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.put(changes)
	return bad
}

// apply makes the changes of b in memory.
func (m *memory) apply(b store.Batch) []corrupt {
	changes, bad := m.decodeAll(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(changes)
	return bad
}

func (m *memory) put(changes []decoded) {
	for _, ch := range changes {
		m.keep(ch)
		m.decrypted.drop(ch.Key)
		if column, meaning := columns[ch.Bucket]; meaning {
			column.put(m, ch.Bucket, ch.Name, ch.v)
		}
	}
	if len(changes) > 0 {
		m.snapshot.Store(nil)
	}
}

// keep holds the bytes of a sealed value, and the digest of any other.
func (m *memory) keep(ch decoded) {
	switch {
	case ch.v != nil:
		m.sums[ch.Key] = sha256.Sum256(ch.Value)
	default:
		delete(m.sums, ch.Key)
		m.raw.Set(ch.Change)
	}
}

// observed returns a snapshot, the same one for as long as nothing changes.
func (m *memory) observed() *model.Observed {
	if o := m.snapshot.Load(); o != nil {
		return o
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.state
	for b := range columns {
		m.shared[b] = true
	}
	m.snapshot.Store(&o)
	return &o
}

// kept returns the bytes of a value, nil if there is none or they are not kept;
// in sealed buckets they are. Nobody changes them.
func (m *memory) kept(k store.Key) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.raw[k.Bucket][k.Name]
}

// meaning returns what a stored value means, nil if there is none or it is
// sealed. Nobody changes it.
func (m *memory) meaning(k store.Key) any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.hasLocked(k) {
		return nil
	}
	return m.valueOf(k)
}

// has reports whether there is a value.
func (m *memory) has(k store.Key) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.hasLocked(k)
}

// hasLocked is has for a caller that holds mu.
func (m *memory) hasLocked(k store.Key) bool {
	_, summed := m.sums[k]
	return summed || m.raw[k.Bucket][k.Name] != nil
}

// valueOf is meaning, of a value that there is, for a caller that holds mu.
func (m *memory) valueOf(k store.Key) any {
	if column, meaning := columns[k.Bucket]; meaning {
		return column.get(&m.state, k.Name)
	}
	return nil
}

// stored returns the bytes of one value, nil if there is none. Nobody changes
// them.
func (m *memory) stored(k store.Key) ([]byte, error) {
	if raw := m.kept(k); raw != nil {
		return raw, nil
	}
	v := m.meaning(k)
	if v == nil {
		return nil, nil
	}
	return encode(k, v)
}

// differs reports whether ch would change anything.
func (m *memory) differs(ch store.Change) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if ch.Value == nil {
		return m.hasLocked(ch.Key)
	}
	if sum, summed := m.sums[ch.Key]; summed {
		return sum != sha256.Sum256(ch.Value)
	}
	old := m.raw[ch.Bucket][ch.Name]
	return old == nil || !bytes.Equal(old, ch.Value)
}

// all returns everything that is in memory, as it is to be stored.
func (m *memory) all() (store.Contents, error) {
	c, values := m.parts()
	for k, v := range values {
		raw, err := encode(k, v)
		if err != nil {
			return nil, err
		}
		c[k.Bucket][k.Name] = raw
	}
	return c, nil
}

// parts returns the values whose bytes are kept, and what the others mean.
func (m *memory) parts() (store.Contents, map[store.Key]any) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := make(store.Contents, len(m.raw))
	for b, values := range m.raw {
		c[b] = maps.Clone(values)
	}
	values := make(map[store.Key]any, len(m.sums))
	for k := range m.sums {
		values[k] = m.valueOf(k)
	}
	return c, values
}

// sealedNames returns the names in a sealed bucket.
func (m *memory) sealedNames(b store.Bucket) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Keys(m.raw[b]))
}

// empty reports whether memory knows nothing at all.
func (m *memory) empty() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.sums) == 0 && m.raw.Empty()
}
