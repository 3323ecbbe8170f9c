package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachListThatIsHeldSaysWhatWillHappen(t *testing.T) {
	for name, tc := range map[string]struct {
		revision string
		want     []string // subject, token and effects of each list
		leftOut  string
	}{
		"nothing": {revision: "decided: {}"},
		"a list that is longer than is shown": {
			revision: "guard: [{message: 3 steps wait, leftOut: 2 steps}]\ndecided: {holds: [{token: t, steps: [{action: power-off, server: s1, claim: default/web}]}]}",
			want:     []string{"approve a list of steps held by the guard|t|server s1 is powered off, as claim default/web asks for"},
			leftOut:  "2 steps",
		},
		"a fleet that nobody knew": {
			revision: "decided: {unknownToken: t}",
			want:     []string{"approve that claims are bound|t|claim default/db is given a free server, which is installed for it"},
		},
		"a record that nobody can read": {
			revision: "decided: {unreadable: [{server: s2, token: t}]}",
			want: []string{"approve that the record of s2 is given up|t|" +
				"what was decided about server s2 is forgotten, also that a claim has it"},
		},
		"what Git has otherwise": {
			revision: "decided: {absent: [{identity: {kind: ServerClaim, namespace: default, name: web}, blob: b, token: u}, " +
				"{identity: {kind: ServerMaintenance, name: m}, token: v}], absentToken: t, absentMore: 1}",
			want: []string{"approve 3 objects absent without a commit|t|" +
				"ServerClaim default/web becomes what Git has in its place; it has server s1|ServerMaintenance m is removed: its server goes back into service"},
			leftOut: "1 object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			held, observed, err := ReadHeld(map[string][]byte{
				"revision.yaml":                []byte("observedRevision: main@sha1:aa\n" + tc.revision),
				"servers/s1.yaml":              []byte("metadata: {name: s1}\ndecided: {identity: {name: s1}, claim: {name: default/web}}"),
				"servers/s2.yaml":              []byte("metadata: {name: s2}\ndecided: {identity: {name: s2}, claim: {name: default/web}, life: {state: Released}}"), // had it before
				"serverclaims/default/db.yaml": []byte("kind: ServerClaim\nmetadata: {namespace: default, name: db}"),
			})
			if err != nil || observed != "main@sha1:aa" {
				t.Fatal(observed, err)
			}
			var got []string
			for _, h := range held {
				line := []string{h.Subject, h.Token}
				for _, e := range h.Effects {
					line = append(line, e.Text)
				}
				got = append(got, strings.Join(line, "|"))
				if h.LeftOut != tc.leftOut {
					t.Errorf("left out: got %q, want %q", h.LeftOut, tc.leftOut)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestServersFoundRunningAfterAGapAreOneList(t *testing.T) {
	held, _, err := ReadHeld(map[string][]byte{
		"revision.yaml":   []byte("decided: {gapToken: t}"),
		"servers/s1.yaml": []byte("metadata: {name: s1}\ndecided: {identity: {name: s1}, life: {state: Available, foundRunning: 2026-11-29T10:00:00Z}}"),
		"servers/s2.yaml": []byte("metadata: {name: s2}\ndecided: {identity: {name: s2}, life: {state: Cleanup, foundRunning: 2026-11-29T10:00:00Z}}"),
		"servers/s3.yaml": []byte("metadata: {name: s3}\ndecided: {identity: {name: s3}, life: {state: Available}}"),
	})
	if err != nil || len(held) != 1 || held[0].Token != "t" || len(held[0].Effects) != 2 || !strings.Contains(held[0].Effects[1].Text, "server s2") {
		t.Errorf("got %+v, %v", held, err)
	}
}
