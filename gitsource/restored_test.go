package gitsource

import (
	"os"
	"testing"
)

func TestARevisionKeptOverARestartIsMarkedUntilTheBranchWasLookedAt(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	if _, err := repo.Commit(map[string]string{"a.yaml": claimYAML("a", "os:1")}, "add"); err != nil {
		t.Fatal(err)
	}
	opts := testOptions(t, repo.URL())
	first := newSource(t, opts)
	mustSync(t, first)
	if first.Desired().KeptOverRestart {
		t.Error("what was just fetched is marked as kept")
	}
	first.close()

	away := repo.Dir + ".away"
	if err := os.Rename(repo.Dir, away); err != nil {
		t.Fatal(err)
	}
	second := begun(t, opts, records(first.Desired()))
	if err := second.Sync(t.Context()); err == nil {
		t.Fatal("a repository that is gone was read")
	}
	if d := second.Desired(); d == nil || !d.KeptOverRestart || d.Claims["default/a"] == nil {
		t.Fatalf("without the repository %+v is in force, want what was kept, marked", d)
	}
	if err := os.Rename(away, repo.Dir); err != nil {
		t.Fatal(err)
	}
	mustSync(t, second)
	if d := second.Desired(); d.KeptOverRestart || d.Claims["default/a"] == nil {
		t.Errorf("once the branch was looked at %+v is in force, want it unmarked", d)
	}
}
