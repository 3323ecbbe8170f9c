package model

import (
	"log/slog"
)

// redacted is what any printing of a Sensitive value shows.
const redacted = "[redacted]"

// Sensitive is a value that must not be seen: a password, a token, a user's
// Ignition. However it is printed, logged or marshalled it shows "[redacted]";
// Reveal is the only way to its bytes.
type Sensitive struct{ value string }

// NewSensitive wraps v.
func NewSensitive(v string) Sensitive { return Sensitive{value: v} }

// Reveal returns the value itself, for handing it to whom it is meant for.
func (s Sensitive) Reveal() string { return s.value }

// IsZero reports whether there is no value.
func (s Sensitive) IsZero() bool { return s.value == "" }

// String implements fmt.Stringer and hides the value.
func (s Sensitive) String() string { return redacted }

// GoString implements fmt.GoStringer, so that %#v hides the value too.
func (s Sensitive) GoString() string { return redacted }

// MarshalText implements encoding.TextMarshaler, and thereby JSON and YAML.
func (s Sensitive) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (s Sensitive) LogValue() slog.Value { return slog.StringValue(redacted) }
