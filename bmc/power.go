package bmc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ingot/model"
)

// trustETag is how long an ETag is believed to tell that nothing changed before
// the whole resource is read again: a BMC whose ETag does not cover the power
// state would otherwise show the same for ever.
const trustETag = 5 * time.Minute

// confirmWithin is for how long after a whole answer the next is asked for without its ETag: a reading that confirms
// another must not depend on it.
const confirmWithin = 10 * time.Second

// A SystemState is what one GET says of a machine.
type SystemState struct {
	Power model.Power
	UUID  string // canonical, "" when the BMC shows none that tells it from others
	// Board is what else tells the machine.
	Board model.Board
	// LastReset is when the machine was last reset, zero when the BMC does not say. Not
	// every BMC counts a loss of power.
	LastReset time.Time
	// POST: its firmware still tests and sets up the machine (BootProgress), as far as the
	// BMC says.
	POST bool
}

// Power reads the power state as State does.
func (p *Pool) Power(ctx context.Context, t model.SystemTarget) (model.Power, error) {
	s, err := p.State(ctx, t)
	return s.Power, err
}

// State reads what changes of a machine by exactly one GET, once there is a session.
// ErrOtherMachine, ErrNoIdentity: what was read is not of the machine that is meant.
func (p *Pool) State(ctx context.Context, t model.SystemTarget) (SystemState, error) {
	c, err := p.client(ctx, t.BMC)
	if err != nil {
		return SystemState{}, err
	}
	s, err := c.poll(ctx, t.URI)
	if err == nil {
		err = c.meant(t, s)
	}
	if err != nil {
		return SystemState{}, fmt.Errorf("read power state: %w", err)
	}
	return s, nil
}

func (c *reader) power(ctx context.Context, uri string) (model.Power, error) {
	s, err := c.poll(ctx, uri)
	return s.Power, err
}

func (c *reader) poll(ctx context.Context, uri string) (SystemState, error) {
	s := c.state(uri)
	var headers []header
	if s.mayAskETag(c.opts.Clock()) {
		headers = []header{{"If-None-Match", s.etag}}
	}
	a, err := c.get(ctx, uri, headers...)
	if err != nil {
		return SystemState{}, err
	}
	if a.status == http.StatusNotModified {
		return s.shown, nil
	}
	// Few fields of a hundred: gofish's whole system takes five times as long.
	var sys struct {
		ETag string `json:"@odata.etag"`
		changeable
	}
	if err := json.Unmarshal(a.body, &sys); err != nil {
		return SystemState{}, c.unreadable(uri, err)
	}
	shown, etag := sys.shown(), a.etag(sys.ETag)
	c.learn(uri, func(s *systemState) {
		if s.etag != "" && s.etag == etag && s.shown != shown {
			s.fickle = true
		}
		c.saw(s, etag, shown)
	})
	return shown, nil
}

// changeable is the part of a ComputerSystem that is read again and again. What of it
// is written against the schema is as if it were not there.
type changeable struct {
	PowerState    any
	UUID          any
	SerialNumber  any
	Model         any
	LastResetTime any
	BootProgress  any
}

// postStates are the values of BootProgress.LastState (DSP2046, ComputerSystem) of a machine
// that has not come to its boot order yet.
var postStates = []string{
	"PrimaryProcessorInitializationStarted", "BusInitializationStarted", "MemoryInitializationStarted",
	"SecondaryProcessorInitializationStarted", "PCIResourceConfigStarted", "SetupEntered",
}

func (c changeable) shown() SystemState {
	s := SystemState{Power: powerOf(text(c.PowerState))}
	if progress, ok := c.BootProgress.(map[string]any); ok {
		s.POST = slices.Contains(postStates, text(progress["LastState"]))
	}
	if uuid, ok := c.UUID.(string); ok {
		s.UUID, _ = usableUUID(uuid)
	}
	s.Board = model.Board{SerialNumber: text(c.SerialNumber), Model: text(c.Model)}
	if text, ok := c.LastResetTime.(string); ok {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			s.LastReset = at.UTC()
		}
	}
	return s
}

// text is a value that should be one, "" if it is none.
func text(v any) string {
	s, _ := v.(string)
	return clip(s)
}

// mayAskETag reports whether "not modified" can be believed to mean that the
// power state is the one that is known.
func (s *systemState) mayAskETag(now time.Time) bool {
	return s.etag != "" && !s.fickle && s.shown.Power.Settled() &&
		now.Sub(s.polled) >= confirmWithin && now.Sub(s.polled) < trustETag && now.Sub(s.moved) >= trustETag
}
