package report

import (
	"time"

	"ingot/model"
)

// Mirrored is what the status branch keeps of a server's record, for ReadBranch to read
// back: all but the marks of attempts, which would make a commit of every failure. Texts
// are bounded.
func Mirrored(rec *model.ServerRecord) *model.ServerRecord {
	m := *rec
	m.Asked, m.Failures, m.LastError = nil, 0, ""
	m.NotBefore, m.NoShutdown = time.Time{}, time.Time{}
	if rec.BootProblem != nil {
		p := *rec.BootProblem
		p.Failures, p.NotBefore = 0, time.Time{}
		p.Message = shownText(p.Message)
		m.BootProblem = &p
	}
	if rec.NoDiskBoot != nil {
		n := *rec.NoDiskBoot
		n.Message = shownText(n.Message)
		m.NoDiskBoot = &n
	}
	m.IndicatorProblem, m.BootOrderProblem = mirroredSetting(rec.IndicatorProblem), mirroredSetting(rec.BootOrderProblem)
	if rec.Operation != nil {
		o := *rec.Operation
		o.Message = shownText(o.Message)
		m.Operation = &o
	}
	if rec.Doubt != nil {
		d := *rec.Doubt
		d.Message = shownText(d.Message)
		m.Doubt = &d
	}
	m.Message, m.Wiped = shownText(m.Message), shownWipes(m.Wiped)
	return &m
}

// mirroredBMC is the same of a BMC's record.
func mirroredBMC(rec *model.BMCRecord) *model.BMCRecord {
	m := *rec
	m.Failures, m.NotBefore = 0, time.Time{}
	m.LastError = shownText(m.LastError)
	return &m
}

// mirrorFleet is what the status branch keeps of the fleet's record: all of it that can
// be read back. Of lists that are too long the rest is decided upon anew, should the
// record ever be needed: what is held is held again.
func mirrorFleet(rec model.FleetRecord) model.FleetRecord {
	r := room{maxShownSteps}
	fits := func(d *model.Disruption) bool { // whole or not at all, for it is compared
		return r.takes(entryOverhead + len(d.Value) + len(d.Server) + len(d.Claim) + len(d.Revision))
	}
	rec.Holds = kept(rec.Holds, func(h *model.GuardHold) bool {
		h.Steps = kept(h.Steps, fits)
		return true
	})
	r = room{maxShownSteps}
	rec.ApprovedSteps = kept(rec.ApprovedSteps, fits)
	r = room{maxShownSteps}
	rec.Done = lastKept(rec.Done, fits)
	r = room{maxShownProblemBytes}
	rec.Absent = kept(rec.Absent, func(a *model.Absence) bool {
		return r.takes(entryOverhead + len(a.Blob) + len(a.Token) + len(a.Identity.String()))
	})
	r = room{maxShownProblemBytes} // as long as one is listed, no server is taken for new
	rec.Unreadable = kept(rec.Unreadable, func(u *model.UnreadableRecord) bool {
		return r.takes(entryOverhead + len(u.Server) + len(u.Claim) + len(u.Token))
	})
	r = room{maxShownProblemBytes} // one that is left out is merely absent after a lost store
	rec.Removed = kept(rec.Removed, func(o *model.RemovedObject) bool {
		return r.takes(entryOverhead + len(o.Identity.String()) + len(o.Revision))
	})
	return rec
}

// mirroredSetting is the same of a setting's problem.
func mirroredSetting(p *model.SettingProblem) *model.SettingProblem {
	if p == nil {
		return nil
	}
	m := *p
	m.Failures, m.NotBefore, m.Message = 0, time.Time{}, shownText(m.Message)
	return &m
}
