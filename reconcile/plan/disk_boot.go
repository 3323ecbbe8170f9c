package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// diskBoot powers the server on from its disk, and takes back an override that would
// have it ask the network for ever.
func (s *server) diskBoot() Step { return s.powerOn(nil, s.fromDisk()...) }

// fromDisk has the server start from its disk when it is powered on next.
func (s *server) fromDisk() []proposal.Action {
	var before []proposal.Action
	if s.rec.Boot.OverrideVariant == proposal.VariantContinuous {
		before = append(before, proposal.ClearBoot{})
	}
	return append(before, s.diskOnce()...)
}

// diskOnce has the next boot be one from disk, unless the BMC is known to have no
// such thing.
func (s *server) diskOnce() []proposal.Action {
	firmware := s.bmcFirmware()
	if no := s.rec.Boot.NoDiskBoot; no != nil && no.Firmware == firmware {
		return nil
	}
	return []proposal.Action{proposal.DiskOnce{Firmware: firmware}}
}

// diskOnce notes whether the BMC sets a one-time boot from disk. One that has none is not
// asked for it again; whatever it answers, the server is powered on next.
func (o *outcome) diskOnce(do proposal.DiskOnce, a *proposal.Answer) {
	f := a.Failed
	o.failed = nil
	switch {
	case f == nil:
		o.rec.Boot.NoDiskBoot = nil
	case f.Lasting():
		o.rec.Boot.NoDiskBoot = &model.NoDiskBoot{Reason: f.Reason, Message: f.Text, Since: a.At, Firmware: do.Firmware}
	}
}

// bmcFirmware is the version of the firmware of the server's BMC, "" if it is not known.
func (s *server) bmcFirmware() string {
	if b := s.bmc; b != nil && b.facts != nil {
		return b.facts.FirmwareVersion
	}
	return ""
}

// boots reports whether a reset has the server start anew.
func (s *server) boots(reset model.ResetKind) bool {
	switch reset {
	case model.ResetGracefulRestart, model.ResetForceRestart, model.ResetPowerCycle:
		return true
	case model.ResetOn:
		return s.power() == model.PowerOff
	case model.ResetGracefulOff, model.ResetForceOff:
	}
	return false
}

// onDisk reports whether what the server is to start next is on its disk: what was
// installed for its claim, or is being installed, and is not booted from the network
// each time.
func (s *server) onDisk() bool {
	state := s.rec.Life.State
	if state == model.StateError {
		state = s.rec.Life.Back
	}
	t := s.rec.Boot.Ticket
	switch {
	case state != model.StateReserved && state != model.StateReleased:
		return false
	case t != nil && t.Always && t.MayBoot(s.progress()):
		return false
	}
	return s.rec.Install.Digest != "" || s.awaitsOff(model.PurposeClaim) ||
		s.opened(model.PurposeClaim) && t.State(s.progress()) == model.TicketIgnitionServed
}
