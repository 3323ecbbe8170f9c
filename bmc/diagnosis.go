package bmc

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"ingot/model"
)

// diagnoses are the reasons of the errors of this package, the special before the general. The advice on each is in
// model.BMCAdvice.
var diagnoses = []struct {
	is     error
	reason model.Reason
}{
	{ErrOtherMachine, model.ReasonIdentityMismatch},
	{ErrNoIdentity, model.ReasonIdentityUnknown},
	{ErrPasswordChange, model.ReasonPasswordChangeRequired},
	{ErrReadOnly, model.ReasonReadOnlyAccount},
	{ErrUnauthorized, model.ReasonAuthenticationFailed},
	{ErrCircuitOpen, model.ReasonAuthenticationFailed},
	{ErrRefusedForNow, model.ReasonAuthenticationFailed},
	{ErrCertificateChanged, model.ReasonCertificateChanged},
	{ErrCertificate, model.ReasonCertificateInvalid},
	{ErrTLS, model.ReasonTLSFailed},
	{ErrSessionsFull, model.ReasonSessionsFull},
	{ErrUpdating, model.ReasonUpdateInProgress},
	{ErrBusy, model.ReasonBMCBusy},
	{ErrUnreachable, model.ReasonConnectionFailed},
	{ErrNotAllowed, model.ReasonAddressNotAllowed},
	{ErrHalfAnswer, model.ReasonHalfAnswer},
	{ErrNotFound, model.ReasonHalfAnswer},
	{ErrNotRedfish, model.ReasonNotRedfish},
	{ErrNoNetworkBoot, model.ReasonNoNetworkBoot},
	{ErrUnsupported, model.ReasonUnsupported},
	{ErrOverrideNotKept, model.ReasonBootOverrideNotKept},
	{ErrSettingNotKept, model.ReasonSettingNotKept},
	{ErrBootOptionUnknown, model.ReasonBootOptionUnknown},
	{ErrPowerOnRefused, model.ReasonPowerOnRefused},
}

// ReasonOf returns the reason that a condition has for an error of this package.
func ReasonOf(err error) model.Reason {
	for _, d := range diagnoses {
		if errors.Is(err, d.is) {
			return d.reason
		}
	}
	return model.ReasonUnknownError
}

// updating are texts of BMCs that refuse a request because of a firmware update.
var updating = []string{"update in progress", "update is in progress", "being updated", "firmware update", "firmware upgrade", "flash"}

// special returns the sentinel that the messages of a refusal name, else its present one.
func (e *Error) special() error {
	text := strings.ToLower(e.Detail)
	busy := errors.Is(e.Kind, ErrBusy) || e.says("ResourceNotReadyRetry", "ResourceInUse", "ServiceTemporarilyUnavailable") // iLO: 400
	switch {
	case e.says("PasswordChangeRequired"):
		return ErrPasswordChange
	case e.says("SessionLimitExceeded", "RAC0218"): // with 400, 403, 500 or 503
		return ErrSessionsFull
	case e.says("UpdateInProgress", "FlashInProgress"), busy && slices.ContainsFunc(updating, func(s string) bool { return strings.Contains(text, s) }):
		return ErrUpdating
	case busy:
		return ErrBusy
	case errors.Is(e.Kind, ErrUnauthorized) && e.isChange() && !e.says("NoValidSession") && (e.Status == http.StatusForbidden || e.says("InsufficientPrivilege")):
		return ErrReadOnly
	}
	return e.Kind
}

// isChange reports whether the request would have changed a machine.
func (e *Error) isChange() bool {
	return e.Method == http.MethodPatch || strings.Contains(e.URI, "/Actions/")
}
