package bmc

import (
	"errors"
	"fmt"
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

	// VariantContinuous is an override that stays until ClearBootOverride is called, for a
	// BMC that does not keep one for the next boot alone.
	VariantContinuous = "continuous"
)

// variant is one form of writing a boot override.
type variant struct {
	name string
	uri  string // of the resource that is patched and read back
	want override
}

type override struct {
	Enabled string `json:"BootSourceOverrideEnabled"`
	Target  string `json:"BootSourceOverrideTarget,omitempty"`
	Mode    string `json:"BootSourceOverrideMode,omitempty"`
}

// String shows the override for people.
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

func (s *systemState) bootTarget(method model.BootMethod) (string, error) {
	if s.boot.empty() && s.settings == "" && len(s.quirk.settings) == 0 {
		return "", errors.New("the machine has no boot override")
	}
	targets := s.boot.Targets
	if len(targets) == 0 || slices.Contains(targets, string(method)) {
		return string(method), nil
	}
	for _, other := range []model.BootMethod{model.BootPXE, model.BootUEFIHTTP} { // it may know only one of the two
		if method != model.BootDisk && slices.Contains(targets, string(other)) {
			return string(other), nil
		}
	}
	return "", fmt.Errorf("the machine allows only the boot targets %s", strings.Join(targets, ", "))
}

// variants returns the variants of the override, in the order to try them. None of them
// changes the boot mode: an operating system that was installed in one does not start in the
// other.
func (s *systemState) variants(uri, target string) []variant {
	plain := override{Enabled: once, Target: target}
	moded := plain
	moded.Mode = s.mode(target)

	first, other := plain, moded
	if s.quirk.alwaysMode {
		first, other = moded, plain
	}
	all := []variant{{variantDefault, uri, first}}
	if moded != plain {
		name := variantWithMode
		if other == plain {
			name = variantWithoutMode
		}
		all = append(all, variant{name, uri, other})
	}
	for _, at := range s.settingsURIs(uri) {
		all = append(all, variant{variantSettings, at, first})
	}
	if target != string(model.BootDisk) { // a continuous one would outlast the machine's tenant
		stays := first
		stays.Enabled = continuous
		all = append(all, variant{VariantContinuous, uri, stays})
	}
	promote(all, func(r variant) bool { return r.name == s.quirk.first })
	last := s.lastVariant(target)
	if last.name == "" {
		last = &s.variant // a variant that works for one target is likely to work for another
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

func promote(all []variant, wanted func(variant) bool) {
	i := slices.IndexFunc(all, wanted)
	if i <= 0 {
		return
	}
	r := all[i]
	copy(all[1:i+1], all[:i])
	all[0] = r
}

// mode is the boot mode that the machine shows, as it may be sent with an override of the
// target, or "" (B02): it is sent to BMCs that insist on it or forget it otherwise (B03).
func (s *systemState) mode(target string) string {
	if s.boot.Mode == nil || len(s.boot.Modes) > 0 && !slices.Contains(s.boot.Modes, *s.boot.Mode) {
		return ""
	}
	if *s.boot.Mode != uefi && target == string(model.BootUEFIHTTP) { // which contradicts it
		return ""
	}
	return *s.boot.Mode
}

// settingsURIs returns the URIs at which the settings object may be.
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

// keptIn reports whether the BMC shows the override that was asked for. The mode may
// differ, because many machines show that of the last boot.
func (o override) keptIn(b boot) bool {
	return b.Enabled != nil && b.Target != nil &&
		strings.EqualFold(*b.Enabled, o.Enabled) && strings.EqualFold(*b.Target, o.Target)
}

// shownIn reports whether what was asked for is what is shown: an override as it was asked
// for, or none where it was to be cleared.
func (o override) shownIn(b boot) bool {
	return o.keptIn(b) || o.Enabled == disabled && b.idle()
}

// mayBeLate reports whether what is shown is what was there before, so that what was asked
// for may yet come. A BMC that shows a third thing has made up its mind.
func (o override) mayBeLate(read, before boot) bool {
	return read.sameAs(before) || o.Enabled != disabled && read.idle()
}

func (b boot) empty() bool {
	return b.Enabled == nil && b.Target == nil && len(b.Targets) == 0
}

// sameAs reports whether both show the same override.
func (b boot) sameAs(other boot) bool { return b.String() == other.String() }

// idle reports whether the next boot follows the boot order.
func (b boot) idle() bool {
	return b.Enabled == nil || *b.Enabled == disabled || b.Target == nil || *b.Target == none
}

// String shows the override for people.
func (b boot) String() string {
	shown := func(s *string) string {
		if s == nil {
			return "nothing"
		}
		return clip(*s)
	}
	return shown(b.Enabled) + " " + shown(b.Target)
}
