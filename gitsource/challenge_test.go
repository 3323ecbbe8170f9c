package gitsource

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
)

// looks checks what a StatusBranch sees.
func looks(t *testing.T, b *StatusBranch, want Sighting) {
	t.Helper()
	if diff := cmp.Diff(want, ok[Sighting](t)(b.Look(t.Context()))); diff != "" {
		t.Errorf("sighting (-want +got):\n%s", diff)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"false", "true"} {
		t.Run("filter="+filter, func(t *testing.T) {
			repo := newGitRepo(t)
			if _, err := repo.Git("config", "uploadpack.allowFilter", filter); err != nil {
				t.Fatal(err)
			}
			a, b := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
			looks(t, a, Sighting{})
			putCommit(map[string]string{"x": "y"}, "a person's")(t, repo)
			looks(t, a, Sighting{Head: repo.Head("status")})
			ra, rb := held(5, "a", fleet), held(6, "b", fleet)
			p := ok[Published](t)(a.Publish(t.Context(), ra))
			looks(t, a, Sighting{Head: p.Commit, Fence: 5, Holder: ra.Holder})
			p = ok[Published](t)(b.Publish(t.Context(), rb))
			looks(t, a, Sighting{Head: p.Commit, Fence: 6, Holder: rb.Holder})
			putCommit(map[string]string{"x": "y"}, "a person's")(t, repo)
			looks(t, a, Sighting{Head: repo.Head("status"), Fence: 6, Holder: rb.Holder})
			if err := repo.DeleteBranch("status"); err != nil {
				t.Fatal(err)
			}
			looks(t, a, Sighting{})
			if _, err := a.Publish(t.Context(), ra); !errors.Is(err, ErrFenced) {
				t.Errorf("error %v, want ErrFenced: the other was seen", err)
			}
		})
	}
}

func TestALookIsOneRequestWhileThereIsNothingNew(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	var requests atomic.Int32
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			h.ServeHTTP(w, r)
		})
	}})
	asked := func(what string, want int32, fn func()) {
		t.Helper()
		requests.Store(0)
		if fn(); requests.Load() != want {
			t.Errorf("%s: %d requests, want %d", what, requests.Load(), want)
		}
	}
	a, b := newStatus(t, server.URL, Auth{}), newStatus(t, server.URL, Auth{})
	look := func() { ok[Sighting](t)(a.Look(t.Context())) }
	publish := func(b *StatusBranch, r *model.Report) func() {
		return func() { ok[Published](t)(b.Publish(t.Context(), r)) }
	}
	asked("the first publication", 2, publish(a, held(5, "a", fleet)))
	asked("the next", 2, publish(a, held(5, "a", with(fleet, "README.md", "new\n"))))
	asked("a look at what is ours", 1, look)
	publish(b, held(6, "b", fleet))()
	asked("a look at what is new", 4, look) // and at its files, for the host
	asked("a look at what was seen", 1, look)
	if err := b.Challenge(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	asked("a look at a challenge", 2, look)
	asked("a look at a challenge that was seen", 1, look)
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, r *servedRepo){
		"a server that takes any ref":       func(*testing.T, *servedRepo) {},
		"a server that takes only branches": refuseRefs,
		"a server that does not show other refs": func(t *testing.T, r *servedRepo) {
			if out, err := r.Git("config", "uploadpack.hideRefs", "refs/ingot"); err != nil {
				t.Fatal(err, out)
			}
		},
		"a server on which refs may only move on": func(t *testing.T, r *servedRepo) {
			if out, err := r.Git("config", "receive.denyNonFastForwards", "true"); err != nil {
				t.Fatal(err, out)
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			repo := newGitRepo(t)
			prepare(t, repo)
			server := serveHTTP(t, repo, gitserver.HTTPOptions{})
			holder, challenger := newStatus(t, server.URL, Auth{}), newStatus(t, server.URL, Auth{})
			r := held(5, "a", fleet)
			p := ok[Published](t)(holder.Publish(t.Context(), r))
			for round := range 3 { // the second finds the refs of the first, if they are left
				if err := challenger.Challenge(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				looks(t, challenger, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder})
				notAnswered(t, challenger)
				looks(t, holder, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder, Challenger: "b"})
				if err := holder.Answer(t.Context(), r.Holder); err != nil {
					t.Fatal(err)
				}
				looks(t, holder, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder})
				answeredBy(t, challenger, model.Holder{ID: "a", Host: "host-a"})
				if round == 1 {
					continue // killed before it could withdraw
				}
				if err := challenger.Withdraw(t.Context()); err != nil {
					t.Fatal(err)
				}
				if out := ok[string](t)(repo.Git("for-each-ref", "--format=%(refname)")); strings.TrimSpace(out) != "refs/heads/status" {
					t.Errorf("refs that are left: %s", out)
				}
			}
			if out, err := repo.Git("fsck", "--strict", "--no-dangling"); err != nil {
				t.Errorf("git fsck: %v %s", err, out)
			}
		})
	}
}

func notAnswered(t *testing.T, b *StatusBranch) {
	t.Helper()
	if holder, answered, err := b.Answered(t.Context()); answered || err != nil {
		t.Errorf("answered by %+v: %t, %v", holder, answered, err)
	}
}

func answeredBy(t *testing.T, b *StatusBranch, want model.Holder) {
	t.Helper()
	if holder, answered, err := b.Answered(t.Context()); !answered || err != nil || holder != want {
		t.Errorf("answered by %+v: %t, %v, want %+v", holder, answered, err, want)
	}
}

// refuseRefs has the server take only branches from now on.
func refuseRefs(t *testing.T, r *servedRepo) {
	t.Helper()
	err := r.Hook("pre-receive", `while read -r old new ref; do case $ref in refs/ingot/*) `+
		`echo "no such namespace" >&2; exit 1;; esac; done`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasLeftOnAServerIsNoQuestionAndNoAnswer(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	holder, challenger := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
	r := held(5, "a", fleet)
	p := ok[Published](t)(holder.Publish(t.Context(), r))
	challenge := func(id string) {
		t.Helper()
		if err := challenger.Challenge(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	challenge("b")
	looks(t, holder, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder, Challenger: "b"})
	if err := holder.Answer(t.Context(), r.Holder); err != nil {
		t.Fatal(err)
	}
	answeredBy(t, challenger, model.Holder{ID: "a", Host: "host-a"})

	refuseRefs(t, repo)
	challenger = newStatus(t, repo.URL(), Auth{})
	challenge("c")
	notAnswered(t, challenger)

	if _, err := repo.Git("update-ref", "refs/ingot/challenge", p.Commit); err != nil { // says nothing
		t.Fatal(err)
	}
	looks(t, holder, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder, Challenger: "c"})
}

func TestALookThatCannotTellWhoWroteFails(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	posts, fail := 0, 0
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				if posts++; posts == fail {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
			}
			h.ServeHTTP(w, r)
		})
	}})
	a, b := newStatus(t, server.URL, Auth{}), newStatus(t, repo.URL(), Auth{})
	ok[Published](t)(a.Publish(t.Context(), held(5, "a", fleet)))
	r := held(6, "b", fleet)
	ok[Published](t)(b.Publish(t.Context(), r))
	putCommit(map[string]string{"x": "y"}, "a person's")(t, repo)
	posts, fail = 0, 2 // the files of the head
	if s, err := a.Look(t.Context()); err == nil {
		t.Errorf("looked at %+v, want an error", s)
	}
	looks(t, a, Sighting{Head: repo.Head("status"), Fence: 6, Holder: r.Holder})
}

func TestTwoChallengersAreAnsweredBoth(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	a, b, c := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
	r := held(5, "a", fleet)
	p := ok[Published](t)(a.Publish(t.Context(), r))
	challenge := func(s *StatusBranch, id string) {
		t.Helper()
		if err := s.Challenge(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	answer := func() {
		t.Helper()
		ok[Sighting](t)(a.Look(t.Context()))
		if err := a.Answer(t.Context(), r.Holder); err != nil {
			t.Fatal(err)
		}
	}
	alive := model.Holder{ID: "a", Host: "host-a"}
	challenge(b, "b")
	challenge(c, "c")
	answer()
	answeredBy(t, c, alive)
	answeredBy(t, b, alive)

	// One that has its answer takes the question of the other away.
	challenge(b, "b")
	challenge(c, "c")
	answer()
	answeredBy(t, c, alive)
	if err := c.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	notAnswered(t, b) // and asks again
	looks(t, a, Sighting{Head: p.Commit, Fence: 5, Holder: r.Holder, Challenger: "b"})
	answer()
	answeredBy(t, b, alive)
}

func TestAHolderThatPublishesIsAlive(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	a, b := newStatus(t, repo.URL(), Auth{}), newStatus(t, repo.URL(), Auth{})
	r := held(5, "a", fleet)
	ok[Published](t)(a.Publish(t.Context(), r))
	if err := b.Challenge(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	putCommit(map[string]string{"x": "y"}, "a person's")(t, repo)
	notAnswered(t, b)
	ok[Published](t)(a.Publish(t.Context(), held(5, "a", with(fleet, "README.md", "new\n"))))
	answeredBy(t, b, model.Holder{ID: "a"}) // its trailers say no more
}

func TestAChallengeEndsInTime(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "ssh"} {
		b := newStatus(t, scheme+"://"+silent(t)+"/x.git", sshKeys(t, writeFile(t, nil)))
		b.remote.timeout = 200 * time.Millisecond
		_, _, answered := b.Answered(t.Context())
		_, look := b.Look(t.Context())
		for what, err := range map[string]error{
			"challenge": b.Challenge(t.Context(), "b"), "answered": answered, "look": look, "withdraw": b.Withdraw(t.Context()),
		} {
			if kindOf(err) != failureNetwork {
				t.Errorf("%s, %s: %v", scheme, what, err)
			}
		}
	}
}

func TestARefusedReportIsPublishedWithoutTexts(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	scanner := `while read -r old new ref; do if git show "$new:README.md" | grep -q hunter2; then ` +
		`echo "secret scanner: no" >&2; exit 1; fi; done`
	if err := repo.Hook("pre-receive", scanner); err != nil {
		t.Fatal(err)
	}
	now := newClock()
	b := newStatus(t, repo.URL(), Auth{})
	b.opts.Clock = now.Now
	publish := func(readme, server string) Published {
		t.Helper()
		r := report(1, map[string]string{"README.md": readme, "problems.yaml": "problems: [hunter2]\n", "servers/s1.yaml": server})
		return ok[Published](t)(b.Publish(t.Context(), r))
	}
	branch := func() map[string]string { t.Helper(); return ok[map[string]string](t)(repo.ReadBranch("status")) }

	p := publish("password hunter2", "a: 1\n")
	got := branch()
	if !p.New || !p.Bare || got["servers/s1.yaml"] != "a: 1\n" || strings.Contains(got["README.md"]+got["problems.yaml"], "hunter2") {
		t.Errorf("published %+v, the branch holds %v", p, got)
	}
	message := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))[0].Message
	if want := "status of main@sha1:abc\n\n[skip ci]\n\nRevision: main@sha1:abc\nFence: 1"; message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	if p := publish("password hunter2", "a: 1\n"); p.New || !p.Bare {
		t.Errorf("published %+v again", p)
	}
	p = publish("all is well", "a: 2\n")
	if !p.Bare || branch()["servers/s1.yaml"] != "a: 2\n" {
		t.Errorf("published %+v", p)
	}
	now.now = now.now.Add(recheckAfter)
	p = publish("all is well", "a: 3\n")
	if got := branch(); p.Bare || got["README.md"] != "all is well" || got["problems.yaml"] != "problems: [hunter2]\n" {
		t.Errorf("published %+v, the branch holds %v", p, got)
	}
}

func TestWhatPeopleWroteIsInNoPartOfABareReport(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	scanner := `while read -r old new ref; do if git grep -q hunter2 "$new"; then echo "secret scanner: no" >&2; exit 1; fi; done`
	if err := repo.Hook("pre-receive", scanner); err != nil {
		t.Fatal(err)
	}
	r := report(1, map[string]string{"README.md": "fine", "racks/hall.svg": "<svg>rack hunter2</svg>"})
	type part struct {
		Message   string            `json:"message,omitempty"`
		LastError string            `json:"lastError,omitempty"`
		Labels    map[string]string `json:"labels,omitempty"`
		Serial    int64             `json:"serial"`
		Parts     []part            `json:"parts,omitempty"`
	}
	wrote := part{"hunter2", "hunter2", map[string]string{"a": "hunter2"}, 1795378950542643738, nil}
	whole := wrote
	whole.Parts = []part{wrote}
	r.Documents["servers/s1.yaml"] = &model.Document{Object: whole}
	p := ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), r))
	const want = "parts:\n- serial: 1795378950542643738\nserial: 1795378950542643738\n"
	if got := ok[map[string]string](t)(repo.ReadBranch("status"))["servers/s1.yaml"]; !p.Bare || got != want {
		t.Errorf("published %+v, the file holds\n%s\nwant\n%s", p, got, want)
	}
}

func TestAServerThatRefusesAllIsNotAskedTwiceEachTime(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	if err := repo.Hook("pre-receive", "exit 1"); err != nil {
		t.Fatal(err)
	}
	var posts atomic.Int32
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") {
				posts.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}})
	b := newStatus(t, server.URL, Auth{})
	for i, want := range []int32{2, 3, 4} {
		if _, err := b.Publish(t.Context(), report(1, fleet)); !errors.Is(err, ErrRejected) {
			t.Errorf("error %v, want ErrRejected", err)
		}
		if posts.Load() != want {
			t.Errorf("%d pushes after publication %d, want %d", posts.Load(), i, want)
		}
	}
}

func TestAServerInTroubleRefusesNothing(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			h.ServeHTTP(w, r)
		})
	}})
	b := newStatus(t, server.URL, Auth{})
	if _, err := b.Publish(t.Context(), report(1, fleet)); err == nil || errors.Is(err, ErrRejected) {
		t.Errorf("error %v, want one that is no refusal", err)
	}
	if err := b.Challenge(t.Context(), "b"); err == nil || errors.Is(err, ErrRejected) {
		t.Errorf("challenge: error %v, want one that is no refusal", err)
	}
}

func TestALookThatFindsTheBranchChangedHasItMended(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	r := held(5, "a", fleet)
	ok[Published](t)(b.Publish(t.Context(), r))
	if err := repo.DeleteBranch("status"); err != nil {
		t.Fatal(err)
	}
	looks(t, b, Sighting{})
	if p := ok[Published](t)(b.Publish(t.Context(), r)); !p.New || !p.SetBack {
		t.Errorf("published %+v, want the branch made again", p)
	}
}
