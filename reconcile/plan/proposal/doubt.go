package proposal

import "ingot/model"

// InstallUnknown reports whether it is not known if a bound server was installed.
func InstallUnknown(rec *model.ServerRecord) bool {
	return rec.Doubt != nil && rec.Doubt.Reason == model.DoubtInstallUnknown
}

// MaybeUnreadable reports whether an object of this kind may be in Git though d has none: one of that
// name, or any if name is "", is quarantined.
func MaybeUnreadable(d *model.Desired, kind model.Kind, name string) bool {
	for id := range d.Quarantined {
		if id.Kind == kind && (name == "" || id.Name == name) {
			return true
		}
	}
	return false
}
