package bmc

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ingot/model"
)

// SetIndicator has the light that tells a machine from its neighbours show led: Lit, Blinking
// or Off. It reads the machine first and writes only if it shows something else, then reads
// it back, and returns what it shows. What has LocationIndicatorActive alone is Lit where
// Blinking is asked for.
//
// ErrUnsupported: the machine has no indicator. ErrSettingNotKept: it refused, or shows
// something else all the same; the error says what. ErrOtherMachine, ErrNoIdentity: it is
// another machine than the one meant, as of Reset.
func (p *Pool) SetIndicator(ctx context.Context, t model.SystemTarget, led string) (model.Indicator, error) {
	var shown model.Indicator
	err := p.changeSystem(ctx, t, (*reader).identify, func(ctx context.Context, c *client, _ SystemState) (err error) {
		shown, err = c.setIndicator(ctx, t, led)
		return err
	})
	if err != nil {
		return model.Indicator{}, fmt.Errorf("set indicator %s: %w", led, err)
	}
	return shown, nil
}

// locator is what a system shows of its indicator: newer ones have Active, older ones LED,
// and many have both (DSP2046, ComputerSystem).
type locator struct {
	LED    string
	Active *bool
}

func (l locator) shown() model.Indicator {
	switch {
	case slices.Contains(indicatorLEDs, l.LED), l.Active == nil:
		return model.Indicator{LED: clip(l.LED)}
	case *l.Active:
		return model.Indicator{LED: model.IndicatorLit, OnOff: true}
	}
	return model.Indicator{LED: model.IndicatorOff, OnOff: true}
}

// indicatorLEDs are the values of IndicatorLED that say what there is to be seen.
var indicatorLEDs = []string{model.IndicatorLit, model.IndicatorBlinking, model.IndicatorOff}

// setIndicator writes to a system that was just read, by either property that it has.
func (c *client) setIndicator(ctx context.Context, t model.SystemTarget, led string) (model.Indicator, error) {
	now := c.state(t.URI).locator
	if shown := now.shown(); shown.Shows(led) {
		return shown, nil
	}
	var tried []string
	for _, w := range now.writes(led) {
		shown, err := c.tryIndicator(ctx, t, w)
		switch {
		case err == nil && shown.Shows(led):
			return shown, nil
		case err == nil:
			tried = append(tried, fmt.Sprintf("asked %s %v, read %s", w.property, w.value, cmp.Or(shown.LED, "nothing")))
		case !refusedWrite(err):
			return model.Indicator{}, err
		default:
			e := asError(err)
			tried = append(tried, fmt.Sprintf("asked %s %v, refused with %d %s", w.property, w.value, e.Status, printable(e.Detail, 100)))
		}
	}
	e := &Error{BMC: c.name, Method: http.MethodPatch, URI: t.URI, Kind: ErrSettingNotKept, Detail: strings.Join(tried, "; ")}
	if len(tried) == 0 {
		e.Kind, e.Detail = ErrUnsupported, "the machine has neither IndicatorLED nor LocationIndicatorActive"
	}
	return model.Indicator{}, e
}

// indicatorWrite is one form of switching an indicator.
type indicatorWrite struct {
	property string
	value    any
}

// writes returns the forms that the system may take, in the order to try them.
func (l locator) writes(led string) (all []indicatorWrite) {
	if l.LED != "" {
		all = append(all, indicatorWrite{"IndicatorLED", led})
	}
	if l.Active != nil {
		all = append(all, indicatorWrite{"LocationIndicatorActive", led != model.IndicatorOff})
	}
	return all
}

// tryIndicator writes one form and returns what is shown afterwards by the same property.
func (c *client) tryIndicator(ctx context.Context, t model.SystemTarget, w indicatorWrite) (model.Indicator, error) {
	if _, err := c.write(ctx, t.URI, t.URI, map[string]any{w.property: w.value}); err != nil {
		return model.Indicator{}, err
	}
	if _, err := c.identify(ctx, t); err != nil {
		return model.Indicator{}, err
	}
	now := c.state(t.URI).locator
	if w.property == "LocationIndicatorActive" && now.Active != nil {
		return locator{Active: now.Active}.shown(), nil
	}
	return now.shown(), nil
}
