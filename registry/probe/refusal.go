package probe

import (
	"fmt"
	"net/http"

	"ingot/model"
)

// needToken is the answer to a report without a token.
const needToken = "a token is needed: report to <registry.url>/r/<token>/register, as the discovery Ignition of this server says"

// refusal is an error that is answered to the client, with its status code.
type refusal struct {
	code   int
	text   string
	reason model.TicketRefusal // "" when it has to do with neither token nor address
}

func (r refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// refuseToken has one text for all wrong tokens, so that a client cannot learn which tokens or UUIDs exist. A client
// with a good token may learn more.
func refuseToken(reason model.TicketRefusal) error {
	return refusal{http.StatusForbidden, "this token is not of an open boot ticket of this server", reason}
}
