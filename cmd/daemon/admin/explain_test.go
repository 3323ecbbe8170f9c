package admin

import (
	"net/http"
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/report"
)

var explainable = map[string][]byte{
	"serverclaims/default/web.yaml": []byte("metadata: {name: web, namespace: default}\n" +
		"spec: {image: registry.example.com/os:1}\nstatus: {phase: Bound, server: s1, " +
		"conditions: [{type: Bound, status: \"True\", reason: Bound}]}\n"),
	"servers/s1.yaml": []byte("metadata: {name: s1}\n" +
		"status: {state: Reserved, bootTimeline: [{stage: TFTP, at: \"2026-11-21T08:00:03Z\"}]}\n"),
}

func TestTheExplanationForPrograms(t *testing.T) {
	o := Options{Fleet: aFleet{explain: func(kind, name string) (report.Explanation, error) {
		return report.ExplainFiles(explainable, kind, name)
	}}}
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"server/s1":         {code: http.StatusOK, body: `"stage": "TFTP"`},
		"claim/default/web": {code: http.StatusOK, body: `"state": "Bound"`},
		"server/s2":         {code: http.StatusNotFound, body: "server s2 is not known, did you mean s1?\n"},
		"secret/s1":         {code: http.StatusBadRequest, body: "is no kind that can be explained"},
	} {
		w := ask(o, http.MethodGet, "/api/v1/explain/"+path)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

func TestANetworkCardForPrograms(t *testing.T) {
	o := Options{Fleet: aFleet{card: report.Card{MAC: "02:00:00:00:00:0a", Server: "s1", Events: []model.CardEvent{{Asked: "ipxe.efi"}}}}}
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"02:00:00:00:00:0a": {http.StatusOK, `"asked": "ipxe.efi"`},
		"02-00-00-00-00-0A": {http.StatusOK, `"mac": "02:00:00:00:00:0a"`},
		"02:00:00:00:00:0b": {http.StatusNotFound, "the network card 02:00:00:00:00:0b is not known: it asked this process for nothing, and no server has it\n"},
		"s1":                {http.StatusBadRequest, "\"s1\" is no MAC address: write it as 02:00:00:00:00:0a\n"},
	} {
		w := ask(o, http.MethodGet, "/api/v1/cards/"+path)
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.body) {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}
