package model

import "time"

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
