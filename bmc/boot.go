package bmc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// The variants of a boot override, as BootOnce names them.
const (
	variantDefault     = "default"
	variantWithMode    = "with-mode"
	variantWithoutMode = "without-mode"
	variantSettings    = "settings-object"

	// VariantContinuous is an override that stays until ClearBootOverride is called:
	// the BMC does not keep one for once.
	VariantContinuous = "continuous"
)

// variant is one way to write a boot override.
type variant struct {
	name string
	uri  string // of what is patched and read back
	want override
}

// override is what is written.
type override struct {
	Enabled string `json:"BootSourceOverrideEnabled"`
	Target  string `json:"BootSourceOverrideTarget,omitempty"`
	Mode    string `json:"BootSourceOverrideMode,omitempty"`
}

// String shows the override as people read it.
func (o override) String() string {
	return strings.TrimSpace(o.Enabled + " " + o.Target + " " + o.Mode)
}

// The values of a boot override.
const (
	once       = string(schemas.OnceBootSourceOverrideEnabled)
	continuous = string(schemas.ContinuousBootSourceOverrideEnabled)
	disabled   = string(schemas.DisabledBootSourceOverrideEnabled)
	none       = string(schemas.NoneBootSource)
	uefi       = string(schemas.UEFIBootSourceOverrideMode)
)

// BootOnce makes the next boot one by method: it writes the override, reads it
// back and compares (B01), and tries the next variant, which is another way to write it,
// until one is kept. It returns the name of that variant, where the next call for the
// machine begins. On VariantContinuous, which is never that of a boot from disk, the
// caller has to clear the override once the machine has booted. A machine without
// UEFI HTTP boot gets PXE.
//
// ErrUnsupported: the machine has no boot override, or none by such a method.
// ErrOverrideNotKept: no variant was kept; the error says what was asked and read.
// ErrOtherMachine, ErrNoIdentity: it is not the machine that is meant, as of Reset.
func (p *Pool) BootOnce(ctx context.Context, t model.SystemTarget, method model.BootMethod) (string, error) {
	var name string
	err := p.changeSystem(ctx, t, func(ctx context.Context, c *client, _ SystemState) (err error) {
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
	target, err := s.bootTarget(method)
	if err != nil {
		return "", &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: ErrUnsupported, Detail: err.Error()}
	}
	var tried []string
	elsewhere := false // the BMC said that boot settings belong into the settings object (B04)
	for _, r := range s.variants(uri, target) {
		if elsewhere && r.uri == uri {
			continue
		}
		read, err := c.try(ctx, uri, r)
		if err != nil && !refusedWrite(err) {
			return "", err
		}
		if err := c.meant(t, c.state(uri).shown); err != nil {
			return "", err
		}
		if err == nil && r.want.keptIn(read) {
			c.learn(uri, func(s *systemState) { *s.lastVariant(target) = r })
			return r.name, nil
		}
		if e := asError(err); e != nil && e.says("OperationSupportedInFutureStateURI") {
			elsewhere = true
		}
		tried = append(tried, outcome(r, read, err))
		c.log.Debug("boot override not kept", "system", uri, "variant", r.name, "asked", r.want.String(), "err", err)
	}
	return "", &Error{BMC: c.name, Method: http.MethodPatch, URI: uri, Kind: ErrOverrideNotKept, Detail: strings.Join(tried, "; ")}
}

// outcome says what came of a variant, for a person.
func outcome(r variant, read boot, err error) string {
	if e := asError(err); e != nil {
		return fmt.Sprintf("%s: asked %s, refused with %d %s", r.name, r.want, e.Status, printable(e.Detail, 100))
	}
	return fmt.Sprintf("%s: asked %s, read %s", r.name, r.want, read)
}

// bootTarget returns the override target for the method.
func (s *systemState) bootTarget(method model.BootMethod) (string, error) {
	if s.boot.empty() && s.settings == "" && len(s.quirk.settings) == 0 {
		return "", errors.New("the machine has no boot override; set its boot order by hand")
	}
	targets := s.boot.Targets
	if len(targets) == 0 || slices.Contains(targets, string(method)) {
		return string(method), nil
	}
	for _, other := range []model.BootMethod{model.BootPXE, model.BootUEFIHTTP} { // it has but one way to the network
		if method != model.BootDisk && slices.Contains(targets, string(other)) {
			return string(other), nil
		}
	}
	return "", fmt.Errorf("the machine allows only the boot targets %s", strings.Join(targets, ", "))
}

// variants returns the ways to write the override, in the order to try them.
func (s *systemState) variants(uri, target string) []variant {
	plain := override{Enabled: once, Target: target}
	moded := plain
	moded.Mode = uefi

	first := plain
	if s.sendsMode() {
		first = moded
	}
	all := []variant{{variantDefault, uri, first}}
	switch {
	case !s.hasMode():
	case first == moded:
		all = append(all, variant{variantWithoutMode, uri, plain})
	default:
		all = append(all, variant{variantWithMode, uri, moded})
	}
	for _, at := range s.settingsURIs(uri) {
		all = append(all, variant{variantSettings, at, first})
	}
	if target != string(model.BootDisk) { // one that stays would outlast whoever uses the machine
		stays := first
		stays.Enabled = continuous
		all = append(all, variant{VariantContinuous, uri, stays})
	}
	promote(all, func(r variant) bool { return r.name == s.quirk.first })
	last := s.lastVariant(target)
	if last.name == "" {
		last = &s.variant // what is kept of the one is likely to be kept of the other
	}
	promote(all, func(r variant) bool { return r.name == last.name && r.uri == last.uri })
	return all
}

// lastVariant is the variant that worked last for an override of this target.
func (s *systemState) lastVariant(target string) *variant {
	if target == string(model.BootDisk) {
		return &s.diskVariant
	}
	return &s.variant
}

// promote moves the first of all variants that is wanted to the front.
func promote(all []variant, wanted func(variant) bool) {
	i := slices.IndexFunc(all, wanted)
	if i <= 0 {
		return
	}
	r := all[i]
	copy(all[1:i+1], all[:i])
	all[0] = r
}

// hasMode reports whether the machine shows a boot mode, which may be UEFI (B02).
func (s *systemState) hasMode() bool {
	return s.boot.Mode != nil && (len(s.boot.Modes) == 0 || slices.Contains(s.boot.Modes, uefi))
}

// sendsMode reports whether the mode is sent along to begin with: where it has to
// change, and where the BMC forgets it otherwise (B03).
func (s *systemState) sendsMode() bool {
	return s.hasMode() && (*s.boot.Mode != uefi || s.quirk.alwaysMode)
}

// settingsURIs returns where the settings object may be.
func (s *systemState) settingsURIs(uri string) []string {
	if s.settings != "" {
		return []string{s.settings}
	}
	names := s.quirk.settings
	if len(names) == 0 {
		names = anySettings
	}
	uris := make([]string, len(names))
	for i, name := range names {
		uris[i] = under(uri, name)
	}
	return uris
}

// try writes one variant and returns what is read afterwards. What the BMC failed at may
// be done all the same, so that is read, too.
func (c *client) try(ctx context.Context, system string, r variant) (boot, error) {
	failed := c.patchBoot(ctx, system, r)
	if failed != nil && (refusesChange(statusOf(failed)) || !refusedWrite(failed)) {
		return boot{}, failed
	}
	read, err := c.readBack(ctx, system, r)
	if failed != nil && (err != nil || !r.want.keptIn(read)) {
		return boot{}, failed
	}
	return read, err
}

// readBack reads what a variant has written.
func (c *client) readBack(ctx context.Context, system string, r variant) (boot, error) {
	read, err := c.readBoot(ctx, r.uri)
	if r.uri != system && (err != nil && refusedWrite(err) || err == nil && read.empty()) {
		// A settings object that cannot be read shows in the system, if anywhere.
		return c.readBoot(ctx, system)
	}
	return read, err
}

// readBoot reads the override of a system or settings object.
func (c *client) readBoot(ctx context.Context, uri string) (boot, error) {
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

// patchBoot writes the override, on condition that nobody wrote meanwhile where
// the BMC gave an ETag that can be compared (RFC 9110 §13.1.1). One that does not
// know its own ETag again is written to without (B17, B18), one that insists on a
// condition gets it.
func (c *client) patchBoot(ctx context.Context, system string, r variant) error {
	s := c.state(system)
	var condition []header
	if r.uri == system && isStrong(s.etag) && !s.noIfMatch {
		condition = []header{{"If-Match", s.etag}}
	}
	err := c.patch(ctx, r, condition...)
	switch {
	case statusOf(err) == http.StatusPreconditionFailed && condition != nil:
		if err = c.patch(ctx, r); err == nil {
			c.learn(system, func(s *systemState) { s.noIfMatch = true })
		}
	case statusOf(err) == http.StatusPreconditionRequired, statusOf(err) == http.StatusPreconditionFailed:
		etag := "*"
		if a, err := c.get(ctx, r.uri); err == nil && a.etag("") != "" {
			etag = a.etag("")
		}
		err = c.patch(ctx, r, header{"If-Match", etag})
	}
	return err
}

func (c *client) patch(ctx context.Context, r variant, headers ...header) error {
	a, err := c.do(ctx, http.MethodPatch, r.uri, map[string]any{"Boot": r.want}, headers...)
	if err == nil {
		c.followTask(ctx, a)
	}
	if e := asError(err); e != nil && pendingJob(e) {
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

// isStrong reports whether an ETag may be compared for a write (RFC 9110 §8.8.3).
func isStrong(etag string) bool {
	return etag != "" && !strings.HasPrefix(etag, "W/")
}

// refusedWrite reports whether the BMC understood and would not, so that another
// way may work.
func refusedWrite(err error) bool {
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrUnauthorized) {
		return asError(err) != nil && asError(err).says("PropertyValueConflict")
	}
	status := statusOf(err)
	return status/100 == 4 || status == http.StatusInternalServerError || status == http.StatusNotImplemented
}

// keptIn reports whether what was read is what was asked for. The mode may differ:
// many machines show the one of the last boot.
func (o override) keptIn(b boot) bool {
	return b.Enabled != nil && b.Target != nil &&
		strings.EqualFold(*b.Enabled, o.Enabled) && strings.EqualFold(*b.Target, o.Target)
}

// empty reports whether there is no override at all.
func (b boot) empty() bool {
	return b.Enabled == nil && b.Target == nil && len(b.Targets) == 0
}

// idle reports whether the next boot is from where the boot order says.
func (b boot) idle() bool {
	return b.Enabled == nil || *b.Enabled == disabled || b.Target == nil || *b.Target == none
}

// String shows the override as people read it.
func (b boot) String() string {
	shown := func(s *string) string {
		if s == nil {
			return "nothing"
		}
		return clip(*s)
	}
	return shown(b.Enabled) + " " + shown(b.Target)
}

// ClearBootOverride makes the next boot one from where the boot order says. It
// writes only what is not so already: one GET in the usual case.
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
			uris = append(uris, last.uri) // what is written there may not have come to effect
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

// clearings are the ways to clear an override, in the order to try them.
func clearings(q quirk) []override {
	ways := []override{{Enabled: disabled, Target: none}, {Enabled: disabled}, {Enabled: disabled, Target: string(model.BootPXE)}}
	i := slices.IndexFunc(ways, func(o override) bool { return q.clearTarget != "" && o.Target == q.clearTarget })
	if i > 0 {
		ways[0], ways[i] = ways[i], ways[0]
	}
	return ways
}
