package probe

import (
	"slices"
	"sync"
)

const (
	// maxUnknown is how many reports of unknown machines are kept, the newest.
	maxUnknown = 256
	// maxUnknownSize is the size of the largest of them in bytes.
	maxUnknownSize = 64 << 10
)

// unknownReports are the newest reports of machines that are not known, as
// upstream keeps them all. They are of use to people only and not durable.
type unknownReports struct {
	mu    sync.Mutex
	order []string // of UUIDs, oldest first
	data  map[string][]byte
}

func newUnknownReports() *unknownReports {
	return &unknownReports{data: make(map[string][]byte)}
}

func (u *unknownReports) put(uuid string, data []byte) {
	if len(data) > maxUnknownSize {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget(uuid)
	if len(u.order) == maxUnknown {
		u.forget(u.order[0])
	}
	u.order, u.data[uuid] = append(u.order, uuid), data
}

func (u *unknownReports) get(uuid string) ([]byte, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	data, ok := u.data[uuid]
	return data, ok
}

// drop reports whether there was something to forget.
func (u *unknownReports) drop(uuid string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.data[uuid]
	u.forget(uuid)
	return ok
}

func (u *unknownReports) forget(uuid string) {
	delete(u.data, uuid)
	u.order = slices.DeleteFunc(u.order, func(other string) bool { return other == uuid })
}
