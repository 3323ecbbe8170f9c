package features

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/model"
)

// gate is what machines speak with: it passes requests on to Ingot wherever that
// listens now, and remembers what it passed. While Ingot is down it closes connections,
// as a port does on which nobody listens, and it asks nothing twice.
type gate struct {
	server *httptest.Server

	mu       sync.Mutex
	upstream string // host:port of Ingot's listener, "" while it is down
	passed   []exchange
	watch    func(exchange) // called before the machine gets its answer
	altered  func(path string, body []byte) []byte
	cut      func(exchange) bool // reports whether the answer ends half way
}

// exchange is one request that was answered.
type exchange struct {
	at    time.Time // when it was answered
	path  string
	part  string // the Range that was asked for, "" = all
	token string // of a boot ticket, "" without one
	uuid  string // of the machine, "" when the request does not say
	code  int
	disk  string // serial number of the first disk that a probe registered
	// claim is whose Ignition the answer was, sum the SHA-256 of that, and report the token
	// in it that the machine reports with.
	claim  model.ClaimName
	sum    string
	report string
	users  map[string][]string // SSH keys in it
}

func newGate() *gate {
	g := &gate{}
	g.server = httptest.NewServer(g)
	return g
}

func (g *gate) host() string { return g.server.Listener.Addr().String() }

func (g *gate) open(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.upstream = address
}

func (g *gate) shut() {
	g.server.CloseClientConnections()
	_ = g.server.Listener.Close()
}

func (g *gate) alter(f func(path string, body []byte) []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.altered = f
}

// onPass has f called with each exchange from now on; nil ends that.
func (g *gate) onPass(f func(exchange)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = f
}

// cutWhen has the connection be closed half way through the answers that f is true for; nil ends
// that.
func (g *gate) cutWhen(f func(exchange) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = f
}

func (g *gate) exchanges(match func(exchange) bool) []exchange {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []exchange
	for _, e := range g.passed {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return
	}
	g.mu.Lock()
	altered := g.altered
	g.mu.Unlock()
	if altered != nil {
		body = altered(r.URL.Path, body)
	}
	resp, answer, err := g.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection without a word
	}
	cut := g.note(r, body, resp.StatusCode, answer)
	if cut {
		answer = answer[:len(answer)/2]
	}
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
	if cut {
		_ = http.NewResponseController(w).Flush() // the client may be gone
		panic(http.ErrAbortHandler)
	}
}

func (g *gate) forward(r *http.Request, body []byte) (*http.Response, []byte, error) {
	g.mu.Lock()
	upstream := g.upstream
	g.mu.Unlock()
	if upstream == "" {
		return nil, nil, fmt.Errorf("ingot is down")
	}
	ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, "http://"+upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header = r.Header.Clone()
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // the gate listens on 127.0.0.1, where there is always one
	web := webFrom(from.Addr())
	defer web.CloseIdleConnections()
	resp, err := web.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp, answer, err
}

var (
	tokenInPath = regexp.MustCompile(`/([a-z2-7]{26})(/|$)`)
	uuidInPath  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// In a claim's Ignition the address stands in a data URL (RFC 2397), with escapes.
var tokenInIgnition = regexp.MustCompile(`(?:/|%2[Ff])r(?:/|%2[Ff])([a-z2-7]{26})(?:/|%2[Ff]|\b)`)

// reportToken is the token in an Ignition that the machine reports with, "" without one.
func reportToken(ignition []byte) string {
	if m := tokenInIgnition.FindSubmatch(ignition); m != nil {
		return string(m[1])
	}
	return ""
}

// note remembers an exchange and tells whoever watches. It reports whether the answer ends half
// way.
func (g *gate) note(r *http.Request, body []byte, code int, answer []byte) (cut bool) {
	e := exchange{at: time.Now(), path: r.URL.Path, part: r.Header.Get("Range"), code: code, uuid: uuidInPath.FindString(r.URL.RequestURI())}
	if m := tokenInPath.FindStringSubmatch(e.path); m != nil {
		e.token = m[1]
	}
	var report struct {
		SystemUUID string `json:"systemUUID"`
		Data       struct {
			Storage []struct{ Serial string }
		}
	}
	if e.uuid == "" && json.Unmarshal(body, &report) == nil {
		e.uuid = strings.ToLower(report.SystemUUID)
		if len(report.Data.Storage) > 0 {
			e.disk = report.Data.Storage[0].Serial
		}
	}
	if code == http.StatusOK && strings.Contains(e.path, "/ignition/") {
		sum := sha256.Sum256(answer)
		e.claim, e.sum = ignitionOwner(answer), hex.EncodeToString(sum[:])
		e.report, e.users = reportToken(answer), usersOf(answer)
	}
	g.mu.Lock()
	g.passed = append(g.passed, e)
	watch, ends := g.watch, g.cut
	g.mu.Unlock()
	if watch != nil {
		watch(e)
	}
	return ends != nil && ends(e)
}

func (g *gate) tokens() []string {
	var all []string
	for _, e := range g.exchanges(func(e exchange) bool { return e.token != "" }) {
		all = append(all, e.token)
		if e.report != "" {
			all = append(all, e.report)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// webFrom makes requests from an address of this machine, and returns answers as they are.
// Its idle connections are the caller's to close.
func webFrom(from netip.Addr) *http.Transport {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP(from.AsSlice())}}
	return &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
}
