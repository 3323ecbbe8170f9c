package ledger

import (
	"testing"
	"time"

	"ingot/gitsource/gitserver"
)

func TestRevisionsOfARepository(t *testing.T) {
	repo, err := gitserver.New(t.TempDir(), "fleet")
	if err != nil {
		t.Fatal(err)
	}
	if err := Watch(repo.Dir); err != nil {
		t.Fatal(err)
	}
	web, db := manifest("claim", "web", nil), manifest("claim", "db", nil)
	must := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	must(repo.Commit(map[string]string{"a/web.yaml": web, "a/db.yaml": db, "a/README.md": "no manifest\n"}, "begin"))
	must(repo.Commit(map[string]string{"b/web.yaml": "spec: ["}, "elsewhere"))
	must(repo.Remove("release db", "a/db.yaml"))
	must(repo.ForcePush(map[string]string{"a/db.yaml": db}, "anew"))
	must(repo.Commit(map[string]string{"note.txt": "\n"}, "yes\n\nIngot-Approve: token\n"))
	must(repo.CommitTo("other", map[string]string{"a/web.yaml": web}, "another branch"))
	must("", repo.SetBranch("main", repo.Head("main")+"~1"))
	must(repo.Clear("nothing is left"))

	pushes, err := Pushes(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now()
	got, err := Revisions(repo.Dir, pushes, []Configuration{{Branch: "main", Path: "a"}, {At: later, Branch: "other", Path: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Files              int
		Descends, Approves bool
	}
	want := []seen{{2, false, false}, {2, true, false}, {1, true, false}, {1, false, false}, {1, true, true}, {1, false, false}, {1, false, false}}
	if len(got) != len(want) {
		t.Fatalf("got %d revisions, want %d: %+v", len(got), len(want), got)
	}
	for i, r := range got {
		if s := (seen{len(r.Files), r.Descends, r.Approves}); s != want[i] {
			t.Errorf("revision %d is %+v, want %+v", i, s, want[i])
		}
		if r.At.Before(began) || r.At.After(later) {
			t.Errorf("revision %d is of %s, want between %s and %s", i, r.At, began, later)
		}
	}
}
