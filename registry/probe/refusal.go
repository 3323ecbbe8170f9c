package probe

import (
	"fmt"
	"net/http"

	"ingot/model"
)

// needToken is what who reports without a token is told.
const needToken = "a token is needed: report to <registry.url>/r/<token>/register, as the discovery Ignition of this server says; " +
	"registry.requireToken: false allows reports without"

// refusal is an error that the client is told, with its status code.
type refusal struct {
	code   int
	text   string
	reason model.TicketRefusal // "" when it has to do with neither token nor address
}

func (r refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// refuseToken is said in the same words of all that is wrong with a token, so that
// nobody learns which tokens or UUIDs there are. Who has shown a good token may be
// told more, and without tokens upstream's answers tell it anyway.
func refuseToken(reason model.TicketRefusal) error {
	return refusal{http.StatusForbidden, "this token is not of an open boot ticket of this server", reason}
}
