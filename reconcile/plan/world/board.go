package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
)

// given returns a system that shows no UUID with the one that a Server in Git gives it, or
// why it cannot be told from others.
func given(f *World, b *bmcs.BMC, sys model.SystemFact) (model.SystemFact, string) {
	alone := len(b.Facts.Systems) == 1
	if !sys.Board.Tells() {
		return sys, fmt.Sprintf("system %s shows no usable UUID and no serial number of its own (it shows %q), so it cannot be told from "+
			"others: give it one with its vendor's tool", sys.URI, sys.Board.SerialNumber)
	}
	spec := specAt(f, b.Name, sys.URI, alone)
	if spec == nil {
		ask := "spec.bmcRef"
		if b.Manifest.Within != "" {
			ask = "spec.bmc"
		}
		if !alone {
			ask += ", spec.systemURI"
		}
		return sys, fmt.Sprintf("system %s shows no usable UUID: write a Server with %s and, as spec.systemUUID, the one that its "+
			"firmware has (SMBIOS)", sys.URI, ask)
	}
	id, err := model.CanonicalUUID(spec.Spec.SystemUUID)
	if err != nil {
		return sys, fmt.Sprintf("system %s shows no usable UUID, and that of Server %s is none: %v", sys.URI, spec.Name, err)
	}
	sys.UUID = id
	return sys, ""
}

// specAt returns the first manifest, by name, that gives the system at a place a UUID; alone
// is set when its BMC has no other one.
func specAt(f *World, bmc model.BMCName, uri string, alone bool) *model.Server {
	for _, name := range slices.Sorted(maps.Keys(f.In.Desired.Servers)) {
		s := f.In.Desired.Servers[name]
		at := cmp.Or(s.Spec.SystemURI, uri)
		if s.Behind() == bmc && bmcs.SameURI(at, uri) && (alone || s.Spec.SystemURI != "") && model.UsableUUID(s.Spec.SystemUUID) {
			return s
		}
	}
	return nil
}
