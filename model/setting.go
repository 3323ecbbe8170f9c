package model

import (
	"slices"
	"time"
)

// What the indicator of a server may show (DSP2046, IndicatorLED). ServerSpec.IndicatorLED
// has one of them; Unknown leaves it as it is.
const (
	IndicatorUnknown  = "Unknown"
	IndicatorLit      = "Lit"
	IndicatorBlinking = "Blinking"
	IndicatorOff      = "Off"
)

// Indicator is what the indicator of a machine shows. One that is only OnOff, as
// LocationIndicatorActive is, is Lit or Off, and Lit is all that it knows of Blinking.
type Indicator struct {
	LED   string
	OnOff bool
}

// Shows reports whether the indicator is as it is wanted, as far as it can be.
func (i Indicator) Shows(want string) bool {
	return i.LED == want || i.OnOff && i.LED == IndicatorLit && want == IndicatorBlinking
}

// ShownBootOrder is the boot order of a machine: the one that its firmware has Now, and the one
// that it has from its next start on, which differs while a change is pending in its settings
// object (DSP0266, "Settings resource").
type ShownBootOrder struct{ Now, Next []string }

// Pending reports whether the order changes with the next start.
func (o ShownBootOrder) Pending() bool { return !slices.Equal(o.Now, o.Next) }

// PendingBootOrder is a boot order that a BMC has taken for the next start of its machine.
type PendingBootOrder struct {
	Order []string  `json:"order"`
	Since time.Time `json:"since"` // when it was first read
}

// SettingProblem says why a setting of a server's firmware is not as its manifest says.
type SettingProblem struct {
	Want    string    `json:"want"`   // what was asked for: anything else is asked for at once
	Reason  Reason    `json:"reason"` // one word in CamelCase
	Message string    `json:"message"`
	Since   time.Time `json:"since"` // when it was first found for that reason
	// Firmware is the BMC's version that would not: another is asked at once.
	Firmware string `json:"firmware,omitempty"`

	// Failures counts the attempts in vain, NotBefore is when the next may be made.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}
