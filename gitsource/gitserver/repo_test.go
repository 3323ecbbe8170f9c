package gitserver

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"ingot/model/must"
)

func newRepo(t *testing.T) *Repo {
	t.Helper()
	return must.Get(New(t.TempDir(), "fleet"))(t)
}

func (r *Repo) must(t *testing.T) func(string, error) string {
	return func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
}

func TestARepositoryThatExistsIsKept(t *testing.T) {
	r := newRepo(t)
	must := r.must(t)
	head := must(r.Commit(map[string]string{"a": "1"}, "begin"))
	again, err := New(strings.TrimSuffix(r.Dir, "/fleet.git"), "fleet")
	if err != nil || again.Head(Branch) != head {
		t.Errorf("head is %q, %v; want %q", again.Head(Branch), err, head)
	}
	for key, want := range map[string]string{"http.receivepack": "true", "receive.autogc": "false", "core.bare": "true"} {
		if got := must(again.Git("config", "--get-all", key)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestHeadIsWhatGitSays(t *testing.T) {
	r := newRepo(t)
	must := r.must(t)
	first := must(r.Commit(map[string]string{"a": "1"}, "begin"))
	must(r.Git("symbolic-ref", "refs/heads/alias", "refs/heads/main"))
	must(r.CommitTo("a/b", map[string]string{"a": "2"}, "in a folder"))
	check := func(when string) {
		t.Helper()
		for _, branch := range []string{"main", "alias", "a/b", "a", "none"} {
			want, err := r.Git("rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
			if err != nil {
				want = ""
			}
			if got := r.Head(branch); got != strings.TrimSpace(want) {
				t.Errorf("%s: head of %s is %q, git says %q", when, branch, got, want)
			}
		}
	}
	check("loose")
	must(r.Git("pack-refs", "--all"))
	check("packed")
	must(r.Commit(map[string]string{"a": "3"}, "on top of what is packed"))
	check("both")
	must("", r.SetBranch("main", first))
	check("set back")
	must("", r.DeleteBranch("main"))
	check("deleted")
}

func TestABranchThatStaysIsReadOnce(t *testing.T) {
	r := newRepo(t)
	must := r.must(t)
	want := map[string]string{"a": "1", "b/c": "2"}
	must(r.Commit(want, "begin"))
	for i := range 3 {
		got, err := r.ReadBranch(Branch)
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("reading %d: %v, %v; want %v", i, got, err, want)
		}
		got["a"] = "what a caller does with it"
		t.Setenv("PATH", "") // there is no git from now on
	}
}

func TestABranchIsReadWholeWhileItMoves(t *testing.T) {
	r := newRepo(t)
	must := r.must(t)
	write := func(i int) {
		n := fmt.Sprint(i)
		must(r.Commit(map[string]string{"a": n, "b": n}, n))
	}
	write(0)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for last := 0; ; {
				files, err := r.ReadBranch(Branch)
				var now int
				if _, bad := fmt.Sscan(files["a"], &now); bad != nil || err != nil || files["a"] != files["b"] || now < last {
					t.Errorf("read %v, %v after commit %d", files, err, last)
					return
				}
				last = now
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 10 {
		write(i + 1)
	}
	close(done)
	readers.Wait()
	if files, err := r.ReadBranch(Branch); err != nil || files["a"] != "10" {
		t.Errorf("read %v, %v at the end", files, err)
	}
}
