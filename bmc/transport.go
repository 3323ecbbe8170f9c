package bmc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

// Bounds of an answer. A value may take a hundred times its bytes once it is decoded.
const (
	maxBody   = 16 << 20 // bytes
	maxValues = 1 << 18  // of its objects and lists, all in all
)

// maxQuiet bounds for how long a BMC can have itself left alone.
const maxQuiet = 100 * time.Second

// loginKey marks, in a context, requests that carry their own credentials: an
// *auth, or none if it is nil.
type loginKey struct{}

// transport is the http.RoundTripper that every request to the BMC goes through,
// gofish's too. It logs in where that is needed, once again when the session is
// gone, and sends.
type transport connection

// RoundTrip implements http.RoundTripper. The answer's body was read whole.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := (*connection)(t)
	ctx := req.Context()
	if own, ok := ctx.Value(loginKey{}).(*auth); ok {
		return c.sendAs(req, own)
	}
	a, err := c.authorized(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := c.sendAs(req, a)
	if err != nil || !ended(req, resp, a) {
		return resp, err
	}
	return c.sendAgain(req, resp, a)
}

// ended reports whether an answer means that the session has ended, or that the password is refused. Some BMCs answer a
// request of a session that has ended with 403, their login page or a redirect to it. After 401 and 403 a write was not carried
// out. After the others it may have been, so it is not repeated.
func ended(req *http.Request, resp *http.Response, a *auth) bool {
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized:
		return true
	case a.token == "":
		return false
	case status == http.StatusForbidden:
		ids, _ := messages(status, bodyOf(resp))
		return (&Error{MessageIDs: ids}).says("NoValidSession")
	case req.Method != http.MethodGet || req.Response != nil: // that is the page which a redirect led to
		return false
	case status/100 == 3 && status != http.StatusNotModified:
		to, err := resp.Location()
		return err == nil && !strings.HasPrefix(strings.ToLower(to.Path), "/redfish")
	}
	return resp.StatusCode == http.StatusOK && isHTML(bodyOf(resp))
}

// sendAgain repeats a request whose session has ended, or whose password was refused (B14, B15): with
// a new session, or as it was when there are no sessions. A path that is refused to a fresh session
// causes no further login for a while.
func (c *connection) sendAgain(req *http.Request, refused *http.Response, a *auth) (*http.Response, error) {
	if c.isDenied(req.URL.Path) {
		return refused, nil
	}
	if a.basic && (c.trial.Load() || c.acceptance().Refused.Count > 0) {
		c.refused()
		return refused, nil
	}
	a, err := c.authorizedAfter(req.Context(), a)
	if err != nil {
		return nil, err
	}
	if changes(req) { // the BMC that takes the new session may be another one
		if err := effortOf(req).meant(req.Context()); err != nil {
			return nil, err
		}
	}
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("repeat request: %w", err)
		}
		req = req.Clone(req.Context())
		req.Body = body
	}
	resp, err := c.sendAs(req, a)
	if err != nil || !ended(req, resp, a) {
		return resp, err
	}
	if a.basic { // there is no login that could tell
		c.refused()
		return resp, nil
	}
	c.deny(req.URL.Path)
	return resp, nil
}

// sendAs sends a request with the credentials of a, and notes that they were accepted.
func (c *connection) sendAs(req *http.Request, a *auth) (*http.Response, error) {
	resp, err := c.send(req, a)
	if err == nil && a != nil && resp.StatusCode/100 == 2 && !a.proven.Swap(true) {
		c.breaker.accept(c.creds, c.target.Name)
	}
	return resp, err
}

// send waits for the request's turn, sends it with the credentials of a, and
// reads the whole answer before the next may have its turn.
func (c *sender) send(req *http.Request, a *auth) (*http.Response, error) {
	ctx := req.Context()
	if err := c.turn(ctx, req); err != nil {
		return nil, err
	}
	defer func() { <-c.slots }()

	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	req = req.WithContext(ctx)
	req.Header = req.Header.Clone()
	if to := c.safer.Load(); to != nil && req.URL.Scheme == "http" {
		u := *req.URL
		u.Scheme, u.Host = to.Scheme, to.Host
		req.URL, req.Host = &u, ""
	}
	a.sign(req, c)

	c.counted.requests.Add(1)
	began := time.Now()
	resp, err := c.deliver(req)
	took := time.Since(began)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	c.metrics.answered(req.Method, status, took)
	if err != nil {
		return nil, err
	}
	c.pace.answered(took)
	if c.opts.observe != nil {
		c.opts.observe(req.Method, req.URL.RequestURI(), took)
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		if after := c.retryAfter(resp.Header); after > 0 {
			c.quiet.Store(c.opts.Clock().Add(after).UnixNano())
		}
	}
	return resp, nil
}

// deliver sends a request, and one that changes a machine at most once.
func (c *sender) deliver(req *http.Request) (*http.Response, error) {
	if changes(req) {
		return c.transmit(req)
	}
	return c.wire.send(req)
}

// turn waits until the request may be sent. It then holds a slot.
func (c *sender) turn(ctx context.Context, req *http.Request) error {
	if rest := time.Duration(c.quiet.Load() - c.opts.Clock().UnixNano()); rest > 0 {
		return &Error{BMC: c.name, Method: req.Method, URI: req.URL.RequestURI(), Kind: ErrBusy, RetryAfter: rest, Detail: "not sent: the BMC asked to be left alone"}
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.pace.wait(ctx); err != nil {
		<-c.slots
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &Error{BMC: c.name, Method: req.Method, URI: req.URL.RequestURI(), Detail: "not sent: no turn before the deadline, as the BMC answers slowly", Err: errors.Join(err, context.DeadlineExceeded)}
	}
	return nil
}

// retryAfter returns what the header Retry-After asks for (RFC 9110 §10.2.3).
func (c *sender) retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(v); err == nil {
		return min(max(time.Duration(seconds), 0), maxQuiet/time.Second) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(c.opts.Clock()), 0), maxQuiet)
	}
	return 0
}

func (c *connection) isDenied(path string) bool {
	c.deniedMu.Lock()
	defer c.deniedMu.Unlock()
	return c.opts.Clock().Before(c.denied[path])
}

func (c *connection) deny(path string) {
	c.deniedMu.Lock()
	defer c.deniedMu.Unlock()
	if len(c.denied) >= maxDenied {
		clear(c.denied)
	}
	c.denied[path] = c.opts.Clock().Add(model.RefusedPause) // a BMC that starts does so
}

// wholeBody is the body of an answer that was read.
type wholeBody struct {
	bytes.Reader
	raw []byte
}

// Close implements io.Closer.
func (*wholeBody) Close() error { return nil }

// readAll replaces the answer's body by one that was read, as plain JSON. It does not close the
// body, because that reads an endless answer to its end.
func readAll(resp *http.Response) error {
	raw, err := readBounded(resp.Body, resp.ContentLength)
	if err == nil && isCompressed(raw) {
		raw, err = decompress(raw)
	}
	if err == nil && values(raw) > maxValues {
		err = fmt.Errorf("more than %d values", maxValues)
	}
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	raw = bytes.TrimRight(bytes.TrimPrefix(raw, byteOrderMark), "\x00 \t\r\n")
	whole := &wholeBody{raw: absolute(raw, resp.Request.URL)}
	whole.Reset(whole.raw)
	resp.Body = whole
	return nil
}

// byteOrderMark stands in front of what some services send (RFC 8259 §8.1 says they must not).
var byteOrderMark = []byte("\ufeff")

// isCompressed reports whether an answer is compressed by gzip (RFC 1952 §2.3.1), which some
// services do though they were not asked to, and some without a header that says so. No JSON
// begins like this.
func isCompressed(raw []byte) bool { return bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) }

// decompress returns what was compressed, up to the size of any answer.
func decompress(raw []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return readBounded(r, -1)
}

// readBounded reads all there is, which is of a size, -1 if that is not known.
func readBounded(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(min(size, 1<<20)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r, maxBody+1))
	if err == nil && n > maxBody {
		err = fmt.Errorf("more than %d bytes", maxBody)
	}
	return b.Bytes(), err
}

// values returns how many values an answer has at most, of whatever form it is. An empty
// object or list counts as one more.
func values(raw []byte) (n int) {
	inText := false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case b == '"':
			inText = !inText
		case inText && b == '\\':
			i++
		case !inText && (b == ',' || b == '{' || b == '['):
			n++
		}
	}
	return n
}

// bodyOf returns the body of an answer that came through transport.
func bodyOf(resp *http.Response) []byte {
	whole, ok := resp.Body.(*wholeBody)
	if !ok {
		return nil
	}
	return whole.raw
}
