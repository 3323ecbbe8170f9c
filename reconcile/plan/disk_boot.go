package plan

import (
	"slices"

	"ingot/model"
)

// diskBoot powers the server on from its disk, and takes back an override that would
// have it ask the network for ever.
func (s *server) diskBoot() Step { return s.powerOn(nil, s.fromDisk()...) }

// fromDisk has the server start from its disk when it is powered on next.
func (s *server) fromDisk() []Action {
	var before []Action
	if s.rec.Boot.OverrideVariant == VariantContinuous {
		before = append(before, ClearBoot{})
	}
	return append(before, s.diskOnce()...)
}

// diskOnce has the next boot be one from disk, unless the BMC is known to have no
// such thing.
func (s *server) diskOnce() []Action {
	firmware := s.bmcFirmware()
	if no := s.rec.Boot.NoDiskBoot; no != nil && no.Firmware == firmware {
		return nil
	}
	return []Action{DiskOnce{Firmware: firmware}}
}

// lastingReasons are the reasons of failures that will be no other the next time.
var lastingReasons = []model.Reason{
	model.ReasonUnsupported, model.ReasonBootOverrideNotKept, model.ReasonSettingNotKept, model.ReasonNotFound,
	model.ReasonBootOptionUnknown,
}

// Lasting reports whether what failed is not to be asked for again.
func (f *Failure) Lasting() bool { return slices.Contains(lastingReasons, f.Reason) }

// diskOnce notes whether the BMC sets a one-time boot from disk. One that has none is not
// asked for it again; whatever it answers, the server is powered on next.
func (o *outcome) diskOnce(do DiskOnce, a *Answer) {
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
