package merge

import (
	"testing"
)

func TestABrokenFileOfTheStatusBranchLosesOnlyItself(t *testing.T) {
	files := map[string][]byte{
		"servers/a.yaml":   []byte("record: {name: a, state: Reserved, claim: default/web}"),
		"servers/b.yaml":   []byte("record: [1"),
		"servers/c.yaml":   []byte("status: {}"),
		"README.md":        []byte("# Fleet"),
		"revision.yaml":    []byte("record: {applied: main@sha1:1, sequence: 4}"),
		"endpoints/x.yaml": []byte("spec: {}"),
	}
	r, problems := restored(files)
	if len(problems) != 2 || len(r.Servers) != 1 || r.Servers["a"].Doubt == nil || r.Fleet.Sequence != 4 {
		t.Errorf("got %d problems %v, servers %v, fleet %+v", len(problems), problems, r.Servers, r.Fleet)
	}
}
