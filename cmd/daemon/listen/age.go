package listen

import (
	"context"
	"net"
	"net/http"
	"time"
)

// maxAge is how long a connection is kept for further requests. A client that was taken
// for another when it connected must not have to wait until that is forgotten
// (neighbour.Memory): at most 63 s pass until a connection is accepted, maxAge until its
// last answer but one, then the time that bootsvc.NewHTTPServer gives a client to send a
// request, and readyTimeout.
const maxAge = 30 * time.Second

// acceptTimeKey is the key of the time at which a connection was accepted, in its context.
type acceptTimeKey struct{}

func withAcceptTime(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, acceptTimeKey{}, time.Now())
}

// closeOldConnections has a connection that is older than maxAge closed after the answer
// to its request.
func closeOldConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, ok := r.Context().Value(acceptTimeKey{}).(time.Time); ok && time.Since(at) > maxAge {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
