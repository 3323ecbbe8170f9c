package gitsource

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

func TestTheHistoryOfAnObjectIsWhatCommitsSayOfIt(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	publish := func(b *StatusBranch, content string, body ...string) {
		t.Helper()
		r := report(1, map[string]string{"README.md": content})
		r.Subject, r.Body = body[0], body
		ok[Published](t)(b.Publish(t.Context(), r))
	}
	publish(b, "1", "rack1-07: Available → Reserved for default/web-1", "rack1-070: Available")
	publish(b, "2", "default/web-1: Booted on rack1-07")
	publish(b, "3", "rack1-070: Cleanup")
	log := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))

	again := newStatus(t, repo.URL(), Auth{})
	must.Do(t, again.Remember(t.Context()))
	at := newClock().Now()
	want := []StatusCommit{
		{log[1].Hash, at, []string{"default/web-1: Booted on rack1-07"}},
		{log[2].Hash, at, []string{"rack1-07: Available → Reserved for default/web-1"}},
	}
	for name, b := range map[string]*StatusBranch{"of the process that wrote it": b, "of another that read it": again} {
		if diff := cmp.Diff(want, b.History("rack1-07", 50)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want[:1], b.History("rack1-07", 1)); diff != "" {
			t.Errorf("%s, of which one is asked for (-want +got):\n%s", name, diff)
		}
		if newest, _ := b.Newest(); newest.Hash != log[0].Hash {
			t.Errorf("%s: the newest is %v, want %s", name, newest, log[0].Hash)
		}
	}
}

func TestTheHistoryInMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var c chronicle
	for i := range 3 * maxChronicle {
		c.note(StatusCommit{Hash: fmt.Sprint(i), At: time.Unix(int64(i), 0), Lines: []string{fmt.Sprintf("s%d: On", i)}})
	}
	if len(c.commits) != maxChronicle || c.about("s0", 1) != nil || len(c.about(fmt.Sprintf("s%d", 3*maxChronicle-1), 1)) != 1 {
		t.Errorf("%d commits are kept, the oldest %v", len(c.commits), c.commits[0])
	}
	for i := range 100 {
		c.note(StatusCommit{Hash: fmt.Sprint(i), Lines: messageLines("much\n\n" + strings.Repeat("x", 1<<20))})
	}
	if c.size > maxChronicleBytes {
		t.Errorf("%d bytes are kept", c.size)
	}
}

func TestWhatAStatusCommitSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message string
		want    []string
	}{
		"a subject that is all":       {"s1: On\n\n" + noBuild + "\n\nRevision: s2\n", []string{"s1: On"}},
		"a body that has all":         {"s1: On +1\n\ns1: On\ns2: Off\n" + noBuild + "\n\nRevision: s3\n", []string{"s1: On", "s2: Off"}},
		"somebody else's commit":      {"look at me\n", []string{"look at me"}},
		"one with control characters": {"look\tat\rme\n", []string{"look at me"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messageLines(tc.message)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
