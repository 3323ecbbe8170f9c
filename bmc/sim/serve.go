package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/bmc/sim/internal/delay"
)

// maxBody is the largest request body that a BMC reads, in bytes.
const maxBody = 1 << 20

// retryAfter is what a BMC that is busy asks a client to wait, in seconds.
const retryAfter = "1"

// A service answers the requests to one BMC.
type service struct{ *BMC }

// ServeHTTP answers a Redfish request (DSP0266).
func (b service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	leave := b.enter()
	defer leave()
	// The body is read before anything else: only then does the server notice
	// that a client which waits for a hanging BMC has gone.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if !b.stall(r.Context(), r.URL.Path) {
		panic(http.ErrAbortHandler) // no answer at all
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		b.write(w, r, failure(http.StatusRequestEntityTooLarge, newMessage(msgUnrecognizedBody)))
		return
	}
	if rep, ok := b.startingAnswer(); ok {
		b.write(w, r, rep)
		return
	}
	if b.document(w, r) {
		return
	}
	rep := b.answer(r, body)
	if rep.lost != nil {
		rep.lost(r.Context())
		panic(http.ErrAbortHandler)
	}
	b.write(w, r, rep)
}

// stall holds a request back as long as faults and delays have it, and reports
// false when it is over before.
func (b service) stall(ctx context.Context, path string) bool {
	for cleared := b.faults.until(FaultHang); cleared != nil; cleared = b.faults.until(FaultHang) {
		select {
		case <-ctx.Done():
			return false
		case <-cleared:
		}
	}
	wait := b.rack.opts.Delays.Request
	if args, slow := b.faults.get(FaultSlow); slow {
		wait += orDefault(args.Delay, 2*time.Second)
	}
	if args, slow := b.faults.get(FaultSlowPart); slow && strings.Contains(path, orDefault(args.Part, "Storage")) {
		wait += orDefault(args.Delay, 10*time.Second)
	}
	return delay.Wait(ctx, wait)
}

func (b service) answer(r *http.Request, body []byte) reply {
	if v := r.Header.Get("OData-Version"); v != "" && v != "4.0" {
		return failure(http.StatusPreconditionFailed, newMessage(msgHeader, "OData-Version: "+v))
	}
	path := r.URL.Path
	if r.Method == http.MethodPost { // to a collection or to its members, as one likes
		path = strings.TrimSuffix(path, "/Members")
	}
	v, found := b.resolve(path)
	public := found && v.node.public(r.Method)
	if !public && b.faults.has(FaultServerError) {
		return failure(http.StatusInternalServerError, newMessage(msgInternalError))
	}
	if !public && b.faults.has(FaultNotFound) {
		return notFound(r.URL.Path)
	}
	if !public {
		user, ok := b.user(r)
		if !ok {
			return unauthorized()
		}
		if !b.may(user, r.Method, v) {
			return failure(http.StatusForbidden, newMessage(msgPrivilege))
		}
	}
	if !found {
		return notFound(r.URL.Path)
	}
	if !public && reads(r.Method) && b.faults.has(FaultOKError) {
		rep := failure(http.StatusInternalServerError, newMessage(msgInternalError))
		rep.status = http.StatusOK
		return rep
	}
	if !acceptsJSON(r.Header.Get("Accept")) {
		return failure(http.StatusNotAcceptable, newMessage(msgHeader, "Accept"))
	}
	return b.dispatch(r, v, body)
}

func unauthorized() reply {
	rep := failure(http.StatusUnauthorized, newMessage(msgUnauthorized))
	rep.header = http.Header{"Www-Authenticate": {`Basic realm="Redfish"`}}
	return rep
}

// may reports whether the user's role allows the method: a user that may only
// read may still close sessions.
func (b service) may(user, method string, v view) bool {
	if method == http.MethodGet || method == http.MethodHead {
		return true
	}
	switch b.accounts.role(user) {
	case "Administrator":
		return true
	case "Operator":
		return !strings.Contains(v.path, "/AccountService")
	}
	return strings.Contains(v.path, "/SessionService")
}

// acceptsJSON reports whether an Accept header lets JSON through.
func acceptsJSON(accept string) bool {
	if accept == "" {
		return true
	}
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, err := mime.ParseMediaType(part)
		if err == nil && (kind == "*/*" || kind == "application/*" || kind == "application/json") {
			return true
		}
	}
	return false
}

// dispatch does what the method asks of a resource.
func (b service) dispatch(r *http.Request, v view, body []byte) reply {
	n := v.node
	switch {
	case !slices.Contains(n.methods(), r.Method):
		rep := failure(http.StatusMethodNotAllowed, newMessage(msgMethod))
		rep.header = http.Header{"Allow": {strings.Join(n.methods(), ", ")}}
		return rep
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return b.read(v, r.URL.RawQuery)
	case r.Method == http.MethodDelete:
		return n.remove(v)
	}
	sent, problem := decode(body, n.bodyless)
	if problem != nil {
		return failure(http.StatusBadRequest, problem)
	}
	rep := v.change(r, sent)
	b.logRequest(r.Method, v.path, sent, rep.status)
	return rep
}

// change answers POST and PATCH.
func (v view) change(r *http.Request, sent object) reply {
	if r.Method == http.MethodPost {
		return v.node.post(v, sent)
	}
	if rep, ok := v.condition(r.Header.Get("If-Match")); !ok {
		return rep
	}
	return v.patch(sent)
}

// decode returns the JSON object that a body is. Some actions need none.
func decode(body []byte, bodyless bool) (object, *message) {
	if len(body) == 0 && bodyless {
		return object{}, nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, newMessage(msgMalformedJSON)
	}
	o, ok := v.(map[string]any)
	if !ok || len(o) == 0 && !bodyless {
		return nil, newMessage(msgUnrecognizedBody)
	}
	return o, nil
}

// condition checks If-Match against the resource as it is.
func (v view) condition(ifMatch string) (reply, bool) {
	switch {
	case ifMatch == "" && v.node.conditional:
		return failure(http.StatusPreconditionRequired, newMessage(msgNeedsCondition)), false
	case ifMatch == "" || ifMatch == "*":
		return reply{}, true
	}
	_, etag := v.encode(v.render())
	if !matches(ifMatch, etag) {
		return failure(http.StatusPreconditionFailed, newMessage(msgPrecondition)), false
	}
	return reply{}, true
}

// matches reports whether a list of ETags holds etag. Clients that strip the weak
// mark mean the same.
func matches(list, etag string) bool {
	for e := range strings.SplitSeq(list, ",") {
		e = strings.TrimSpace(e)
		if e == "*" || e == etag || e == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

func (b service) write(w http.ResponseWriter, r *http.Request, rep reply) {
	h := w.Header()
	h.Set("OData-Version", "4.0")
	h.Set("Cache-Control", "no-cache")
	h.Set("Server", "Ingot-Simulator")
	maps.Copy(h, rep.header)
	if rep.location != "" {
		h.Set("Location", rep.location)
	}
	if rep.token != "" {
		h.Set("X-Auth-Token", rep.token)
	}
	if rep.status == http.StatusServiceUnavailable || rep.status == http.StatusConflict {
		h.Set("Retry-After", retryAfter)
	}
	if rep.status == http.StatusUnauthorized {
		b.refused.Add(1)
	}
	raw := rep.raw
	if raw == nil && rep.body != nil {
		raw = mustJSON(rep.body)
	}
	if etag := h.Get("ETag"); rep.status == http.StatusOK && etag != "" && reads(r.Method) && matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if raw == nil {
		w.WriteHeader(rep.status)
		return
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	if b.faults.has(FaultGzip) {
		raw = compress(h, raw)
	}
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(rep.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(raw) // a client that has gone is no news
	}
}

func compress(h http.Header, raw []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw) // to memory
	_ = z.Close()
	h.Set("Content-Encoding", "gzip")
	if etag := h.Get("ETag"); etag != "" {
		h.Set("ETag", strings.TrimSuffix(etag, `"`)+`-gzip"`)
	}
	return out.Bytes()
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// mustJSON encodes what is made of maps, slices, strings, numbers and booleans,
// which cannot fail.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// encode returns a resource as JSON with its ETag. What changes with the clock
// has no part in the ETag, or nothing would ever be unmodified.
func (v view) encode(o object) (raw []byte, etag string) {
	now, clock := o["DateTime"]
	delete(o, "DateTime")
	raw = mustJSON(o)
	hash := fnv.New64a()
	_, _ = hash.Write(raw) // never fails
	etag = `"` + strconv.FormatUint(hash.Sum64(), 16) + `"`
	head := object{"@odata.etag": etag}
	switch v.bmc.rack.kind.etags {
	case etagStrong:
	case etagWeak:
		etag = "W/" + etag
		head["@odata.etag"] = etag
	case etagHeader:
		delete(head, "@odata.etag")
	}
	if clock {
		head["DateTime"] = now
	}
	if len(head) == 0 {
		return raw, etag
	}
	front := mustJSON(head)
	out := make([]byte, 0, len(front)+len(raw))
	out = append(out, front[:len(front)-1]...)
	out = append(out, ',')
	return append(out, raw[1:]...), etag
}

func (b service) read(v view, query string) reply {
	q, problem := parseQuery(query, v.bmc.rack.kind.root)
	if problem != nil {
		return failure(problem.status, problem.message)
	}
	o := v.render()
	if v.node.ids != nil && b.faults.has(FaultCollectionEmpty) {
		o["Members"] = []object{}
	}
	if q.only {
		v, o = b.only(v, o)
	}
	if args, pages := b.faults.get(FaultPaging); pages && v.node.ids != nil {
		q.top = orDefault(args.Size, 1)
	}
	q.page(v, o)
	if q.levels > 0 {
		b.expand(o, q, q.levels)
	}
	raw, etag := v.encode(o)
	rep := reply{status: http.StatusOK, raw: raw, header: http.Header{
		"Allow": {strings.Join(v.node.methods(), ", ")},
		"Link":  {v.node.describedBy()},
	}}
	if query == "" { // an ETag is that of the resource, not of a view of it
		rep.header.Set("ETag", etag)
	}
	return rep
}
