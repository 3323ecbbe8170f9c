package registry

import (
	"encoding/json"
	"maps"

	"ingot/model"
	"ingot/registry/store"
)

// column maps the values of one bucket to model.Observed.
type column struct {
	decode func(raw []byte) (any, error)
	// get returns the pointer to the named value, or nil. The value never changes.
	get func(o *model.Observed, name string) any
	// put sets the named value, or deletes it if v is nil.
	put func(m *memory, b store.Bucket, name string, v any)
}

// columns are the buckets with decoded values. The other buckets are sealed.
var columns = map[store.Bucket]column{
	store.BucketFleet:         single(func(o *model.Observed) *model.FleetRecord { return &o.Fleet }),
	store.BucketServer:        indexed(mapped(func(o *model.Observed) *map[model.ServerName]*model.ServerRecord { return &o.Servers })),
	store.BucketBMC:           mapped(func(o *model.Observed) *map[model.BMCName]*model.BMCRecord { return &o.BMCs }),
	store.BucketClaim:         mapped(func(o *model.Observed) *map[model.ClaimName]*model.ClaimRecord { return &o.Claims }),
	store.BucketBMCFacts:      mapped(func(o *model.Observed) *map[model.BMCName]*model.BMCFacts { return &o.BMCFacts }),
	store.BucketServerFacts:   mapped(func(o *model.Observed) *map[model.ServerName]*model.ServerFacts { return &o.ServerFacts }),
	store.BucketProbe:         mapped(func(o *model.Observed) *map[model.ServerName]*model.ProbeReport { return &o.Probes }),
	store.BucketBootState:     mapped(func(o *model.Observed) *map[model.ServerName]*model.BootState { return &o.BootStates }),
	store.BucketWipe:          mapped(func(o *model.Observed) *map[model.ServerName]*model.WipeReport { return &o.Wipes }),
	store.BucketWipeProgress:  mapped(func(o *model.Observed) *map[model.ServerName]*model.WipeProgress { return &o.WipeProgress }),
	store.BucketSequence:      single(func(o *model.Observed) *uint64 { return &o.Sequence }),
	store.BucketMarks:         single(func(o *model.Observed) *model.Marks { return &o.Marks }),
	store.BucketProgress:      indexed(mapped(func(o *model.Observed) *map[model.ServerName]*model.Progress { return &o.Progress })),
	store.BucketEndpoint:      mapped(func(o *model.Observed) *map[string]*model.EndpointRecord { return &o.Endpoints }),
	store.BucketEndpointFacts: byAddress(mapped(func(o *model.Observed) *map[string]*model.EndpointFacts { return &o.EndpointFacts })),
}

func decode[V any](raw []byte) (any, error) {
	v := new(V)
	return v, json.Unmarshal(raw, v)
}

// mapped is the column of a bucket that is a map in model.Observed. The first change after a snapshot
// copies the map, because the snapshot has it too.
func mapped[K ~string, V any](in func(*model.Observed) *map[K]*V) column {
	get := func(o *model.Observed, name string) any {
		if v := (*in(o))[K(name)]; v != nil {
			return v
		}
		return nil
	}
	put := func(m *memory, b store.Bucket, name string, v any) {
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

// single is the column of a bucket with one value. Its get returns a copy, because put overwrites the
// value in model.Observed.
func single[V any](in func(*model.Observed) *V) column {
	get := func(o *model.Observed, _ string) any {
		v := *in(o)
		return &v
	}
	put := func(m *memory, _ store.Bucket, _ string, v any) {
		var value V
		if v != nil {
			value = *v.(*V)
		}
		*in(&m.state) = value
	}
	return column{decode[V], get, put}
}

// indexed is a column whose values identify servers: the index of servers follows its changes.
func indexed(c column) column {
	put := c.put
	c.put = func(m *memory, b store.Bucket, name string, v any) {
		server := model.ServerName(name)
		m.servers.remove(server, m.state.Servers[server], m.state.Progress[server])
		put(m, b, name, v)
		m.servers.add(server, m.state.Servers[server], m.state.Progress[server])
	}
	return c
}

// byAddress is the column of endpoint facts: the index of IP addresses follows its changes.
func byAddress(c column) column {
	put := c.put
	c.put = func(m *memory, b store.Bucket, mac string, v any) {
		if old := m.state.EndpointFacts[mac]; old != nil && m.byIP[old.IP] == mac {
			delete(m.byIP, old.IP)
		}
		put(m, b, mac, v)
		if f, ok := v.(*model.EndpointFacts); ok && f.IP != "" {
			m.byIP[f.IP] = mac
		}
	}
	return c
}
