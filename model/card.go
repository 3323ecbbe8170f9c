package model

import "time"

// CardEvent is one thing that a network card asked of Ingot, and what became of it. It holds
// no secret: of what is asked for by HTTP it says the kind, never the path.
type CardEvent struct {
	At       time.Time    `json:"at"`              // when it came first
	Last     time.Time    `json:"last,omitzero"`   // when it came last, if it came again
	Times    int          `json:"times,omitempty"` // how often it came, if it came again
	Protocol CardProtocol `json:"protocol"`
	Asked    string       `json:"asked"`          // DISCOVER, undionly.kpxe, boot script
	From     string       `json:"from,omitempty"` // the address that asked, or the relay and its port
	Result   CardResult   `json:"result"`
	Answer   string       `json:"answer,omitempty"` // what it was told, or why it was told nothing
	Bytes    int64        `json:"bytes,omitempty"`
	Seconds  float64      `json:"seconds,omitempty"` // that the answer took
	// Routine says that it comes again and again, as renewals do and what is not answered.
	Routine bool `json:"-"`
}

// CardProtocol is what a network card speaks.
type CardProtocol string

// The protocols.
const (
	CardDHCPv4 CardProtocol = "DHCPv4"
	CardDHCPv6 CardProtocol = "DHCPv6"
	CardTFTP   CardProtocol = "TFTP"
	CardHTTP   CardProtocol = "HTTP"
)

// CardResult is what became of what a network card asked for.
type CardResult string

// The results.
const (
	CardServed     CardResult = "served"     // it has what it asked for: a lease, a file
	CardAnswered   CardResult = "answered"   // there is more to be asked, as after an offer
	CardRefused    CardResult = "refused"    // it was told no
	CardUnanswered CardResult = "unanswered" // it was told nothing
	CardLimited    CardResult = "limited"    // a limit of the configuration held it back
	CardFailed     CardResult = "failed"     // it broke off on the way
)
