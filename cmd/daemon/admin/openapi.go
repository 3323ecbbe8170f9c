package admin

import (
	_ "embed" // the description of the API
	"net/http"
)

// openAPI describes the API (OpenAPI 3.1). It is written by a test, of the types of the
// answers, with -update; the test compares it with what is answered.
//
//go:embed openapi.json
var openAPI []byte

func serveOpenAPI(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		write(w, http.StatusOK, openAPI)
	})
}
