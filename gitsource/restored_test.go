package gitsource

import (
	"os"
	"testing"

	"ingot/model/must"
)

func TestARevisionKeptOverARestartIsMarkedUntilTheBranchWasLookedAt(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	must.Get(repo.Commit(map[string]string{"a.yaml": claimYAML("a", "os:1")}, "add"))(t)
	opts := testOptions(t, repo.URL())
	first := newSource(t, opts)
	mustSync(t, first)
	if first.Desired().KeptOverRestart {
		t.Error("what was just fetched is marked as kept")
	}
	first.close()

	away := repo.Dir + ".away"
	must.Do(t, os.Rename(repo.Dir, away))
	second := begun(t, opts, records(first.Desired()))
	if err := second.Sync(t.Context()); err == nil {
		t.Fatal("a repository that is gone was read")
	}
	if d := second.Desired(); d == nil || !d.KeptOverRestart || d.Claims["default/a"] == nil {
		t.Fatalf("without the repository %+v is in force, want what was kept, marked", d)
	}
	must.Do(t, os.Rename(away, repo.Dir))
	mustSync(t, second)
	if d := second.Desired(); d.KeptOverRestart || d.Claims["default/a"] == nil {
		t.Errorf("once the branch was looked at %+v is in force, want it unmarked", d)
	}
}
