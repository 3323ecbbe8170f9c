package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
)

// systemCheck is what is known of one system while it is checked.
type systemCheck struct {
	*checkup
	fact   model.SystemFact
	target model.SystemTarget
}

func (k *checkup) system(ctx context.Context, fact model.SystemFact) {
	s := &systemCheck{k, fact, model.SystemTarget{BMC: k.opts.Target, URI: fact.URI, UUID: fact.UUID, Board: fact.Board}}
	if k.report.BMC.Fingerprint != "" && k.opts.CA == nil {
		s.target.BMC.Fingerprint = k.report.BMC.Fingerprint
	}
	s.identity()
	s.inventory(ctx)
	s.power(ctx)
	s.boot()
	s.indicator()
	if k.opts.Write && ctx.Err() == nil {
		s.writes(ctx)
	}
}

func (s *systemCheck) note(item CheckItem) {
	item.System = s.fact.URI
	s.add(item)
}

// identity checks whether the machine can be identified.
func (s *systemCheck) identity() {
	item := CheckItem{Check: "identity", Result: CheckWorks, Needed: true, Detail: "UUID " + s.fact.UUID}
	if s.fact.UUID == "" {
		item.Detail = strings.TrimSpace("no UUID; serial number " + cmp.Or(s.fact.Board.SerialNumber, "unknown") + " " + s.fact.Board.Model)
	}
	switch reason := s.report.BMC.Unidentified(s.fact); reason {
	case "":
	case model.ReasonUUIDMissing: // Git can give it one
		item.Result = CheckPartly
		item.because(reason)
	default:
		item.Result = CheckFails
		item.because(reason)
	}
	s.note(item)
}

// inventory checks whether the machine's parts can be read, and which quirks it has.
func (s *systemCheck) inventory(ctx context.Context) {
	facts, err := s.pool.Inventory(ctx, s.target)
	if err != nil {
		item := CheckItem{Check: "inventory", Needed: true}
		item.failed(err)
		s.note(item)
		return
	}
	inv := facts.Inventory
	item := CheckItem{Check: "inventory", Result: CheckWorks, Needed: true, Detail: partsOf(inv)}
	if len(inv.MACs()) == 0 {
		item.Result = CheckPartly
		item.Advice = "the BMC shows no MAC address: name them in Git (annotation ingot/mac-addresses of the Server), or firmware's requests are to tell them"
	}
	s.note(item)
	for _, problem := range inv.Problems {
		s.note(CheckItem{Check: "remark", Result: CheckPartly, Detail: problem})
	}
	for _, row := range rowsOf(inv.Manufacturer, inv.Model, s.report.BMC.FirmwareVersion) {
		s.note(CheckItem{Check: "quirk", Result: CheckWorks, Detail: cmp.Or(row.manufacturer, row.model) + ": " + row.behaviour})
	}
}

func partsOf(inv *model.Inventory) string {
	drives, volumes := 0, 0
	for _, st := range inv.Storages {
		drives, volumes = drives+len(st.Drives), volumes+len(st.Volumes)
	}
	return fmt.Sprintf("%s; processors %d, memory %d GiB in %d modules, drives %d, volumes %d, MAC addresses %d, BIOS %s",
		joinOr(filled(inv.Manufacturer, inv.Model, inv.SerialNumber), "it says nothing of itself"),
		len(inv.Processors), inv.MemoryBytes>>30, len(inv.Memory), drives, volumes, len(inv.MACs()), cmp.Or(inv.BIOSVersion, "unknown"))
}

// power checks whether the machine's power can be read and switched. It is not switched.
func (s *systemCheck) power(ctx context.Context) {
	power, err := s.pool.Power(ctx, s.target)
	item := CheckItem{Check: "power state", Result: CheckWorks, Needed: true, Detail: string(power)}
	switch {
	case err != nil:
		item.failed(err)
	case power == model.PowerUnknown:
		item.Result = CheckFails
		item.because(model.ReasonPowerStateUnknown)
	case !power.Settled():
		item.Result, item.Advice = CheckPartly, "it is on its way: check again in a minute"
	}
	s.note(item)

	state, err := s.client.resettable(ctx, s.fact.URI)
	item = CheckItem{Check: "reset types", Result: CheckWorks, Needed: true, Detail: joinOr(state.resets, "the BMC does not list them: they are tried")}
	lacks := func(kind model.ResetKind) bool { return len(resetTypes(kind, state.resets)) == 0 }
	switch {
	case err != nil:
		item.failed(err)
	case lacks(model.ResetOn), lacks(model.ResetForceOff) && lacks(model.ResetGracefulOff):
		item.Result = CheckFails
		item.because(model.ReasonUnsupported)
	case lacks(model.ResetForceOff):
		item.Result, item.Detail = CheckPartly, item.Detail+"; no ForceOff, so a system that ignores the request to shut down stays on"
		item.because(model.ReasonUnsupported)
	case lacks(model.ResetGracefulOff):
		item.Result, item.Detail = CheckPartly, item.Detail+"; no graceful shutdown, so the machine is forced off at once"
		item.because(model.ReasonUnsupported)
	}
	s.note(item)
}

// boot checks whether the machine's next boot can be chosen.
func (s *systemCheck) boot() {
	state := s.client.state(s.fact.URI)
	item := CheckItem{Check: "boot override", Result: CheckWorks, Needed: true}
	targets, modes := clipped(state.boot.Targets), clipped(state.boot.Modes)
	item.Detail = fmt.Sprintf("targets %s; now %s", joinOr(targets, "not listed: they are tried"), state.boot)
	if state.boot.Mode != nil {
		item.Detail += fmt.Sprintf("; mode %s of %s", cmp.Or(clip(*state.boot.Mode), "nothing"), joinOr(modes, "any"))
	}
	if _, err := state.bootTarget(model.BootPXE); err != nil {
		item.Result, item.Detail = CheckFails, err.Error()
		item.because(model.ReasonNoNetworkBoot)
	}
	s.note(item)
	if n := len(state.boot.Order); n > 0 {
		s.note(CheckItem{Check: "boot order", Result: CheckWorks, Detail: fmt.Sprintf("%d: %s", n, joinOr(clipped(state.boot.Order), ""))})
	} else {
		s.note(CheckItem{Check: "boot order", Result: CheckNone, Detail: "spec.bootOrder of a Server has no effect on it"})
	}
}

// indicator checks whether the machine has a light to find it by.
func (s *systemCheck) indicator() {
	shown := s.client.state(s.fact.URI).locator.shown()
	s.note(CheckItem{Check: "indicator LED", Result: resultOf(shown.LED != ""), Detail: shown.LED})
}

// writes has what can be put back be changed: the indicator and the boot override.
func (s *systemCheck) writes(ctx context.Context) {
	s.toggleIndicator(ctx)
	if ctx.Err() == nil {
		s.setOverride(ctx)
	}
}

// toggleIndicator switches the indicator and puts it back, even after ctx has ended.
func (s *systemCheck) toggleIndicator(ctx context.Context) {
	before := s.client.state(s.fact.URI).locator.shown()
	if !slices.Contains([]string{model.IndicatorOff, model.IndicatorLit, model.IndicatorBlinking}, before.LED) {
		return // such as Unknown, which cannot be put back
	}
	to := model.IndicatorLit
	if before.LED == model.IndicatorLit {
		to = model.IndicatorOff
	}
	item := CheckItem{Check: "write indicator LED", Result: CheckWorks, Detail: fmt.Sprintf("%s, then %s again", to, before.LED)}
	_, err := s.pool.SetIndicator(ctx, s.target, to)
	if err == nil || !nothingDone(err) {
		put, cancel := s.puttingBack(ctx)
		defer cancel()
		if _, back := s.pool.SetIndicator(put, s.target, before.LED); back != nil {
			item.Advice = "switch it back to " + before.LED + " by hand"
			err = errors.Join(err, back)
		}
	}
	item.failed(err)
	s.note(item)
}

// setOverride sets the boot override as for an install, and clears it, even after ctx has
// ended. What was set by somebody is left alone.
func (s *systemCheck) setOverride(ctx context.Context) {
	item := CheckItem{Check: "write boot override", Result: CheckWorks, Needed: true}
	if now := s.client.state(s.fact.URI).boot; !now.idle() {
		item.Result, item.Detail = CheckPartly, fmt.Sprintf("not tried: somebody set %s, which is left as it is", now)
		s.note(item)
		return
	}
	variant, err := s.pool.BootOnce(ctx, s.target, model.BootPXE)
	item.Detail = fmt.Sprintf("kept as %s, then cleared", variant)
	if variant == VariantContinuous {
		item.Result, item.Advice = CheckPartly, "it keeps none for the next boot alone: Ingot clears it once the server has booted"
	}
	if err == nil || !nothingDone(err) {
		put, cancel := s.puttingBack(ctx)
		defer cancel()
		if back := s.pool.ClearBootOverride(put, s.target); back != nil {
			item.Advice = "clear the boot override by hand, or the machine's next boot is from the network"
			err = errors.Join(err, back)
		}
	}
	item.failed(err)
	s.note(item)
}

// puttingBack is for what has to be done even after ctx has ended.
func (s *systemCheck) puttingBack(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*s.client.opts.Timeout)
}

// nothingDone reports whether a call that failed is certain to have changed nothing.
func nothingDone(err error) bool {
	_, ok := errors.AsType[*notCarriedOut](err)
	return ok
}
