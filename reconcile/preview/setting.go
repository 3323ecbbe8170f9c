package preview

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
)

// setting is an annotation that asks for nothing now, and counts later.
type setting struct{ annotation, format string } // the value is put into the format

// serverSettings are those of a Server.
var serverSettings = []setting{
	{model.AnnotationRootDevice, "has a disk image go to the disk that fits %s, from its next installation on"},
	{model.AnnotationBootFromDisk, "is sent on to its disk by %s, from its next boot from the network on"},
	{model.AnnotationBootLoader, "is told the boot loader %s, from its next boot from the network on"},
	{model.AnnotationMACAddresses, "is known by the MAC addresses %s beside those that its BMC shows"},
	{model.AnnotationDisksAccepted, "need not show these disks at its next wipe: %s"},
}

// claimSettings are those of a claim that has a server.
var claimSettings = []setting{
	{model.AnnotationBooted, "counts as booted by %s where nothing reports, from its next installation on"},
}

// settings are the servers for which an annotation is another that counts later.
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
		all = append(all, changedSettings(serverSettings, Effect{Server: name, Claim: c.Fleet.Observed.Servers[name].Claim}, before, after)...)
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
		e.Message = fmt.Sprintf(s.format, shownValue(is)) + fmt.Sprintf(" (%s, without this %s)", s.annotation, shownValue(was))
		all = append(all, e)
	}
	return all
}

// shownValue quotes the value of an annotation.
func shownValue(v string) string {
	if v == "" {
		return "what is the default"
	}
	return fmt.Sprintf("%q", v)
}
