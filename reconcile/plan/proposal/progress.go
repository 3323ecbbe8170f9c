package proposal

import (
	"time"

	"ingot/model"
)

// usual is how long a boot usually takes from a stage to the next.
var usual = map[model.BootStage]time.Duration{
	model.StageArmed: 5 * time.Minute, model.StageDHCP: time.Minute, model.StageTFTP: time.Minute, model.StageHTTPBoot: time.Minute,
	model.StageScript: time.Minute, model.StageKernel: time.Minute, model.StageInitrd: 2 * time.Minute, model.StageIgnition: 2 * time.Minute,
}

// UsualStage is how long the present stage of a boot usually takes, and when it has taken three times that. The
// self-test after a power-on takes as long as it took this server the last time.
func UsualStage(s *Server) (length time.Duration, slow time.Time) {
	stage, from := model.StageArmed, time.Time{}
	if steps := s.Trace().Steps(); len(steps) > 0 {
		stage, from = steps[len(steps)-1].Stage, steps[len(steps)-1].At
	}
	if a := s.Record.Power.Asked; a != nil {
		from = Later(from, a.At)
	}
	length = usual[stage]
	if stage == model.StageArmed {
		length = max(length, s.Record.Boot.BootsAfter)
	}
	return length, s.NotedAt(from).Add(3 * length)
}

// LastServed is when a server was last given anything with its ticket, zero = never.
func LastServed(p *model.Progress) time.Time {
	if p == nil {
		return time.Time{}
	}
	last := p.DHCPAt
	for _, at := range []time.Time{p.TFTPAt, p.HTTPBootAt, p.ScriptAt, p.KernelAt, p.InitrdAt, p.IgnitionAt} {
		last = Later(last, at)
	}
	return last
}

// AskedToBoot is when the server was last seen to ask for a network boot, zero = never.
// Others may have asked in its name: then it waits longer.
func AskedToBoot(p *model.Progress) (at time.Time) {
	if p == nil {
		return at
	}
	for _, u := range p.Uses {
		if (u.What == model.ThingScript || u.What == model.ThingBootFile) && u.Refusal != model.RefusedAddress && !u.Refusal.Untold() {
			at = Later(at, u.Last)
		}
	}
	return at
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier is the earlier of two times, of which zero is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
