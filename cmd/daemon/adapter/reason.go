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

func reasoned(err error) error {
	if err == nil {
		return nil
	}
	return &because{err, bmc.ReasonOf(err)}
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
