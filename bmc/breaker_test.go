package bmc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// A directory's account is one for all BMCs, and is locked after a few wrong passwords.
func TestAWrongPasswordIsTriedOnFewBMCs(t *testing.T) {
	const bmcs = 30
	// ask asks all BMCs at once, and returns how often they were logged in to and which errors came.
	ask := func(p *Pool, fakes []*fake) (logins int, errs []error) {
		var all sync.WaitGroup
		errs = make([]error, bmcs)
		for i, f := range fakes {
			s := f.system1()
			s.BMC.Name = model.BMCName(fmt.Sprint("bmc-", i))
			all.Go(func() { _, errs[i] = p.Power(context.Background(), s) })
		}
		all.Wait()
		for _, f := range fakes {
			logins += counted(f.requests(), login)
		}
		return logins, errs
	}
	rack := func(t *testing.T) (*Pool, *clock, []*fake) {
		now := newClock()
		var fakes []*fake
		for range bmcs {
			fakes = append(fakes, newFake(t, plain))
		}
		return newPool(t, Options{Clock: now.Now}), now, fakes
	}
	change := func(fakes []*fake) {
		for _, f := range fakes {
			f.change(func() { f.password = "changed"; clear(f.sessions) })
		}
	}
	t.Run("that was never right", func(t *testing.T) {
		p, _, fakes := rack(t)
		change(fakes)
		if n, _ := ask(p, fakes); n != 4 {
			t.Errorf("%d logins, want 4", n)
		}
	})
	t.Run("that was right before", func(t *testing.T) {
		p, now, fakes := rack(t)
		if n, errs := ask(p, fakes); n != bmcs || errors.Join(errs...) != nil {
			t.Fatalf("%d logins: %v", n, errors.Join(errs...))
		}
		now.add(breakFor)
		change(fakes[1:])
		if n, errs := ask(p, fakes); n != 2*(bmcs-1) || errs[0] != nil {
			t.Errorf("%d logins, want 2 to each BMC that refuses; of the BMC that has a session: %v", n, errs[0])
		}
		now.add(model.RefusedPause)
		if n, _ := ask(p, fakes); n != bmcs-1 {
			t.Errorf("%d logins after %v, want one to each", n, model.RefusedPause)
		}
		for _, f := range fakes {
			f.change(func() { f.password = password })
		}
		now.add(model.RefusedPause)
		if n, errs := ask(p, fakes); n != bmcs-1 || errors.Join(errs...) != nil {
			t.Errorf("%d logins once it is right again: %v", n, errors.Join(errs...))
		}
	})
	t.Run("of the first BMC alone", func(t *testing.T) {
		p, _, fakes := rack(t)
		change(fakes[:1])
		first := fakes[0].system1()
		first.BMC.Name = "bmc-0"
		if _, err := p.Power(t.Context(), first); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		if n, errs := ask(p, fakes); n != 2+bmcs-1 || errors.Join(errs[1:]...) != nil {
			t.Errorf("%d logins: %v", n, errors.Join(errs[1:]...))
		}
	})
	t.Run("of one BMC alone", func(t *testing.T) {
		p, now, fakes := rack(t)
		ask(p, fakes)
		now.add(breakFor)
		change(fakes[:1])
		fakes[1].change(func() { clear(fakes[1].sessions) })
		n, errs := ask(p, fakes)
		if n != 3 || !errors.Is(errs[0], ErrRefusedForNow) || errors.Join(errs[1:]...) != nil {
			t.Errorf("%d logins, want 3: %v", n, errors.Join(errs...))
		}
	})
	t.Run("does not wait for a BMC that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(time.Now)
			must.Get(b.turn(t.Context(), "d"))(t)
			begun := time.Now()
			if _, err := b.turn(t.Context(), "d"); err != nil || time.Since(begun) != turnLimit {
				t.Errorf("waited %v, %v", time.Since(begun), err)
			}
		})
	})
}
