package holder

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// aBranch is a status branch on which the other Ingot answers, or does not.
type aBranch struct {
	began    time.Time
	refuses  error                                                 // of the question
	answered func(since time.Duration) (model.Holder, bool, error) // nil = never
	asked    int
	withdrew int
}

func (b *aBranch) Challenge(context.Context, string) error {
	b.asked++
	return b.refuses
}

func (b *aBranch) Answered(context.Context) (model.Holder, bool, error) {
	if b.answered == nil {
		return model.Holder{}, false, nil
	}
	return b.answered(time.Since(b.began))
}

func (b *aBranch) Withdraw(context.Context) error {
	b.withdrew++
	return nil
}

func challenge(b *aBranch) *Challenge {
	return &Challenge{
		Branch: b, Ours: model.Holder{ID: "us", Host: "h1", Machine: "m1", Boot: "b1", Namespace: "n1"},
		Waiting: func(string) {}, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

func TestOnlySeenSilenceCounts(t *testing.T) {
	unseen := errors.New("connection refused")
	tests := map[string]struct {
		look     func(since time.Duration) (answered bool, err error)
		answered bool
		after    time.Duration
	}{
		"an answer is heeded as soon as it is seen": {
			look:     func(since time.Duration) (bool, error) { return since >= 20*time.Second, nil },
			answered: true, after: 20 * time.Second,
		},
		"no answer for as long as was agreed is silence": {
			look:  func(time.Duration) (bool, error) { return false, nil },
			after: time.Minute,
		},
		"a branch that cannot be seen is waited for, and the answer on it counts": {
			look: func(since time.Duration) (bool, error) {
				if since < time.Hour {
					return false, unseen
				}
				return true, nil
			},
			answered: true, after: time.Hour,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := challenge(&aBranch{began: start, answered: func(since time.Duration) (model.Holder, bool, error) {
					answered, err := tt.look(since)
					return model.Holder{}, answered, err
				}})
				_, answered, err := c.awaitAnswer(t.Context(), time.Minute)
				took := time.Since(start)
				if err != nil || answered != tt.answered || took < tt.after || took > tt.after+2*time.Second {
					t.Errorf("answered %t after %s with error %v, want %t after %s", answered, took, err, tt.answered, tt.after)
				}
			})
		})
	}
}

func TestAnotherIngotIsAskedAndBelieved(t *testing.T) {
	elsewhere := model.Holder{ID: "them", Host: "h2", Machine: "m2", Boot: "b2", Namespace: "n2", Interval: time.Minute}
	patient := elsewhere
	patient.TakeOverAfter = time.Hour
	for name, tt := range map[string]struct {
		theirs model.Holder
		change func(*Challenge)
		branch aBranch
		refuse string // what the error says; "" = it may begin
		asked  bool
		took   time.Duration
	}{
		"a branch that no Ingot wrote": {},
		"the store's last holder":      {theirs: elsewhere, change: func(c *Challenge) { c.Last.ID = "them" }},
		"the last leader with a shared store, on another machine": {
			theirs: elsewhere,
			change: func(c *Challenge) { c.SharedStore, c.Last = true, model.Holder{ID: "them", Machine: "m2"} },
		},
		"one that is taken over from by command": {
			theirs: elsewhere, change: func(c *Challenge) { c.TakeOver = true },
		},
		"one that answers": {
			theirs: elsewhere, asked: true,
			branch: aBranch{answered: func(time.Duration) (model.Holder, bool, error) { return model.Holder{Host: "h3"}, true, nil }},
			refuse: "that on host h3 is alive: it answered",
		},
		"one that gives no answer": {
			theirs: elsewhere, asked: true, took: 2 * time.Minute,
			refuse: "gave no answer within 2m0s, which does not say that it is dead",
		},
		"one that gives no answer for as long as it agreed to": {
			theirs: patient, asked: true, took: time.Hour,
		},
		"one that cannot be asked": {
			theirs: elsewhere, asked: true, branch: aBranch{refuses: errors.New("no write access")},
			refuse: "may be alive, and cannot be asked (no write access)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				branch := tt.branch
				branch.began = time.Now()
				c := challenge(&branch)
				if tt.change != nil {
					tt.change(c)
				}
				err := c.Run(t.Context(), tt.theirs)
				if took := time.Since(branch.began); took < tt.took || took > tt.took+2*time.Second {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				refused := errors.Is(err, ErrAnother) && strings.Contains(err.Error(), tt.refuse)
				if tt.refuse == "" && err != nil || tt.refuse != "" && !refused {
					t.Errorf("got %v, want %q", err, tt.refuse)
				}
				if asked := branch.asked > 0; asked != tt.asked {
					t.Errorf("it was asked: %t, want %t", asked, tt.asked)
				}
				if withdrawn := branch.withdrew > 0; withdrawn != (tt.asked && branch.refuses == nil) {
					t.Errorf("the question was taken back: %t", withdrawn)
				}
			})
		})
	}
}
