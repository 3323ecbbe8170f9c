package bmc

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	answered, failed := c.write(ctx, system, r.uri, map[string]any{"Boot": r.want})
	if failed != nil && (refusesChange(statusOf(failed)) || !refusedWrite(failed)) {
		return boot{}, failed
	}
	if read, ok := c.answeredBoot(answered, system, r); ok {
		return read, nil
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
	c.sawBoot(uri, a, &sys)
	return sys.Boot, nil
}

// answeredBoot returns the override in the answer to its write, if that is the system and shows what was asked for.
func (c *client) answeredBoot(a *answer, uri string, r variant) (boot, bool) {
	if a == nil || a.status != http.StatusOK || r.uri != uri {
		return boot{}, false
	}
	sys, _, err := decode[system](a.body)
	if err != nil || !sameResource(path(sys.ID), uri) || sys.PowerState == "" || !r.want.keptIn(sys.Boot) {
		return boot{}, false
	}
	c.sawBoot(uri, a, &sys)
	return sys.Boot, true
}

func (c *reader) sawBoot(uri string, a *answer, sys *system) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.systems[uri]; s != nil {
		s.boot = sys.Boot
		c.saw(s, a.etag(sys.ETag), sys.shown())
		s.seen.written = true
	}
}

// write sets properties of a system or its settings object. If the BMC gave a strong ETag,
// the write has the condition that nobody else wrote meanwhile (RFC 9110 §13.1.1). A BMC that
// does not recognize its own ETag is written to without (B17, B18); one that demands a
// condition gets it.
func (c *client) write(ctx context.Context, system, uri string, body map[string]any) (*answer, error) {
	s := c.state(system)
	var condition []header
	if uri == system && isStrong(s.etag) && !s.noIfMatch {
		condition = []header{{"If-Match", s.etag}}
	}
	done, err := c.patch(ctx, uri, body, condition...)
	switch {
	case statusOf(err) == http.StatusPreconditionFailed && condition != nil:
		return c.writeAgain(ctx, system, s, body, err)
	case statusOf(err) == http.StatusPreconditionRequired, statusOf(err) == http.StatusPreconditionFailed:
		etag := "*"
		if a, err := c.get(ctx, uri); err == nil && a.etag("") != "" {
			etag = a.etag("")
		}
		done, err = c.patch(ctx, uri, body, header{"If-Match", etag})
	}
	return done, err
}

func (c *client) patch(ctx context.Context, uri string, body map[string]any, headers ...header) (*answer, error) {
	a, err := c.do(ctx, http.MethodPatch, uri, body, headers...)
	if err == nil {
		c.followTask(ctx, a)
	}
	if e := asError(err); e != nil && !errors.Is(err, ErrBusy) && pendingJob(e) {
		e.Kind = ErrBusy
	}
	return a, err
}

// pendingJob reports whether a write was refused for a configuration job that is
// waiting for a reboot (B06).
func pendingJob(e *Error) bool {
	text := strings.ToLower(e.Detail)
	return e.Status/100 == 4 && strings.Contains(text, "job") &&
		(strings.Contains(text, "pending") || strings.Contains(text, "already") || strings.Contains(text, "in progress"))
}

// writeAgain writes to a system that refused the ETag of before, without that. If it shows nothing new, it does not
// recognize its own ETags.
func (c *client) writeAgain(ctx context.Context, system string, before systemState, body map[string]any, refusal error) (*answer, error) {
	if _, _, err := c.readSystem(ctx, system); err != nil {
		return nil, err
	}
	now := c.state(system)
	if now.shown.UUID != before.shown.UUID || now.shown.Board != before.shown.Board {
		return nil, refusal
	}
	done, err := c.patch(ctx, system, body)
	if err == nil && now.shown == before.shown && now.boot.sameAs(before.boot) {
		c.learn(system, func(s *systemState) { s.noIfMatch = true })
	}
	return done, err
}

// isStrong reports whether an ETag is strong, so that a write may depend on it (RFC 9110
// §8.8.3).
func isStrong(etag string) bool {
	return etag != "" && !strings.HasPrefix(etag, "W/")
}

// refusedWrite reports whether the BMC understood the request and refused it, so that
// another variant may work.
func refusedWrite(err error) bool {
	kinds := []error{ErrBusy, ErrUnauthorized, ErrRefusedForNow, ErrReadOnly, ErrPasswordChange}
	if slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return asError(err) != nil && asError(err).says("PropertyValueConflict")
	}
	status := statusOf(err)
	return status/100 == 4 || status == http.StatusInternalServerError || status == http.StatusNotImplemented
}
