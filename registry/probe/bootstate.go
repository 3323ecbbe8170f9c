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
	state := &model.BootState{Ticket: t.ID, ReceivedAt: q.now(), CloudInit: cloudInitResult(body.CloudInit, q.now())}
	if q.client.IsGlobalUnicast() && !q.isProxied() {
		state.Client = q.client.String()
	}
	return done, q.save(t, state)
}

// isProxied reports whether a proxy says that it passed the request on, so that its address is not the machine's.
func (q *request) isProxied() bool {
	return q.Header.Get("Forwarded") != "" || q.Header.Get("X-Forwarded-For") != "" || q.Header.Get("Via") != ""
}
