package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

const (
	// maxBodies is how many bytes of reports may be held at once, maxClientBodies how
	// many of one client: room is taken before anything came, and is not all for one
	// that sends nothing.
	maxBodies       = 64 << 20
	maxClientBodies = maxBodies / 4
	// bodyTimeout is how long a report may take to arrive.
	bodyTimeout = 30 * time.Second
)

// needToken is what who reports without a token is told.
const needToken = "a token is needed: report to <registry.url>/r/<token>/register, as the discovery Ignition of this server says; " +
	"registry.requireToken: false allows reports without"

// Handler serves what probes report to: with the token of a boot ticket in the
// path as /r/{token}/register, /bootstate, /wipe and /wipe-progress, and upstream's
// paths without one, which are refused unless the endpoint is open.
func (r *Registry) Handler() http.Handler {
	e := &endpoint{registry: r, bodies: newBodies()}
	mux := http.NewServeMux()
	for _, prefix := range []string{"/r/{token}", ""} {
		mux.HandleFunc("POST "+prefix+"/register", e.serve(model.ThingReport, e.register))
		mux.HandleFunc("POST "+prefix+"/bootstate", e.serve(model.ThingBootState, e.bootState))
		mux.HandleFunc("GET "+prefix+"/systems/{uuid}", e.serve(model.ThingReport, e.system))
	}
	mux.HandleFunc("POST /r/{token}/wipe", e.serve(model.ThingWipe, e.wipe))
	mux.HandleFunc("POST /r/{token}/wipe-progress", e.serve(model.ThingReport, e.wipeProgress)) // no result yet
	mux.HandleFunc("DELETE /delete/{uuid}", e.serve(model.ThingReport, e.forget))
	return e.counted(mux)
}

// endpoint answers probes.
type endpoint struct {
	registry *Registry
	bodies   *bodies
}

// counted counts answers by path and code. Nothing of a path that may be a token
// goes further.
func (e *endpoint) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(seen, req)
		path := pathLabel(req.URL.Path)
		e.registry.metrics.requests.WithLabelValues(path, strconv.Itoa(seen.code)).Inc()
		gone := req.Context().Err() != nil // a client that went away is why, then
		if seen.code >= http.StatusInternalServerError && !gone {
			e.registry.log.Warn("report not taken", "path", path, "code", seen.code, "client", req.RemoteAddr)
		}
	})
}

// statusWriter remembers the status code of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController see the writer below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pathLabel names what was asked for, without token and UUID.
func pathLabel(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if parts[0] == "r" && len(parts) > 2 {
		parts = parts[2:]
	}
	if slices.Contains([]string{"register", "bootstate", "wipe", "wipe-progress", "systems", "delete"}, parts[0]) {
		return parts[0]
	}
	return "other"
}

// refusal is an error that the client is told, with its status code.
type refusal struct {
	code   int
	text   string
	reason model.TicketRefusal // "" when it has to do with neither token nor address
}

func (r refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// refuseToken is said in the same words of all that is wrong with a token, so that
// nobody learns which tokens or UUIDs there are. Who has shown a good token may be
// told more, and without tokens upstream's answers tell it anyway.
func refuseToken(reason model.TicketRefusal) error {
	return refusal{http.StatusForbidden, "this token is not of an open boot ticket of this server", reason}
}

// answer is what a handler has to say when it did not fail.
type answer struct {
	code int
	json []byte
}

// serve turns what a handler returns into an answer, and notes it as a use of the
// ticket that the request is about.
func (e *endpoint) serve(what model.TicketThing, handle func(*request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := &request{Request: req, writer: w, endpoint: e, registry: e.registry, client: clientOf(req)}
		q.by.Client = q.client
		a, err := handle(q)
		if errors.Is(err, ErrTicketSpent) {
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

// request is one request and what its handler needs.
type request struct {
	*http.Request
	writer   http.ResponseWriter
	endpoint *endpoint
	registry *Registry
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
		q.registry.metrics.refusals.WithLabelValues(string(what), string(refused.reason)).Inc()
		q.registry.Use(q.ticket, what, q.by, refused.reason)
	case err == nil && q.ticket.Open():
		q.registry.Use(q.ticket, what, q.by, "")
	}
}

// now is our own time: a probe's clock may be wrong (R03).
func (q *request) now() time.Time { return q.registry.options.Clock().UTC() }

// admit refuses requests without a token where one is needed.
func (q *request) admit() error {
	if q.PathValue("token") == "" && !q.registry.options.OpenEndpoint {
		return refusal{http.StatusForbidden, needToken, model.RefusedToken}
	}
	return nil
}

// read reads the JSON body into v.
func (q *request) read(v any) error {
	limit := q.registry.options.MaxBody
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "the report is larger than %d bytes", limit)
	size := q.ContentLength
	if size > limit {
		return tooLarge
	}
	if size < 0 {
		size = limit
	}
	if err := q.endpoint.bodies.take(q.client, size); err != nil {
		return err
	}
	defer q.endpoint.bodies.giveBack(q.client, size)
	// Not every ResponseWriter can: then the server's own limit holds.
	_ = http.NewResponseController(q.writer).SetReadDeadline(time.Now().Add(bodyTimeout))
	raw, err := io.ReadAll(http.MaxBytesReader(q.writer, q.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge
	case err != nil:
		return refuse(http.StatusBadRequest, "the report did not arrive whole")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return refuse(http.StatusBadRequest, "the report cannot be read: %v", err)
	}
	return nil
}

// reporter is the server that a request is about.
type reporter struct {
	uuid  string // canonical
	offer model.Offer
	known bool // always with a token
}

// identify finds the server with a UUID, and checks the token, if there is one, and
// the address that the request came from. What is wrong with the address is told to
// who has the token only.
func (q *request) identify(uuid string) (reporter, error) {
	canonical, err := canonicalUUID(uuid)
	if err != nil {
		return reporter{}, refuse(http.StatusBadRequest, "systemUUID: %v", err)
	}
	offer, known := q.registry.Offer(canonical)
	rep := reporter{canonical, offer, known}
	q.ticket = offer.Ticket
	misplaced := q.checkAddress(rep)
	if token := q.PathValue("token"); token != "" {
		if err := q.checkToken(rep, token); err != nil {
			return reporter{}, err
		}
		q.by.Token = true
	}
	return rep, misplaced
}

// checkToken refuses tokens that are not of the server's newest ticket, or of one
// that is Spent.
func (q *request) checkToken(rep reporter, token string) error {
	t := rep.offer.Ticket
	switch {
	case !rep.known:
		return q.refuseUnknown(rep.uuid, token)
	case t == nil, !q.registry.tokens.MayReport(t, token):
		return refuseToken(model.RefusedToken)
	case t.Ended == model.TicketSpent:
		return refuseToken(model.RefusedSpent)
	}
	return nil
}

// refuseUnknown refuses tokens where no one server has the UUID. Who has one of
// several that share it is told (R12).
func (q *request) refuseUnknown(uuid, token string) error {
	namesakes := q.registry.memory.namesakes(uuid)
	for _, rec := range namesakes {
		if rec.Ticket != nil && q.registry.tokens.MayReport(rec.Ticket, token) {
			return refuse(http.StatusNotFound, "%d servers have the system UUID %s, so nobody knows which one reports", len(namesakes), uuid)
		}
	}
	if len(namesakes) == 0 {
		q.registry.metrics.unknown.Inc()
	}
	return refuseToken(model.RefusedToken)
}

// checkAddress refuses addresses that the server may not report from.
func (q *request) checkAddress(rep reporter) error {
	bound := q.registry.options.Bound
	if bound == nil || !rep.known {
		return nil
	}
	by, reason, text := bound(rep.offer, q.client)
	q.by = by
	if reason != "" {
		return refusal{http.StatusForbidden, text, reason}
	}
	return nil
}

// register takes the report of a probe. It answers 201 also for reports that are
// of no use any more, for a probe that once succeeded goes on for ever (R04).
func (e *endpoint) register(q *request) (answer, error) {
	done := answer{code: http.StatusCreated}
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	var body model.ProbeRegistration
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	if err := checkProbeData(&body.Data); err != nil {
		return answer{}, err
	}
	if !rep.known {
		return done, e.registerUnknown(q, rep.uuid, body.Data)
	}
	t := rep.offer.Ticket
	switch {
	case t == nil:
	case t.Purpose == model.PurposeDiscovery && t.Open():
		return done, q.saveProbe(t, body.Data)
	case t.Purpose == model.PurposeClaim && q.PathValue("token") != "":
		return answer{}, refuse(http.StatusForbidden, "this token is of a claim's boot ticket; a claimed server reports to /bootstate")
	}
	return done, nil
}

// registerUnknown takes the report of a machine that no server record has, for
// people to look at (R01).
func (e *endpoint) registerUnknown(q *request, uuid string, data model.ProbeData) error {
	q.registry.metrics.unknown.Inc()
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	q.registry.unknown.put(uuid, raw)
	return nil
}

// bootState takes a server's word that what it booted is up.
func (e *endpoint) bootState(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	var body model.ProbeBootState
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if t == nil || t.Purpose != model.PurposeClaim {
		return answer{}, refuse(http.StatusNotFound, "no claimed server, or more than one, has the system UUID %s", rep.uuid)
	}
	done := answer{code: http.StatusOK}
	if !body.Booted || !t.Open() {
		return done, nil
	}
	return done, q.saveBootState(t)
}

// wipe takes the outcome of a wipe.
func (e *endpoint) wipe(q *request) (answer, error) {
	var body model.ProbeWipe
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if err := checkWipe(t, body); err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	return done, q.saveWipe(t, body)
}

// wipeProgress takes how far a wipe is.
func (e *endpoint) wipeProgress(q *request) (answer, error) {
	var body model.ProbeWipeProgress
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if err := checkWipeProgress(t, body); err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	return done, q.saveWipeProgress(t, body)
}

// system shows what a probe reported.
func (e *endpoint) system(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(q.PathValue("uuid"))
	if err != nil {
		return answer{}, err
	}
	if raw, ok := q.registry.unknown.get(rep.uuid); ok && !rep.known && q.PathValue("token") == "" {
		return answer{http.StatusOK, raw}, nil
	}
	missing := refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	if !rep.known {
		return answer{}, missing
	}
	probe := q.registry.Observed().Probes[rep.offer.Server]
	if probe == nil {
		return answer{}, missing
	}
	data := probe.Data
	if q.PathValue("token") != "" {
		data.Storage = nil // by serial numbers a wipe is believed: they are told to nobody
	}
	raw, err := json.Marshal(data)
	return answer{http.StatusOK, raw}, err
}

// forget forgets what a probe reported.
func (e *endpoint) forget(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(q.PathValue("uuid"))
	if err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusOK}
	if q.registry.unknown.drop(rep.uuid) {
		return done, nil
	}
	if !rep.known || q.registry.Observed().Probes[rep.offer.Server] == nil {
		return answer{}, refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	}
	gone := batch{{key: key{bucketProbe, string(rep.offer.Server)}}}
	return done, q.registry.write(q.Context(), always(gone))
}
