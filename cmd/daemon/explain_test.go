package daemon

import (
	"net/http"
	"strings"
	"testing"

	"ingot/reconcile/report"
)

// explainable are the files of a status branch.
var explainable = map[string][]byte{
	"serverclaims/default/web.yaml": []byte("metadata: {name: web, namespace: default}\nspec: {image: registry.example.com/os:1}\nstatus: {phase: Bound, server: s1}\n"),
	"servers/s1.yaml":               []byte("metadata: {name: s1}\nstatus: {state: Reserved, bootTimeline: [{stage: TFTP, at: \"2026-11-21T08:00:03Z\"}]}\n"),
}

func TestTheExplanationForPrograms(t *testing.T) {
	a := admin{explain: func(kind, name string) (report.Explanation, error) {
		return report.ExplainFiles(explainable, kind, name)
	}}
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"server/s1":         {http.StatusOK, `"stage": "TFTP"`},
		"claim/default/web": {http.StatusOK, `"state": "Bound"`},
		"server/s2":         {http.StatusNotFound, "server s2 is not known, did you mean s1?\n"},
		"secret/s1":         {http.StatusBadRequest, "is no kind that can be explained"},
	} {
		w := ask(a, http.MethodGet, "/api/v1/explain/"+path)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}
