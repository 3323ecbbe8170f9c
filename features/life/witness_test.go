package life

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

// witness listens on the machines' link to what their systems say.
type witness struct {
	url string

	mu     sync.Mutex
	words  []Word            // each one once
	orders map[string]string // by Boot of the Word that they answer
}

func newWitness(t *testing.T, on *rig.Namespace) *witness {
	t.Helper()
	w := &witness{orders: make(map[string]string)}
	var listener net.Listener
	must.Do(t, on.Do(func() (err error) {
		listener, err = net.Listen("tcp", rig.ServerAddress+":0")
		return err
	}))
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	w.url = "http://" + listener.Addr().String()
	return w
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var said Word
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&said); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.words, said) {
		w.words = append(w.words, said)
	}
	io.WriteString(rw, w.orders[said.Boot])
}

func (w *witness) order(to Word, order string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.orders[to.Boot] = order
}

// heard is all that a machine has said: a Word for each start of its system.
func (w *witness) heard(uuid string) []Word {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.words), func(said Word) bool { return said.UUID != uuid })
}

// await waits until a machine's system was started n times, and returns what it said
// after the last of them.
func (w *witness) await(t *testing.T, limit time.Duration, uuid string, n int) Word {
	t.Helper()
	var heard []Word
	rig.Eventually(t, limit, func() error {
		if heard = w.heard(uuid); len(heard) < n {
			return fmt.Errorf("machine %s was heard of after %d starts, want %d: %+v", uuid, len(heard), n, heard)
		}
		return nil
	})
	if len(heard) > n {
		t.Fatalf("machine %s was started more often than it had to be: %+v", uuid, heard)
	}
	return heard[n-1]
}
