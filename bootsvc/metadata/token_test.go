package metadata

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// desk is a metadata service in virtual time.
type desk struct {
	http.Handler
	now time.Time
}

func newDesk() *desk {
	d := &desk{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	d.Handler = NewHandler(Options{Machines: servers, Clock: func() time.Time { return d.now }})
	return d
}

func (d *desk) asks(method, path, from string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://metadata"+path, nil)
	r.RemoteAddr = from
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func (d *desk) token(t *testing.T, from string) string {
	t.Helper()
	w := d.asks(http.MethodPut, "/latest/api/token", from, map[string]string{headerTokenTTL: "60"})
	if w.Code != http.StatusOK || w.Header().Get(headerTokenTTL) != "60" {
		t.Fatalf("no token: %d %q", w.Code, w.Body.String())
	}
	return w.Body.String()
}

func TestATokenIsGivenToABoundServer(t *testing.T) {
	for name, tc := range map[string]struct {
		method, from string
		header       map[string]string
		code         int
		body         string
	}{
		"not without saying how long it is to live": {
			method: http.MethodPut, from: "10.0.0.7:1",
			code: 400, body: "header X-Aws-Ec2-Metadata-Token-Ttl-Seconds must be a number of seconds from 1 to 21600\n",
		},
		"not for no time": {
			method: http.MethodPut, from: "10.0.0.7:1", header: map[string]string{headerTokenTTL: "0"},
			code: 400, body: "header X-Aws-Ec2-Metadata-Token-Ttl-Seconds must be a number of seconds from 1 to 21600\n",
		},
		"not for more than six hours": {
			method: http.MethodPut, from: "10.0.0.7:1", header: map[string]string{headerTokenTTL: "21601"},
			code: 400, body: "header X-Aws-Ec2-Metadata-Token-Ttl-Seconds must be a number of seconds from 1 to 21600\n",
		},
		"not through a proxy": {
			method: http.MethodPut, from: "10.0.0.7:1", header: map[string]string{headerTokenTTL: "60", "X-Forwarded-For": ""},
			code: 403, body: "tokens are not given through a proxy\n",
		},
		"not to somebody else": {
			method: http.MethodPut, from: "10.0.0.99:1", header: map[string]string{headerTokenTTL: "60"},
			code: 404, body: "no bound server has the address that this request came from\n",
		},
		"not to a client that would only read": {
			method: http.MethodGet, from: "10.0.0.7:1", header: map[string]string{headerTokenTTL: "60"},
			code: 405, body: "tokens are asked for by PUT\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDesk().asks(tc.method, "/latest/api/token", tc.from, tc.header)
			if w.Code != tc.code || w.Body.String() != tc.body {
				t.Errorf("answered %d %q, want %d %q", w.Code, w.Body.String(), tc.code, tc.body)
			}
		})
	}
}

func TestATokenIsOfOneAddressAndEnds(t *testing.T) {
	d := newDesk()
	token := d.token(t, "10.0.0.7:1")
	for name, tc := range map[string]struct {
		from, token string
		after       time.Duration
		code        int
	}{
		"it is good for who has it":             {"10.0.0.7:2", token, 59 * time.Second, 200},
		"it ends":                               {"10.0.0.7:2", token, 60 * time.Second, 401},
		"another server can do nothing with it": {"10.0.0.8:2", token, 0, 401},
		"a changed one is none":                 {"10.0.0.7:2", "B" + token[1:], 0, 401},
		"an empty one is none":                  {"10.0.0.7:2", "", 0, 401},
		"nor is any text":                       {"10.0.0.7:2", "token", 0, 401},
	} {
		t.Run(name, func(t *testing.T) {
			began := d.now
			defer func() { d.now = began }()
			d.now = d.now.Add(tc.after)
			w := d.asks(http.MethodGet, "/latest/meta-data/instance-id", tc.from, map[string]string{headerToken: tc.token})
			if w.Code != tc.code {
				t.Errorf("answered %d %q, want %d", w.Code, w.Body.String(), tc.code)
			}
		})
	}
	other := newDesk()
	w := other.asks(http.MethodGet, "/latest/meta-data/", "10.0.0.7:2", map[string]string{headerToken: token})
	if w.Code != http.StatusUnauthorized {
		t.Errorf("another process answered %d, want 401, so that the client asks for another token", w.Code)
	}
}
