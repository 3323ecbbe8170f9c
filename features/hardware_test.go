package features

import (
	"context"
	"fmt"

	"ingot/features/internal/rig"
)

func indicatorIs(ctx context.Context, name, led string) error {
	m, err := siteOf(ctx).machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if is := m.Indicator(); is != led {
			return fmt.Errorf("the indicator of %s is %s", name, is)
		}
		return nil
	})
}

func bootsFirst(ctx context.Context, name, from string) error {
	m, err := siteOf(ctx).machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if m.NetworkFirst() != (from == "network") {
			return fmt.Errorf("the firmware of %s does not boot from the %s first", name, from)
		}
		return nil
	})
}
