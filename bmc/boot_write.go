package bmc

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// readBackAfter is how long to wait, each time, before an override is read again that is not
// shown at once: some BMCs show a write after 3 to 5 s.
var readBackAfter = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}

// try writes one variant and returns what is read afterwards. It reads even if the BMC
// failed, because the override may be set nevertheless. What is shown as it was before the
// first variant is read again after some time, so that no other is written on top of one that
// is only late.
func (c *client) try(ctx context.Context, system string, r variant, before boot) (boot, error) {
	failed := c.patchBoot(ctx, system, r)
	if failed != nil && (refusesChange(statusOf(failed)) || !refusedWrite(failed)) {
		return boot{}, failed
	}
	read, err := c.readBack(ctx, system, r)
	for _, wait := range c.opts.ReadBack {
		if err != nil || r.want.shownIn(read) || !r.want.mayBeLate(read, before) {
			break
		}
		if !pause(ctx, wait) {
			return boot{}, context.Cause(ctx)
		}
		read, err = c.readBack(ctx, system, r)
	}
	if failed != nil && (err != nil || !r.want.keptIn(read)) {
		return boot{}, failed
	}
	return read, err
}

func (c *client) readBack(ctx context.Context, system string, r variant) (boot, error) {
	read, err := c.readBoot(ctx, r.uri)
	if r.uri != system && (err != nil && refusedWrite(err) || err == nil && read.empty()) {
		// What a settings object that cannot be read holds may show in the system.
		return c.readBoot(ctx, system)
	}
	return read, err
}

// readBoot reads the override of a system or settings object.
func (c *reader) readBoot(ctx context.Context, uri string) (boot, error) {
	a, err := c.get(ctx, uri)
	if err != nil {
		return boot{}, err
	}
	sys, _, err := decode[system](a.body)
	if err != nil {
		return boot{}, c.unreadable(uri, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.systems[uri]; s != nil {
		s.boot, s.etag = sys.Boot, a.etag(sys.ETag)
		s.shown, s.polled = sys.shown(), c.opts.Clock()
	}
	return sys.Boot, nil
}

func (c *client) patchBoot(ctx context.Context, system string, r variant) error {
	return c.write(ctx, system, r.uri, map[string]any{"Boot": r.want})
}

// write sets properties of a system or its settings object. If the BMC gave a strong ETag,
// the write has the condition that nobody else wrote meanwhile (RFC 9110 §13.1.1). A BMC that
// does not recognize its own ETag is written to without (B17, B18); one that demands a
// condition gets it.
func (c *client) write(ctx context.Context, system, uri string, body map[string]any) error {
	s := c.state(system)
	var condition []header
	if uri == system && isStrong(s.etag) && !s.noIfMatch {
		condition = []header{{"If-Match", s.etag}}
	}
	err := c.patch(ctx, uri, body, condition...)
	switch {
	case statusOf(err) == http.StatusPreconditionFailed && condition != nil:
		if err = c.patch(ctx, uri, body); err == nil {
			c.learn(system, func(s *systemState) { s.noIfMatch = true })
		}
	case statusOf(err) == http.StatusPreconditionRequired, statusOf(err) == http.StatusPreconditionFailed:
		etag := "*"
		if a, err := c.get(ctx, uri); err == nil && a.etag("") != "" {
			etag = a.etag("")
		}
		err = c.patch(ctx, uri, body, header{"If-Match", etag})
	}
	return err
}

func (c *client) patch(ctx context.Context, uri string, body map[string]any, headers ...header) error {
	a, err := c.do(ctx, http.MethodPatch, uri, body, headers...)
	if err == nil {
		c.followTask(ctx, a)
	}
	if e := asError(err); e != nil && !errors.Is(err, ErrBusy) && pendingJob(e) {
		e.Kind = ErrBusy
	}
	return err
}

// pendingJob reports whether a write was refused for a configuration job that is
// waiting for a reboot (B06).
func pendingJob(e *Error) bool {
	text := strings.ToLower(e.Detail)
	return e.Status/100 == 4 && strings.Contains(text, "job") &&
		(strings.Contains(text, "pending") || strings.Contains(text, "already") || strings.Contains(text, "in progress"))
}

// isStrong reports whether an ETag is strong, so that a write may depend on it (RFC 9110
// §8.8.3).
func isStrong(etag string) bool {
	return etag != "" && !strings.HasPrefix(etag, "W/")
}

// refusedWrite reports whether the BMC understood the request and refused it, so that
// another variant may work.
func refusedWrite(err error) bool {
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrPasswordChange) {
		return asError(err) != nil && asError(err).says("PropertyValueConflict")
	}
	status := statusOf(err)
	return status/100 == 4 || status == http.StatusInternalServerError || status == http.StatusNotImplemented
}
