package preview

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// setting is an annotation that requests nothing of a machine.
type setting struct {
	annotation string
	with       string // its effect, with its value
	without    string // the effect of removing it
}

var (
	serverSettings = []setting{
		{model.AnnotationRootDevice, "has disk images go to the disk that fits %q, from its next installation on", "has disk images go to the disk that its claim says, or the smallest that fits, from its next installation on"},
		{model.AnnotationBootFromDisk, "is sent on to its disk by %q, from its next boot from the network on", "is sent on to its disk as its firmware suggests, from its next boot from the network on"},
		{model.AnnotationBootLoader, "gets the boot loader %q from its next network boot on", "gets its network's boot loader from its next network boot on"},
		{model.AnnotationMACAddresses, "is known by the MAC addresses %q as well as by those that its BMC shows", "is known by the MAC addresses alone that its BMC shows"},
		{model.AnnotationDisksAccepted, "need not account for these disks at its next wipe: %q", "has to account for each of its disks at its next wipe"},
	}
	// claimSettings are those of a claim that has a server.
	claimSettings = []setting{
		{model.AnnotationSSHKeys, "gets the SSH keys %q with its next installation", "gets no SSH keys of its claim with its next installation"},
		{model.AnnotationBooted, "counts as booted by %q where nothing reports, also now if that is awaited", "counts as booted only once it reports"},
	}
)

func (c *comparison) settings(settings []setting, e Effect, before, after map[string]string) {
	e.Kind = proposal.StepSetting
	for _, s := range settings {
		was, is := before[s.annotation], after[s.annotation]
		if was == is {
			continue
		}
		if s.annotation == model.AnnotationSSHKeys {
			was, is = model.SSHKeyNames(was), model.SSHKeyNames(is)
		}
		now := "unset"
		if was != "" {
			now = fmt.Sprintf("%q", was)
		}
		if e.Message = s.without; is != "" {
			e.Message = fmt.Sprintf(s.with, is)
		}
		e.value = s.annotation
		e.Message += fmt.Sprintf(" (%s; now %s)", s.annotation, now)
		c.add(e)
	}
}
