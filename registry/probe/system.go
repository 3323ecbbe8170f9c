package probe

import (
	"encoding/json"
	"net/http"
)

// system shows what a probe reported.
func (e *endpoint) system(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(q.PathValue("uuid"))
	if err != nil {
		return answer{}, err
	}
	if raw, ok := q.endpoint.unknown.get(rep.uuid); ok && !rep.known && q.PathValue("token") == "" {
		return answer{http.StatusOK, raw}, nil
	}
	missing := refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	if !rep.known {
		return answer{}, missing
	}
	probe := q.endpoint.Registry.Probe(rep.holder.Server)
	if probe == nil {
		return answer{}, missing
	}
	data := probe.Data
	if q.PathValue("token") != "" {
		data.Storage = nil // by serial numbers a wipe is believed: nobody is shown them
	}
	raw, err := json.Marshal(data)
	return answer{http.StatusOK, raw}, err
}

// forget forgets what a probe reported.
func (e *endpoint) forget(q *request) (answer, error) {
	if err := q.admit(); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(q.PathValue("uuid"))
	if err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusOK}
	if q.endpoint.unknown.drop(rep.uuid) {
		return done, nil
	}
	if !rep.known || q.endpoint.Registry.Probe(rep.holder.Server) == nil {
		return answer{}, refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	}
	return done, q.endpoint.Registry.ForgetProbe(q.Context(), rep.holder.Server)
}
