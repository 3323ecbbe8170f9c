package bootsvc

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"ingot/model"
)

// request is one request on its way through a handler.
type request struct {
	*http.Request
	w      answer
	since  time.Time // when it came
	at     *route
	args   []string    // the elements of the path behind its first
	room   [4]string   // for the elements of most
	client netip.Addr  // who asks
	by     model.Asker // likewise, as far as that was judged
	judged bool        // by has what evidence shows
	id     string      // the UUID or MAC address that the request is for, for the log
	thing  string      // what is asked for, where that is known better than by its route
	said   string      // why it is not served, or what it is sent instead
}

// requests are those that were answered, for others: each is a part of what a boot costs the garbage
// collector.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest returns a request for a route, until it is done. Who asks is known from the connection itself,
// for headers can say anything.
func newRequest(w http.ResponseWriter, r *http.Request, now time.Time, stall time.Duration) *request {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero value is an address that nobody has
	req := requests.Get().(*request)
	*req = request{Request: r, w: answer{ResponseWriter: w, stall: stall}, since: now, client: from.Addr().Unmap()}
	req.by.Client = req.client
	req.at, req.args = find(r.URL.Path, req.room[:0])
	return req
}

// release gives a request to others. Nothing of it may be kept.
func (r *request) release() {
	*r = request{}
	requests.Put(r)
}

func (r *request) text(body string) { r.body("text/plain; charset=utf-8", body) }

// body answers 200 with a whole body.
func (r *request) body(contentType, body string) { r.respond(http.StatusOK, contentType, body) }

func (r *request) refuse(code int, why string) {
	r.said = why
	r.respond(code, "text/plain; charset=utf-8", why+"\n")
}

// unavailable tells the client to come again.
func (r *request) unavailable(why string) {
	r.w.Header().Set("Retry-After", retryAfter)
	r.refuse(http.StatusServiceUnavailable, why)
}

func (r *request) json(code int, document any) {
	text, err := json.Marshal(document)
	if err != nil {
		r.refuse(http.StatusInternalServerError, "the answer cannot be encoded")
		return
	}
	r.respond(code, "application/json", string(text)+"\n")
}

func (r *request) respond(code int, contentType, body string) {
	h, values := r.w.Header(), []string{contentType, strconv.Itoa(len(body)), "no-store"}
	// as Set would, with one slice for the three
	h["Content-Type"], h["Content-Length"], h["Cache-Control"] = values[0:1:1], values[1:2:2], values[2:3:3]
	r.w.WriteHeader(code)
	if r.Method != http.MethodHead {
		n, _ := io.WriteString(r.w.ResponseWriter, body) // a client that went away is no news
		r.w.note(int64(n))
	}
}

// links are where links in answers lead.
type links struct {
	base     string
	fromHost bool // to where the request came in, if its Host header is an IP address
}

// of returns the URL that links in r's answer begin with. A Host header that
// is no plain IP address could be anything, and is passed over.
func (l links) of(r *request) string {
	if !l.fromHost {
		return l.base
	}
	if host, ok := literalHost(r.Host); ok {
		if r.TLS != nil {
			return "https://" + host
		}
		return "http://" + host
	}
	return l.base
}

// literalHost returns a Host header (RFC 9110 §7.2) that is an IP address which
// other machines can reach, with or without a port, in its canonical form.
func literalHost(host string) (string, bool) {
	if host == "" || host[0] != '[' && (host[0] < '0' || host[0] > '9') {
		return "", false // a name, without an error that says at length how it is none
	}
	at, err := netip.ParseAddrPort(host)
	port := ":" + strconv.Itoa(int(at.Port()))
	if err != nil {
		at, err = netip.ParseAddrPort(host + ":80")
		port = ""
	}
	addr := at.Addr()
	switch {
	case err != nil, at.Port() == 0, addr.Zone() != "", addr.IsUnspecified(), addr.IsMulticast():
		return "", false
	case addr.Is6():
		return "[" + addr.String() + "]" + port, true
	}
	return addr.String() + port, true
}
