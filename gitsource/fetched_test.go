package gitsource

import (
	"os"
	"testing"
	"time"

	"ingot/model/must"
)

func TestWhenTheBranchWasLastReadIsKnown(t *testing.T) {
	t.Parallel()
	repo, c := newRepo(t), newClock()
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "os:1")}, "begin"))
	opts := testOptions(t, repo.URL())
	opts.Clock = c.Now
	s := newSource(t, opts)
	if at := s.FetchedAt(); !at.IsZero() {
		t.Errorf("before the first look it was read at %s", at)
	}
	mustSync(t, s)
	read := c.now
	if at := s.FetchedAt(); !at.Equal(read) {
		t.Errorf("read at %s, want %s", at, read)
	}
	c.now = c.now.Add(time.Hour)
	must.Do(t, os.RemoveAll(repo.Dir))
	if err := s.Sync(t.Context()); err == nil {
		t.Fatal("a repository that is gone was read")
	}
	if at := s.FetchedAt(); !at.Equal(read) {
		t.Errorf("after a look that failed it was read at %s, want %s", at, read)
	}
}
