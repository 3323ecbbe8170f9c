package gitsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func held(process string, sequence uint64, files map[string]string) *model.Report {
	r := report(5, files)
	r.Mark.Process, r.Mark.Sequence = process, sequence
	r.Holder = model.Holder{ID: process, Host: "host-" + process, Machine: "m", Boot: "b"}
	r.Documents[model.ReportFleet] = &model.Document{Object: map[string]any{"holder": r.Holder}}
	return r
}

func edited(n int) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) {
		for i := range n {
			files := map[string]string{"README.md": "edited\n", model.ReportFleet: "{}\n", "n": fmt.Sprint(i)}
			ok[string](t)(r.CommitTo("status", files, "mine\n\nProcess: me"))
		}
	}
}

var anyTime = cmpopts.IgnoreFields(model.BranchHead{}, "At")

var errEnded = errors.New("another process has taken over")

// endsByOthers is a Watch that accepts the commits of process p alone.
func endsByOthers(_ context.Context, h model.BranchHead) error {
	if h.Kind == model.HeadOurs && h.Process != "p" {
		return errEnded
	}
	return nil
}

func watched(b *StatusBranch) *[]model.BranchHead {
	asked := new([]model.BranchHead)
	b.opts.Watch = func(_ context.Context, h model.BranchHead) error {
		*asked = append(*asked, h)
		return nil
	}
	return asked
}

func TestTrailersOfAStatusCommit(t *testing.T) {
	t.Parallel()
	tree := plumbing.NewHash(strings.Repeat("a", 40))
	for name, test := range map[string]struct {
		from, to string                  // an edit of the message
		want     func(*model.BranchHead) // nil = not an Ingot's
	}{
		"as written":          {"", "", func(*model.BranchHead) {}},
		"clean":               {"Tree:", "Clean: true\nTree:", func(h *model.BranchHead) { h.Clean = true }},
		"of another tree":     {"Tree: a", "Tree: b", func(h *model.BranchHead) { h.Intact = false }},
		"without tree":        {"Tree:", "T:", func(h *model.BranchHead) { h.Intact = false }},
		"a fence too high":    {"Fence: 5", "Fence: 18446744073709551615", func(h *model.BranchHead) { h.Fence = 0 }},
		"a sequence too high": {"\nSequence: 5", "\nSequence: 9007199254740992", nil},
		"without line":        {"Line:", "L:", nil},
		"without deployment":  {"Deployment:", "D:", nil},
		"without process":     {"Process:", "P:", nil},
		"without sequence":    {"\nSequence:", "\nS:", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, want := report(5, nil), model.BranchHead{Kind: model.HeadForeign}
			r.Mark.Process = "p\nSequence: 9" // becomes one line
			message := strings.Replace(commitMessage(r, tree), test.from, test.to, 1)
			if test.want != nil {
				r.Mark.Process = "p Sequence: 9"
				want = model.BranchHead{Kind: model.HeadOurs, Mark: r.Mark, Continues: 3, Intact: true, Fence: 5, At: newClock().now, Writer: model.Holder{ID: r.Mark.Process}}
				test.want(&want)
			}
			got, ours := headOf(&object.Commit{Message: message, TreeHash: tree, Committer: object.Signature{When: newClock().now}})
			if diff := cmp.Diff(want, got); diff != "" || ours != (test.want != nil) {
				t.Errorf("ours %t (-want +got):\n%s", ours, diff)
			}
		})
	}
}

func TestTheNewestCommitOfAnIngotCounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*testing.T, *servedRepo)
		kind   model.HeadKind
		intact bool
		readme string // of the files that are read
	}{
		"on top":                    {edited(0), model.HeadOurs, true, "# fleet\n"},
		"below a person's commit":   {edited(1), model.HeadOurs, true, "# fleet\n"},
		"below as many as are read": {edited(fetchDepth - 1), model.HeadOurs, true, "# fleet\n"},
		"below more":                {edited(fetchDepth), model.HeadForeign, false, "edited\n"},
		"with its trailers on another tree": {func(t *testing.T, r *servedRepo) { // amended
			message := ok[[]gitserver.Commit](t)(r.ReadLog("status"))[0].Message
			ok[string](t)(r.CommitTo("status", map[string]string{"README.md": "edited\n"}, message))
		}, model.HeadOurs, false, "edited\n"},
		"replaced": {func(t *testing.T, r *servedRepo) {
			deleted(t, r, nil)
			edited(1)(t, r)
		}, model.HeadForeign, false, "edited\n"},
		"deleted": {func(t *testing.T, r *servedRepo) { deleted(t, r, nil) }, model.HeadAbsent, false, ""},
	} {
		for _, filter := range []string{"false", "true"} {
			t.Run(name+"/filter="+filter, func(t *testing.T) {
				t.Parallel()
				repo := newRepo(t)
				ok[string](t)(repo.Git("config", "uploadpack.allowFilter", filter))
				r := held("a", 7, fleet)
				r.Clean = true
				ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), r))
				b, other := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
				none, asked := watched(b), watched(other)
				ok[Snapshot](t)(b.Read(t.Context()))
				test.change(t, repo)

				want := model.BranchHead{Kind: test.kind}
				if test.kind == model.HeadOurs {
					want = model.BranchHead{Kind: test.kind, Mark: r.Mark, Continues: 3, Intact: test.intact, Clean: true, Fence: 5, Writer: r.Holder}
				}
				snap := ok[Snapshot](t)(b.Read(t.Context()))
				if diff := cmp.Diff(want, snap.Newest, anyTime); diff != "" || string(snap.Files["README.md"]) != test.readme {
					t.Errorf("read %q, newest (-want +got):\n%s", snap.Files["README.md"], diff)
				}
				var heads []model.BranchHead
				if want.Writer = (model.Holder{ID: want.Process}); want.Kind != model.HeadAbsent { // Look reads no files
					heads = append(heads, want)
				}
				for range 2 {
					must.Do(t, errors.Join(b.Look(t.Context()), other.Look(t.Context())))
				}
				if diff := cmp.Diff(heads, *asked, anyTime); diff != "" {
					t.Errorf("Watch of one that read nothing (-want +got):\n%s", diff)
				}
				for i := range 2 { // on top of the head read, and of its own
					ok[Published](t)(b.Publish(t.Context(), held("b", 8, with(fleet, "README.md", fmt.Sprint(i)))))
				}
				if len(*none) > 0 {
					t.Errorf("asked about what it read or pushed: %+v", *none)
				}
			})
		}
	}
}

func TestWatchKeepsAHeadFromBeingOverwritten(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b, asked := newStatus(t, repo.URL(), Auth{}), 0
	b.opts.Watch = func(ctx context.Context, h model.BranchHead) error { asked++; return endsByOthers(ctx, h) }
	ok[Published](t)(b.Publish(t.Context(), report(5, fleet)))
	takenOver(t, repo, nil)
	next := with(fleet, "README.md", "next\n")
	for i := range 2 {
		if _, err := b.Publish(t.Context(), report(5, next)); !errors.Is(err, errEnded) {
			t.Errorf("attempt %d: %v, want %v", i, err, errEnded)
		}
	}
	if err := b.Look(t.Context()); !errors.Is(err, errEnded) || asked != 3 {
		t.Errorf("look: %v after %d questions", err, asked)
	}
	heads := watched(b)
	ok[Published](t)(b.Publish(t.Context(), report(5, next)))
	holds(t, repo, next, 3)
	for i, change := range []func(){func() { edited(1)(t, repo) }, func() { deleted(t, repo, nil) }} {
		change()
		if err := b.Look(t.Context()); err != nil || len(*heads) != i+2 || ((*heads)[i+1].Kind == model.HeadAbsent) != (i == 1) {
			t.Errorf("%v, asked about %+v, want the other's head, the own one and the absent branch", err, *heads)
		}
		if p := ok[Published](t)(b.Publish(t.Context(), report(5, next))); !p.New {
			t.Errorf("change %d stays: %+v", i, p)
		}
	}
}

func TestPushingIsCalledBeforeThePush(t *testing.T) {
	t.Parallel()
	repo, seen := newRepo(t), &requests{}
	b := newStatus(t, serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: seen.counted}).URL, Auth{})
	r, fails := report(5, fleet), errors.New("the store is full")
	noted := r.Mark
	noted.Sequence, noted.Push = 77, "p"
	b.opts.Pushing = func(_ context.Context, m model.Mark) (model.Mark, error) {
		if sent := seen.take(); m != r.Mark || slices.Contains(sent, "receive-pack") {
			t.Errorf("mark %+v after requests %q", m, sent)
		}
		return noted, fails
	}
	if _, err := b.Publish(t.Context(), r); !errors.Is(err, fails) || len(seen.take()) > 0 || repo.Head("status") != "" {
		t.Errorf("error %v, want %v and no push", err, fails)
	}
	fails = nil
	if p := ok[Published](t)(b.Publish(t.Context(), r)); p.Mark != noted {
		t.Errorf("published %+v", p)
	}
	holds(t, repo, fleet, 1)
}

func TestAnotherWriterOrACleanStopIsShownOnce(t *testing.T) {
	t.Parallel()
	repo, r := newRepo(t), report(5, fleet)
	b := newStatus(t, repo.URL(), Auth{})
	for i, change := range []func(){func() {}, func() { r.Clean = true }, func() { r.Mark.Process = "q" }, func() { r.Fence = 6 }} {
		change()
		restarted := newStatus(t, repo.URL(), Auth{})
		for j, b := range []*StatusBranch{b, b, restarted} {
			if p := ok[Published](t)(b.Publish(t.Context(), r)); p.New != (j == 0) || p.Mark != r.Mark {
				t.Errorf("change %d, publication %d: %+v", i, j, p)
			}
		}
		holds(t, repo, fleet, i+1)
	}
}

func TestTokensAreOfferedBeforeBegin(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, nil)
	trusting := notBegun(t, testOptions(t, w.repo.URL()))
	verifying := notBegun(t, w.opts)
	offered := func(what string, trusted, verified []string) {
		t.Helper()
		for s, want := range map[*Source][]string{trusting: trusted, verifying: verified} {
			if d := mustSync(t, s); d != nil || !slices.Equal(s.Offered(), want) {
				t.Errorf("%s: offered %q, want %q; in force %v", what, s.Offered(), want, d)
			}
		}
	}
	w.unsigned("first\n\nIngot-Approve: a", images{"web": "a"})
	offered("unsigned", []string{"a"}, nil)
	w.signed(w.eve, "second\n\nIngot-Approve: b", images{"web": "b"})
	offered("signed by another key", []string{"a", "b"}, nil)
	w.signed(w.alice, "third", images{"web": "c"})
	offered("signed", []string{"a", "b"}, []string{"a", "b"})
}
