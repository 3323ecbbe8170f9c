package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"ingot/model"
	"ingot/registry/lease"
)

// memory is the copy of the store that all reads come from: what the stored
// values mean, and indexes over that. Their bytes would take as much room again,
// so they are made anew when the store is to be written again; of those that can
// be made so there is a digest, which tells whether another value is the same.
type memory struct {
	snapshot atomic.Pointer[model.Observed] // nil after a change

	mu     sync.RWMutex
	raw    contents       // the values that are not in sums: sealed, or of a newer Ingot
	sums   map[key]digest // of the values that encoding their meaning makes again, without versions
	state  model.Observed
	shared map[bucket]bool               // maps of state that a snapshot shares
	byUUID map[string][]model.ServerName // by each of a server's spellings
	byBlob map[blob]map[model.ServerName]*model.Ticket
	byMAC  macIndex
	macs   map[model.ServerName][]heldMAC // what byMAC has of each

	byIP    map[string]string   // MAC address of the endpoint facts with an IP
	roaming map[string]struct{} // MAC addresses of those without

	inClear openedValues

	strings *interner // of all that is decoded
}

// digest is the SHA-256 of a value's bytes.
type digest [sha256.Size]byte

// blob names one layer or manifest of an image repository.
type blob struct{ repository, digest string }

func newMemory() *memory {
	m := &memory{strings: newInterner()}
	m.clear()
	return m
}

func (m *memory) clear() {
	m.raw, m.sums, m.inClear = newContents(), make(map[key]digest), newOpenedValues()
	m.state, m.shared = *model.NewObserved(), make(map[bucket]bool)
	m.byUUID = make(map[string][]model.ServerName)
	m.byBlob = make(map[blob]map[model.ServerName]*model.Ticket)
	m.byMAC, m.macs = make(macIndex), make(map[model.ServerName][]heldMAC)
	m.byIP, m.roaming = make(map[string]string), make(map[string]struct{})
}

// column is how one bucket's values stand in model.Observed.
type column struct {
	decode func(raw []byte) (any, error)
	// get returns the pointer to the named value, or nil. What it points to never
	// changes.
	get func(o *model.Observed, name string) any
	// put sets the named value, or deletes it when v is nil.
	put func(m *memory, b bucket, name string, v any)
}

// columns are the buckets whose values mean something to this package; the
// others are sealed.
var columns = map[bucket]column{
	bucketFleet:        single(func(o *model.Observed) *model.FleetRecord { return &o.Fleet }),
	bucketServer:       lists(column{decode[model.ServerRecord], servers.get, putServer}),
	bucketBMC:          mapped(func(o *model.Observed) *map[model.BMCName]*model.BMCRecord { return &o.BMCs }),
	bucketClaim:        mapped(func(o *model.Observed) *map[model.ClaimName]*model.ClaimRecord { return &o.Claims }),
	bucketBMCFacts:     mapped(func(o *model.Observed) *map[model.BMCName]*model.BMCFacts { return &o.BMCFacts }),
	bucketServerFacts:  mapped(func(o *model.Observed) *map[model.ServerName]*model.ServerFacts { return &o.ServerFacts }),
	bucketProbe:        mapped(func(o *model.Observed) *map[model.ServerName]*model.ProbeReport { return &o.Probes }),
	bucketBootState:    mapped(func(o *model.Observed) *map[model.ServerName]*model.BootState { return &o.BootStates }),
	bucketWipe:         mapped(func(o *model.Observed) *map[model.ServerName]*model.WipeReport { return &o.Wipes }),
	bucketWipeProgress: mapped(func(o *model.Observed) *map[model.ServerName]*model.WipeProgress { return &o.WipeProgress }),
	bucketPublished:    single(func(o *model.Observed) *model.Published { return &o.Published }),
	bucketProgress:     lists(mapped(func(o *model.Observed) *map[model.ServerName]*model.Progress { return &o.Progress })),

	bucketEndpoint:      mapped(func(o *model.Observed) *map[string]*model.EndpointRecord { return &o.Endpoints }),
	bucketEndpointFacts: {decode[model.EndpointFacts], endpointFacts.get, putEndpointFacts},
}

func decode[V any](raw []byte) (any, error) {
	v := new(V)
	return v, json.Unmarshal(raw, v)
}

// mapped is the column of a bucket that is a map in model.Observed. Before the
// first change after a snapshot the map is copied, for the snapshot keeps it.
func mapped[K ~string, V any](in func(*model.Observed) *map[K]*V) column {
	get := func(o *model.Observed, name string) any {
		if v := (*in(o))[K(name)]; v != nil {
			return v
		}
		return nil
	}
	put := func(m *memory, b bucket, name string, v any) {
		values := in(&m.state)
		if m.shared[b] {
			*values, m.shared[b] = maps.Clone(*values), false
		}
		if v == nil {
			delete(*values, K(name))
			return
		}
		(*values)[K(name)] = v.(*V)
	}
	return column{decode[V], get, put}
}

// single is the column of a bucket with one value. Its get returns a copy, for the value
// in model.Observed is overwritten.
func single[V any](in func(*model.Observed) *V) column {
	get := func(o *model.Observed, _ string) any {
		v := *in(o)
		return &v
	}
	put := func(m *memory, _ bucket, _ string, v any) {
		var value V
		if v != nil {
			value = *v.(*V)
		}
		*in(&m.state) = value
	}
	return column{decode[V], get, put}
}

var servers = mapped(func(o *model.Observed) *map[model.ServerName]*model.ServerRecord { return &o.Servers })

func putServer(m *memory, b bucket, name string, v any) {
	if old := m.state.Servers[model.ServerName(name)]; old != nil {
		m.unindex(model.ServerName(name), old)
	}
	servers.put(m, b, name, v)
	if v != nil {
		m.index(model.ServerName(name), v.(*model.ServerRecord))
	}
}

func (m *memory) index(name model.ServerName, rec *model.ServerRecord) {
	for _, spelling := range spellings(rec.UUID) {
		m.byUUID[spelling] = append(m.byUUID[spelling], name)
	}
	for _, b := range pinnedBlobs(rec.Ticket) {
		if m.byBlob[b] == nil {
			m.byBlob[b] = make(map[model.ServerName]*model.Ticket)
		}
		m.byBlob[b][name] = rec.Ticket
	}
}

func (m *memory) unindex(name model.ServerName, rec *model.ServerRecord) {
	for _, spelling := range spellings(rec.UUID) {
		m.byUUID[spelling] = slices.DeleteFunc(m.byUUID[spelling], func(n model.ServerName) bool { return n == name })
		if len(m.byUUID[spelling]) == 0 {
			delete(m.byUUID, spelling)
		}
	}
	for _, b := range pinnedBlobs(rec.Ticket) {
		delete(m.byBlob[b], name)
		if len(m.byBlob[b]) == 0 {
			delete(m.byBlob, b)
		}
	}
}

// pinnedBlobs are the parts of the image that t lets its server fetch.
func pinnedBlobs(t *model.Ticket) []blob {
	if !usable(t) {
		return nil
	}
	blobs := []blob{{t.Image.Repository, t.Image.Digest}}
	for _, l := range []*model.Layer{t.Image.Kernel, t.Image.Initrd, t.Image.Squashfs, t.Image.UKI} {
		if l != nil {
			blobs = append(blobs, blob{t.Image.Repository, l.Digest})
		}
	}
	return blobs
}

// usable reports whether a server may still boot with t.
func usable(t *model.Ticket) bool {
	return t.Open() || (t != nil && t.Always && t.Ended == model.TicketBooted)
}

// change with what its value means; v is nil for deletions and sealed buckets.
type decoded struct {
	change
	v     any
	again bool // encoding v makes the value again
}

// corrupt is a stored value that means nothing.
type corrupt struct {
	key
	err error
}

func (c corrupt) Error() string { return fmt.Sprintf("%s %s: %v", c.bucket, c.name, c.err) }

// decodePiece is how many values one goroutine decodes. Pieces are small because
// values of one kind stand together, and some kinds take much longer than others.
const decodePiece = 128

// decodeAll reads the values of b, in parallel when there are many. Values that
// mean nothing are left out and returned beside.
func (m *memory) decodeAll(b batch) ([]decoded, []corrupt) {
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
			bad = append(bad, corrupt{b[i].key, err})
			continue
		}
		good = append(good, out[i])
	}
	return good, bad
}

func (m *memory) decodeOne(ch change) (decoded, error) {
	column, meaning := columns[ch.bucket]
	if !meaning || ch.value == nil {
		return decoded{change: ch}, nil
	}
	v, err := column.decode(ch.value)
	if err != nil {
		return decoded{}, err
	}
	m.strings.compact(v)
	raw, err := json.Marshal(v)
	return decoded{ch, v, err == nil && bytes.Equal(raw, ch.value)}, nil
}

// reset makes c all that is in memory.
func (m *memory) reset(c contents) []corrupt {
	var all batch
	for b, values := range c {
		for name, value := range values {
			all = append(all, change{key{b, name}, value})
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
func (m *memory) apply(b batch) []corrupt {
	changes, bad := m.decodeAll(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(changes)
	return bad
}

func (m *memory) put(changes []decoded) {
	for _, ch := range changes {
		m.keep(ch)
		m.inClear.drop(ch.key)
		if column, meaning := columns[ch.bucket]; meaning {
			column.put(m, ch.bucket, ch.name, ch.v)
		}
	}
	if len(changes) > 0 {
		m.snapshot.Store(nil)
	}
}

// keep holds the value's digest if that is enough, or else its bytes.
func (m *memory) keep(ch decoded) {
	if ch.again {
		m.sums[ch.key] = sha256.Sum256(bodyOf(ch.change))
		m.raw.set(change{key: ch.key})
		return
	}
	delete(m.sums, ch.key)
	m.raw.set(ch.change)
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
func (m *memory) kept(k key) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.raw[k.bucket][k.name]
}

// meaning returns what a stored value means, nil if there is none or it is
// sealed. Nobody changes it.
func (m *memory) meaning(k key) any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.holds(k) {
		return nil
	}
	return m.valueOf(k)
}

// has reports whether there is a value.
func (m *memory) has(k key) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.holds(k)
}

// holds is has for who holds mu.
func (m *memory) holds(k key) bool {
	_, summed := m.sums[k]
	return summed || m.raw[k.bucket][k.name] != nil
}

// valueOf is meaning, of a value that there is, for who holds mu.
func (m *memory) valueOf(k key) any {
	if column, meaning := columns[k.bucket]; meaning {
		return column.get(&m.state, k.name)
	}
	return nil
}

// stored returns the bytes of one value, nil if there is none. Nobody changes
// them.
func (m *memory) stored(k key) ([]byte, error) {
	if raw := m.kept(k); raw != nil {
		return raw, nil
	}
	v := m.meaning(k)
	if v == nil {
		return nil, nil
	}
	return encode(k, v)
}

// differs reports whether ch would change anything. A record that differs in its
// version alone does so only if it is given one to keep.
func (m *memory) differs(ch change) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if ch.value == nil {
		return m.holds(ch.key)
	}
	if v := versionGiven(ch); !v.IsZero() && v != m.versionHeld(ch.key) {
		return true
	}
	if sum, summed := m.sums[ch.key]; summed {
		return sum != sha256.Sum256(bodyOf(ch))
	}
	old := m.raw[ch.bucket][ch.name]
	return old == nil || !bytes.Equal(bodyOf(change{ch.key, old}), bodyOf(ch))
}

// versionHeld is the version of a record in memory, for who holds mu.
func (m *memory) versionHeld(k key) model.Version {
	if !m.holds(k) {
		return model.Version{}
	}
	return versionOf(m.valueOf(k))
}

// all returns everything that is in memory, as it is to be stored.
func (m *memory) all() (contents, error) {
	c, values := m.parts()
	for k, v := range values {
		raw, err := encode(k, v)
		if err != nil {
			return nil, err
		}
		c[k.bucket][k.name] = raw
	}
	return c, nil
}

// parts returns the values whose bytes are kept, and what the others mean.
func (m *memory) parts() (contents, map[key]any) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := make(contents, len(m.raw))
	for b, values := range m.raw {
		c[b] = maps.Clone(values)
	}
	values := make(map[key]any, len(m.sums))
	for k := range m.sums {
		values[k] = m.valueOf(k)
	}
	return c, values
}

// sealedNames returns the names in a sealed bucket.
func (m *memory) sealedNames(b bucket) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Keys(m.raw[b]))
}

// empty reports whether memory knows nothing at all.
func (m *memory) empty() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.sums) == 0 && m.raw.empty()
}

// server returns the one server with this canonical UUID in either byte order of
// SMBIOS. No server is returned when several have it, for nobody knows which is meant.
func (m *memory) server(uuid string) (*model.ServerRecord, *model.Progress) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := m.byUUID[uuid]
	if len(found) != 1 {
		return nil, nil
	}
	return m.state.Servers[found[0]], m.state.Progress[found[0]]
}

// namesakes returns all servers with this canonical UUID in either byte order.
func (m *memory) namesakes(uuid string) []model.Offer {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var offers []model.Offer
	for _, name := range m.byUUID[uuid] {
		offers = append(offers, offerOf(m.state.Servers[name], m.state.Progress[name]))
	}
	return offers
}

// serverWith returns the one server with this MAC address.
func (m *memory) serverWith(mac lease.MAC) (*model.ServerRecord, *model.Progress) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	name, ok := m.byMAC.only(mac)
	if !ok {
		return nil, nil
	}
	return m.state.Servers[name], m.state.Progress[name]
}

// macsOf returns the MAC addresses that are one server's alone.
func (m *memory) macsOf(server model.ServerName) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	held := m.macs[server]
	macs := make([]string, 0, len(held))
	for _, h := range held {
		if only, ok := m.byMAC.only(h.mac); ok && only == server {
			macs = append(macs, h.text)
		}
	}
	return macs
}

// pinned returns a ticket that lets its server fetch b.
func (m *memory) pinned(b blob) *model.Ticket {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, t := range m.byBlob[b] {
		return t
	}
	return nil
}
