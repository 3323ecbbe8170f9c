package report

import (
	"fmt"
	"time"

	"ingot/model"
)

// Card is a network card and its conversation with Ingot: what GET /api/v1/cards/MAC answers. The
// running process observed it; the status branch has nothing of it.
type Card struct {
	MAC    string `json:"mac"`
	Server string `json:"server,omitempty"` // whose it is, empty when that is not known
	// Limited is which limit of the configuration holds it back at present, empty for none.
	Limited string `json:"limited,omitempty"`
	// Since is when the process began, before which nothing is known.
	Since  time.Time         `json:"since,omitzero"`
	Events []model.CardEvent `json:"events"` // the oldest first
	// TicketUses are the uses of the newest boot ticket of Server.
	TicketUses []string `json:"ticketUses,omitempty"`
}

// LimitText says which limit held an event back, and how often.
func LimitText(e model.CardEvent) string {
	text := fmt.Sprintf("%s %s: since %s %d times", e.Protocol, e.Answer, e.At.UTC().Format(time.TimeOnly+"Z"), max(e.Times, 1))
	if !e.Last.IsZero() {
		text += ", the last at " + e.Last.UTC().Format(time.TimeOnly+"Z")
	}
	return text
}
