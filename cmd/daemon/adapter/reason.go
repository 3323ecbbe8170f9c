package adapter

import (
	"errors"

	"ingot/bmc"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/oci"
	"ingot/model"
)

// because is an error with the reason of the condition that shows it.
type because struct {
	error
	reason string
}

func (e *because) Reason() string { return e.reason }
func (e *because) Unwrap() error  { return e.error }

// bmcReasons are upstream's condition reasons of the errors of BMCs.
var bmcReasons = []struct {
	is     error
	reason model.Reason
}{
	{bmc.ErrOtherMachine, model.ReasonIdentityMismatch},
	{bmc.ErrNoIdentity, model.ReasonIdentityUnknown},
	{bmc.ErrUnauthorized, model.ReasonAuthenticationFailed},
	{bmc.ErrCircuitOpen, model.ReasonAuthenticationFailed},
	{bmc.ErrRefusedForNow, model.ReasonAuthenticationFailed},
	{bmc.ErrCertificateChanged, model.ReasonCertificateChanged},
	{bmc.ErrSessionsFull, model.ReasonSessionsFull},
	{bmc.ErrBusy, model.ReasonConnectionFailed},
	{bmc.ErrUnreachable, model.ReasonConnectionFailed},
	{bmc.ErrNotAllowed, model.ReasonAddressNotAllowed},
	{bmc.ErrHalfAnswer, model.ReasonHalfAnswer},
	{bmc.ErrNotFound, model.ReasonNotFound},
	{bmc.ErrUnsupported, model.ReasonUnsupported},
	{bmc.ErrOverrideNotKept, model.ReasonBootOverrideNotKept},
	{bmc.ErrSettingNotKept, model.ReasonSettingNotKept},
	{bmc.ErrBootOptionUnknown, model.ReasonBootOptionUnknown},
}

func reasoned(err error) error {
	if err == nil {
		return nil
	}
	for _, r := range bmcReasons {
		if errors.Is(err, r.is) {
			return &because{err, r.reason}
		}
	}
	return &because{err, model.ReasonUnknownError}
}

// bootReasoned gives what is wrong with an image or a source its reason. What is
// wrong with Ingot or its store has none.
func bootReasoned(err error) error {
	var image *oci.Error
	var source *ignition.SourceError
	var disk *diskimage.Error
	var preparing *diskimage.Preparing
	switch {
	case errors.As(err, &preparing):
		return &stillPreparing{preparing}
	case errors.As(err, &disk):
		return &because{err, disk.Reason}
	case errors.As(err, &image):
		return &because{err, image.Reason}
	case errors.As(err, &source):
		return &because{err, model.ReasonSourceInvalid}
	}
	return err
}

// stillPreparing is a disk image that is not ready yet, as reconcile knows it.
type stillPreparing struct{ is *diskimage.Preparing }

// Error implements error.
func (p *stillPreparing) Error() string { return p.is.Error() }

// Reason implements reconcile.Reasoner.
func (*stillPreparing) Reason() string { return model.ReasonImagePreparing }

// Preparing implements reconcile.Preparing.
func (p *stillPreparing) Preparing() (stage string, done, total uint64) {
	return string(p.is.Stage), uint64(max(0, p.is.Done)), uint64(max(0, p.is.Total))
}
