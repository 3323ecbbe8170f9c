package registry

import "errors"

// Errors that callers tell apart.
var (
	// ErrLeadershipLost is returned by Run once another Ingot leads.
	ErrLeadershipLost = errors.New("leadership lost: another ingot leads")
	// ErrNotFound is returned for a payload that is not kept.
	ErrNotFound = errors.New("not found")
)
