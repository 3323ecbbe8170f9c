package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Step is what becomes of a server now: a move, or the reason why none.
type Step struct {
	Move *Move
	Why  proposal.Why
	Wake time.Time // when to look again; zero = on a change
	// Queued is what may be begun in place of another server's power-on, once that one is
	// on; nil = nothing.
	Queued *Move
	// Forget has the server's record dropped, and all else that is known of it.
	Forget bool
}

// edit returns the record of the move that is being made: a copy, made once.
func (s *server) edit() *model.ServerRecord {
	if !s.fresh {
		c := *s.rec
		s.rec, s.fresh = &c, true
	}
	return s.rec
}

// enter does actions and then is in state.
func (s *server) enter(state model.ServerState, do ...proposal.Action) Step {
	rec := s.edit()
	s.noteDisks()
	rec.Life.State, rec.Life.Since, rec.Boot.Problem = state, s.now(), nil
	if state != model.StateError {
		rec.Life.Reason, rec.Life.Message = "", ""
	}
	return s.stay(do...)
}

// holdsDiskImage reports whether the probe has verified the disk image that the open ticket is
// for: the ticket boots nothing any more, and its end would have the image written again.
func (s *server) holdsDiskImage() bool {
	t := s.rec.Boot.Ticket
	return s.opened(model.PurposeClaim) && t.Disk != nil && t.State(s.progress()) == model.TicketIgnitionServed
}

// fail enters Error, to return to the present state once the cause is gone.
func (s *server) fail(reason, message string) Step {
	rec := s.edit()
	rec.Life.Back, rec.Life.Reason, rec.Life.Message = rec.Life.State, reason, message
	if !s.holdsDiskImage() {
		s.end(model.TicketSpent)
	}
	return s.enter(model.StateError)
}

// stay does actions without leaving the state.
func (s *server) stay(do ...proposal.Action) Step {
	return Step{Move: &Move{Do: do, Then: s.rec}}
}

// look reads the power state when it is due, and waits until then.
func (s *server) look(due time.Time, why proposal.Why) Step {
	if s.now().Before(due) {
		return Step{Why: why, Wake: due}
	}
	st := s.stay(proposal.Inspect{})
	st.Why = why
	return st
}

// rest reads the power state of a server with which there is nothing to do now
// and again, at an interval that is up to a tenth longer or shorter by its name.
func (s *server) rest(why proposal.Why) Step {
	st := s.look(s.nextPoll(s.reading.At), why)
	if st.Move != nil {
		st.Move.Routine = true
		if s.partsDue() {
			st.Move.Do = []proposal.Action{proposal.Inspect{Inventory: true}}
		}
		st.Wake = s.nextPoll(s.now())
	}
	return st
}

// restOrSave rests, unless the record was changed on the way and is to be saved.
func (s *server) restOrSave(why proposal.Why) Step {
	if s.fresh {
		return s.stay()
	}
	return s.rest(why)
}

// nextPoll is when a server that was read at last is to be read again. Polls come
// in slots, so that one plan begins those of many servers.
func (s *server) nextPoll(last time.Time) time.Time {
	every := s.fleet.in.Policy.PollInterval
	spread := time.Duration((proposal.Jitter(s.name) - 0.5) / 5 * float64(every))
	slot := max(every/64, 1)
	next := last.Add(every + spread).Round(0)
	return next.Add(slot - time.Duration(next.UnixNano())%slot)
}

// wakeBy makes sure that the server is looked at again at t.
func (st Step) wakeBy(t time.Time) Step {
	if !t.IsZero() && (st.Wake.IsZero() || t.Before(st.Wake)) {
		st.Wake = t
	}
	return st
}
