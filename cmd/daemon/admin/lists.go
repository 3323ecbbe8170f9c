package admin

import (
	"fmt"
	"net/http"

	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// serveLists serves the lists of the fleet, and the objects in them that have a document.
func (h *handler) serveLists(mux *http.ServeMux) {
	serveRows(h, mux, query.Servers, func(r *query.Rows) []*query.Server { return r.Servers })
	serveRows(h, mux, query.Claims, func(r *query.Rows) []*query.Claim { return r.Claims })
	serveRows(h, mux, query.BMCs, func(r *query.Rows) []*query.BMC { return r.BMCs })
	serveRows(h, mux, query.Endpoints, func(r *query.Rows) []*query.Endpoint { return r.Endpoints })
	serveRows(h, mux, query.Problems, func(r *query.Rows) []*query.Problem { return r.Problems })
	serveFacts(h, mux, query.Leases, h.fleet.Leases)
	serveFacts(h, mux, query.Pools, h.fleet.Pools)
	serveFacts(h, mux, query.Images, h.fleet.Images)

	serveObject(h, mux, query.Servers, func(r *query.Rows) []*query.Server { return r.Servers }, newServerObject)
	serveObject(h, mux, query.Claims, func(r *query.Rows) []*query.Claim { return r.Claims }, newClaimObject)
	serveObject(h, mux, query.BMCs, func(r *query.Rows) []*query.BMC { return r.BMCs }, newBMCObject)
	serveObject(h, mux, query.Endpoints, func(r *query.Rows) []*query.Endpoint { return r.Endpoints }, newEndpointObject)
}

// serveRows serves a list of the report, which is the same for as long as the rows are.
func serveRows[R any](h *handler, mux *http.ServeMux, l query.List[R], of func(*query.Rows) []R) {
	mux.HandleFunc("GET /api/v1/"+l.Name(), func(w http.ResponseWriter, r *http.Request) {
		q, err := l.ParseText(r.URL.RawQuery)
		if err != nil {
			refuse(w, err)
			return
		}
		rows := h.fleet.Rows()
		if err := l.CheckNetworks(q, of(rows), h.fleet.Networks()); err != nil {
			refuse(w, err)
			return
		}
		etag := h.etagOf(rows.Generation)
		if !unchanged(w, r, etag) {
			h.answer(w, r, etag, l.Select(of(rows), q))
		}
	})
}

// serveFacts serves a list that is of no report.
func serveFacts[R any](h *handler, mux *http.ServeMux, l query.List[R], rows func() []R) {
	mux.HandleFunc("GET /api/v1/"+l.Name(), func(w http.ResponseWriter, r *http.Request) {
		q, err := l.ParseText(r.URL.RawQuery)
		if err != nil {
			refuse(w, err)
			return
		}
		all := rows()
		if err := l.CheckNetworks(q, all, h.fleet.Networks()); err != nil {
			refuse(w, err)
			return
		}
		h.answer(w, r, "", l.Select(all, q))
	})
}

// serveObject serves the objects of a list, each by its name.
func serveObject[R, O any](h *handler, mux *http.ServeMux, l query.List[R], of func(*query.Rows) []R, object func(R) O) {
	mux.HandleFunc("GET /api/v1/"+l.Name()+"/{name...}", func(w http.ResponseWriter, r *http.Request) {
		rows := h.fleet.Rows()
		row, found := l.Find(of(rows), r.PathValue("name"))
		if !found {
			writeText(w, http.StatusNotFound, fmt.Sprintf("there is none of that name among the %s\n", l.Name()))
			return
		}
		etag := h.etagOf(rows.Generation)
		if !unchanged(w, r, etag) {
			h.answer(w, r, etag, object(row))
		}
	})
}

func refuse(w http.ResponseWriter, err error) {
	writeText(w, http.StatusBadRequest, err.Error()+"\n")
}

// Objects are rows with all else that the status branch shows of the object.
type (
	serverObject struct {
		*query.Server
		Spec   report.ServerSpec   `json:"spec"`
		Status report.ServerStatus `json:"status"`
	}
	claimObject struct {
		*query.Claim
		Spec   any `json:"spec"`
		Status any `json:"status"`
	}
	bmcObject struct {
		*query.BMC
		Spec   report.BMCSpec   `json:"spec"`
		Status report.BMCStatus `json:"status"`
	}
	endpointObject struct {
		*query.Endpoint
		Spec   report.EndpointSpec   `json:"spec"`
		Status report.EndpointStatus `json:"status"`
	}
)

func newServerObject(row *query.Server) (o serverObject) {
	o.Server = row
	o.Spec, _ = row.Document().Spec.(report.ServerSpec)
	o.Status, _ = row.Document().Status.(report.ServerStatus)
	return o
}

func newClaimObject(row *query.Claim) claimObject {
	return claimObject{row, row.Document().Spec, row.Document().Status}
}

func newBMCObject(row *query.BMC) (o bmcObject) {
	o.BMC = row
	o.Spec, _ = row.Document().Spec.(report.BMCSpec)
	o.Status, _ = row.Document().Status.(report.BMCStatus)
	return o
}

func newEndpointObject(row *query.Endpoint) (o endpointObject) {
	o.Endpoint = row
	o.Spec, _ = row.Document().Spec.(report.EndpointSpec)
	o.Status, _ = row.Document().Status.(report.EndpointStatus)
	return o
}
