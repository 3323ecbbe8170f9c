package ledger

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

func TestRevisionsOfARepository(t *testing.T) {
	t.Run("noted by the hook", func(t *testing.T) { testRevisions(t, func(*gitserver.Repo) {}) })
	t.Run("noted in process", func(t *testing.T) { testRevisions(t, func(r *gitserver.Repo) { r.OnUpdate = Noter(r.Dir) }) })
}

func testRevisions(t *testing.T, prepare func(*gitserver.Repo)) {
	t.Helper()
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Do(t, Watch(repo.Dir))
	prepare(repo)
	web, db := manifest("claim", "web", nil), manifest("claim", "db", nil)
	began := time.Now()
	must.Get(repo.Commit(map[string]string{"a/web.yaml": web, "a/db.yaml": db, "a/README.md": "no manifest\n"}, "begin"))(t)
	must.Get(repo.Commit(map[string]string{"b/web.yaml": "spec: ["}, "elsewhere"))(t)
	must.Get(repo.Remove("release db", "a/db.yaml"))(t)
	must.Get(repo.ForcePush(map[string]string{"a/db.yaml": db}, "anew"))(t)
	must.Get(repo.Commit(map[string]string{"note.txt": "\n"}, "yes\n\nIngot-Approve: token\n"))(t)
	must.Get(repo.CommitTo("other", map[string]string{"a/web.yaml": web}, "another branch"))(t)
	must.Do(t, repo.SetBranch("main", repo.Head("main")+"~1"))
	must.Get(repo.Clear("nothing is left"))(t)

	pushes, err := Pushes(repo.Dir)
	if err != nil || len(pushes) != 8 {
		t.Fatalf("there are %d pushes, %v; want 8", len(pushes), err)
	}
	later := time.Now()
	got := must.Get(NewReader(repo.Dir).Revisions(pushes, []Configuration{{Branch: "main", Path: "a"}, {At: later, Branch: "other", Path: "a"}}))(t)
	type seen struct {
		Files              int
		Descends, Approves bool
	}
	want := []seen{
		{Files: 2}, {Files: 2, Descends: true}, {Files: 1, Descends: true}, {Files: 1},
		{Files: 1, Descends: true, Approves: true}, {Files: 1},
	}
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

func TestAPushIsNoYoungerThanItCouldBeSeen(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.Commit(map[string]string{"README.md": "0\n"}, "begin"))(t)
	must.Do(t, Watch(repo.Dir))
	seen := make(chan time.Time, 1)
	go func() {
		for before := repo.Head("main"); repo.Head("main") == before; {
		}
		seen <- time.Now()
	}()
	began := time.Now()
	must.Get(repo.Commit(map[string]string{"README.md": "1\n"}, "look"))(t)
	at := <-seen
	pushes, err := Pushes(repo.Dir)
	if err != nil || len(pushes) != 1 {
		t.Fatalf("pushes are %v, %v; want one", pushes, err)
	}
	if got := pushes[0].At; got.Before(began) || got.After(at) {
		t.Errorf("the push is of %s, want between %s, when it began, and %s, when it was seen", got, began, at)
	}
}

func TestAReaderReadsEachObjectOnce(t *testing.T) {
	dir := t.TempDir()
	repo := must.Get(gitserver.New(dir, "fleet"))(t)
	must.Do(t, Watch(repo.Dir))
	must.Get(repo.Commit(map[string]string{"web.yaml": manifest("claim", "web", nil)}, "begin"))(t)
	pushes := must.Get(Pushes(repo.Dir))(t)
	r := NewReader(repo.Dir)
	read := func(pushes ...Push) ([]Revision, error) {
		return r.Revisions(pushes, []Configuration{{Branch: "main"}})
	}
	want, err := read(pushes...)
	if err != nil || len(want) != 1 {
		t.Fatalf("got %d revisions, %v; want one", len(want), err)
	}
	unknown := strings.Repeat("12", 20)
	if _, err := read(Push{At: time.Now(), Branch: "main", New: unknown}); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("a commit that is not there: %v, want an error that names it", err)
	}
	must.Do(t, os.Rename(repo.Dir, repo.Dir+".moved"))
	got, err := read(pushes...)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("once the repository is gone: %v\n%s", err, diff)
	}
	_, err = read(Push{At: time.Now(), Branch: "main", New: unknown})
	if err == nil || !strings.Contains(err.Error(), "cannot change to") {
		t.Errorf("a repository that is gone: %v, want what git says", err)
	}
}
