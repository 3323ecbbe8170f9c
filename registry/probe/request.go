package probe

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"ingot/model"
)

// bodyTimeout is how long a report may take to arrive.
const bodyTimeout = 30 * time.Second

// answer is what a handler has to say when it did not fail.
type answer struct {
	code int
	json []byte
}

// serve turns what a handler returns into an answer, and notes it as a use of the
// ticket that the request is about.
func (e *endpoint) serve(what model.TicketThing, handle func(*request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := &request{Request: req, writer: w, endpoint: e, client: clientOf(req)}
		q.by.Client = q.client
		a, err := handle(q)
		if errors.Is(err, model.ErrTicketSpent) {
			err = refuseToken(model.RefusedSpent)
		}
		q.note(what, err)
		if err != nil {
			fail(w, err)
			return
		}
		if a.json != nil {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(a.code)
		_, _ = w.Write(a.json) // the client is gone, or not
	}
}

func fail(w http.ResponseWriter, err error) {
	var refused refusal
	if !errors.As(err, &refused) {
		w.Header().Set("Retry-After", "5")
		refused = refusal{code: http.StatusServiceUnavailable, text: "the report could not be stored; try again"}
	}
	http.Error(w, refused.text, refused.code)
}

type request struct {
	*http.Request
	writer   http.ResponseWriter
	endpoint *endpoint
	client   netip.Addr    // the zero value when it is not known
	by       model.Asker   // who is there, as far as that was asked
	ticket   *model.Ticket // of the server that the request names, nil before that is known
}

// clientOf is the address that a request came from. Headers may say anything.
func clientOf(req *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// note counts a refusal, and notes what became of the request among the uses of its
// ticket. What is answered after a ticket has ended is no use of it: a probe goes on
// for ever, and that would be written for ever.
func (q *request) note(what model.TicketThing, err error) {
	var refused refusal
	errors.As(err, &refused)
	switch {
	case refused.reason != "":
		q.endpoint.metrics.refusals.WithLabelValues(string(what), string(refused.reason)).Inc()
		q.endpoint.Registry.Use(q.ticket, what, q.by, refused.reason)
	case err == nil && q.ticket.Open():
		q.endpoint.Registry.Use(q.ticket, what, q.by, "")
	}
}

// now is our own time: a probe's clock may be wrong (R03).
func (q *request) now() time.Time { return q.endpoint.Clock().UTC() }

// reportHead is what is read of a report before it is known who reports.
type reportHead struct {
	SystemUUID string `json:"systemUUID"`
}

// read finds out which server a report is about, and reads its JSON into v: a stranger's
// is not decoded, for that takes many times its size.
func (q *request) read(v any) (reporter, error) {
	raw, done, err := q.receive()
	if err != nil {
		return reporter{}, err
	}
	defer done()
	var head reportHead
	if err := decode(raw, &head); err != nil {
		return reporter{}, err
	}
	rep, err := q.identify(head.SystemUUID)
	if err != nil {
		return reporter{}, err
	}
	if n := entries(raw); n > maxEntries {
		return reporter{}, refuse(http.StatusBadRequest, "the lists of the report have %d entries, allowed are %d", n, maxEntries)
	}
	return rep, decode(raw, v)
}

func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return refuse(http.StatusBadRequest, "the report cannot be read: %v", err)
	}
	return nil
}

// receive returns the body, which is of a bounded size. Its room is taken until done is called.
func (q *request) receive() (raw []byte, done func(), err error) {
	limit := q.endpoint.MaxBody
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "the report is larger than %d bytes", limit)
	size := q.ContentLength
	if size > limit {
		return nil, nil, tooLarge
	}
	if size < 0 {
		size = limit
	}
	if err := q.endpoint.bodies.take(q.client, size); err != nil {
		return nil, nil, err
	}
	done = func() { q.endpoint.bodies.giveBack(q.client, size) }
	// Not every ResponseWriter can: then the server's own limit holds.
	_ = http.NewResponseController(q.writer).SetReadDeadline(time.Now().Add(bodyTimeout))
	raw, err = io.ReadAll(http.MaxBytesReader(q.writer, q.Body, limit))
	if err == nil {
		return raw, done, nil
	}
	done()
	if over := new(http.MaxBytesError); errors.As(err, &over) {
		return nil, nil, tooLarge
	}
	return nil, nil, refuse(http.StatusBadRequest, "the report did not arrive whole")
}

func (q *request) save(t *model.Ticket, report model.ServerReport) error {
	return q.endpoint.Registry.SaveReport(q.Context(), t, report)
}
