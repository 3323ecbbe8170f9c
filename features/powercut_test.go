package features

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ingot/bmc/sim"
	"ingot/reconcile/report"
)

// Limits of a power cut.
const (
	healsWithin = 2 * time.Minute // after the BMC is ready
	mostRefused = 4               // refused requests, before a BMC locks its account
)

// notSo are texts that would lead a person to change something that is as it should be.
var notSo = []string{
	"correct the BMCSecret", "check its BMCSecret", "correct user name", "replaced", "have been removed", "another machine",
}

// cutAllPower takes the mains away from all BMCs, their machines and Ingot. The BMCs start at a
// pace of their own: the first is ready after half a minute, the last after more than a minute.
func cutAllPower(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		for i, name := range sortedKeys(w.bmcs) {
			each := 3*time.Second + time.Duration(i)*100*time.Millisecond
			if err := w.bmcs[name].SetFault(sim.FaultPowerCut, sim.FaultArgs{Delay: each}); err != nil {
				return err
			}
		}
		for name, m := range w.machines {
			w.noted[name] = m.facts()
		}
		return nil
	})
}

// healed waits until each server is as it was, not later than healsWithin after its BMC is ready.
func healed(ctx context.Context) error {
	w := siteOf(ctx)
	ready := make(map[string]time.Time) // by BMC
	late := make(map[string]string)     // by server, what it waits for
	for {
		now := time.Now()
		for name, b := range w.bmcs {
			if _, known := ready[name]; !known && len(b.Faults()) == 0 {
				ready[name] = now
			}
		}
		why, err := w.waiting(ctx)
		if err != nil {
			return err
		}
		clear(late)
		for name, m := range w.machines {
			err, at := w.expect(name, m, facts{PowerOns: 1}), ready[m.bmc]
			if err == nil && why[name] == "" && why[m.bmc] == "" {
				continue
			}
			late[name] = fmt.Sprintf("%v; server: %s; BMC: %s", err, why[name], why[m.bmc])
			if !at.IsZero() && now.After(at.Add(healsWithin)) {
				return fmt.Errorf("%s is not as it was %v after its BMC is ready: %s", name, healsWithin, late[name])
			}
		}
		if len(late) == 0 && len(ready) == len(w.bmcs) {
			return w.noneLocked()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("%w: %v", ctx.Err(), late)
		}
	}
}

// waiting returns what each object that is not as it should be waits for, by name, unless that is
// not so.
func (w *site) waiting(ctx context.Context) (map[string]string, error) {
	why := make(map[string]string)
	for _, folder := range []report.Folder{report.BMCs, report.Servers, report.Claims} {
		all, err := w.ingot.objects(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			for _, wrong := range notSo {
				if strings.Contains(o.Why, wrong) {
					return nil, fmt.Errorf("%s %s is reported wrongly: %s", folder, o.Name, o.Why)
				}
			}
			why[o.Name] = o.Why
		}
	}
	return why, nil
}

func (w *site) noneLocked() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.bmcs)) {
		if n := w.bmcs[name].Refused(); n > mostRefused {
			errs = append(errs, fmt.Errorf("BMC %s refused %d requests, more than the %d before an account is locked", name, n, mostRefused))
		}
	}
	return errors.Join(errs...)
}
