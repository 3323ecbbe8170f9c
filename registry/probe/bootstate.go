package probe

import (
	"net/http"

	"ingot/model"
)

// bootState takes a server's word that what it booted is up.
func (e *endpoint) bootState(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	var body model.ProbeBootState
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	t := rep.holder.Ticket
	if t == nil || t.Purpose != model.PurposeClaim {
		return answer{}, refuse(http.StatusNotFound, "no claimed server, or more than one, has the system UUID %s", rep.uuid)
	}
	done := answer{code: http.StatusOK}
	if !body.Booted || !t.Open() && body.CloudInit == nil {
		return done, nil
	}
	return done, q.save(t, &model.BootState{Ticket: t.ID, ReceivedAt: q.now(), CloudInit: cloudInitResult(body.CloudInit, q.now())})
}
