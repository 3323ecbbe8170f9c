package bmc

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ingot/model"
)

// ClearBootOverride makes the next boot follow the boot order. It writes only if there is
// an override, so that the usual case is one GET.
func (p *Pool) ClearBootOverride(ctx context.Context, t model.SystemTarget) error {
	err := p.changeSystem(ctx, t, func(ctx context.Context, c *client, _ SystemState) error { return c.clearBoots(ctx, t.URI) })
	if err != nil {
		return fmt.Errorf("clear boot override: %w", err)
	}
	return nil
}

// clearBoots clears the override of a system that was just read, wherever it may have
// been written.
func (c *client) clearBoots(ctx context.Context, system string) error {
	s := c.state(system)
	var uris []string
	if !s.boot.idle() {
		uris = append(uris, system)
	}
	for _, last := range []variant{s.variant, s.diskVariant} {
		if last.name == variantSettings && !slices.Contains(uris, last.uri) {
			uris = append(uris, last.uri) // it may not have been applied yet
		}
	}
	for _, uri := range uris {
		if err := c.clearBoot(ctx, system, uri, s.quirk); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) clearBoot(ctx context.Context, system, uri string, q quirk) error {
	read, err := c.readBoot(ctx, uri)
	if err != nil || read.idle() {
		return err
	}
	var tried []string
	for _, want := range clearings(q) {
		r := variant{variantDefault, uri, want}
		read, err = c.try(ctx, system, r)
		if err != nil && !refusedWrite(err) {
			return err
		}
		if err == nil && read.idle() {
			return nil
		}
		tried = append(tried, outcome(r, read, err))
	}
	return &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: ErrOverrideNotKept, Detail: strings.Join(tried, "; ")}
}

// clearings returns the overrides that clear one, in the order to try them.
func clearings(q quirk) []override {
	all := []override{{Enabled: disabled, Target: none}, {Enabled: disabled}, {Enabled: disabled, Target: string(model.BootPXE)}}
	i := slices.IndexFunc(all, func(o override) bool { return q.clearTarget != "" && o.Target == q.clearTarget })
	if i > 0 {
		all[0], all[i] = all[i], all[0]
	}
	return all
}
