package bmc

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ingot/model"
)

// BootOnce makes the next boot one by method: it writes the override, reads it back and
// compares (B01), and tries the next variant, another form of writing it, until one is
// kept. It returns the name of that variant, with which the next call for the machine
// begins. After VariantContinuous, which is never used for a boot from disk, the caller
// has to clear the override once the machine has booted. A machine without UEFI HTTP boot
// gets PXE. For a boot from disk the boot options of disks that are off are switched on.
//
// ErrUnsupported: the machine has no boot override, or none for the method; for one from the network ErrNoNetworkBoot.
// ErrOverrideNotKept: no variant was kept; the error says what was asked and read.
// ErrOtherMachine, ErrNoIdentity: it is another machine than the one meant, as of Reset.
func (p *Pool) BootOnce(ctx context.Context, t model.SystemTarget, method model.BootMethod) (string, error) {
	var name string
	err := p.changeSystem(ctx, t, (*reader).identity, func(ctx context.Context, c *client, _ SystemState) (err error) {
		name, err = c.bootOnce(ctx, t, method)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("set boot override %s: %w", method, err)
	}
	return name, nil
}

func (c *client) bootOnce(ctx context.Context, t model.SystemTarget, method model.BootMethod) (string, error) {
	uri := t.URI
	s := c.state(uri)
	if r := s.refused; r.method == method && c.opts.Clock().Before(r.until) {
		return "", r.err
	}
	target, err := s.bootTarget(method)
	if err != nil {
		kind := ErrNoNetworkBoot
		if method == model.BootDisk {
			kind = ErrUnsupported
		}
		return "", &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: kind, Detail: err.Error()}
	}
	if method == model.BootDisk {
		if err := c.enableDisks(ctx, t); err != nil {
			return "", err
		}
		s = c.state(uri)
	}
	var tried []string
	elsewhere := false // the BMC says that boot settings belong in the settings object (B04)
	for _, r := range s.variants(uri, target) {
		if elsewhere && r.uri == uri {
			continue
		}
		read, err := c.try(ctx, uri, r, s.boot)
		if err != nil && !refusedWrite(err) {
			return "", err
		}
		if err := c.meant(t, c.state(uri).shown); err != nil {
			return "", err
		}
		if err == nil && r.want.keptIn(read) {
			c.learn(uri, func(s *systemState) { *s.lastVariant(target), s.armed, s.refused = r, true, refusedBoot{} })
			return r.name, nil
		}
		if e := asError(err); e != nil && e.says("OperationSupportedInFutureStateURI") {
			elsewhere = true
		}
		tried = append(tried, outcome(r, read, err))
		c.log.Debug("boot override not kept", "system", uri, "variant", r.name, "asked", r.want.String(), "err", err)
	}
	err = &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: ErrOverrideNotKept, Detail: strings.Join(tried, "; ")}
	c.learn(uri, func(s *systemState) {
		n := s.refused.times
		s.refused = refusedBoot{method, err, n + 1, c.opts.Clock().Add(min(refusedPause<<min(n, 8), refusedPauseMax))}
	})
	return "", err
}

// The pause before the variants of an override are written again, of which a BMC kept none.
const (
	refusedPause    = 5 * time.Minute // the first
	refusedPauseMax = time.Hour
)

func outcome(r variant, read boot, err error) string {
	if e := asError(err); e != nil {
		return fmt.Sprintf("%s: asked %s, refused with %d %s", r.name, r.want, e.Status, printable(e.Detail, 100))
	}
	return fmt.Sprintf("%s: asked %s, read %s", r.name, r.want, read)
}
