package registry

import (
	"bytes"

	"ingot/model"
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
	values map[key]model.Sensitive
	bytes  int
}

func newOpenedValues() openedValues {
	return openedValues{values: make(map[key]model.Sensitive)}
}

// put remembers a value, in the place of whichever others it has no room beside.
func (o *openedValues) put(k key, plain model.Sensitive) {
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

func (o *openedValues) drop(k key) {
	if plain, ok := o.values[k]; ok {
		o.bytes -= len(plain.Reveal())
		delete(o.values, k)
	}
}

// opened returns a value in clear that is remembered.
func (m *memory) opened(k key) (model.Sensitive, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	plain, ok := m.inClear.values[k]
	return plain, ok
}

// remember keeps a value in clear, unless it is large, or was sealed anew or dropped
// while it was opened.
func (m *memory) remember(k key, sealed []byte, plain model.Sensitive) {
	if len(plain.Reveal()) > maxOpenedValue {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Equal(m.raw[k.bucket][k.name], sealed) {
		m.inClear.put(k, plain)
	}
}
