package bootsvc

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// recorder keeps what is told of cards, a line each.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) told(client netip.Addr, _ string, e model.CardEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf("%s %s %s from %s: %s", client, e.Protocol, e.Asked, e.From, e.Result)
	if e.Answer != "" {
		line += ", " + e.Answer
	}
	if e.Bytes > 0 && e.Asked != "boot script" && e.Asked != "chain script" && e.Asked != "Ignition" {
		line += fmt.Sprintf(", %d bytes", e.Bytes)
	}
	r.lines = append(r.lines, line)
}

// after waits until n events were told: they are when the answer is on its way.
func (r *recorder) after(t *testing.T, n int) []string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		lines := r.lines
		r.mu.Unlock()
		if len(lines) >= n {
			return lines
		}
		if time.Now().After(end) {
			t.Fatalf("%d events are told, want %d: %q", len(lines), n, lines)
		}
	}
}

// A boot is told in the kinds of what is fetched: paths hold tokens.
func TestWhatIsToldOfABoot(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var told recorder
	r := newRack(t, nil, func(o *Options) {
		leaseTable{"127.0.0.1": mac1}.bind(o)
		o.Told = told.told
	})
	r.desk.holders[mac1] = r.desk.holders[uuid1]
	_, _, _ = get(t, r.URL+"/ipxe")
	told.after(t, 1)
	_, script, _ := get(t, r.URL+"/ipxe/"+uuid1)
	told.after(t, 2)
	for n, part := range []string{"kernel", "initrd", "squashfs"} {
		_, _, _ = get(t, setting(t, script, part+"-url"))
		told.after(t, 3+n)
	}
	config := string(regexp.MustCompile(`ignition\.config\.url=(\S+)`).FindSubmatch(script)[1])
	_, token, _ := strings.Cut(config, uuid1+"/")
	for n, target := range []string{
		config, r.URL + "/ipxe/" + uuid1, strings.Replace(config, token, strings.Repeat("x", 26), 1), r.URL + "/loader/none", r.URL + "/r/" + token, r.URL + "/httpboot",
	} {
		_, _, _ = get(t, target)
		told.after(t, 6+n)
	}
	want := []string{
		"127.0.0.1 HTTP chain script from 127.0.0.1: served",
		"127.0.0.1 HTTP boot script from 127.0.0.1: served",
		"127.0.0.1 HTTP kernel from 127.0.0.1: served, 300000 bytes",
		"127.0.0.1 HTTP initramfs from 127.0.0.1: served, 131072 bytes",
		"127.0.0.1 HTTP squashfs from 127.0.0.1: served, 1000001 bytes",
		"127.0.0.1 HTTP Ignition from 127.0.0.1: served",
		"127.0.0.1 HTTP boot script from 127.0.0.1: answered, no boot ticket, boots from its disk",
		"127.0.0.1 HTTP Ignition from 127.0.0.1: refused, " + refusedToken.told,
		"127.0.0.1 HTTP boot loader from 127.0.0.1: refused, there is no boot loader of this name",
		"127.0.0.1 HTTP unknown path from 127.0.0.1: refused, there is nothing here; /ipxe is where a machine starts",
		"127.0.0.1 HTTP boot document from 127.0.0.1: refused, no server with an open boot ticket is known at this address",
	}
	got := told.after(t, len(want))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if token == "" || strings.Contains(strings.Join(got, "\n"), token) {
		t.Errorf("the token %q is told", token)
	}
}

// What no evidence shows to be of a card is of none, and nothing shows it a moment later.
func TestWhatIsOfNoCardIsNotTold(t *testing.T) {
	var told recorder
	r := newRack(t, nil, func(o *Options) { o.Told = told.told })
	_, _, _ = get(t, r.URL+"/ipxe/"+uuid1)
	_, _, _ = get(t, r.URL+"/loader/none") // for which nobody is judged
	want := []string{"127.0.0.1 HTTP boot loader from 127.0.0.1: refused, there is no boot loader of this name"}
	if diff := cmp.Diff(want, told.after(t, 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnAnswerThatWasBrokenOffIsNotServed(t *testing.T) {
	for title, tc := range map[string]struct {
		method string
		code   int
		sent   int64
		said   string
		want   model.CardResult
	}{
		"a whole body":            {http.MethodGet, 200, 100, "", model.CardServed},
		"half of it":              {http.MethodGet, 200, 50, "", model.CardFailed},
		"half of a part":          {http.MethodGet, 206, 50, "", model.CardFailed},
		"no body, as asked":       {http.MethodHead, 200, 0, "", model.CardAnswered},
		"a panic":                 {http.MethodGet, codeAborted, 100, "", model.CardFailed},
		"a registry that is away": {http.MethodGet, 502, 100, "away", model.CardFailed},
		"a refusal":               {http.MethodGet, 403, 100, "no", model.CardRefused},
		"something else instead":  {http.MethodGet, 200, 100, "its disk", model.CardAnswered},
	} {
		r := newRequest(httptest.NewRecorder(), httptest.NewRequest(tc.method, "/ipxe", nil), armed, time.Second)
		r.w.Header().Set("Content-Length", "100")
		r.w.sent, r.said = tc.sent, tc.said
		if e := r.event(tc.code, time.Second); e.Result != tc.want || e.Seconds != 1 || !e.At.Equal(armed) {
			t.Errorf("%s: got %+v", title, e)
		}
	}
}
