package features

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"ingot/bmc/sim"
)

// lie is what becomes of the answer to a reset that the BMC has carried out.
type lie string

const (
	lieNone  lie = ""
	lieError lie = "answers them with 500"
	lieDrop  lie = "drops its answers"
	lieHang  lie = "never answers them"
)

// liar stands before a BMC and passes everything on, but says what is not so when it
// is told to.
type liar struct {
	server *httptest.Server
	bmc    func() string // host:port

	mu     sync.Mutex
	lies   lie
	off    int // readings of the power state that are said to be Off
	resets int // that were passed on
	done   chan struct{}
}

// newLiar puts a liar before a BMC.
func newLiar(b *sim.BMC) *liar {
	l := &liar{bmc: b.Addr, done: make(chan struct{})}
	l.server = httptest.NewTLSServer(l)
	return l
}

// close ends the liar and lets go those whom it never answered.
func (l *liar) close() {
	close(l.done)
	l.server.CloseClientConnections()
	l.server.Close()
}

func (l *liar) tell(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// toBMC passes requests on; certificates are the liar's own affair.
var toBMC = &http.Transport{
	DisableCompression: true, MaxIdleConnsPerHost: 8,
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a simulated BMC on loopback
}

// ServeHTTP implements http.Handler.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reset := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "ComputerSystem.Reset")
	if l.saysOff(r) {
		r.Header.Del("If-None-Match") // a lie needs a body
	}
	ctx := context.WithoutCancel(r.Context()) // what was asked for is carried out
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, "https://"+l.bmc()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Header = r.Header.Clone()
	resp, err := toBMC.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler) // as the BMC would have refused
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if reset && l.lied(w, resp.StatusCode) {
		return
	}
	if l.saysOff(r) && resp.StatusCode == http.StatusOK {
		l.tell(func() { l.off-- })
		answer = powerState.ReplaceAll(answer, []byte(`"PowerState":"Off"`))
		resp.Header.Del("Content-Length")
		resp.Header.Del("ETag")
	}
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
}

var (
	powerState = regexp.MustCompile(`"PowerState"\s*:\s*"[A-Za-z]+"`)
	systemPath = regexp.MustCompile(`^/redfish/v1/Systems/[^/]+/?$`)
)

// saysOff reports whether a request reads the power state, which is said to be Off.
func (l *liar) saysOff(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off > 0 && r.Method == http.MethodGet && systemPath.MatchString(r.URL.Path)
}

// lied answers a reset that was carried out otherwise than the BMC did, if that is told.
func (l *liar) lied(w http.ResponseWriter, code int) bool {
	l.mu.Lock()
	what := l.lies
	if code < 300 {
		l.resets++
	}
	l.mu.Unlock()
	switch what {
	case lieNone:
		return false
	case lieError:
		http.Error(w, "internal error", http.StatusInternalServerError)
	case lieDrop:
		panic(http.ErrAbortHandler)
	case lieHang:
		<-l.done
		panic(http.ErrAbortHandler)
	}
	return true
}

// mayLie puts a liar before each BMC that is described in Git from now on.
func mayLie(ctx context.Context) error {
	worldOf(ctx).liars = make(map[string]*liar)
	return nil
}

// bmcAddress is where Git says that a BMC is.
func (w *world) bmcAddress(name string) string {
	b := w.bmcs[name]
	if w.liars == nil {
		return b.Addr()
	}
	if w.liars[name] == nil {
		w.liars[name] = newLiar(b)
	}
	return w.liars[name].server.Listener.Addr().String()
}

// liar is the liar before a machine's BMC.
func (w *world) liar(machine string) (*liar, error) {
	m, err := w.machine(machine)
	if err != nil {
		return nil, err
	}
	if w.liars != nil {
		w.bmcAddress(m.bmc)
		return w.liars[m.bmc], nil
	}
	return nil, fmt.Errorf("nothing stands before the BMC of %s: the scenario has to say that BMCs may lie", machine)
}

// liesOfResets has a BMC carry out resets and say something else.
func liesOfResets(ctx context.Context, machine, what string) error {
	l, err := worldOf(ctx).liar(machine)
	if err == nil {
		l.tell(func() { l.lies = lie(what) })
	}
	return err
}

func tellsTheTruth(ctx context.Context, machine string) error {
	l, err := worldOf(ctx).liar(machine)
	if err == nil {
		l.tell(func() { l.lies, l.off = lieNone, 0 })
	}
	return err
}

// saysOff has a BMC say some times that its machine is Off.
func saysOff(ctx context.Context, machine string, times int) error {
	l, err := worldOf(ctx).liar(machine)
	if err == nil {
		l.tell(func() { l.off = times })
	}
	return err
}

// splitAddress is a host and a port.
func splitAddress(address string) (host, port string) {
	host, port, _ = net.SplitHostPort(address)
	return host, port
}
