package gitsource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// branched makes commits on a branch from main, which the acts merge at last.
func branched(acts ...act) act {
	return func(w *watch) {
		must.Do(w.T, w.repo.SetBranch("base", w.repo.Head("main")))
		for _, do := range acts {
			do(w)
		}
	}
}

// join has main be a commit with the files of its head and these parents.
func join(w *watch, parents ...string) {
	w.Helper()
	args := []string{"-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", w.repo.Head("main") + "^{tree}", "-m", "join"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	must.Do(w.T, w.repo.SetBranch("main", strings.TrimSpace(must.Get(w.repo.Git(args...))(w.T))))
}

func mergeCommit(w *watch) { join(w, w.repo.Head("base"), w.repo.Head("main")) }
func squash(w *watch)      { join(w, w.repo.Head("base")) }

// reversed merges main into a commit that was made elsewhere, as "git pull" does.
func reversed(w *watch) {
	base := w.repo.Head("base")
	join(w, base+"~1") // the head's files, on top of a commit older than the base
	join(w, w.repo.Head("main"), base)
}

func TestEachCommitIsJudgedForItself(t *testing.T) {
	t.Parallel()
	web, db := claimYAML("web", "a"), claimYAML("db", "b")
	both := map[string]string{"web.yaml": web, "db.yaml": db}
	begin := chapter{acts: []act{put(both)}, want: seen{Claims: map[string]string{"web": "a", "db": "b"}}}
	shop := map[string]string{"shop": "a", "db": "b"}
	renamed := seen{Claims: shop, Renamed: []string{"default/web > default/shop"}}
	removed := seen{Claims: shop, Removed: []string{webRemoved}}
	unclear := seen{Claims: map[string]string{"web": "a", "shop": "a", "db": "b"}, Absent: []string{"ServerClaim default/web: NameUnclear"}}
	readme := put(map[string]string{"README.md": "x"})
	remove, add := take("web.yaml"), put(map[string]string{"shop.yaml": claimYAML("shop", "a")})
	rename := change(map[string]string{"shop.yaml": claimYAML("shop", "a")}, "web.yaml")
	unreadable := func(w *watch) { ok[string](w.T)(w.repo.Clear("nothing is left")) }
	tests := map[string][]chapter{
		"a removal and an addition by two commits are no rename": {begin, {acts: []act{remove, add}, want: removed}},
		"a rename in one commit of several is one":               {begin, {acts: []act{readme, rename, put(map[string]string{"README.md": "y"})}, want: renamed}},
		"a branch is two commits after a rebase":                 {begin, {acts: []act{branched(remove, add)}, want: removed}},
		"one commit after a squash":                              {begin, {acts: []act{branched(remove, add, squash)}, want: renamed}},
		"and one after a merge":                                  {begin, {acts: []act{branched(remove, add, mergeCommit)}, want: renamed}},
		"a merge the other way round renames nothing":            {begin, {acts: []act{readme}, want: begin.want}, {acts: []act{branched(rename, reversed)}, want: unclear}},
		"a removal that a later commit undoes does not count": {
			begin,
			{acts: []act{remove, put(map[string]string{"x/web.yaml": claimYAML("web", "c")})}, want: seen{Claims: map[string]string{"web": "c", "db": "b"}}},
			{acts: []act{take("x")}, want: seen{Claims: map[string]string{"db": "b"}, Removed: []string{webRemoved}}},
		},
		"nor does one that is undone with a change that is refused: the claim stays as it was": {
			begin,
			{acts: []act{remove, put(map[string]string{"web.yaml": claimYAML("web", "immutable")})}, want: seen{Claims: map[string]string{"web": "a", "db": "b"}}},
		},
		"a removal that was seen and is undone later is another matter": {
			begin,
			{acts: []act{remove}, want: seen{Claims: map[string]string{"db": "b"}, Removed: []string{webRemoved}}},
			{acts: []act{put(map[string]string{"web.yaml": claimYAML("web", "immutable")})}, want: seen{Claims: map[string]string{"web": "immutable", "db": "b"}}},
		},
		"a commit that cannot be used is joined with the next": {
			begin,
			{acts: []act{unreadable, func(w *watch) {
				ok[string](w.T)(w.repo.Replace(map[string]string{"db.yaml": db, "shop.yaml": claimYAML("shop", "a")}, "again"))
			}}, want: unclear},
		},
		"and removes what the next does not have": {
			begin,
			{acts: []act{unreadable, put(map[string]string{"db.yaml": db})}, want: seen{Claims: map[string]string{"db": "b"}, Removed: []string{webRemoved}}},
		},
		"a commit further back than the server is asked for at first is found": {
			begin,
			{
				acts: []act{rename, func(w *watch) {
					for i := range fetchDepth + 5 {
						put(map[string]string{"README.md": fmt.Sprint(i)})(w)
					}
				}},
				want: renamed,
			},
		},
	}
	for name, chapters := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, nil)
			for i, c := range chapters {
				for _, do := range c.acts {
					do(w)
				}
				w.look()
				if diff := cmp.Diff(c.want, see(w.d)); diff != "" {
					t.Fatalf("chapter %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestARemovalNamesTheCommitThatMadeIt(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
	w.look()
	take("web.yaml")(w)
	removal := w.repo.Head("main")
	put(map[string]string{"README.md": "x"})(w)
	w.look()
	r, _ := w.d.RemovalOf(model.ClaimName("default/web").Identity(), "")
	if want := model.Revision("main@sha1:" + removal); r.Revision != want || w.d.Revision != model.Revision("main@sha1:"+w.repo.Head("main")) {
		t.Errorf("removed by %s, want %s; in force is %s", r.Revision, want, w.d.Revision)
	}
}

func TestAnApprovalCountsFromItsCommitOn(t *testing.T) {
	t.Parallel()
	w := newWatch(t, nil)
	both := map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")}
	put(both)(w)
	w.look()
	rewrite(map[string]string{"db.yaml": both["db.yaml"]})(w)
	w.look()
	put(map[string]string{"README.md": "x"})(w)
	approve("list")(w)
	approval := w.repo.Head("main")
	put(map[string]string{"README.md": "y"})(w)
	w.look()
	r, removed := w.d.RemovalOf(model.ClaimName("default/web").Identity(), "")
	if !removed || !r.Approved || r.Revision != model.Revision("main@sha1:"+approval) {
		t.Errorf("removed %+v, want it approved by %s", r, approval)
	}
}

// A signature of the head does not make two commits of other people one change.
func TestUnsignedCommitIsJoinedWithTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  func(w *signedWatch) *gitserver.SigningKey
		want bool
	}{
		"signed":     {func(w *signedWatch) *gitserver.SigningKey { return &w.alice }, true},
		"not signed": {func(*signedWatch) *gitserver.SigningKey { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSignedWatch(t, nil)
			w.signed(w.alice, "one", images{"web": "a", "db": "b"})
			w.expect("the first", images{"web": "a", "db": "b"}, "")
			w.repo.Key = c.key(w)
			change(map[string]string{"shop.yaml": claimYAML("shop", "a")}, "web.yaml")(w.watch)
			w.repo.Key = &w.alice
			put(map[string]string{"README.md": "x"})(w.watch)
			w.look()
			if got := w.d.NameNow("default/web", "") == "default/shop"; got != c.want || (len(w.d.Absent) == 1) == c.want || len(w.d.Removed) > 0 {
				t.Errorf("renamed %v, absent %v, removed %v", w.d.Renamed, w.d.Absent, w.d.Removed)
			}
		})
	}
}

func TestManyCommitsAreOneStep(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for name, n := range map[string]int{"as many as are judged one by one": maxLine, "one more": maxLine + 1} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, nil)
			put(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "b")})(w)
			w.look()
			change(map[string]string{"shop.yaml": claimYAML("shop", "a")}, "web.yaml")(w)
			for range n - 1 {
				put(map[string]string{"README.md": fmt.Sprint(n)})(w)
			}
			w.look()
			if renamed := w.d.NameNow("default/web", "") == "default/shop"; renamed != (n == maxLine) || len(w.d.Removed) > 0 {
				t.Errorf("renamed %v, absent %v, removed %v", w.d.Renamed, w.d.Absent, w.d.Removed)
			}
		})
	}
}
