package sim_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"ingot/bmc/sim"
)

// A page of a browser can neither send control requests from elsewhere, nor have its own
// name lead to loopback.
func TestControlRefusesPagesOfBrowsers(t *testing.T) {
	handler := start(t, sim.Options{}).ControlHandler()
	for name, tt := range map[string]struct {
		host, origin string
		status       int
	}{
		"a tool":                  {host: "127.0.0.1:9000", status: http.StatusOK},
		"a tool by localhost":     {host: "localhost:9000", status: http.StatusOK},
		"a tool by IPv6":          {host: "[::1]:9000", status: http.StatusOK},
		"a page of another site":  {host: "127.0.0.1:9000", origin: "https://pages.example", status: http.StatusForbidden},
		"a name that is loopback": {host: "pages.example", origin: "http://pages.example", status: http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/servers/rack1-bmc-01-system-0/power-cut", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, tt.status, w.Body)
		}
	}
}
