package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"ingot/model"
)

const (
	// maxBodies is how many bytes of reports may be held at once.
	maxBodies = 64 << 20
	// bodyTimeout is how long a report may take to arrive.
	bodyTimeout = 30 * time.Second
)

// needToken is what who reports without a token is told.
const needToken = "a token is needed: report to <registry.url>/r/<token>/register, as the discovery Ignition of this server says; " +
	"registry.requireToken: false allows reports without"

// Handler serves what probes report to: with the token of a boot ticket in the
// path as /r/{token}/register, /bootstate and /wipe, and upstream's paths
// without one, which are refused unless the endpoint is open.
func (r *Registry) Handler() http.Handler {
	e := &endpoint{registry: r, bodies: semaphore.NewWeighted(maxBodies)}
	mux := http.NewServeMux()
	for _, prefix := range []string{"/r/{token}", ""} {
		mux.HandleFunc("POST "+prefix+"/register", e.serve(e.register))
		mux.HandleFunc("POST "+prefix+"/bootstate", e.serve(e.bootState))
		mux.HandleFunc("GET "+prefix+"/systems/{uuid}", e.serve(e.system))
	}
	mux.HandleFunc("POST /r/{token}/wipe", e.serve(e.wipe))
	mux.HandleFunc("DELETE /delete/{uuid}", e.serve(e.forget))
	return e.counted(mux)
}

// endpoint answers probes.
type endpoint struct {
	registry *Registry
	bodies   *semaphore.Weighted // bytes that bodies may take together
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
	if slices.Contains([]string{"register", "bootstate", "wipe", "systems", "delete"}, parts[0]) {
		return parts[0]
	}
	return "other"
}

// refusal is an error that the client is told, with its status code.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// errToken is the same for all that is wrong with a token, so that nobody learns
// which tokens or UUIDs there are.
var errToken = refuse(http.StatusForbidden, "this token is not of an open boot ticket of this server")

// answer is what a handler has to say when it did not fail.
type answer struct {
	code int
	json []byte
}

// serve turns what a handler returns into an answer.
func (e *endpoint) serve(handle func(*request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		a, err := handle(&request{Request: req, writer: w, endpoint: e, registry: e.registry})
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
	switch {
	case errors.As(err, &refused):
	case errors.Is(err, ErrTicketSpent):
		refused = refusal{http.StatusForbidden, errToken.Error()}
	default:
		w.Header().Set("Retry-After", "5")
		refused = refusal{http.StatusServiceUnavailable, "the report could not be stored; try again"}
	}
	http.Error(w, refused.text, refused.code)
}

// request is one request and what its handler needs.
type request struct {
	*http.Request
	writer   http.ResponseWriter
	endpoint *endpoint
	registry *Registry
}

// now is our own time: a probe's clock may be wrong (R03).
func (q *request) now() time.Time { return q.registry.options.Clock().UTC() }

// admit refuses requests without a token where one is needed.
func (q *request) admit() error {
	if q.PathValue("token") == "" && !q.registry.options.OpenEndpoint {
		return refusal{http.StatusForbidden, needToken}
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
	if !q.endpoint.bodies.TryAcquire(size) {
		return errors.New("too many reports at once")
	}
	defer q.endpoint.bodies.Release(size)
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
	known bool
}

// identify finds the server with a UUID and checks the token, if there is one:
// it must be of the server's newest ticket, and that may not be Spent.
func (q *request) identify(uuid string) (reporter, error) {
	canonical, err := canonicalUUID(uuid)
	if err != nil {
		return reporter{}, refuse(http.StatusBadRequest, "systemUUID: %v", err)
	}
	offer, known := q.registry.Offer(canonical)
	rep := reporter{canonical, offer, known}
	token := q.PathValue("token")
	if token == "" {
		return rep, nil
	}
	if !known {
		return rep, nil // the handlers say what that means
	}
	if !q.registry.tokens.Valid(offer.Ticket, token) || offer.Ticket.Ended == model.TicketSpent {
		return reporter{}, errToken
	}
	return rep, nil
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
	case t.Purpose == model.PurposeClaim && q.PathValue("token") != "":
		return answer{}, refuse(http.StatusForbidden, "this token is of a claim's boot ticket; a claimed server reports to /bootstate")
	case t.Purpose != model.PurposeDiscovery || !t.Open():
		return done, nil
	}
	v := &model.ProbeReport{Ticket: t.ID, ReceivedAt: q.now(), Data: body.Data}
	return done, saveReport(q.Context(), q.registry, t, bucketProbe, v, func(old *model.ProbeReport) bool {
		return old.Ticket == v.Ticket && sameJSON(old.Data, v.Data)
	})
}

// registerUnknown takes the report of a machine that no server record has, for
// people to look at (R01).
func (e *endpoint) registerUnknown(q *request, uuid string, data model.ProbeData) error {
	q.registry.metrics.unknown.Inc()
	if q.PathValue("token") != "" {
		return errToken
	}
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
	if !rep.known || t.Purpose != model.PurposeClaim {
		return answer{}, refuse(http.StatusNotFound, "no claimed server, or more than one, has the system UUID %s", rep.uuid)
	}
	done := answer{code: http.StatusOK}
	if !body.Booted || !t.Open() {
		return done, nil
	}
	v := &model.BootState{Ticket: t.ID, ReceivedAt: q.now()}
	return done, saveReport(q.Context(), q.registry, t, bucketBootState, v, func(old *model.BootState) bool {
		return old.Ticket == v.Ticket
	})
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
	if !rep.known {
		return answer{}, errToken
	}
	if err := checkWipe(body); err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if t.Purpose != model.PurposeCleanup {
		return answer{}, refuse(http.StatusForbidden, "this token is not of a boot ticket for cleanup")
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	v := &model.WipeReport{Ticket: t.ID, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks}
	return done, saveReport(q.Context(), q.registry, t, bucketWipe, v, func(old *model.WipeReport) bool {
		return old.Ticket == v.Ticket && old.Mode == v.Mode && sameJSON(old.Disks, v.Disks)
	})
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
	report := q.registry.Observed().Probes[rep.offer.Ticket.Server]
	if report == nil {
		return answer{}, missing
	}
	raw, err := json.Marshal(report.Data)
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
	if !rep.known || q.registry.Observed().Probes[rep.offer.Ticket.Server] == nil {
		return answer{}, refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	}
	gone := batch{{key: key{bucketProbe, string(rep.offer.Ticket.Server)}}}
	return done, q.registry.write(q.Context(), always(gone))
}
