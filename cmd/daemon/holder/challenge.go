package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ingot/model"
)

// ErrAnother is returned when another Ingot that does not share the store acts, or may act,
// for the same repository.
var ErrAnother = errors.New("another Ingot acts for this repository")

// Branch is the status branch, by which two Ingots ask and answer each other.
type Branch interface {
	// Challenge asks the Ingot that wrote the branch whether it is alive; id is who asks.
	Challenge(ctx context.Context, id string) error
	// Answered returns the holder that answered the question, if one did.
	Answered(ctx context.Context) (model.Holder, bool, error)
	// Withdraw takes the question back.
	Withdraw(ctx context.Context) error
}

// Challenge makes sure that the Ingot that wrote the status branch last is not alive.
type Challenge struct {
	Branch Branch
	Ours   model.Holder
	// Last is the holder that the store knows as its last one.
	Last model.Holder
	// SharedStore is set where machines share the store, which lets one of them lead.
	SharedStore bool
	// TakeOver skips the question.
	TakeOver bool
	// Waiting is told what is waited for.
	Waiting func(why string)
	Clock   func() time.Time
	Log     *slog.Logger
}

// Run returns nil once theirs, the holder that the status branch names, is known not to be
// alive, and ErrAnother if it is or may be.
func (c *Challenge) Run(ctx context.Context, theirs model.Holder) error {
	if theirs.ID == "" || theirs.ID == c.Ours.ID {
		return nil
	}
	last := c.Last
	if c.SharedStore {
		if last.ID == theirs.ID {
			return nil // it led with this store, and its lead has run out, though its process may be alive
		}
		last.Machine = c.Ours.Machine // a former leader with this store does not lead any more, on whatever machine it ran
	}
	may, why := MayLive(theirs, c.Ours, last)
	switch {
	case !may:
		return nil
	case c.TakeOver:
		c.Log.Warn("taking over from another Ingot without asking whether it is alive", "holder", theirs.ID, "host", theirs.Host)
		return nil
	}
	c.Log.Warn("another Ingot wrote the status branch and may be alive: it is asked",
		"holder", theirs.ID, "host", theirs.Host, "because", why)
	return c.ask(ctx, theirs)
}

// ask asks the Ingot that wrote the status branch last whether it is alive, and fails
// unless it is not.
func (c *Challenge) ask(ctx context.Context, theirs model.Holder) error {
	refuse := func(said string) error {
		return fmt.Errorf("%w: that on host %s %s. Stop it, or give both the same Redis; "+
			"if you are certain that it does not run any more, start this one with --take-over", ErrAnother, theirs.Host, said)
	}
	if alive, err := NameHeld(theirs.ID); err == nil && alive {
		return refuse("runs on this machine")
	}
	if err := c.Branch.Challenge(ctx, c.Ours.ID); err != nil {
		return refuse(fmt.Sprintf("may be alive, and cannot be asked (%v)", err))
	}
	defer func() {
		if err := c.Branch.Withdraw(context.WithoutCancel(ctx)); err != nil {
			c.Log.Warn("the challenge to the other Ingot was not withdrawn", "err", err)
		}
	}()
	wait := max(2*theirs.Interval, theirs.TakeOverAfter)
	c.Waiting(fmt.Sprintf("waiting until %s for the Ingot on host %s to say whether it is alive",
		c.Clock().Add(wait).Format(time.RFC3339), theirs.Host))
	switch who, answered, err := c.awaitAnswer(ctx, wait); {
	case err != nil:
		return err
	case answered:
		theirs.Host = who.Host
		return refuse("is alive: it answered")
	case theirs.TakeOverAfter > 0:
		c.Log.Warn("the other Ingot gave no answer for as long as its status.takeOverAfter says: taking over",
			"host", theirs.Host, "after", wait)
		return nil
	}
	return refuse(fmt.Sprintf("gave no answer within %s, which does not say that it is dead", wait))
}

// awaitAnswer looks for the other Ingot's answer until there is one, or until the status
// branch was read without one after wait: a branch that cannot be read shows nothing.
func (c *Challenge) awaitAnswer(ctx context.Context, wait time.Duration) (who model.Holder, answered bool, err error) {
	deadline := time.Now().Add(wait)
	for {
		late := time.Now().After(deadline)
		who, answered, err := c.Branch.Answered(ctx)
		switch {
		case err != nil:
			c.Log.Warn("cannot read the other Ingot's answer, this is retried", "err", err)
		case answered || late:
			return who, answered, nil
		}
		if err := sleep(ctx, min(time.Second, wait/10+time.Millisecond)); err != nil {
			return model.Holder{}, false, err
		}
	}
}

// sleep waits for d. It returns an error if ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
