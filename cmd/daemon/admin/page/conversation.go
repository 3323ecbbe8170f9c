package page

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

// conversation is what the network card of an Endpoint asked of this process.
type conversation struct {
	Since  stamp // before which nothing is known
	API    string
	Events []cardEvent // the oldest first
}

// cardEvent is one thing that a network card asked.
type cardEvent struct {
	At                      stamp
	Protocol, Asked, Result string
	Text                    string // how it was answered, from where it asked, and how often
}

// conversation returns what the card of an explanation asked, nil for none.
func (v *view) conversation(c *report.Card) *conversation {
	if c == nil {
		return nil
	}
	shown := &conversation{Since: v.stamp(c.Since), API: "/api/v1/cards/" + escaped(c.MAC)}
	for _, e := range c.Events {
		shown.Events = append(shown.Events, cardEvent{v.stamp(e.At), string(e.Protocol), e.Asked, string(e.Result), cardEventText(e)})
	}
	return shown
}

// cardEventText says how a network card was answered, how long that took, from where it asked and how often.
func cardEventText(e model.CardEvent) string {
	var parts []string
	if e.Answer != "" {
		parts = append(parts, e.Answer)
	}
	if e.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s", size(e.Bytes), time.Duration(e.Seconds*float64(time.Second)).Round(time.Millisecond)))
	}
	if e.From != "" {
		parts = append(parts, "from "+e.From)
	}
	if e.Times > 1 {
		parts = append(parts, fmt.Sprintf("%d times until %s", e.Times, e.Last.UTC().Format(time.TimeOnly+"Z")))
	}
	return strings.Join(parts, "; ")
}
