package listen

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ingot/bootsvc"
	"ingot/bootsvc/neighbour"
)

// A connection does not outlive what is remembered of the machine that opened it.
func TestAnOldConnectionEndsWithItsAnswer(t *testing.T) {
	handler := closeOldConnections(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for title, tc := range map[string]struct {
		age  time.Duration
		want string
	}{
		"a new one is kept": {age: 0, want: ""},
		"an old one ends":   {age: maxAge + time.Second, want: "close"},
	} {
		ctx := context.WithValue(t.Context(), acceptTimeKey{}, time.Now().Add(-tc.age))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if got := w.Header().Get("Connection"); got != tc.want {
			t.Errorf("%s: Connection %q, want %q", title, got, tc.want)
		}
	}
	if _, ok := withAcceptTime(t.Context(), nil).Value(acceptTimeKey{}).(time.Time); !ok {
		t.Error("a connection does not have the time at which it was accepted")
	}
	// a half open connection, our own limit, the client's time for its next request, and the wait for this process
	srv := bootsvc.NewHTTPServer(nil)
	longest := 63*time.Second + maxAge + srv.IdleTimeout + srv.ReadHeaderTimeout + 30*time.Second + readyTimeout
	if longest > neighbour.Memory {
		t.Errorf("a client may wait %v until it is told apart, and which machine had its address is remembered for %v",
			longest, neighbour.Memory)
	}
}
