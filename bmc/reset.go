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

// Reset asks for a power change by one POST and does not wait for its effect: that
// the BMC accepted it is enough, unless it does so as a task that fails within seconds. It reads the machine first, and asks for nothing if that
// is another one than is meant (ErrOtherMachine, ErrNoIdentity), or in another power state
// than from, unless that is "" (ErrOtherPower), or is to be On and is.
// A machine that already is Off as asked is no error. ErrUnsupported: the machine allows
// no reset type that does this; for ResetGracefulOff the next step is ResetForceOff.
// ErrPowerOnRefused: the BMC refused a power-on, or its task failed.
// ErrBusy: it is about to change; see RetryAfter. After an error for which NotCarriedOut
// is false the machine may have been reset. No call resets it twice.
func (p *Pool) Reset(ctx context.Context, t model.SystemTarget, kind model.ResetKind, from model.Power) (model.ResetResult, error) {
	var r model.ResetResult
	err := p.changeSystem(ctx, t, (*reader).identityOfWrite, func(ctx context.Context, c *client, s SystemState) (err error) {
		r.Before = s.Power
		switch {
		case from != "" && s.Power != from:
			return c.notMeant(t.URI, ErrOtherPower, fmt.Sprintf("it is %s, not %s", s.Power, from))
		case kind == model.ResetOn && s.Power == model.PowerOn:
			return nil
		}
		r.Did, err = c.reset(ctx, t.URI, kind, s.Power)
		switch e := asError(err); {
		case err == nil:
			c.learn(t.URI, func(s *systemState) { s.armed = false })
		case e != nil && e.Kind == nil && kind == model.ResetOn && (e.Status == http.StatusAccepted || refusesChange(e.Status)):
			e.Kind = ErrPowerOnRefused
		}
		return err
	})
	if errors.Is(err, ErrUnsupported) && kind != model.ResetGracefulOff { // which is forced next
		p.disarm(ctx, t)
	}
	if err != nil {
		return r, fmt.Errorf("reset %s: %w", kind, err)
	}
	return r, nil
}

// disarm clears the override that was set for a reset which the machine does not support.
func (p *Pool) disarm(ctx context.Context, t model.SystemTarget) {
	c, err := p.client(ctx, t.BMC)
	if err != nil || !c.state(t.URI).armed {
		return
	}
	if err := p.ClearBootOverride(ctx, t); err != nil {
		c.log.Warn("boot override stays set", "system", t.URI, "err", err)
		return
	}
	c.learn(t.URI, func(s *systemState) { s.armed = false })
}

// reset asks a machine whose power is known for a change, and returns what for.
func (c *client) reset(ctx context.Context, uri string, kind model.ResetKind, power model.Power) (model.ResetKind, error) {
	s, err := c.resettable(ctx, uri)
	if err != nil {
		return "", err
	}
	types := resetTypes(kind, s.resets)
	if s.resetURI == "" || len(types) == 0 {
		return "", &Error{BMC: c.name, Method: http.MethodPost, URI: uri, Kind: ErrUnsupported, Detail: "of reset types the machine allows only: " + strings.Join(s.resets, ", ")}
	}
	if types[0] == pushButton && power == wanted(kind) {
		return kind, nil // it is there, and a press would lead away
	}
	if types[0] == pushButton && !power.Settled() {
		return "", &Error{BMC: c.name, Method: http.MethodPost, URI: uri, Kind: ErrBusy, Detail: fmt.Sprintf("the power button is not pressed while the machine is %s", power)}
	}
	for _, resetType := range types {
		err = c.postReset(ctx, s.resetURI, resetType)
		if !unknownResetType(err) {
			break
		}
	}
	// The effect comes in its own time, whatever the ETag says.
	c.learn(uri, func(s *systemState) { s.moved, s.seen = c.opts.Clock(), sighting{} })
	if status := statusOf(err); status == http.StatusBadRequest || status == http.StatusConflict {
		return c.afterRefusedReset(ctx, uri, s, kind, err)
	}
	return kind, err
}

func (c *client) postReset(ctx context.Context, uri, resetType string) error {
	a, err := c.do(ctx, http.MethodPost, uri, map[string]string{"ResetType": resetType})
	if err != nil {
		return err
	}
	if failure := c.followTask(ctx, a); failure != "" {
		return &Error{BMC: c.name, Method: http.MethodPost, URI: uri, Status: a.status, Detail: failure}
	}
	return nil
}

// afterRefusedReset reads the machine to find why it refused: it may be there
// already, or be off and cannot be restarted (B11). Then it is switched on instead.
func (c *client) afterRefusedReset(ctx context.Context, uri string, s systemState, kind model.ResetKind, refusal error) (model.ResetKind, error) {
	power, err := c.power(ctx, uri)
	if err != nil {
		return kind, errors.Join(refusal, err)
	}
	switch {
	case power == wanted(kind):
		return kind, nil
	case power == model.PowerOff && wanted(kind) == "":
		types := resetTypes(model.ResetOn, s.resets)
		if len(types) == 0 {
			return kind, refusal
		}
		return model.ResetOn, c.postReset(ctx, s.resetURI, types[0])
	}
	return kind, refusal
}

// wanted is the power state that a reset leads to for good, or "" for restarts.
func wanted(kind model.ResetKind) model.Power {
	switch kind {
	case model.ResetOn:
		return model.PowerOn
	case model.ResetGracefulOff, model.ResetForceOff:
		return model.PowerOff
	case model.ResetGracefulRestart, model.ResetForceRestart, model.ResetPowerCycle:
	}
	return ""
}

// pushButton is a press of the power button, which an operating system takes as
// the wish to shut down, and a machine that is off as the wish to start.
const pushButton = string(schemas.PushPowerButtonResetType)

// resetChains are the reset types that do what a kind asks for, the best first.
// None does more than is asked for: nothing graceful ends in force.
var resetChains = map[model.ResetKind][]schemas.ResetType{
	model.ResetOn:              {schemas.OnResetType, schemas.ForceOnResetType, schemas.PushPowerButtonResetType},
	model.ResetGracefulOff:     {schemas.GracefulShutdownResetType, crayOff, schemas.PushPowerButtonResetType},
	model.ResetForceOff:        {schemas.ForceOffResetType},
	model.ResetGracefulRestart: {schemas.GracefulRestartResetType},
	model.ResetForceRestart:    {schemas.ForceRestartResetType, schemas.PowerCycleResetType, schemas.GracefulRestartResetType},
	model.ResetPowerCycle:      {schemas.PowerCycleResetType, schemas.ForceRestartResetType},
}

// crayOff is in no schema; nodes of Cray EX have it in place of GracefulShutdown.
const crayOff schemas.ResetType = "Off"

// mayPress reports whether a change of power may press the power button.
func (s *systemState) mayPress() bool {
	return s.resets == nil || slices.ContainsFunc([]model.ResetKind{model.ResetOn, model.ResetGracefulOff}, func(kind model.ResetKind) bool {
		return slices.Equal(resetTypes(kind, s.resets), []string{pushButton})
	})
}

// resetTypes returns the types to try for kind: the one to use of those that are
// allowed, or all when the machine does not say what is.
func resetTypes(kind model.ResetKind, allowed []string) []string {
	var types []string
	for _, t := range resetChains[kind] {
		switch {
		case slices.Contains(allowed, string(t)):
			return []string{string(t)}
		case len(allowed) == 0 && t != schemas.PushPowerButtonResetType:
			types = append(types, string(t))
		}
	}
	return types
}

// knownResets returns the allowed types. A firmware of Supermicro's joins two of
// them for want of a comma: GracefulShutdownGracefulRestart.
func knownResets(allowed []string) []string {
	types := []string{
		"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn",
		"PushPowerButton", "PowerCycle", "Suspend", "Pause", "Resume", "FullPowerCycle", "Off",
	}
	var known []string
	for _, value := range allowed {
		if slices.Contains(types, value) {
			known = append(known, value)
			continue
		}
		for _, first := range types {
			second, ok := strings.CutPrefix(value, first)
			if ok && slices.Contains(types, second) {
				known = append(known, first, second)
			}
		}
	}
	return known
}

func unknownResetType(err error) bool {
	e := asError(err)
	return e != nil && refusesChange(e.Status) && e.says("ActionParameterNotSupported", "ActionParameterValueNotInList",
		"ActionParameterValueFormatError", "PropertyValueNotInList", "ActionParameterUnknown", "ActionParameterValueTypeError")
}

// resettable returns the system's state with the reset types in it. Newer services
// describe them elsewhere (DSP0266 §7.13.2); what cannot be read there is as not
// said: then types are tried.
func (c *reader) resettable(ctx context.Context, uri string) (systemState, error) {
	s, err := c.known(ctx, uri)
	if err != nil || s.resets != nil {
		return s, err
	}
	types := []string{}
	if s.resetInfo != "" {
		allowed, err := c.actionInfo(ctx, s.resetInfo)
		switch {
		case err != nil && final(err):
			return s, err
		case err != nil: // and asked for again, because a BMC that starts does not show it yet
			s.resets = types
			return s, nil
		}
		types = append(types, knownResets(allowed)...)
	}
	c.learn(uri, func(s *systemState) { s.resets = types })
	return c.state(uri), nil
}

// actionInfo returns the allowed values of the parameter ResetType.
func (c *reader) actionInfo(ctx context.Context, uri string) ([]string, error) {
	a, err := c.get(ctx, uri)
	if err != nil {
		return nil, err
	}
	info, _, err := decode[schemas.ActionInfo](a.body)
	if err != nil {
		return nil, c.unreadable(uri, err)
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			return p.AllowableValues, nil
		}
	}
	return nil, nil
}
