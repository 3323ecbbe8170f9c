package sim

import (
	"slices"
	"strings"
)

// bootOverride is ComputerSystem.Boot.BootSourceOverride….
type bootOverride struct {
	Enabled string `json:"enabled"` // Disabled, Once or Continuous
	Target  string `json:"target"`
	Mode    string `json:"mode"` // UEFI or Legacy
	HTTPURI string `json:"httpURI,omitempty"`
	Path    string `json:"path,omitempty"` // UefiTargetBootSourceOverride
	Next    string `json:"next,omitempty"` // BootNext
}

// noOverride is how a machine is delivered.
var noOverride = bootOverride{Enabled: "Disabled", Target: "None", Mode: "UEFI"}

func (o bootOverride) fromNetwork() bool {
	return o.Enabled != "Disabled" && (o.Target == "Pxe" || o.Target == "UefiHttp" || o.Target == "UefiTarget" && strings.Contains(o.Path, "MAC(") || o.Target == "UefiBootNext" && o.Next == networkOption)
}

// address is what a network boot asks for first: what the override names, or what
// the machine would learn by DHCP.
func (o bootOverride) address(byDHCP string) string {
	if o.Enabled != "Disabled" && o.Target == "UefiHttp" && o.HTTPURI != "" {
		return o.HTTPURI
	}
	return byDHCP
}

func (o bootOverride) fromDisk() bool {
	return o.Enabled != "Disabled" && (o.Target == "Hdd" || o.Target == "UefiTarget" && strings.HasPrefix(o.Path, "HD(") || o.Target == "UefiBootNext" && o.Next == diskOption)
}

// overrideModes are the boot modes that all vendors share.
var overrideModes = []string{"UEFI", "Legacy"}

// overrideEnabled are the values of BootSourceOverrideEnabled.
func (k *personality) overrideEnabled() []string {
	if k.boot.noAlways {
		return []string{"Disabled", "Once"}
	}
	return []string{"Disabled", "Once", "Continuous"}
}

// A resource is a machine as its BMC shows and changes it: a ComputerSystem.
type resource struct{ *Server }

func (s resource) bootObject() object {
	k := s.rack().kind
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown()
	o := object{}
	if s.build.Targets != nil {
		s.showOverride(o, shown.override)
	}
	if k.boot.order != orderNone {
		o["BootOrder"] = bootReferences(shown.networkFirst)
		o["BootOptions"] = link(s.URI() + "/BootOptions")
	}
	return o
}

// showOverride adds the properties of the boot override that the vendor has.
func (s resource) showOverride(o object, now bootOverride) {
	k := s.rack().kind
	o["BootSourceOverrideEnabled"] = now.Enabled
	o["BootSourceOverrideTarget"] = now.Target
	o["BootSourceOverrideTarget@Redfish.AllowableValues"] = s.build.Targets
	if slices.Contains(s.build.Targets, "UefiTarget") {
		o["UefiTargetBootSourceOverride"] = orNull(now.Path)
	}
	if slices.Contains(s.build.Targets, "UefiBootNext") {
		o["BootNext"] = orNull(now.Next)
	}
	all := object{
		"BootSourceOverrideMode":                            now.Mode,
		"BootSourceOverrideMode@Redfish.AllowableValues":    s.build.Modes,
		"BootSourceOverrideEnabled@Redfish.AllowableValues": k.overrideEnabled(),
		"HttpBootUri": now.HTTPURI,
	}
	for _, name := range k.boot.shows {
		o[name] = all[name]
	}
}

// orNull is a property that may be unset.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// nextOverride is the override that the properties sent make of now.
func (s resource) nextOverride(now bootOverride, sent object) (bootOverride, *message) {
	next := now
	shown := s.bootObject()
	for _, name := range sortedKeys(sent) {
		if _, known := shown[name]; !known || name == "BootOrder" || name == "BootOptions" {
			return now, newMessage(msgPropertyUnknown, name).about("#/Boot/" + name)
		}
		if problem := s.setOverrideProperty(&next, name, sent[name]); problem != nil {
			return now, problem.about("#/Boot/" + name)
		}
	}
	return s.judgeOverride(now, next, sent)
}

func (s resource) setOverrideProperty(next *bootOverride, name string, value any) (problem *message) {
	switch name {
	case "BootSourceOverrideEnabled":
		next.Enabled, problem = oneOf(name, value, s.rack().kind.overrideEnabled())
	case "BootSourceOverrideTarget":
		next.Target, problem = oneOf(name, value, s.build.Targets)
	case "BootSourceOverrideMode":
		next.Mode, problem = oneOf(name, value, s.build.Modes)
	case "BootNext":
		next.Next, problem = oneOf(name, value, append(bootReferences(false), ""))
	case "UefiTargetBootSourceOverride":
		if next.Path, problem = text(name, value); problem == nil && len(next.Path) > 1024 {
			problem = newMessage(msgPropertyValue, next.Path[:32]+"…", name)
		}
	case "HttpBootUri":
		next.HTTPURI, problem = bootURI(value)
		if problem == nil && next.HTTPURI != "" && s.build.ByDHCP {
			problem = newMessage(msgPropertyReadOnly, name)
		}
	default:
		problem = newMessage(msgPropertyReadOnly, name)
	}
	return problem
}

// judgeOverride says what the vendor, or a fault, has against an override.
func (s resource) judgeOverride(now, next bootOverride, sent object) (bootOverride, *message) {
	k := s.rack().kind
	_, modeSent := sent["BootSourceOverrideMode"]
	switch {
	case !modeSent && s.faults.has(FaultOverrideNeedsMode):
		return now, newMessage(msgPropertyMissing, "BootSourceOverrideMode").about("#/Boot/BootSourceOverrideMode")
	case !modeSent && k.boot.rule == overrideForgetsMode:
		next.Mode = s.modeOr("Legacy")
	case k.boot.rule == overrideKeepsTarget && sent["BootSourceOverrideEnabled"] == "Disabled" && sent["BootSourceOverrideTarget"] == "None":
		return now, newMessage(msgPropertyConflict, "BootSourceOverrideEnabled", "BootSourceOverrideTarget").about("#/Boot")
	case next.Enabled != "Disabled" && next.Target == "UefiTarget" && next.Path == "":
		return now, newMessage(msgPropertyMissing, "UefiTargetBootSourceOverride").about("#/Boot/UefiTargetBootSourceOverride")
	}
	return next, nil
}

// bootURI returns where UEFI HTTP boot is to begin: a URL, or "" or null for where
// DHCP says.
func bootURI(value any) (string, *message) {
	if value == nil {
		return "", nil
	}
	uri, problem := text("HttpBootUri", value)
	if problem == nil && (len(uri) > 2048 || uri != "" && checkBootURL(uri) != nil) {
		problem = newMessage(msgPropertyValue, "that is no URL of HTTP", "HttpBootUri")
	}
	return uri, problem
}
