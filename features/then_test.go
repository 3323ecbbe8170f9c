package features

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

func serversAre(ctx context.Context, list, state string) error {
	return siteOf(ctx).eventually(ctx, func(s summary) error {
		return forEach(list, func(name string) error { return serverIn(s, siteOf(ctx).called(name), state) })
	})
}

func poweredIs(_ context.Context, m *machine, power string) error {
	return rig.Within(patience, func() error {
		if p := m.Power(); string(p) != power {
			return fmt.Errorf("%s is powered %s", m.name, p)
		}
		return nil
	})
}

func inError(ctx context.Context, name string) error {
	if err := serversAre(ctx, name, "Error"); err != nil {
		return err
	}
	w := siteOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	seen := w.report.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && e.disk != "" })
	if len(seen) == 0 {
		return fmt.Errorf("the probe of %s never named a disk", name)
	}
	return w.statusHolds("servers/"+name+".yaml", "(serial "+seen[0].disk)
}

// wipedAgain waits for the report of a second wipe, which changes nothing.
func wipedAgain(ctx context.Context, m *machine) error {
	err := rig.Within(patience, func() error {
		seen := siteOf(ctx).report.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && strings.HasSuffix(e.path, "/wipe") })
		if len(seen) < 2 {
			return fmt.Errorf("%s reported %d wipes", m.name, len(seen))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return inError(ctx, m.name)
}

func claimIsOn(ctx context.Context, claim, state, server string) error {
	return siteOf(ctx).eventually(ctx, func(s summary) error {
		c, err := claimIn(s, claim)
		if err != nil {
			return err
		}
		if string(c.Server) != siteOf(ctx).called(server) || string(c.State) != state {
			return fmt.Errorf("claim %s is %s on %q: %s", claim, c.State, c.Server, c.Why)
		}
		return nil
	})
}

func claimIn(s summary, name string) (objectSummary, error) {
	for _, c := range s.Claims {
		if c.Name == string(claimName(name)) {
			return c, nil
		}
	}
	return objectSummary{}, fmt.Errorf("there is no claim %s", name)
}

func claimUnbound(ctx context.Context, claim string) error {
	return claimIsOn(ctx, claim, "Unbound", "")
}

// eachBooted looks at claims and machines alike: each claim has one server, and
// each server was installed once.
func eachBooted(ctx context.Context, n int) error {
	w := siteOf(ctx)
	taken := make(map[model.ServerName]string)
	err := rig.Within(3*patience, func() error {
		s, err := w.ingot.summary(ctx)
		if err != nil {
			return err
		}
		clear(taken)
		booted := 0
		for _, c := range s.Claims {
			if c.State == report.ClaimBooted {
				taken[c.Server] = c.Name
				booted++
			}
		}
		if booted < n || len(taken) < n {
			return fmt.Errorf("%d of %d claims are Booted, on %d servers", booted, n, len(taken))
		}
		return nil
	})
	for name, m := range w.machines {
		err = errors.Join(err, w.expect(name, m, facts{PowerOns: 1 + m.stranded(), Installs: 1}))
	}
	return err
}

// leftInPeace watches a BMC for as long as another takes to be asked again.
func loggedOut(ctx context.Context, name string) error {
	return rig.Within(patience, func() error {
		if n := siteOf(ctx).bmcs[name].Sessions(); n > 0 {
			return fmt.Errorf("BMC %s has %d sessions", name, n)
		}
		return nil
	})
}

func leftInPeace(ctx context.Context, name string) error {
	w := siteOf(ctx)
	before := w.bmcs[name].Requests()
	var others []string
	for b := range w.bmcs {
		if b != name {
			others = append(others, b)
		}
	}
	if err := w.lookedAt(others...); err != nil {
		return err
	}
	if n := w.bmcs[name].Requests() - before; n > 0 {
		return fmt.Errorf("BMC %s was asked %d times more", name, n)
	}
	return nil
}

func refusedWith(ctx context.Context, code int) error {
	if got := siteOf(ctx).refused; got != code {
		return fmt.Errorf("the answer was %d, not %d", got, code)
	}
	return nil
}

func reportsRefused(ctx context.Context, m *machine) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		given := w.boot.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && e.report != "" })
		refused := w.report.exchanges(func(e exchange) bool {
			return e.code == 403 && slices.ContainsFunc(given, func(g exchange) bool { return g.report == e.token })
		})
		if len(refused) < 2 {
			return fmt.Errorf("%d reports of %s were refused", len(refused), m.name)
		}
		return nil
	})
}

func fetchedOnce(ctx context.Context) error {
	fetched := make(map[string]int)
	for _, e := range siteOf(ctx).imagesSeen.exchanges(func(e exchange) bool { return strings.Contains(e.path, "/blobs/") }) {
		fetched[e.path]++
	}
	if len(fetched) == 0 {
		return errors.New("no layer was fetched")
	}
	for path, n := range fetched {
		if n > 1 {
			return fmt.Errorf("%s was fetched %d times", path, n)
		}
	}
	return nil
}

func claimNotUnbound(ctx context.Context, claim string) error {
	return siteOf(ctx).eventually(ctx, func(s summary) error {
		c, err := claimIn(s, claim)
		if err == nil && c.State == report.ClaimUnbound {
			err = fmt.Errorf("claim %s is Unbound: %s", claim, c.Why)
		}
		return err
	})
}

func indicatorIs(_ context.Context, m *machine, led string) error {
	return rig.Within(patience, func() error {
		if is := m.Indicator(); is != led {
			return fmt.Errorf("the indicator of %s is %s", m.name, is)
		}
		return nil
	})
}

func bootsFirst(_ context.Context, m *machine, from string) error {
	return rig.Within(patience, func() error {
		if m.NetworkFirst() != (from == "network") {
			return fmt.Errorf("the firmware of %s does not boot from the %s first", m.name, from)
		}
		return nil
	})
}
