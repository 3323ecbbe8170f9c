package gitsource

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// A stage changes the repository; the revision in force after it is compared.
type stage struct {
	do     func(t *testing.T, r *servedRepo)
	reopen bool // a new process with the same directory

	claims      map[string]string // images by name
	reason      string
	problem     string // contained in a problem
	quarantined string
	stays       bool // the revision in force is the one before
}

// sourceTest is the life of a repository, step by step.
type sourceTest struct {
	path  string
	steps []stage
}

func (tt sourceTest) run(t *testing.T) {
	repo := newRepo(t)
	opts := testOptions(t, repo.URL())
	opts.Path = tt.path
	s := newSource(t, opts)
	var before model.Revision
	for i, st := range tt.steps {
		st.do(t, repo)
		if st.reopen {
			s.close()
			s = begun(t, opts, records(s.Desired()))
		}
		err := s.Sync(t.Context())
		if failed := st.reason == model.SourceFetchFailed; err != nil && !failed && st.reason != model.SourceEmpty {
			t.Fatalf("step %d: %v", i, err)
		}
		d := s.Desired()
		if d == nil {
			t.Fatalf("step %d: nothing is in force", i)
		}
		compare(t, i, st, d, before)
		before = d.Revision
	}
}

func commit(files map[string]string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) { ok[string](t)(r.Commit(files, "change")) }
}

func committedAt(second int64, files map[string]string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) {
		r.Clock = func() time.Time { return time.Unix(second, 0) }
		commit(files)(t, r)
	}
}

func remove(paths ...string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) { ok[string](t)(r.Remove("remove", paths...)) }
}

func force_(files map[string]string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) { ok[string](t)(r.ForcePush(files, "new history")) }
}

func link(path, mode, content string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) { ok[string](t)(r.Link(path, mode, content, "link")) }
}

func nothing(*testing.T, *servedRepo) {}

const broken = "kind: [\n"

func brokenClaim(name string) string {
	return fmt.Sprintf("kind: ServerClaim\nmetadata: {name: %s}\nspec: {broken: x}\n", name)
}

func TestSource(t *testing.T) {
	t.Parallel()
	one := map[string]string{"web.yaml": claimYAML("web", "a")}
	two := map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")}
	tests := map[string]sourceTest{
		"a removed claim is gone": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{do: remove("db.yaml"), claims: map[string]string{"web": "a"}},
		}},
		"a restart finds the same in force": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{do: nothing, reopen: true, stays: true, claims: map[string]string{"web": "a", "db": "a"}},
		}},
		"only manifests below the path count, and no hidden ones": {path: "fleet/", steps: []stage{
			{
				do: commit(map[string]string{
					"fleet/a/web.yml":      claimYAML("web", "a"),
					"fleet/db.json":        `{"kind":"ServerClaim","metadata":{"name":"db"},"spec":{"image":"j"}}`,
					"other.yaml":           claimYAML("other", "a"),
					"fleet/.github/x.yaml": claimYAML("hidden", "a"),
					"fleet/.y.yaml":        claimYAML("hidden2", "a"),
					"fleet/README.md":      "hello",
				}),
				claims: map[string]string{"web": "a", "db": "j"},
			},
		}},
		"M18 a broken file keeps its last good version in force": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{do: commit(map[string]string{"web.yaml": broken, "db.yaml": claimYAML("db", "b")}), problem: "web.yaml: syntax error",
				claims: map[string]string{"web": "a", "db": "b"}},
			{do: nothing, reopen: true, stays: true, problem: "web.yaml: syntax error", claims: map[string]string{"web": "a", "db": "b"}},
			{
				do: commit(map[string]string{"db.yaml": claimYAML("db", "c")}), problem: "web.yaml: syntax error",
				claims: map[string]string{"web": "a", "db": "c"},
			},
			{do: remove("web.yaml"), claims: map[string]string{"db": "c"}},
		}},
		"a broken file lets its good objects change": {steps: []stage{
			{
				do:     commit(map[string]string{"all.yaml": claimYAML("web", "a") + "---\n" + claimYAML("db", "a")}),
				claims: map[string]string{"web": "a", "db": "a"},
			},
			{do: commit(map[string]string{"all.yaml": claimYAML("web", "b") + "---\n" + brokenClaim("db")}), problem: "unknown field",
				claims: map[string]string{"web": "b", "db": "a"}},
			{do: commit(map[string]string{"all.yaml": claimYAML("web", "c") + "---\n" + broken}), problem: "syntax error",
				claims: map[string]string{"web": "c", "db": "a"}},
			{do: commit(map[string]string{"all.yaml": claimYAML("web", "c")}), claims: map[string]string{"web": "c"}},
		}},
		"an object that was never good is quarantined": {steps: []stage{
			{do: commit(map[string]string{"web.yaml": brokenClaim("web"), "db.yaml": claimYAML("db", "a")}), problem: "unknown field",
				quarantined: "ServerClaim default/web", claims: map[string]string{"db": "a"}},
		}},
		"a file that could never be read is a problem, and no more": {steps: []stage{
			{
				do: commit(map[string]string{"web.yaml": broken, "db.yaml": claimYAML("db", "a")}), problem: "syntax error",
				claims: map[string]string{"db": "a"},
			},
			{do: nothing, reopen: true, stays: true, problem: "syntax error", claims: map[string]string{"db": "a"}},
			{do: commit(map[string]string{"db.yaml": claimYAML("db", "b")}), problem: "syntax error", claims: map[string]string{"db": "b"}},
			{do: commit(map[string]string{"web.yaml": claimYAML("web", "a")}), claims: map[string]string{"db": "b", "web": "a"}},
			{do: commit(map[string]string{"web.yaml": broken}), problem: "syntax error", claims: map[string]string{"db": "b", "web": "a"}},
		}},
		"M01 an object defined twice keeps the one in force": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{
				do:      commit(map[string]string{"copy.yaml": claimYAML("web", "b")}),
				problem: "copy.yaml: is also defined in web.yaml:1", claims: map[string]string{"web": "a"},
			},
			{
				do: nothing, reopen: true, stays: true, problem: "web.yaml: is also defined in copy.yaml:1",
				claims: map[string]string{"web": "a"},
			},
			{do: remove("web.yaml"), claims: map[string]string{"web": "b"}},
		}},
		"M01 an object defined twice from the start is quarantined": {steps: []stage{
			{
				do: commit(map[string]string{
					"web.yaml": claimYAML("web", "a"), "copy.yaml": claimYAML("web", "b"), "db.yaml": claimYAML("db", "a"),
				}),
				problem: "is also defined in", quarantined: "ServerClaim default/web", claims: map[string]string{"db": "a"},
			},
		}},
		"M01 of an object defined very often some places are named, and how many there are": {steps: []stage{
			{do: func(t *testing.T, r *servedRepo) {
				files := make(map[string]string)
				for i := range 20 {
					files[fmt.Sprintf("%02d.yaml", i)] = claimYAML("web", "a")
				}
				commit(files)(t, r)
			}, problem: "19.yaml: is also defined in 00.yaml:1 and 01.yaml:1 and 02.yaml:1 and 03.yaml:1 and 04.yaml:1 and 14 more places: keep one of them",
				quarantined: "ServerClaim default/web", claims: map[string]string{}},
		}},
		"M07 an immutable field keeps the old object": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{
				do:      commit(map[string]string{"web.yaml": claimYAML("web", "immutable"), "db.yaml": claimYAML("db", "b")}),
				problem: "may not change", claims: map[string]string{"web": "a", "db": "b"},
			},
			{do: nothing, reopen: true, stays: true, problem: "may not change", claims: map[string]string{"web": "a", "db": "b"}},
		}},
		"M02 of two objects that clash the one in force stays": {steps: []stage{
			{do: commit(map[string]string{"web.yaml": claimYAML("web", "shared")}), claims: map[string]string{"web": "shared"}},
			{
				do: commit(map[string]string{"db.yaml": claimYAML("db", "shared")}), problem: "db.yaml: shares",
				quarantined: "ServerClaim default/db", claims: map[string]string{"web": "shared"},
			},
			{
				do: nothing, reopen: true, stays: true, problem: "db.yaml: shares", quarantined: "ServerClaim default/db",
				claims: map[string]string{"web": "shared"},
			},
			{do: commit(map[string]string{"db.yaml": claimYAML("db", "a")}), claims: map[string]string{"web": "shared", "db": "a"}},
			{
				do: commit(map[string]string{"db.yaml": claimYAML("db", "shared")}), problem: "db.yaml: shares",
				claims: map[string]string{"web": "shared", "db": "a"},
			},
		}},
		"M13 a renamed file is the same object": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				ok[string](t)(r.Remove("rename", "web.yaml"))
				ok[string](t)(r.Commit(map[string]string{"x/y.yaml": claimYAML("web", "a")}, "rename"))
			}, claims: map[string]string{"web": "a"}},
		}},
		"G01 a deleted branch keeps the last revision": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				ok[string](t)(r.CommitTo("other", one, "other"))
				must.Do(t, r.DeleteBranch("main"))
			}, stays: true, reason: model.SourceFetchFailed, claims: map[string]string{"web": "a"}},
			{do: nothing, reopen: true, stays: true, reason: model.SourceFetchFailed, claims: map[string]string{"web": "a"}},
		}},
		"G04 a repository that became empty keeps the last revision": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				must.Do(t, r.DeleteBranch("main"))
			}, stays: true, reason: model.SourceEmpty, claims: map[string]string{"web": "a"}},
		}},
		"G04 a tree without manifests keeps the last revision": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{
				do: func(t *testing.T, r *servedRepo) { ok[string](t)(r.Clear("empty")) }, stays: true,
				reason: model.SourceEmpty, claims: map[string]string{"web": "a", "db": "a"},
			},
			{do: nothing, reopen: true, stays: true, reason: model.SourceEmpty, claims: map[string]string{"web": "a", "db": "a"}},
			{do: commit(one), claims: map[string]string{"web": "a"}},
		}},
		"G05 a missing path keeps the last revision": {path: "fleet", steps: []stage{
			{do: commit(map[string]string{"fleet/web.yaml": claimYAML("web", "a")}), claims: map[string]string{"web": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				ok[string](t)(r.Commit(map[string]string{"flet/web.yaml": claimYAML("web", "a")}, "typo"))
				ok[string](t)(r.Remove("typo", "fleet"))
			}, stays: true, reason: model.SourcePathMissing, claims: map[string]string{"web": "a"}},
			{do: nothing, reopen: true, stays: true, reason: model.SourcePathMissing, claims: map[string]string{"web": "a"}},
		}},
		"G02 an unrelated history deletes and changes nothing, nor does the commit after it": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{
				do: force_(map[string]string{"web.yaml": claimYAML("web", "b")}), reason: model.SourceHistoryRewritten,
				claims: map[string]string{"web": "a", "db": "a"},
			},
			{do: nothing, stays: true, reason: model.SourceHistoryRewritten, claims: map[string]string{"web": "a", "db": "a"}},
			{
				do: nothing, reopen: true, stays: true, reason: model.SourceHistoryRewritten,
				claims: map[string]string{"web": "a", "db": "a"},
			},
			{
				do: commit(map[string]string{"new.yaml": claimYAML("new", "a")}), reason: model.SourceHistoryRewritten,
				claims: map[string]string{"web": "a", "db": "a", "new": "a"},
			},
			{
				do: commit(map[string]string{"web.yaml": claimYAML("web", "c")}), reason: model.SourceHistoryRewritten,
				claims: map[string]string{"web": "c", "db": "a", "new": "a"},
			},
			{do: commit(map[string]string{"db.yaml": claimYAML("db", "b")}), claims: map[string]string{"web": "c", "db": "b", "new": "a"}},
		}},
		"G02 a history rewritten while Ingot was down is noticed": {steps: []stage{
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{
				do: force_(map[string]string{"web.yaml": claimYAML("web", "b")}), reopen: true,
				reason: model.SourceHistoryRewritten, claims: map[string]string{"web": "a", "db": "a"},
			},
		}},
		"G18 an older head changes nothing": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{do: commit(two), claims: map[string]string{"web": "a", "db": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				log := ok[[]gitserver.Commit](t)(r.ReadLog("main"))
				must.Do(t, r.SetBranch("main", log[1].Hash))
			}, reason: model.SourceOlder, claims: map[string]string{"web": "a", "db": "a"}, stays: true},
			{
				do: commit(map[string]string{"new.yaml": claimYAML("new", "a")}), reason: model.SourceHistoryRewritten,
				claims: map[string]string{"web": "a", "db": "a", "new": "a"},
			},
		}},
		"G20 what clocks say of commits orders nothing": {steps: []stage{
			{do: committedAt(2_000_000_000, two), claims: map[string]string{"web": "a", "db": "a"}},
			{do: committedAt(1_000, map[string]string{"web.yaml": claimYAML("web", "b")}), claims: map[string]string{"web": "b", "db": "a"}},
			{do: func(t *testing.T, r *servedRepo) {
				r.Clock = func() time.Time { return time.Unix(0, 0) }
				remove("db.yaml")(t, r)
			}, claims: map[string]string{"web": "b"}},
		}},
		"G16 links, submodules and LFS pointers are refused by name": {steps: []stage{
			{
				do:     commit(map[string]string{"web.yaml": claimYAML("web", "a"), "d/db.yaml": claimYAML("db", "a")}),
				claims: map[string]string{"web": "a", "db": "a"},
			},
			{
				do: link("web.yaml", "120000", "/etc/passwd"), problem: "web.yaml: is a symbolic link",
				claims: map[string]string{"web": "a", "db": "a"},
			},
			{do: link("d", "160000", strings.Repeat("1", 40)), problem: "d: is a submodule", claims: map[string]string{"web": "a", "db": "a"}},
			{do: commit(map[string]string{"web.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"}),
				problem: "web.yaml: is a pointer of Git LFS",
				claims:  map[string]string{"web": "a", "db": "a"}},
		}},
		"a manifest that is too large keeps its last good version": {steps: []stage{
			{do: commit(one), claims: map[string]string{"web": "a"}},
			{
				do:      commit(map[string]string{"web.yaml": strings.Repeat("#", maxManifest+1)}),
				problem: "web.yaml: is larger than 1 MiB", claims: map[string]string{"web": "a"},
			},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { tt.run(t) })
	}
}

func compare(t *testing.T, i int, want stage, d *model.Desired, before model.Revision) {
	t.Helper()
	if diff := cmp.Diff(want.claims, claims(d)); diff != "" {
		t.Errorf("step %d: claims (-want +got):\n%s", i, diff)
	}
	if d.Source.Reason != want.reason {
		t.Errorf("step %d: reason %q (%s), want %q", i, d.Source.Reason, d.Source.Message, want.reason)
	}
	if got := messages(d); !strings.Contains(got, want.problem) || want.problem == "" && got != "" {
		t.Errorf("step %d: problems %q, want %q", i, got, want.problem)
	}
	var quarantined string
	for id := range d.Quarantined {
		quarantined = id.String()
	}
	if quarantined != want.quarantined {
		t.Errorf("step %d: quarantined %q, want %q", i, quarantined, want.quarantined)
	}
	if i > 0 && (d.Revision == before) != want.stays {
		t.Errorf("step %d: revision %s after %s, want it to stay: %t", i, d.Revision, before, want.stays)
	}
}

func TestAFleetMayBeginWithoutManifests(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"README.md": "soon"}, "begin"))
	s := notBegun(t, testOptions(t, repo.URL()))
	_ = s.Sync(t.Context())
	if s.Desired() != nil {
		t.Fatalf("in force before anybody said what the records say: %+v", s.Desired())
	}
	s.Begin(Beginning{})
	if err := s.Sync(t.Context()); err != nil || s.Desired() == nil || s.State().Reason != "" {
		t.Fatalf("a new fleet does not begin: %v, %+v", err, s.State())
	}
	ok[string](t)(repo.Commit(map[string]string{"LICENSE": "ours"}, "more"))
	if err := s.Sync(t.Context()); err != nil || s.State().Reason != "" ||
		!strings.HasSuffix(string(s.Desired().Revision), repo.Head("main")) {
		t.Errorf("a second revision without manifests: %v, %+v", err, s.State())
	}
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "web"))
	_ = s.Sync(t.Context())
	ok[string](t)(repo.Clear("gone"))
	_ = s.Sync(t.Context())
	if s.State().Reason != model.SourceEmpty || len(s.Desired().Claims) != 1 {
		t.Errorf("an emptied folder took %d claims away: %+v", 1-len(s.Desired().Claims), s.State())
	}
}

func TestSourceBeforeTheFirstRevision(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*testing.T, *servedRepo)
		reason  string
		message string
		awaited bool // what is to be in force may be had yet
	}{
		"G04 an empty repository": {prepare: nothing, reason: model.SourceEmpty, message: "no commit"},
		"G01 a missing branch": {
			prepare: func(t *testing.T, r *servedRepo) { ok[string](t)(r.CommitTo("other", nil, "x")) },
			reason:  model.SourceFetchFailed, message: `branch "main" does not exist`, awaited: true,
		},
		"G05 a missing path": {
			prepare: commit(map[string]string{"x.yaml": claimYAML("x", "a")}), reason: model.SourcePathMissing,
			message: "folder fleet",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repo := newRepo(t)
			tt.prepare(t, repo)
			opts := testOptions(t, repo.URL())
			opts.Path = "fleet"
			s := newSource(t, opts)
			_ = s.Sync(t.Context())
			if s.Desired() != nil {
				t.Errorf("something is in force: %+v", s.Desired())
			}
			if got := s.Nothing(); got == tt.awaited {
				t.Errorf("nothing to wait for is %t, want %t", got, !tt.awaited)
			}
			if got := s.State(); got.Reason != tt.reason || !strings.Contains(got.Message, tt.message) {
				t.Errorf("state %+v, want %s with %q", got, tt.reason, tt.message)
			}
		})
	}
}

func TestNothingIsSaidOnlyOfWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	s := notBegun(t, testOptions(t, repo.URL()))
	_ = s.Sync(t.Context())
	if s.Nothing() {
		t.Error("an empty repository has nothing, before the records say whether it had")
	}
	ok[string](t)(repo.Commit(map[string]string{"x.yaml": claimYAML("x", "a")}, "x"))
	s.Begin(Beginning{})
	_ = s.Sync(t.Context())
	ok[string](t)(repo.Clear("empty"))
	_ = s.Sync(t.Context())
	if s.Nothing() || s.Desired() == nil {
		t.Errorf("an emptied repository took away what is in force: %+v", s.Desired())
	}
}

// All that a file is told stays in memory, and so does what each of its objects waits for.
func TestOfManyProblemsOfAFileTheFirstAreKept(t *testing.T) {
	t.Parallel()
	var all []model.Problem
	for i := range 100 {
		all = append(all, model.Problem{Severity: model.SeverityError, File: "x.yaml", Line: i, Object: fmt.Sprintf("BMC b%d", i/40), Message: "m"})
	}
	got := fewer(all)
	want := slices.Concat(all[:maxProblems], []model.Problem{all[40], all[80], {
		Severity: model.SeverityWarning, File: "x.yaml", Line: 80, Message: "has 78 more problems, which ingot validate shows",
	}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(all[:maxProblems], fewer(all[:maxProblems])); diff != "" {
		t.Errorf("of few, -want +got:\n%s", diff)
	}
}

func TestUnchangedBlobsAreNotDecodedAgain(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	files := make(map[string]string)
	for i := range 200 {
		files[fmt.Sprintf("d%d/c%d.yaml", i%10, i)] = claimYAML(fmt.Sprintf("c%d", i), "a")
	}
	ok[string](t)(repo.Commit(files, "all"))
	opts := testOptions(t, repo.URL())
	opts.Registerer = prometheus.NewPedanticRegistry()
	s := newSource(t, opts)
	before := mustSync(t, s)
	if got := testutil.ToFloat64(s.metrics.decoded); got != 200 {
		t.Fatalf("decoded %v, want 200", got)
	}
	ok[string](t)(repo.Commit(map[string]string{"d1/c1.yaml": claimYAML("c1", "b")}, "one"))
	after := mustSync(t, s)
	if got := testutil.ToFloat64(s.metrics.decoded); got != 201 {
		t.Errorf("decoded %v, want 201", got)
	}
	same := 0
	for name, c := range after.Claims {
		if before.Claims[name] == c {
			same++
		}
	}
	if same != 199 {
		t.Errorf("%d claims are the same pointer, want 199", same)
	}
	if got := testutil.ToFloat64(s.metrics.fetches.WithLabelValues(resultChanged)); got != 2 {
		t.Errorf("%v fetches brought something, want 2", got)
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "first\n\nIngot-Approve: before"))
	s := newSource(t, testOptions(t, repo.URL()))
	if diff := cmp.Diff([]string{"before"}, mustSync(t, s).Approvals); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	ok[string](t)(repo.Commit(nil, "padding"))
	mustSync(t, s)
	must.Do(t, repo.SetBranch("side", repo.Head("main")))
	side := ok[string](t)(repo.CommitTo("side", map[string]string{"x.yaml": claimYAML("x", "a")},
		"side\n\ntext\n\nReviewed-By: Me\ningot-approve: side"))
	ok[string](t)(repo.Commit(nil, "two\n\nIngot-Approve: two\nIngot-Approve: three"))
	ok[string](t)(repo.Commit(nil, "not in the last paragraph\n\nIngot-Approve: never\n\nbye"))
	ok[string](t)(repo.Merge(side, nil, "merge"))
	ok[string](t)(repo.Commit(nil, "after"))
	all := []string{"before", "two", "three", "side"}
	d := mustSync(t, s)
	if diff := cmp.Diff(all, d.Approvals); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	s.close()
	s = begun(t, s.opts, records(d))
	if diff := cmp.Diff(all, mustSync(t, s).Approvals); diff != "" {
		t.Errorf("approvals after a restart (-want +got):\n%s", diff)
	}
}

// counted counts the bytes of answers to upload-pack.
type counted struct {
	next  http.Handler
	bytes atomic.Int64
	posts atomic.Int64
}

type countedWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (w countedWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		c.posts.Add(1)
		w = countedWriter{w, &c.bytes}
	}
	c.next.ServeHTTP(w, r)
}

// take returns the bytes since the last call.
func (c *counted) take() int64 { return c.bytes.Swap(0) }

// TestDepth proves that a depth of 20 brings only what is new, survives rewinds
// and unrelated histories, and tells them from a busy day.
func TestDepth(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	files := make(map[string]string)
	for i := range 1000 {
		files[fmt.Sprintf("d%02d/c%d.yaml", i%20, i)] = claimYAML(fmt.Sprintf("c%d", i), fmt.Sprintf("img%d", i*7919))
	}
	ok[string](t)(repo.Commit(files, "all"))
	count := &counted{}
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler { count.next = h; return count }})
	s := newSource(t, testOptions(t, server.URL))
	var held string // the commit in force while the branch shows an older one
	look := func(what string, maxBytes int64, reason string, wantClaims int) {
		t.Helper()
		d := mustSync(t, s)
		got := count.take()
		t.Logf("%s: %d bytes", what, got)
		if got > maxBytes {
			t.Errorf("%s: %d bytes, want at most %d", what, got, maxBytes)
		}
		if d.Source.Reason != reason || string(d.Revision) != "main@sha1:"+stdcmp.Or(held, repo.Head("main")) {
			t.Errorf("%s: %+v at %s, want reason %q", what, d.Source, d.Revision, reason)
		}
		if len(d.Claims) != wantClaims {
			t.Errorf("%s: %d claims, want %d", what, len(d.Claims), wantClaims)
		}
		if _, err := s.store.commit(s.evaluated); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	change := func(n int) {
		for i := range n {
			ok[string](t)(repo.Commit(map[string]string{"d01/c1.yaml": claimYAML("c1", fmt.Sprint(time.Now().UnixNano(), i))}, "change"))
		}
	}
	const whole = 1 << 20
	look("first", whole, "", 1000)
	change(1)
	look("one commit", 4000, "", 1000)
	change(1)
	look("one more", 4000, "", 1000)
	change(15)
	look("fifteen commits", 40_000, "", 1000)
	change(60)
	look("sixty commits are a busy day, not a rewritten history", whole, "", 1000)
	log := ok[[]gitserver.Commit](t)(repo.ReadLog("main"))
	tip := log[0].Hash
	rewind := func(to string) {
		must.Do(t, repo.SetBranch("main", to))
	}
	held = tip
	rewind(log[3].Hash)
	look("rewind by three", 4000, model.SourceOlder, 1000)
	rewind(log[70].Hash)
	look("rewind by seventy", whole, model.SourceOlder, 1000)
	held = ""
	rewind(tip)
	look("forward again", whole, "", 1000)
	change(1)
	look("and on", 4000, "", 1000)
	tip = repo.Head("main")
	ok[string](t)(repo.ForcePush(map[string]string{"d01/c1.yaml": claimYAML("c1", "new world")}, "unrelated"))
	look("unrelated history", whole, model.SourceHistoryRewritten, 1000)
	change(1)
	look("a commit on it", 4000, model.SourceHistoryRewritten, 1000)
	rewind(tip)
	look("back to the old history", whole, model.SourceHistoryRewritten, 1000)
	change(25)
	look("twenty-five commits on it", whole, "", 1000)
	change(1)
	look("one commit after all that", 4000, "", 1000)
	posts := count.posts.Load()
	look("nothing new", 0, "", 1000)
	if count.posts.Load() != posts {
		t.Error("a look at an unchanged branch asked for objects")
	}
	shallow := newSource(t, testOptions(t, server.URL))
	mustSync(t, shallow)
	rewind(ok[[]gitserver.Commit](t)(repo.ReadLog("main"))[45].Hash)
	if d := mustSync(t, shallow); d.Source.Reason != model.SourceOlder || len(d.Claims) != 1000 {
		t.Errorf("a rewind to what was never fetched: %+v with %d claims", d.Source, len(d.Claims))
	}
	must.Do(t, os.WriteFile(filepath.Join(s.store.dir, "HEAD"), []byte(s.evaluated.String()+"\n"), 0o600))
	if out, err := (&gitserver.Repo{Dir: s.store.dir}).Git("fsck", "--no-dangling", s.evaluated.String()); err != nil {
		t.Errorf("git fsck of the store: %v %s", err, out)
	}
}

func TestDamagedStoreIsFetchedAfresh(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")}, "first"))
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": broken}, "second"))
	opts := testOptions(t, repo.URL())
	damage := map[string]func(t *testing.T){
		"packs are gone": func(t *testing.T) {
			must.Do(t, os.RemoveAll(filepath.Join(opts.Dir, "objects.git", "objects")))
		},
		"packs are overwritten": func(t *testing.T) {
			must.Do(t, filepath.WalkDir(filepath.Join(opts.Dir, "objects.git", "objects"), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pack") {
					return err
				}
				return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, make([]byte, 4000), 0o600))
			}))
		},
	}
	for name, wreck := range damage {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, opts)
			b := records(mustSync(t, s))
			s.close()
			wreck(t)
			s = begun(t, opts, b)
			ok[string](t)(repo.Commit(map[string]string{"new.yaml": claimYAML("new", name)}, "third"))
			d := mustSync(t, s)
			if d.Claims["default/new"] == nil || d.Claims["default/db"] == nil {
				t.Errorf("in force: %v", claims(d))
			}
			s.close()
		})
	}
}

func TestLastGoodSurvivesTheLossOfTheStore(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")}, "first"))
	opts := testOptions(t, repo.URL())
	s := newSource(t, opts)
	mustSync(t, s)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": broken}, "second"))
	b := records(mustSync(t, s))
	s.close()
	must.Do(t, os.RemoveAll(filepath.Join(opts.Dir, "objects.git")))
	ok[string](t)(repo.ForcePush(map[string]string{"web.yaml": broken}, "unrelated\n\nIngot-Approve: main@sha1:"+b.Applied.Commit))
	d := mustSync(t, begun(t, opts, b))
	if diff := cmp.Diff(map[string]string{"web": "a"}, claims(d)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if !d.IsQuarantined(model.ClaimName("default/db").Identity()) {
		t.Errorf("db is not known any more, and only %v is said to be missing", d.Quarantined)
	}
}

func TestStoreIsFetchedAfreshNowAndThen(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")}, "first"))
	s := newSource(t, testOptions(t, repo.URL()))
	s.keep = 5
	for i := range 30 {
		image := fmt.Sprint("image", i)
		ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", image)}, "next"))
		d := mustSync(t, s)
		if i%3 == 0 {
			d = mustSync(t, s) // a look without news, which is when it happens
		}
		if claims(d)["web"] != image || d.Source.Reason != "" {
			t.Fatalf("round %d: %v %+v", i, claims(d), d.Source)
		}
		if n := s.store.packs(); n > s.keep+3 {
			t.Fatalf("round %d: %d packs", i, n)
		}
	}
}

func TestRunWakesAndCoalesces(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "first"))
	var looks atomic.Int64
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				looks.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}})
	opts := testOptions(t, server.URL)
	opts.Interval = time.Hour
	s := newSource(t, opts)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	awaitImage(t, s, "a")
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "b")}, "second"))
	for range 100 { // G13 webhook storm
		s.Wake()
	}
	awaitImage(t, s, "b")
	s.Wake()
	s.Wake()
	cancel()
	wg.Wait()
	if n := looks.Load(); n > 5 {
		t.Errorf("%d looks for 103 wake-ups, want a handful", n)
	}
}

func awaitImage(t *testing.T, s *Source, image string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case <-s.Changed():
			if d := s.Desired(); d != nil && claims(d)["web"] == image {
				return
			}
		case <-timeout:
			t.Fatalf("image %s did not come", image)
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failures int
		from, to time.Duration
	}{
		"the interval give or take a fifth": {0, 48 * time.Second, 72 * time.Second},
		"one failure changes nothing":       {1, 48 * time.Second, 72 * time.Second},
		"the second doubles it":             {2, 96 * time.Second, 144 * time.Second},
		"eight times at most":               {100, 384 * time.Second, 576 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for n := range 200 {
				if d := pause(time.Minute, tt.failures, "url", n); d < tt.from || d > tt.to {
					t.Errorf("look %d after %s, want %s to %s", n, d, tt.from, tt.to)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		opts Options
		want string
	}{
		"no URL":                      {Options{}, "no URL"},
		"a password in the URL":       {Options{URL: "https://me:secret@example.com/x.git"}, "passwordFile"},
		"a scheme that is not known":  {Options{URL: "ftp://example.com/x.git"}, "ftp"},
		"a path out of the tree":      {Options{URL: "/x", Path: "../y"}, "../y"},
		"an absolute path":            {Options{URL: "/x", Path: "/y"}, "/y"},
		"a branch that is no branch":  {Options{URL: "/x", Ref: Ref{Branch: "a..b"}}, "a..b"},
		"G09 SSH without known hosts": {Options{URL: "git@example.com:x.git", Auth: Auth{SSHKeyFile: "k"}}, "knownHostsFile"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.opts.Dir = t.TempDir()
			tt.opts.Decode = decode
			_, err := New(tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func silent(t *testing.T) string {
	l := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func TestWithTheRealDecoder(t *testing.T) {
	t.Parallel()
	claim := func(power string) string {
		return "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web, namespace: default}\n" +
			"spec: {power: \"" + power + "\", image: ghcr.io/x/y:1, serverRef: {name: s1}}\n"
	}
	endpoint := "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: %s}\n" +
		"spec: {macAddress: \"aa:bb:cc:00:00:01\", ip: 10.0.0.1}\n"
	repo := newRepo(t)
	opts := testOptions(t, repo.URL())
	opts.Decode, opts.Validate, opts.CrossCheck = nil, nil, nil
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claim("On"), "e1.yaml": fmt.Sprintf(endpoint, "e1")}, "first"))
	s := newSource(t, opts)
	d := mustSync(t, s)
	if len(d.Problems) != 0 || d.Claims["default/web"] == nil || d.Endpoints["e1"] == nil {
		t.Fatalf("in force: %+v", d)
	}
	ok[string](t)(repo.Commit(map[string]string{
		"web.yaml": claim("Onn"), "e2.yaml": fmt.Sprintf(endpoint, "e2"),
		"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
	}, "second"))
	d = mustSync(t, s)
	if d.Claims["default/web"].Spec.Power != model.PowerOn {
		t.Errorf("claim %+v, want the last good one", d.Claims["default/web"])
	}
	if !d.IsQuarantined(model.Identity{Kind: model.KindEndpoint, Name: "e2"}) || d.Endpoints["e1"] == nil || d.Endpoints["e2"] != nil {
		t.Errorf("quarantined %v, endpoints %v, problems:\n%s", d.Quarantined, d.Endpoints, messages(d))
	}
}
