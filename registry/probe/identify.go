package probe

import (
	"errors"
	"net/http"

	"ingot/model"
)

// reporter is the server that a request is about.
type reporter struct {
	namesakes []model.TicketHolder // all servers with its UUID
	uuid      string               // canonical
	holder    model.TicketHolder
	known     bool
}

// identify finds the server with a UUID, and checks the token and the address that the request came from. Only a client
// with the token learns that its address is wrong.
func (q *request) identify(uuid string) (reporter, error) {
	canonical, err := model.CanonicalUUID(uuid)
	if err == nil && !model.UsableUUID(canonical) {
		err = errors.New("found the UUID of firmware that has none, want the machine's own")
	}
	if err != nil {
		return reporter{}, refuse(http.StatusBadRequest, "systemUUID: %v", err)
	}
	rep := reporter{uuid: canonical, namesakes: q.endpoint.Registry.Namesakes(canonical)}
	if rep.known = len(rep.namesakes) == 1; rep.known {
		rep.holder = rep.namesakes[0]
	}
	q.ticket = rep.holder.Ticket
	misplaced := q.checkAddress(rep)
	if err := q.checkToken(rep, q.PathValue("token")); err != nil {
		return reporter{}, err
	}
	q.by.Token = true
	return rep, misplaced
}

// checkToken refuses tokens that are not of the server's newest ticket, or of one
// that is Spent.
func (q *request) checkToken(rep reporter, token string) error {
	t := rep.holder.Ticket
	switch {
	case !rep.known:
		return q.refuseUnknown(rep, token)
	case t == nil, !q.endpoint.Tokens.MayReport(t, token):
		return refuseToken(model.RefusedToken)
	case t.Ended == model.TicketSpent:
		return refuseToken(model.RefusedSpent)
	}
	return nil
}

// refuseUnknown refuses tokens where no one server has the UUID. A client that has one of
// several that share it is told (R12).
func (q *request) refuseUnknown(rep reporter, token string) error {
	for _, holder := range rep.namesakes {
		if holder.Ticket != nil && q.endpoint.Tokens.MayReport(holder.Ticket, token) {
			return refuse(http.StatusNotFound, "%d servers have the system UUID %s, so nobody knows which one reports", len(rep.namesakes), rep.uuid)
		}
	}
	if len(rep.namesakes) == 0 {
		q.endpoint.metrics.unknown.Inc()
	}
	return refuseToken(model.RefusedToken)
}

// checkAddress refuses addresses that the server may not report from.
func (q *request) checkAddress(rep reporter) error {
	bound := q.endpoint.Bound
	if bound == nil || !rep.known {
		return nil
	}
	by, reason, text := bound(rep.holder, q.client)
	q.by = by
	if reason != "" {
		return refusal{http.StatusForbidden, text, reason}
	}
	return nil
}
