package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// counted counts how often a world is looked at: each plan once, each poll once.
type counted struct {
	*loopWorld
	plans, polls atomic.Int64
}

func (c *counted) Observed() *model.Observed {
	c.plans.Add(1)
	return c.loopWorld.Observed()
}

func (c *counted) Power(ctx context.Context, t model.SystemTarget) (model.MachineState, error) {
	c.polls.Add(1)
	return c.loopWorld.Power(ctx, t)
}

func TestAnIdleFleetIsPolledByFewPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers, minutes = 300, 10
		w := newLoopWorld(t, servers)
		w.limit = servers
		w.start()
		w.expect(5*time.Minute, servers-1, "Available Off")
		time.Sleep(5 * time.Minute)
		w.stop()

		c := &counted{loopWorld: w}
		ctx, cancel := context.WithCancel(t.Context())
		loop := NewLoop(Options{Desired: w.Desired, DesiredChanged: w.changed, Store: c, BMCs: c, Boots: w, Policy: w.policy()})
		ended := make(chan error, 1)
		go func() { ended <- loop.Run(ctx, 2*time.Minute) }()
		time.Sleep(5 * time.Minute)
		plans, polls := c.plans.Load(), c.polls.Load()
		time.Sleep(minutes * time.Minute)
		plans, polls = c.plans.Load()-plans, c.polls.Load()-polls
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if polls < servers*minutes*9/10 || polls > servers*minutes*11/10 {
			t.Errorf("%d polls of %d servers in %d minutes, want one a minute of each", polls, servers, minutes)
		}
		if plans > 3*64*minutes {
			t.Errorf("%d plans for %d polls, want at most %d", plans, polls, 3*64*minutes)
		}
		t.Logf("%d plans for %d polls", plans, polls)
	})
}

// slow is a world whose BMCs take long to say what their power state is.
type slow struct {
	*loopWorld
	polled chan struct{}
}

func (s slow) Power(ctx context.Context, t model.SystemTarget) (model.MachineState, error) {
	signal(s.polled)
	time.Sleep(10 * time.Second)
	return s.loopWorld.Power(ctx, t)
}

func TestAClaimThatComesDuringAPollIsServedRightAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.start()
		w.expect(time.Minute, 0, "Available Off")
		w.stop()

		s := slow{w, make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		loop := NewLoop(Options{Desired: w.Desired, DesiredChanged: w.changed, Store: w, BMCs: s, Boots: w, Policy: w.policy()})
		ended := make(chan error, 1)
		go func() { ended <- loop.Run(ctx, time.Hour) }()
		time.Sleep(10 * time.Minute) // it is at rest
		drain(s.polled)
		<-s.polled
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		time.Sleep(11 * time.Second)
		if rec := w.Observed().Servers["bmc00-system-0"]; rec.Claim.Name != "default/web" {
			t.Errorf("it is %s for %q a second after the poll, want it bound", rec.Life.State, rec.Claim.Name)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}
