package gitsource

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
)

// held is a report of a holder, with the revision.yaml that shows it.
func held(fence uint64, holder string, files map[string]string) *model.Report {
	r := report(fence, files)
	r.Holder = model.Holder{ID: holder, Host: "host-" + holder, Machine: "m", Boot: "b"}
	r.Version = model.Version{Fence: fence, Seq: 7}
	r.Documents[model.ReportRevision] = &model.Document{Object: map[string]any{
		"fence": fence, "holder": r.Holder, "sequence": r.Version, "record": map[string]any{},
	}}
	return r
}

func TestOneWriterAtATime(t *testing.T) {
	t.Parallel()
	person := map[string]string{"note.txt": "I know better\n"}
	tests := map[string]struct {
		before func(t *testing.T, r *servedRepo) // after holder a published with fencing number 5
		fence  uint64
		holder string
		fenced bool
	}{
		"a higher fencing number writes":                    {fence: 6, holder: "b"},
		"a lower fencing number does not":                   {fence: 4, holder: "b", fenced: true},
		"the same holder goes on":                           {fence: 5, holder: "a"},
		"another holder with the same number does not":      {fence: 5, holder: "b", fenced: true},
		"one without a name does not, with the same number": {fence: 5, holder: "", fenced: true},
		"a lower number does not, behind a person's commit": {before: putCommit(person, "mine"), fence: 4, holder: "b", fenced: true},
		"another holder does not, behind a person's commit": {before: putCommit(person, "mine"), fence: 5, holder: "b", fenced: true},
		"a higher number writes, behind a person's commit":  {before: putCommit(person, "mine"), fence: 6, holder: "b"},
		"a person's trailers lower nothing": {
			before: putCommit(person, "mine\n\nFence: 1\nHolder: b\n"), fence: 4, holder: "b", fenced: true,
		},
		"a trailer that nobody can have written is none": {
			before: putCommit(person, "mine\n\nFence: 18446744073709551615\n"), fence: 6, holder: "b",
		},
		"a person who empties revision.yaml lowers nothing": {
			before: putCommit(map[string]string{model.ReportRevision: "{}\n"}, "mine"), fence: 4, holder: "b", fenced: true,
		},
		"a person who breaks revision.yaml lowers nothing": {
			before: putCommit(map[string]string{model.ReportRevision: "\t{"}, "mine"), fence: 5, holder: "b", fenced: true,
		},
		"a person who raises revision.yaml is believed": {
			before: putCommit(map[string]string{model.ReportRevision: "fence: 9\n"}, "mine"), fence: 8, holder: "b",
			fenced: true,
		},
		"commits behind which the trailers lie lower nothing": {before: putMany(5), fence: 4, holder: "b", fenced: true},
		"a revision.yaml that is too large hides no trailers": {
			before: putCommit(map[string]string{model.ReportRevision: strings.Repeat("#", maxStatusFile+1)}, "mine\n\nFence: 5\n"),
			fence:  4, holder: "b", fenced: true,
		},
		"what is no text is believed no more than what is one": {
			before: putCommit(map[string]string{model.ReportRevision: "fence: [1]\nholder: 3\nsequence: {}\n"}, "mine"),
			fence:  4, holder: "b", fenced: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			repo := newRepo(t)
			ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), held(5, "a", fleet)))
			if test.before != nil {
				test.before(t, repo)
			}
			b := newStatus(t, repo.URL(), Auth{})
			_, err := b.Publish(t.Context(), held(test.fence, test.holder, with(fleet, "README.md", "new\n")))
			if errors.Is(err, ErrFenced) != test.fenced || err != nil && !test.fenced {
				t.Errorf("error %v, want ErrFenced: %t", err, test.fenced)
			}
		})
	}
}

func putCommit(files map[string]string, message string) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) { ok[string](t)(r.CommitTo("status", files, message)) }
}

func putMany(n int) func(*testing.T, *servedRepo) {
	return func(t *testing.T, r *servedRepo) {
		for i := range n {
			putCommit(map[string]string{model.ReportRevision: "{}\n", "n": fmt.Sprint(i)}, "mine")(t, r)
		}
	}
}

func TestFencedNamesTheOther(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), held(5, "a", fleet)))
	_, err := newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), held(4, "b", fleet))
	if err == nil || !strings.Contains(err.Error(), "a on host-a, with fencing number 5; ours is 4") {
		t.Errorf("error %v", err)
	}
}

func TestAFenceThatWasMetIsNotForgotten(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	a, b := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
	first := ok[Published](t)(a.Publish(t.Context(), held(5, "a", fleet)))
	ok[Published](t)(b.Publish(t.Context(), held(6, "b", fleet)))
	if _, err := a.Publish(t.Context(), held(5, "a", with(fleet, "README.md", "x\n"))); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v", err)
	}
	if err := repo.SetBranch("status", first.Commit); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Publish(t.Context(), held(5, "a", with(fleet, "README.md", "x\n"))); !errors.Is(err, ErrFenced) {
		t.Errorf("error %v after the branch was set back, want ErrFenced", err)
	}
}

func TestAHolderShowsItselfOnce(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	for i, want := range []bool{true, false} {
		if p := ok[Published](t)(b.Publish(t.Context(), held(5, "a", fleet))); p.New != want {
			t.Errorf("publication %d: %+v", i, p)
		}
	}
	// Another, with the same files even in revision.yaml.
	r := held(5, "a", fleet)
	r.Fence, r.Holder.ID = 6, "b"
	for i, want := range []bool{true, false} {
		if p := ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), r)); p.New != want {
			t.Errorf("publication %d after the take-over: %+v", i, p)
		}
	}
	log := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))
	want := "something happened\n\ns1: a → b\ns2: c\n[skip ci]\n\nRevision: main@sha1:abc\nFence: 6\nHolder: b\nSequence: 5.7"
	if diff := cmp.Diff(want, log[0].Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestSetBackIsReportedOnce(t *testing.T) {
	t.Parallel()
	const others = 30 // more than a fetch reaches that does not look for it
	tests := map[string]struct {
		change  func(t *testing.T, r *servedRepo, commits []string)
		setBack bool
	}{
		"nobody moved the branch": {func(*testing.T, *servedRepo, []string) {}, false},
		"a person put a commit on top": {func(t *testing.T, r *servedRepo, _ []string) {
			putCommit(map[string]string{"x": "y"}, "mine")(t, r)
		}, false},
		"a person put many commits on top": {func(t *testing.T, r *servedRepo, _ []string) {
			for i := range others {
				putCommit(map[string]string{"x": fmt.Sprint(i)}, "mine")(t, r)
			}
		}, false},
		"the branch was set back": {func(t *testing.T, r *servedRepo, commits []string) {
			if err := r.SetBranch("status", commits[len(commits)-2]); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the branch was set back, and somebody wrote on": {func(t *testing.T, r *servedRepo, commits []string) {
			if err := r.SetBranch("status", commits[0]); err != nil {
				t.Fatal(err)
			}
			putCommit(map[string]string{"x": "y"}, "mine")(t, r)
		}, true},
		"the branch was written anew": {func(t *testing.T, r *servedRepo, _ []string) {
			if err := r.DeleteBranch("status"); err != nil {
				t.Fatal(err)
			}
			putCommit(fleet, "anew")(t, r)
		}, true},
		"the branch was deleted": {func(t *testing.T, r *servedRepo, _ []string) {
			if err := r.DeleteBranch("status"); err != nil {
				t.Fatal(err)
			}
		}, true},
	}
	for name, test := range tests {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restarted=%t", name, restarted), func(t *testing.T) {
				repo := newRepo(t)
				if _, err := repo.Git("config", "uploadpack.allowFilter", "true"); err != nil {
					t.Fatal(err)
				}
				b := newStatus(t, repo.URL(), Auth{})
				publish := func(text string) Published {
					t.Helper()
					return ok[Published](t)(b.Publish(t.Context(), held(5, "a", with(fleet, "README.md", text))))
				}
				var commits []string
				for i := range 3 {
					p := publish(fmt.Sprint(i))
					commits = append(commits, p.Commit)
					if p.SetBack {
						t.Errorf("publication %d reports that the branch was set back", i)
					}
				}
				test.change(t, repo, commits)
				if restarted {
					b = newStatus(t, repo.URL(), Auth{})
					b.Expect(commits[2])
				}
				if p := publish("next"); p.SetBack != test.setBack {
					t.Errorf("published %+v, want set back: %t", p, test.setBack)
				}
				if got := ok[map[string]string](t)(repo.ReadBranch("status")); got["README.md"] != "next" ||
					got["servers/s1.yaml"] != fleet["servers/s1.yaml"] || got["x"] != "" {
					t.Errorf("the branch holds %v", got)
				}
				if p := publish("and the next"); p.SetBack {
					t.Errorf("reported twice: %+v", p)
				}
			})
		}
	}
}

func TestABranchThatMovesWhileItIsSearchedIsNotSetBack(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	lists := 0
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Query().Get("service") == "git-upload-pack" {
				if lists++; lists == 2 { // after the head, to find what was published last
					putCommit(map[string]string{"x": "y"}, "mine")(t, repo)
				}
			}
			h.ServeHTTP(w, r)
		})
	}})
	b := newStatus(t, repo.URL(), Auth{})
	first := ok[Published](t)(b.Publish(t.Context(), held(5, "a", fleet)))
	for i := range 3 {
		putCommit(map[string]string{"x": fmt.Sprint(i)}, "mine")(t, repo)
	}
	b = newStatus(t, server.URL, Auth{})
	b.Expect(first.Commit)
	if p := ok[Published](t)(b.Publish(t.Context(), held(6, "b", fleet))); p.SetBack || lists < 4 {
		t.Errorf("published %+v after %d lists of refs, want no set back", p, lists)
	}
}

func TestASetBackThatIsTooFarToBeSeen(t *testing.T) {
	t.Parallel()
	repo := newRepo(t) // its server cannot leave out trees, so few commits are looked at
	b := newStatus(t, repo.URL(), Auth{})
	ok[Published](t)(b.Publish(t.Context(), held(5, "a", fleet)))
	for i := range fetchDepth + 5 {
		putCommit(map[string]string{"x": fmt.Sprint(i)}, "mine")(t, repo)
	}
	b = newStatus(t, repo.URL(), Auth{})
	b.Expect(strings.Repeat("1", 40))
	if p := ok[Published](t)(b.Publish(t.Context(), held(6, "b", fleet))); !p.SetBack {
		t.Errorf("published %+v: a commit that cannot be found is not reported", p)
	}
}
