package registry

import (
	"bytes"

	"ingot/model"
	"ingot/registry/store"
)

// What is remembered of opened values takes at most so many bytes, of one and of all.
// Larger ones are opened each time: sending them costs more than that.
const (
	maxOpenedValue = 64 << 10
	maxOpened      = 16 << 20
)

// openedValues are sealed values in clear, of what machines ask for several times in one
// boot. Each is forgotten with the value that it was sealed as: a boot ticket's soon
// after the ticket ended (DropPayloads). Passwords are never among them.
type openedValues struct {
	values map[store.Key]model.Sensitive
	bytes  int
}

func newOpenedValues() openedValues {
	return openedValues{values: make(map[store.Key]model.Sensitive)}
}

// put remembers a value, in the place of whichever others it has no room beside.
func (o *openedValues) put(k store.Key, plain model.Sensitive) {
	o.drop(k)
	size := len(plain.Reveal())
	for other := range o.values {
		if o.bytes+size <= maxOpened {
			break
		}
		o.drop(other)
	}
	o.values[k] = plain
	o.bytes += size
}

func (o *openedValues) drop(k store.Key) {
	if plain, ok := o.values[k]; ok {
		o.bytes -= len(plain.Reveal())
		delete(o.values, k)
	}
}

// opened returns a value in clear that is remembered.
func (m *memory) opened(k store.Key) (model.Sensitive, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	plain, ok := m.inClear.values[k]
	return plain, ok
}

// remember keeps a value in clear, unless it is large, or was sealed anew or dropped
// while it was opened.
func (m *memory) remember(k store.Key, sealed []byte, plain model.Sensitive) {
	if len(plain.Reveal()) > maxOpenedValue {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Equal(m.raw[k.Bucket][k.Name], sealed) {
		m.inClear.put(k, plain)
	}
}
