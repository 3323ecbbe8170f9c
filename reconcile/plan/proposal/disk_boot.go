package proposal

import (
	"slices"

	"ingot/model"
)

// LastingReasons are the reasons of failures that will be no other the next time.
var LastingReasons = []model.Reason{
	model.ReasonUnsupported, model.ReasonBootOverrideNotKept, model.ReasonSettingNotKept, model.ReasonNotFound,
	model.ReasonBootOptionUnknown,
}

// Lasting reports whether what failed is not to be asked for again.
func (f *Failure) Lasting() bool { return slices.Contains(LastingReasons, f.Reason) }
