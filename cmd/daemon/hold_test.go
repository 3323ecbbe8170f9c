package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestMachinesWaitUntilIngotIsReady(t *testing.T) {
	cases := map[string]struct {
		leasedAfter time.Duration
		want        int
	}{
		"it is":                         {0, http.StatusOK},
		"it takes over within the hold": {12 * time.Second, http.StatusOK},
		"it takes longer":               {time.Minute, http.StatusServiceUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &daemon{ready: make(chan struct{}), leased: make(chan struct{})}
				close(d.ready) // nobody is served for that alone
				time.AfterFunc(tc.leasedAfter, func() { close(d.leased) })
				h := d.hold(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/ipxe/x", nil))
				if rec.Code != tc.want {
					t.Errorf("answered %d, want %d", rec.Code, tc.want)
				}
				if tc.want != http.StatusOK && rec.Header().Get("Retry-After") == "" {
					t.Error("the answer does not say when to come again")
				}
			})
		})
	}
}
