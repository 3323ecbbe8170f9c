package probe

import (
	"net/http"

	"ingot/model"
)

// bootState takes a server's word that what it booted is up.
func (e *endpoint) bootState(q *request) (answer, error) {
	var body model.ProbeBootState
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	t := rep.holder.Ticket
	if t.Purpose != model.PurposeClaim {
		return answer{}, refuse(http.StatusNotFound, "server with system UUID %s is not claimed", rep.uuid)
	}
	done := answer{code: http.StatusOK}
	if !body.Booted || !t.Open() && body.CloudInit == nil {
		return done, nil
	}
	return done, q.save(t, &model.BootState{Ticket: t.ID, ReceivedAt: q.now(), CloudInit: cloudInitResult(body.CloudInit, q.now())})
}
