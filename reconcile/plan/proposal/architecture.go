package proposal

import (
	"fmt"

	"ingot/model"
)

// Needs is what an image must have for its server to start it: each is "" for no such
// need, or a clause that says why.
type Needs struct {
	UKI    string // Kernel starts nothing but a UKI
	Kernel string // firmware starts no UKI
}

// Unmet is why an image cannot be started, nil when nothing is known against it.
func (n Needs) Unmet(image *model.PinnedImage) *Failure {
	switch {
	case n.UKI != "" && image.UKI == nil:
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no UKI layer, and %s", image.Ref, n.UKI)}
	case n.Kernel != "" && (image.Kernel == nil || image.Initrd == nil):
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no kernel and initramfs layers but a UKI, and %s", image.Ref, n.Kernel)}
	}
	return nil
}
