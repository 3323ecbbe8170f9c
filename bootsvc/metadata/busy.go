package metadata

import (
	"net/http"
	"sync"
)

// maxAnswers is how many answers one server is given at the same time: each may be of the
// size of its user data, and is in memory until the server has read it. cloud-init and the
// like ask for one thing after another.
const maxAnswers = 4

// answers counts the answers that are being given, by the name of the server.
type answers struct {
	mu    sync.Mutex
	given map[string]int
}

func newAnswers() *answers { return &answers{given: make(map[string]int)} }

// begin begins an answer to a server, which ends with done. It returns false if the server
// has not read maxAnswers others yet.
func (a *answers) begin(server string) (done func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given[server] >= maxAnswers {
		return nil, false
	}
	a.given[server]++
	return func() { a.end(server) }, true
}

func (a *answers) end(server string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given[server]--; a.given[server] == 0 {
		delete(a.given, server)
	}
}

// busy refuses a request of a server that does not read what it asked for before.
func busy() answer {
	a := refuse(http.StatusServiceUnavailable, "too many requests of this server at once; read their answers, then try again")
	a.header = [2]string{"Retry-After", "1"}
	return a
}
