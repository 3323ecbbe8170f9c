package features

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/reconcile/report"
)

func (w *site) heldBy(claim string) (machines []string, err error) {
	book, err := w.books()
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(w.machines) {
		if book.Disk(w.machines[name].UUID()) == claimName(claim) {
			machines = append(machines, name)
		}
	}
	return machines, nil
}

func heldOnce(ctx context.Context, claim string) error { return held(ctx, claim, false) }

// heldOnceOrUnknown is heldOnce, where a server that was bound and may have been
// installed when the store was lost is left alone until a person says which.
func heldOnceOrUnknown(ctx context.Context, claim string) error { return held(ctx, claim, true) }

func held(ctx context.Context, claim string, orUnknown bool) error {
	w := siteOf(ctx)
	err := w.eventuallyWithin(ctx, 2*patience, func(s summary) error {
		c, err := claimIn(s, claim)
		if err != nil {
			return err
		}
		on, err := w.heldBy(claim)
		if orUnknown && len(on) == 0 && strings.Contains(c.Why, "nothing shows whether it was installed") {
			return err
		}
		if err == nil && (c.State == report.ClaimUnbound || len(on) != 1) {
			err = fmt.Errorf("claim %s is %s: %s; the disks of %v hold it", claim, c.State, c.Why, on)
		}
		return err
	})
	if err != nil {
		return err
	}
	return heldNowhereElse(ctx)
}

func heldNowhereElse(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.marker(ctx, strings.Join(sortedKeys(w.machines), ",")); err != nil {
		return err
	}
	for claim := range w.claims {
		if on, err := w.heldBy(claim); err != nil || len(on) > 1 {
			return errors.Join(err, fmt.Errorf("the disks of %v hold claim %s", on, claim))
		}
	}
	return w.audit()
}

func runsFromDisk(ctx context.Context, name string) error {
	w := siteOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		boots := m.Boots()
		if len(boots) <= w.noted[name].Boots {
			return fmt.Errorf("%s has not booted", name)
		}
		if last := boots[len(boots)-1]; last.Outcome != sim.OutcomeDisk {
			return fmt.Errorf("%s booted from %s: %s", name, last.From, last.Outcome)
		}
		return diskKept(ctx, name)
	})
}

func runsImage(ctx context.Context, name, image string) error {
	m, err := siteOf(ctx).machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if d := m.Disk(); d == nil || d.Image != kernelDigest(image) {
			return fmt.Errorf("the disk of %s holds %+v", name, d)
		}
		return nil
	})
}

func diskEmpty(ctx context.Context, name string) error {
	m, err := siteOf(ctx).machine(name)
	if err == nil && m.Disk() != nil {
		err = fmt.Errorf("the disk of %s holds %+v", name, *m.Disk())
	}
	return err
}

func diskKept(ctx context.Context, name string) error {
	w := siteOf(ctx)
	m, err := w.machine(name)
	if err == nil && m.facts().Disk != w.noted[name].Disk {
		err = fmt.Errorf("the disk of %s holds %q, and held %q", name, m.facts().Disk, w.noted[name].Disk)
	}
	return err
}

func kernelDigest(image string) string {
	sum := sha256.Sum256([]byte(image + " kernel"))
	return "sha256:" + hex.EncodeToString(sum[:])
}
