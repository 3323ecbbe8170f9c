package preview

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
)

// setting is an annotation that asks a machine for nothing.
type setting struct {
	annotation string
	with       string // what comes of it; the value is put into it
	without    string // what comes of it when the annotation is taken away
}

// serverSettings are those of a Server.
var serverSettings = []setting{
	{
		model.AnnotationRootDevice, "has disk images go to the disk that fits %q, from its next installation on",
		"has disk images go to the disk that its claim says, or the smallest that fits, from its next installation on",
	},
	{
		model.AnnotationBootFromDisk, "is sent on to its disk by %q, from its next boot from the network on",
		"is sent on to its disk as its firmware suggests, from its next boot from the network on",
	},
	{
		model.AnnotationBootLoader, "gets the boot loader %q from its next network boot on",
		"gets its network's boot loader from its next network boot on",
	},
	{
		model.AnnotationMACAddresses, "is known by the MAC addresses %q as well as by those that its BMC shows",
		"is known by the MAC addresses alone that its BMC shows",
	},
	{
		model.AnnotationDisksAccepted, "need not account for these disks at its next wipe: %q",
		"has to account for each of its disks at its next wipe",
	},
}

// claimSettings are those of a claim that has a server.
var claimSettings = []setting{{
	model.AnnotationBooted, "counts as booted by %q where nothing reports, also now if that is awaited",
	"counts as booted only once it reports",
}}

// settings are the servers for which such an annotation is another.
func (c *comparison) settings() []Effect {
	var all []Effect
	for _, name := range slices.Sorted(maps.Keys(c.Fleet.Observed.Servers)) {
		var before, after map[string]string
		if m := c.before.manifest(name); m != nil {
			before = m.Annotations
		}
		if m := c.after.manifest(name); m != nil {
			after = m.Annotations
		}
		all = append(all, changedSettings(serverSettings, Effect{Server: name, Claim: c.Fleet.Observed.Servers[name].Claim.Name}, before, after)...)
	}
	for _, cl := range c.after.last.Claims {
		if before := c.formerly(cl.Name); before != nil && cl.Manifest != nil && cl.Server != "" {
			all = append(all, changedSettings(claimSettings, Effect{Server: cl.Server, Claim: cl.Name}, before.Annotations, cl.Manifest.Annotations)...)
		}
	}
	return all
}

// changedSettings are the effects, on what is named, of those settings that differ.
func changedSettings(settings []setting, of Effect, before, after map[string]string) []Effect {
	var all []Effect
	for _, s := range settings {
		was, is := before[s.annotation], after[s.annotation]
		if was == is {
			continue
		}
		e := of
		e.Kind, e.value = Setting, s.annotation
		if e.Message = s.without; is != "" {
			e.Message = fmt.Sprintf(s.with, is)
		}
		e.Message += fmt.Sprintf(" (%s; now %s)", s.annotation, shownValue(was))
		all = append(all, e)
	}
	return all
}

// shownValue quotes the value of an annotation.
func shownValue(v string) string {
	if v == "" {
		return "unset"
	}
	return fmt.Sprintf("%q", v)
}
