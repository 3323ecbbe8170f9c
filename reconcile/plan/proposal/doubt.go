package proposal

import "ingot/model"

// InstallUnknown reports whether it is not known if a bound server was installed.
func InstallUnknown(rec *model.ServerRecord) bool {
	return rec.Doubt != nil && rec.Doubt.Reason == model.DoubtInstallUnknown
}
