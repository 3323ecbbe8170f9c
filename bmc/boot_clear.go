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
	err := p.changeSystem(ctx, t, (*reader).identify, func(ctx context.Context, c *client, _ SystemState) error { return c.clearBoots(ctx, t.URI) })
	if err != nil {
		return fmt.Errorf("clear boot override: %w", err)
	}
	return nil
}

// clearBoots clears the override of a system that was just read, wherever it may have
// been written: in the settings object first, for what is pending there may be all that the
// system shows.
func (c *client) clearBoots(ctx context.Context, system string) error {
	s := c.state(system)
	var tried []string
	for _, last := range []variant{s.variant, s.diskVariant} {
		if last.name == variantSettings && !slices.Contains(tried, last.uri) {
			tried = append(tried, last.uri)
			if _, err := c.clearBoot(ctx, system, last.uri, false); err != nil { // it may not have been applied yet
				return err
			}
		}
	}
	if len(tried) == 0 && s.boot.idle() {
		return nil
	}
	elsewhere, err := c.clearBoot(ctx, system, system, false)
	if !elsewhere {
		return err
	}
	for _, uri := range s.settingsURIs(system) {
		if _, again := c.clearBoot(ctx, system, uri, true); again == nil {
			return nil
		}
	}
	return err
}

// clearBoot clears the override at a URI, if it is set or must be written in any case. On an
// error, elsewhere says that the BMC wants it written to the settings object (B04).
func (c *client) clearBoot(ctx context.Context, system, uri string, always bool) (elsewhere bool, err error) {
	read, err := c.readBoot(ctx, uri)
	if err != nil || read.idle() && !always {
		return false, err
	}
	s, before := c.state(system), read
	var tried []string
	for _, want := range s.clearings() {
		r := variant{variantDefault, uri, want}
		read, err = c.try(ctx, system, r, before)
		if err != nil && !refusedWrite(err) {
			return false, err
		}
		if err == nil && read.idle() {
			return false, nil
		}
		tried = append(tried, outcome(r, read, err))
		if e := asError(err); e != nil && e.says("OperationSupportedInFutureStateURI") {
			elsewhere = true
			break
		}
	}
	return elsewhere, &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: ErrOverrideNotKept, Detail: strings.Join(tried, "; ")}
}

// clearings returns the overrides that clear one, in the order to try them: without the boot
// mode, and with it for a BMC that insists on it, or the other way round for one that forgets
// it otherwise (B03).
func (s *systemState) clearings() []override {
	all := []override{{Enabled: disabled, Target: none}, {Enabled: disabled}, {Enabled: disabled, Target: string(model.BootPXE)}}
	i := slices.IndexFunc(all, func(o override) bool { return s.quirk.clearTarget != "" && o.Target == s.quirk.clearTarget })
	if i > 0 {
		all[0], all[i] = all[i], all[0]
	}
	mode := s.mode("")
	if mode == "" {
		return all
	}
	moded := slices.Clone(all)
	for i := range moded {
		moded[i].Mode = mode
	}
	if s.quirk.alwaysMode || s.variant.want.Mode != "" {
		return append(moded, all...)
	}
	return append(all, moded...)
}
