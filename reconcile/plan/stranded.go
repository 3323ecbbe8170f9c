package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// stranded reports whether the server was powered on for its ticket while no Ingot
// answered, so that its firmware has given up. One that is still in its power-on self-test
// has not come to ask: that may take longer than anything else.
func (s *server) stranded() bool {
	end := s.strandedEnd()
	return !end.IsZero() && s.power() == model.PowerOn && !s.reading.POST && !s.now().Before(end)
}

// strandedEnd is when a server that was powered on before this process could be reached
// counts as stranded, if nothing is served to it before; zero = it does not. One that
// is known to take long to its first request is waited for. What was begun to be served
// before may not have arrived.
func (s *server) strandedEnd() time.Time {
	in, t := s.fleet.in, s.rec.Boot.Ticket
	if s.toldSinceOn(s.diskInstall()) {
		return time.Time{} // its probe reports, or stalls, see window
	}
	if in.Serving.IsZero() || !t.Open() || t.AwaitingOff || !s.begun() || !s.rec.Power.Asked.At.Before(in.Serving) ||
		t.State(s.progress()) == model.TicketIgnitionServed || proposal.LastServed(s.progress()).After(in.Serving) {
		return time.Time{}
	}
	end := in.Serving.Add(in.Policy.StrandedAfter)
	if slow := s.rec.Power.Asked.At.Add(s.rec.Boot.BootsAfter + in.Policy.StrandedAfter/3); slow.After(end) {
		end = slow
	}
	return end
}

// noteBootsAfter records how long the server took from its power-on to its first
// request.
func (s *server) noteBootsAfter() {
	p, asked := s.progress(), s.rec.Power.Asked
	if p == nil || asked == nil {
		return
	}
	first := time.Time{}
	for _, at := range []time.Time{p.DHCPAt, p.TFTPAt, p.HTTPBootAt, p.ScriptAt} {
		if at.After(asked.At) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		s.edit().Boot.BootsAfter = first.Sub(asked.At).Round(time.Second)
	}
}
