package registry

import (
	"bytes"

	"ingot/model"
	"ingot/registry/store"
)

// At most this many bytes of decrypted values are remembered, of one value and of all.
// Larger ones are decrypted each time: sending them costs more than that.
const (
	maxDecryptedValue = 64 << 10
	maxDecrypted      = 16 << 20
)

// decryptedValues are sealed values in clear, of what machines ask for several times in one
// boot. Each is forgotten with the value that it was sealed as: a boot ticket's soon
// after the ticket ended (DropPayloads). Passwords are never among them.
type decryptedValues struct {
	values map[store.Key]model.Sensitive
	bytes  int
}

func newDecryptedValues() decryptedValues {
	return decryptedValues{values: make(map[store.Key]model.Sensitive)}
}

// put remembers a value, in the place of whichever others it has no room beside.
func (o *decryptedValues) put(k store.Key, plain model.Sensitive) {
	o.drop(k)
	size := len(plain.Reveal())
	for other := range o.values {
		if o.bytes+size <= maxDecrypted {
			break
		}
		o.drop(other)
	}
	o.values[k] = plain
	o.bytes += size
}

func (o *decryptedValues) drop(k store.Key) {
	if plain, ok := o.values[k]; ok {
		o.bytes -= len(plain.Reveal())
		delete(o.values, k)
	}
}

// decryptedValue returns a value in clear that is remembered.
func (m *memory) decryptedValue(k store.Key) (model.Sensitive, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	plain, ok := m.decrypted.values[k]
	return plain, ok
}

// remember keeps a value in clear, unless it is large, or was sealed anew or dropped
// while it was decrypted.
func (m *memory) remember(k store.Key, sealed []byte, plain model.Sensitive) {
	if len(plain.Reveal()) > maxDecryptedValue {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Equal(m.raw[k.Bucket][k.Name], sealed) {
		m.decrypted.put(k, plain)
	}
}
