package access

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/crypto/bcrypt"

	"ingot/model/must"
)

// The user of tests, with a hash that costs as little as possible.
const user, password = "anna", "correct horse"

// hashed is a line of htpasswd -B -C 4.
func hashed(t *testing.T, name, password string) string {
	t.Helper()
	hash := must.Get(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return name + ":" + strings.Replace(string(hash), "$2a$", "$2y$", 1) + "\n" // as htpasswd has it
}

func write(t *testing.T, file, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
}

// clock is a clock that tests move.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

var (
	onLoopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	outside    = &net.TCPAddr{IP: net.IPv6unspecified}
)

func made(t *testing.T, o Options) *Access {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = (&clock{time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)}).time
	}
	a := must.Get(New(o))(t)
	a.hostname = "metal01"
	return a
}

func usersFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users")
	write(t, file, hashed(t, user, password))
	return file
}

func ask(a *Access, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "192.0.2.9:40000"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "the fleet")
	})).ServeHTTP(w, r)
	return w
}

func named(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}
func as(name, pw string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, pw) }
}
func with(name, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Add(name, v) } }
func proxy(user string) []func(*http.Request) {
	return []func(*http.Request){from("10.0.0.5:1"), with("X-Forwarded-User", user)}
}

func TestTheListenerAnswersToItsOwnNamesAlone(t *testing.T) {
	hosts := []string{
		"localhost", "LOCALHOST.:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.1:8080", "[2001:db8::1]", "metal01", "ingot.example:8080",
		"metal.example", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "",
	}
	cert, key := pair(t, t.TempDir(), "metal.example")
	for name, tc := range map[string]struct {
		o    Options
		want string // the hosts that are not answered, with blanks between
	}{
		"on loopback, loopback's": {
			o:    Options{Listener: onLoopback},
			want: "10.0.0.1:8080 [2001:db8::1] metal01 ingot.example:8080 metal.example evil.example localhost.evil.example 127.0.0.1.evil.example ",
		},
		"on loopback, those that are named": {
			o:    Options{Listener: onLoopback, Hosts: []string{"Ingot.example", "10.0.0.1"}},
			want: "[2001:db8::1] metal01 metal.example evil.example localhost.evil.example 127.0.0.1.evil.example ",
		},
		"elsewhere, any address and the machine's name": {
			o:    Options{Listener: outside},
			want: "ingot.example:8080 metal.example evil.example localhost.evil.example 127.0.0.1.evil.example ",
		},
		"with TLS, those of the certificate": {
			o:    Options{Listener: outside, CertFile: cert, KeyFile: key},
			want: "ingot.example:8080 evil.example localhost.evil.example 127.0.0.1.evil.example ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := made(t, tc.o)
			var refused []string
			for _, host := range hosts {
				switch w := ask(a, "/api/v1/fleet", named(host)); {
				case w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "admin.url"):
					refused = append(refused, host)
				case w.Code != http.StatusOK:
					t.Errorf("%q was answered %d %s", host, w.Code, w.Body)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(refused, " ")); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoMayLook(t *testing.T) {
	file := usersFile(t)
	users := Options{Listener: outside, UsersFile: file}
	header := Options{Listener: outside, Header: "X-Forwarded-User", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	both := header
	both.UsersFile = file
	openMetrics := users
	openMetrics.OpenMetrics = true
	evil := named("evil.example")
	for name, tc := range map[string]struct {
		o      Options
		path   string
		change []func(*http.Request)
		want   string // the code, and the reason or the answer
	}{
		"nobody":                             {o: users, want: "401 unauthenticated"},
		"a user":                             {o: users, change: []func(*http.Request){as(user, password)}, want: "200 the fleet"},
		"a user, under whatever name":        {o: users, change: []func(*http.Request){as(user, password), evil}, want: "200 the fleet"},
		"a user with another password":       {o: users, change: []func(*http.Request){as(user, "wrong")}, want: "401 wrong_password"},
		"no user":                            {o: users, change: []func(*http.Request){as("bert", password)}, want: "401 wrong_password"},
		"nobody with no password":            {o: users, change: []func(*http.Request){as("", "")}, want: "401 wrong_password"},
		"another scheme":                     {o: users, change: []func(*http.Request){with("Authorization", "Bearer x")}, want: "401 unauthenticated"},
		"nobody, on loopback":                {o: Options{Listener: onLoopback, UsersFile: file}, want: "401 unauthenticated"},
		"nobody, whether it is alive":        {o: users, path: "/healthz", want: "200 the fleet"},
		"nobody, whether it is ready":        {o: users, path: "/readyz", want: "200 ready\n"},
		"nobody, that under another name":    {o: users, path: "/readyz", change: []func(*http.Request){evil}, want: "403 host"},
		"a user, whether it is ready":        {o: users, path: "/readyz", change: []func(*http.Request){as(user, password)}, want: "200 the fleet"},
		"nobody, the metrics":                {o: users, path: "/metrics", want: "401 unauthenticated"},
		"nobody, the open metrics":           {o: openMetrics, path: "/metrics", want: "200 the fleet"},
		"nobody, those under another name":   {o: openMetrics, path: "/metrics", change: []func(*http.Request){evil}, want: "403 host"},
		"nobody, what is beside them":        {o: openMetrics, path: "/metrics/", want: "401 unauthenticated"},
		"nobody, the open metrics by detour": {o: openMetrics, path: "/metrics/../api/v1/fleet", want: "401 unauthenticated"},
		"somebody whom the proxy names":      {o: header, change: proxy("anna"), want: "200 the fleet"},
		"the same, under another name":       {o: header, change: append(proxy("anna"), evil), want: "403 host"},
		"nobody whom the proxy names":        {o: header, change: proxy(""), want: "403 ambiguous_header"},
		"two whom the proxy names":           {o: header, change: append(proxy("eve"), proxy("anna")...), want: "403 ambiguous_header"},
		"the proxy without the header":       {o: header, change: []func(*http.Request){from("10.0.0.5:1")}, want: "403 unauthenticated"},
		"the header from elsewhere":          {o: header, change: []func(*http.Request){with("X-Forwarded-User", "anna")}, want: "403 untrusted_header"},
		"the header by IPv4 in IPv6":         {o: header, change: append(proxy("anna"), from("[::ffff:10.0.0.5]:1")), want: "200 the fleet"},
		"a password, beside a proxy":         {o: both, change: []func(*http.Request){as(user, password)}, want: "200 the fleet"},
		"a password and a header":            {o: both, change: []func(*http.Request){as(user, password), with("X-Forwarded-User", "eve")}, want: "403 untrusted_header"},
		"the header where none is believed":  {o: users, change: proxy("anna"), want: "401 unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			a := made(t, tc.o)
			if tc.path == "" {
				tc.path = "/api/v1/fleet"
			}
			w := ask(a, tc.path, tc.change...)
			got := fmt.Sprintf("%d %s", w.Code, w.Body)
			for _, reason := range allRefusals {
				if testutil.ToFloat64(a.refusals.WithLabelValues(string(reason))) > 0 {
					got = fmt.Sprintf("%d %s", w.Code, reason)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q\n%s", got, tc.want, w.Body)
			}
			if asks := w.Header().Get("WWW-Authenticate") != ""; asks != (w.Code == http.StatusUnauthorized) {
				t.Errorf("%d, and asks for a password: %t", w.Code, asks)
			}
		})
	}
}

func TestEachAnswerKeepsBrowsersFromAnythingElse(t *testing.T) {
	a := made(t, Options{Listener: outside, UsersFile: usersFile(t)})
	for _, w := range []*httptest.ResponseRecorder{
		ask(a, "/", as(user, password)), ask(a, "/"), ask(a, "/readyz"), ask(a, "/", named("evil.example")),
	} {
		h := w.Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%d: policy %q", w.Code, policy)
		}
		got := []string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("X-Frame-Options"), h.Get("Cache-Control"), h.Get("Set-Cookie")}
		if diff := cmp.Diff([]string{"nosniff", "no-referrer", "DENY", "no-store", ""}, got); diff != "" {
			t.Errorf("%d: headers (-want +got):\n%s", w.Code, diff)
		}
	}
}

func TestTheMetricsOfAccessAreWellNamed(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	cert, key := pair(t, t.TempDir(), "metal.example")
	made(t, Options{Listener: outside, UsersFile: usersFile(t), CertFile: cert, KeyFile: key, Registerer: reg})
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(reg); n != len(allRefusals)+2 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}
