package gitsource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLagLastsAsLongAsTheNewestRevisionIsNotInForce(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	now := newClock()
	repo.Clock = now.Now
	opts := testOptions(t, repo.URL())
	opts.Clock = now.Now
	s := newSource(t, opts)
	type seen struct{ lag, inForce, head float64 } // seconds; of commits since the start
	start := now.Now()
	look := func(what string, want seen) {
		t.Helper()
		mustSync(t, s)
		since := func(unix float64) float64 { return unix - float64(start.Unix()) }
		got := seen{s.lag(), since(testutil.ToFloat64(s.metrics.inForce)), since(testutil.ToFloat64(s.metrics.head))}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	pass := func(d time.Duration) { now.now = now.now.Add(d) }

	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "first"))
	look("what is in force is the newest", seen{0, 0, 0})
	pass(time.Minute)
	ok[string](t)(repo.Clear("emptied"))
	look("a revision is refused", seen{0, 0, 60})
	pass(time.Hour)
	look("and still is", seen{3600, 0, 60})
	ok[string](t)(repo.Commit(map[string]string{"LICENSE": "ours"}, "still empty"))
	pass(time.Hour)
	look("another one does not begin it anew", seen{7200, 0, 3660})
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "b")}, "mended"))
	look("one is taken over", seen{0, 7260, 7260})
}
