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
		"nothing": {revision: "record: {}"},
		"a list that is longer than is shown": {
			revision: "guard: [{message: 3 steps wait, leftOut: 2 steps}]\nrecord: {holds: [{token: t, steps: [{action: power-off, server: s1, claim: default/web}]}]}",
			want:     []string{"approve a list of steps held by the guard|t|server s1 is powered off, as claim default/web asks for"},
			leftOut:  "2 steps",
		},
		"a fleet that nobody knew": {
			revision: "record: {unknownToken: t}",
			want:     []string{"approve that claims are bound|t|claim default/db is given a free server, which is installed for it"},
		},
		"a record that nobody can read": {
			revision: "record: {unreadable: [{server: s2, token: t}]}",
			want: []string{"approve that the record of s2 is given up|t|" +
				"what was decided about server s2 is forgotten, also that a claim has it"},
		},
		"what Git has otherwise": {
			revision: "record: {absent: [{identity: {kind: ServerClaim, namespace: default, name: web}, blob: b, token: u}, " +
				"{identity: {kind: ServerMaintenance, name: m}, token: v}], absentToken: t, absentMore: 1}",
			want: []string{"approve 3 objects absent without a commit|t|" +
				"ServerClaim default/web becomes what Git has in its place; it has server s1|ServerMaintenance m is removed: its server goes back into service"},
			leftOut: "1 object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			held, observed, err := ReadHeld(map[string][]byte{
				"revision.yaml":                []byte("observedRevision: main@sha1:aa\n" + tc.revision),
				"servers/s1.yaml":              []byte("metadata: {name: s1}\nrecord: {name: s1, claim: default/web}"),
				"servers/s2.yaml":              []byte("metadata: {name: s2}\nrecord: {name: s2, claim: default/web, state: Released}"), // had it before
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

func TestOfADisputedServerEachCopyIsAListOfItsOwn(t *testing.T) {
	held, _, err := ReadHeld(map[string][]byte{
		"revision.yaml": []byte("record: {}"),
		"servers/s1.yaml": []byte("metadata: {name: s1}\nrecord: {name: s1, doubt: {reason: Disputed, alternatives: " +
			"[{token: t, from: store, state: Available}, {token: u, from: status branch, state: Reserved, claim: default/web}]}}"),
	})
	if err != nil || len(held) != 2 {
		t.Fatalf("%+v, %v", held, err)
	}
	if want := "server s1 is taken to be Reserved for default/web, as the status branch says"; held[1].Token != "u" || held[1].Effects[0].Text != want {
		t.Errorf("got %+v, want %s", held[1], want)
	}
}
