package install

import (
	"errors"
	"fmt"

	"ingot/model"
)

// Failure is why an install ended, as it is reported: for people.
type Failure struct {
	Reason  model.Reason
	Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func failure(reason model.Reason, format string, args ...any) error {
	return &Failure{reason, fmt.Sprintf(format, args...)}
}

// failureOf is what is reported of an error.
func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{model.ReasonInstallFailed, err.Error()}
}
