package probe

import (
	"encoding/json"
	"net/http"
)

func (e *endpoint) system(q *request) (answer, error) {
	rep, err := q.identify(q.PathValue("uuid"))
	if err != nil {
		return answer{}, err
	}
	probe := q.endpoint.Registry.Probe(rep.holder.Server)
	if probe == nil {
		return answer{}, refuse(http.StatusNotFound, "no report of system UUID %s", rep.uuid)
	}
	data := probe.Data
	data.Storage = nil // a wipe is verified by serial numbers, so they stay hidden
	raw, err := json.Marshal(data)
	return answer{http.StatusOK, raw}, err
}
