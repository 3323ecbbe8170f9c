package listen

import (
	"net/http"
	"time"
)

// readyTimeout is how long a request waits until this process is ready: longer than the
// leadership of a process that died lasts.
const readyTimeout = 20 * time.Second

// WaitUntilReady has requests wait until ready is closed: this process may be taking over
// from another, or reading its records and leases back, and without those any server would
// be served at any address. They wait because firmware that is refused does not ask again,
// but boots something else.
func WaitUntilReady(ready <-chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			next.ServeHTTP(w, r)
			return
		default:
		}
		timer := time.NewTimer(readyTimeout)
		defer timer.Stop()
		select {
		case <-ready:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-timer.C:
			w.Header().Set("Retry-After", "5")
			http.Error(w, "Ingot is not ready yet: see /readyz of its admin listener", http.StatusServiceUnavailable)
		}
	})
}
