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

// memory is the copy of the store that all reads come from: decoded values, and indexes over them. The
// encoded bytes would take as much memory again, so a lost store is filled by encoding the values
// again. Digests show whether a new value is the same.
type memory struct {
	snapshot atomic.Pointer[model.Observed] // nil after a change

	mu      sync.RWMutex
	seals   store.Contents       // the sealed values
	sums    map[store.Key]digest // of all other values
	state   model.Observed
	shared  map[store.Bucket]bool // maps of state that a snapshot shares
	servers serverIndex
	byIP    map[string]string // MAC address of the endpoint facts with an IP address
}

// digest is the SHA-256 of a value's bytes.
type digest [sha256.Size]byte

func newMemory() *memory {
	m := new(memory)
	m.clear()
	return m
}

func (m *memory) clear() {
	m.seals, m.sums = store.NewContents(), make(map[store.Key]digest)
	m.state, m.shared = *model.NewObserved(), make(map[store.Bucket]bool)
	m.servers, m.byIP = newServerIndex(), make(map[string]string)
}

// decoded is a change with its decoded value; v is nil for deletions and sealed buckets.
type decoded struct {
	store.Change
	v any
}

type corrupt struct {
	store.Key
	err error
}

func (c corrupt) Error() string { return fmt.Sprintf("%s %s: %v", c.Bucket, c.Name, c.err) }

// decodePiece is the number of values that one goroutine decodes. Pieces are small because values of
// one kind are adjacent, and some kinds take much longer than others.
const decodePiece = 128

// decodeAll decodes the values of b, in parallel if there are many. Unreadable values are returned
// separately.
func decodeAll(b store.Batch) ([]decoded, []corrupt) {
	out := make([]decoded, len(b))
	errs := make([]error, len(b))
	var wg sync.WaitGroup
	for from := 0; from < len(b); from += decodePiece {
		wg.Go(func() {
			for i := from; i < min(from+decodePiece, len(b)); i++ {
				out[i], errs[i] = decodeOne(b[i])
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

func decodeOne(ch store.Change) (decoded, error) {
	column, typed := columns[ch.Bucket]
	if !typed || ch.Value == nil {
		return decoded{Change: ch}, nil
	}
	v, err := column.decode(ch.Value)
	return decoded{ch, v}, err
}

func (m *memory) reset(c store.Contents) []corrupt {
	var all store.Batch
	for b, values := range c {
		for name, value := range values {
			all = append(all, store.Change{Key: store.Key{Bucket: b, Name: name}, Value: value})
		}
	}
	changes, bad := decodeAll(all)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.put(changes)
	return bad
}

func (m *memory) apply(b store.Batch) []corrupt {
	changes, bad := decodeAll(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(changes)
	return bad
}

func (m *memory) put(changes []decoded) {
	for _, ch := range changes {
		column, typed := columns[ch.Bucket]
		switch {
		case !typed:
			m.seals.Set(ch.Change)
			continue
		case ch.v != nil:
			m.sums[ch.Key] = sha256.Sum256(ch.Value)
		default:
			delete(m.sums, ch.Key)
		}
		column.put(m, ch.Bucket, ch.Name, ch.v)
	}
	if len(changes) > 0 {
		m.snapshot.Store(nil)
	}
}

// observed returns a snapshot, the same one until something changes.
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

// sealed returns the bytes of a value in a sealed bucket, nil if it does not exist. They do not change.
func (m *memory) sealed(k store.Key) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.seals[k.Bucket][k.Name]
}

// value returns a decoded value, nil if it does not exist or is sealed. It does not change.
func (m *memory) value(k store.Key) any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.valueLocked(k)
}

// valueLocked is value for a caller that holds mu.
func (m *memory) valueLocked(k store.Key) any {
	if _, exists := m.sums[k]; !exists {
		return nil
	}
	return columns[k.Bucket].get(&m.state, k.Name)
}

// stored returns the bytes of a value, nil if it does not exist. They do not change.
func (m *memory) stored(k store.Key) ([]byte, error) {
	if raw := m.sealed(k); raw != nil {
		return raw, nil
	}
	v := m.value(k)
	if v == nil {
		return nil, nil
	}
	return encode(k, v)
}

func (m *memory) differs(ch store.Change) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	sum, summed := m.sums[ch.Key]
	seal := m.seals[ch.Bucket][ch.Name]
	switch {
	case ch.Value == nil:
		return summed || seal != nil
	case summed:
		return sum != sha256.Sum256(ch.Value)
	}
	return seal == nil || !bytes.Equal(seal, ch.Value)
}

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

// parts returns the sealed values, and the decoded ones.
func (m *memory) parts() (store.Contents, map[store.Key]any) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := make(store.Contents, len(m.seals))
	for b, values := range m.seals {
		c[b] = maps.Clone(values)
	}
	values := make(map[store.Key]any, len(m.sums))
	for k := range m.sums {
		values[k] = m.valueLocked(k)
	}
	return c, values
}

func (m *memory) sealedNames(b store.Bucket) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Keys(m.seals[b]))
}

func (m *memory) empty() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.sums) == 0 && m.seals.Empty()
}
