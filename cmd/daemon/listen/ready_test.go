package listen

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachinesWaitUntilIngotIsReady(t *testing.T) {
	cases := map[string]struct {
		readyAfter time.Duration
		want       int
	}{
		"it is":                 {readyAfter: 0, want: http.StatusOK},
		"it takes over in time": {readyAfter: 12 * time.Second, want: http.StatusOK},
		"it takes longer":       {readyAfter: time.Minute, want: http.StatusServiceUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ready := make(chan struct{})
				time.AfterFunc(tc.readyAfter, func() { close(ready) })
				h := WaitUntilReady(ready, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/ipxe/x", nil))
				if rec.Code != tc.want {
					t.Errorf("answered %d, want %d", rec.Code, tc.want)
				}
				if tc.want != http.StatusOK && rec.Header().Get("Retry-After") == "" {
					t.Error("the answer does not say when to ask again")
				}
			})
		})
	}
}
