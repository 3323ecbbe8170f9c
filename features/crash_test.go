package features

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/features/internal/rig"
	"ingot/reconcile/report"
)

func (w *site) edit(ctx context.Context, claim, what string) error {
	if what == "removed" {
		return removeClaims(ctx, claim)
	}
	if err := w.claim(map[string]string{"CLAIM": claim}); err != nil {
		return err
	}
	return w.commitClaims(claim)
}

func killOnce(ctx context.Context, claim, what, moment, without string) error {
	w := siteOf(ctx)
	if err := w.killAt(ctx, claim, what, moment); err != nil {
		return err
	}
	if without != "" {
		if err := w.emptyStore(); err != nil {
			return err
		}
	}
	return w.start()
}

func killUntilStranded(ctx context.Context, claim, what, moment string, m *machine) error {
	w := siteOf(ctx)
	before := m.stranded()
	if err := w.killAt(ctx, claim, what, moment); err != nil {
		return err
	}
	if err := rig.Within(patience, func() error {
		if m.stranded() == before {
			return fmt.Errorf("%s has not given up", m.name)
		}
		return nil
	}); err != nil {
		return err
	}
	return w.start()
}

func (w *site) killAt(ctx context.Context, claim, what, moment string) error {
	await := moments[moment]
	if await == nil {
		return fmt.Errorf("nobody knows when %s", moment)
	}
	killed := await(w)
	if err := w.edit(ctx, claim, what); err != nil {
		return err
	}
	var err error
	select {
	case err = <-killed:
	case <-time.After(2 * patience):
		err = errors.New("that does not come to pass")
	}
	if err != nil {
		return fmt.Errorf("wait until %s: %w", moment, err)
	}
	return nil
}

// moments are the moments at which Ingot can be killed. Each prepares for that,
// and returns what says when it was done.
var moments = map[string]func(*site) <-chan error{
	"its binding is stored": shown(func(s summary) bool {
		return len(s.Claims) == 1 && s.Claims[0].State != report.ClaimUnbound
	}),
	"power-on is asked for":      asked("On", "ForceOn"),
	"the boot script is served":  served((*site).bootGate, "/ipxe/"),
	"Ignition is served":         served((*site).bootGate, "/ignition/"),
	"the boot state is reported": served((*site).reportGate, "/bootstate"),
	"it is Booted": shown(func(s summary) bool {
		return len(s.Claims) == 1 && s.Claims[0].State == report.ClaimBooted
	}),
	"the wipe is reported": served((*site).reportGate, "/wipe"),
}

func (w *site) bootGate() *gate   { return w.boot }
func (w *site) reportGate() *gate { return w.report }

// served is the moment when Ingot, or a registry, has answered a request for a
// path, and who made it does not have the answer yet.
func served(by func(*site) *gate, path string) func(*site) <-chan error {
	return func(w *site) <-chan error {
		killed := make(chan error, 1)
		var once sync.Once
		by(w).onPass(func(e exchange) {
			if strings.Contains(e.path, path) {
				once.Do(func() { killed <- w.kill() })
			}
		})
		return killed
	}
}

// asked is the moment when a BMC was asked for one of some resets: of whichever machine, for
// a claim may be given any that is free.
func asked(types ...string) func(*site) <-chan error {
	return func(w *site) <-chan error {
		resets := func() (n int) {
			for _, m := range w.machines {
				for _, r := range m.Resets() {
					if slices.Contains(types, r.Type) {
						n++
					}
				}
			}
			return n
		}
		before := resets()
		return w.killWhen(func() bool { return resets() > before })
	}
}

func shown(is func(summary) bool) func(*site) <-chan error {
	return func(w *site) <-chan error {
		ingot := w.ingot
		return w.killWhen(func() bool {
			s, err := ingot.summary(context.Background())
			return err == nil && is(s)
		})
	}
}

func (w *site) killWhen(seen func() bool) <-chan error {
	killed := make(chan error, 1)
	go func() {
		for end := time.Now().Add(patience); !seen(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				killed <- errors.New("nothing of that was seen")
				return
			}
		}
		killed <- w.kill()
	}()
	return killed
}

// killAtRandom kills Ingot at moments that only the seed knows.
func killAtRandom(ctx context.Context, claim, what string, times int) error {
	if err := siteOf(ctx).edit(ctx, claim, what); err != nil {
		return err
	}
	return killAgain(ctx, times)
}

func killAmongMany(ctx context.Context, claims, times int) error {
	if err := commitManyClaims(ctx, claims); err != nil {
		return err
	}
	return killAgain(ctx, times)
}

func killAgain(ctx context.Context, times int) error {
	chance := rand.New(rand.NewPCG(uint64(siteOf(ctx).seed), 0))
	for range times {
		time.Sleep(time.Duration(chance.IntN(400)) * time.Millisecond)
		if err := killIngot(ctx); err != nil {
			return err
		}
	}
	return nil
}
