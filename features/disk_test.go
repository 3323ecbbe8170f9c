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

func runsFromDisk(ctx context.Context, m *machine) error {
	return rig.Within(patience, func() error {
		boots := m.Boots()
		if len(boots) <= siteOf(ctx).noted[m.name].Boots {
			return fmt.Errorf("%s has not booted", m.name)
		}
		if last := boots[len(boots)-1]; last.Outcome != sim.OutcomeDisk {
			return fmt.Errorf("%s booted from %s: %s", m.name, last.From, last.Outcome)
		}
		return diskKept(ctx, m)
	})
}

func runsImage(_ context.Context, m *machine, image string) error {
	return rig.Within(patience, func() error {
		if d := m.Disk(); d == nil || d.Image != kernelDigest(image) {
			return fmt.Errorf("the disk of %s holds %+v", m.name, d)
		}
		return nil
	})
}

func diskEmpty(_ context.Context, m *machine) error {
	if m.Disk() != nil {
		return fmt.Errorf("the disk of %s holds %+v", m.name, *m.Disk())
	}
	return nil
}

func diskKept(ctx context.Context, m *machine) error {
	if now, before := m.facts().Disk, siteOf(ctx).noted[m.name].Disk; now != before {
		return fmt.Errorf("the disk of %s holds %q, and held %q", m.name, now, before)
	}
	return nil
}

func kernelDigest(image string) string {
	sum := sha256.Sum256([]byte(image + " kernel"))
	return "sha256:" + hex.EncodeToString(sum[:])
}
