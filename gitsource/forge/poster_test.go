package forge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/forge/forgeserver"
	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

// world is a Poster with a clock that tests move.
type world struct {
	*Poster
	now     time.Time
	verdict Verdict
	leads   bool
	token   string // its file
	log     bytes.Buffer
}

func newWorld(t *testing.T, project Project, token string) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), leads: true, token: filepath.Join(t.TempDir(), "token")}
	w.write(t, token)
	w.Poster = NewPoster(PosterOptions{
		Project: project, Branch: "main", Target: project.Page("status"), TokenFile: w.token,
		StateFile: filepath.Join(t.TempDir(), "commit-status.json"),
		Verdict:   func() (Verdict, bool) { return w.verdict, w.verdict != Verdict{} }, Leading: func() bool { return w.leads },
		Transport: func() (*http.Transport, error) { return &http.Transport{}, nil },
		Log:       slog.New(slog.NewTextHandler(&w.log, nil)), Clock: func() time.Time { return w.now },
	})
	return w
}

func (w *world) write(t *testing.T, token string) {
	t.Helper()
	must.Do(t, os.WriteFile(w.token, []byte(token), 0o600))
}

func (w *world) pass(t *testing.T, d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
		w.step(t.Context())
	}
}

func answering(t *testing.T, f http.HandlerFunc) (Project, *int) {
	t.Helper()
	n := new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*n++
		f(w, r)
	}))
	t.Cleanup(server.Close)
	return Project{Provider: "github", API: server.URL, Name: "infra/metal"}, n
}

const token = "glpat-never-to-be-seen"

func verdictOf(state State, text string) Verdict {
	return Verdict{Commit: newHash, State: state, Description: text}
}

// One test joins what is posted and what each forge takes.
func TestEachForgeTakesTheStatus(t *testing.T) {
	for _, kind := range Providers() {
		t.Run(kind, func(t *testing.T) {
			repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
			commit := must.Get(repo.Commit(map[string]string{"a": "b"}, "begin"))(t)
			f := must.Get(forgeserver.Serve(kind, repo, forgeserver.Keys{Token: token}))(t)
			defer f.Close()
			project := must.Get(NewProject(kind, f.URL, ""))(t)
			w := newWorld(t, project, token+"\n")
			for _, state := range []State{Pending, Success, Failure} {
				w.verdict = Verdict{Commit: commit, State: state, Description: short(strings.Repeat("long ", 100))}
				w.pass(t, 3*time.Second)
			}
			// what was posted is forgotten: it is posted again, which does no harm
			w.posted = Verdict{}
			w.pass(t, time.Minute)
			failed := map[string]string{"gitlab": "failed"}[kind]
			if failed == "" {
				failed = "failure"
			}
			branch := map[string]string{"gitlab": "main"}[kind]
			var got []string
			for _, s := range f.Statuses() {
				got = append(got, s.State)
				if s.Commit != commit || s.Context != "ingot" || s.Description != w.verdict.Description || s.Target != project.Page("status") ||
					s.Branch != branch {
					t.Errorf("got %+v", s)
				}
			}
			want := []string{"pending", "success", failed, failed}
			if kind == "gitlab" {
				want = want[:3] // which refuses the state that it has
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s\n%s", diff, w.log.String())
			}
			if n := f.Posts(); n != 4 {
				t.Errorf("%d posts, want 4", n)
			}
		})
	}
}

func TestAStatusIsPostedOnceAlsoOverARestart(t *testing.T) {
	project, posts := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w := newWorld(t, project, token)
	w.verdict = verdictOf(Success, "in force")
	w.pass(t, time.Hour)
	if *posts != 1 {
		t.Fatalf("%d posts within an hour, want 1", *posts)
	}
	again := newWorld(t, project, token)
	again.opts.StateFile, again.verdict = w.opts.StateFile, w.verdict
	again.remember()
	again.pass(t, time.Minute)
	if *posts != 1 {
		t.Errorf("%d posts after a restart, want 1", *posts)
	}
	elsewhere := newWorld(t, Project{Provider: "github", API: project.API, Name: "infra/other"}, token)
	elsewhere.opts.StateFile, elsewhere.verdict = w.opts.StateFile, w.verdict
	elsewhere.remember()
	elsewhere.pass(t, time.Minute)
	if *posts != 2 {
		t.Errorf("%d posts after another project was configured, want 2", *posts)
	}
}

// said is a forge that notes what is posted to it, as "commit state: description".
func said(t *testing.T, code func(commit string) int) (Project, *[]string) {
	t.Helper()
	var all []string
	project, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		var b struct{ State, Description string }
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		commit := path.Base(r.URL.Path)
		all = append(all, fmt.Sprintf("%s %s: %s", commit[:4], b.State, b.Description))
		w.WriteHeader(code(commit))
	})
	return project, &all
}

func hashOf(letters string) string { return letters + newHash[len(letters):] }

func TestACommitThatWasOvertakenIsToldItsEnd(t *testing.T) {
	at := func(letters string, s State, text string) Verdict { return Verdict{hashOf(letters), s, text} }
	seen := func(letters string) Verdict { return at(letters, Pending, "seen") }
	var many []Verdict
	var ends []string
	for n := range 12 {
		many = append(many, seen(fmt.Sprintf("a%03d", n)))
		ends = append(ends, fmt.Sprintf("a%03d pending: seen", n))
	}
	many, ends = append(many, at("bbbb", Success, "in force")), append(ends, "bbbb success: in force")
	for n := 12 - maxOvertaken; n < 12; n++ {
		ends = append(ends, fmt.Sprintf("a%03d success: superseded by %s", n, hashOf("bbbb")[:12]))
	}
	by := func(letters string) string { return "superseded by " + hashOf(letters)[:12] }
	for name, tc := range map[string]struct {
		verdicts []Verdict
		want     []string
	}{
		"by one that is in force": {
			verdicts: []Verdict{seen("aaaa"), at("bbbb", Success, "in force")},
			want:     []string{"aaaa pending: seen", "bbbb success: in force", "aaaa success: " + by("bbbb")},
		},
		"by one that is refused": {
			verdicts: []Verdict{seen("aaaa"), at("bbbb", Failure, "1 error")},
			want:     []string{"aaaa pending: seen", "bbbb failure: 1 error", "aaaa failure: " + by("bbbb")},
		},
		"once the newer one has an end itself": {
			verdicts: []Verdict{seen("aaaa"), seen("bbbb"), at("bbbb", Success, "in force")},
			want:     []string{"aaaa pending: seen", "bbbb pending: seen", "bbbb success: in force", "aaaa success: " + by("bbbb")},
		},
		"one after the other": {
			verdicts: []Verdict{seen("aaaa"), seen("bbbb"), at("cccc", Success, "in force")},
			want: []string{
				"aaaa pending: seen", "bbbb pending: seen", "cccc success: in force", "aaaa success: " + by("cccc"), "bbbb success: " + by("cccc"),
			},
		},
		"not where it has one": {
			verdicts: []Verdict{at("aaaa", Success, "in force"), at("bbbb", Success, "in force")},
			want:     []string{"aaaa success: in force", "bbbb success: in force"},
		},
		"not where it is the newest again": {
			verdicts: []Verdict{seen("aaaa"), seen("bbbb"), at("aaaa", Success, "in force")},
			want:     []string{"aaaa pending: seen", "bbbb pending: seen", "aaaa success: in force", "bbbb success: " + by("aaaa")},
		},
		"of many the newest": {verdicts: many, want: ends},
	} {
		t.Run(name, func(t *testing.T) {
			project, got := said(t, func(string) int { return http.StatusCreated })
			w := newWorld(t, project, token)
			for _, v := range tc.verdicts {
				w.verdict = v
				w.pass(t, 3*time.Second)
				again := newWorld(t, project, token) // a restart forgets nothing
				again.opts.StateFile, again.now = w.opts.StateFile, w.now
				again.remember()
				w = again
			}
			w.verdict = tc.verdicts[len(tc.verdicts)-1]
			w.pass(t, 30*time.Second)
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("posted (-want +got):\n%s\n%s", diff, w.log.String())
			}
		})
	}
}

func TestOfAStateFileOnlyCommitsAreTaken(t *testing.T) {
	project, got := said(t, func(string) int { return http.StatusCreated })
	w := newWorld(t, project, token)
	w.verdict = Verdict{hashOf("bbbb"), Success, "in force"}
	content := fmt.Sprintf(`{"to":%q,"posted":{"commit":%q,"state":"success","description":"in force"},"overtaken":["../../x",%q]}`,
		w.to(), w.verdict.Commit, hashOf("aaaa"))
	must.Do(t, os.WriteFile(w.opts.StateFile, []byte(content), 0o600))
	w.remember()
	w.pass(t, 10*time.Second)
	if want := []string{"aaaa success: superseded by " + hashOf("bbbb")[:12]}; cmp.Diff(want, *got) != "" {
		t.Errorf("posted %q, want %q", *got, want)
	}
}

func TestAnOvertakenCommitThatIsGoneHoldsNothingUp(t *testing.T) {
	gone := false
	project, got := said(t, func(commit string) int {
		if gone && commit == hashOf("aaaa") {
			return http.StatusNotFound
		}
		return http.StatusCreated
	})
	w := newWorld(t, project, token)
	w.verdict = Verdict{hashOf("aaaa"), Pending, "seen"}
	w.pass(t, 3*time.Second)
	gone = true
	for _, c := range []string{"bbbb", "cccc"} {
		w.verdict = Verdict{hashOf(c), Success, "in force"}
		w.pass(t, 10*time.Second)
	}
	want := []string{"aaaa pending: seen", "bbbb success: in force", "aaaa success: superseded by " + hashOf("bbbb")[:12], "cccc success: in force"}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	if since, why := w.Failing(); !since.IsZero() || why != "" {
		t.Errorf("it fails since %s: %s", since, why)
	}
}

func TestAnOvertakenCommitIsToldItsEndOnceTheForgeAnswersAgain(t *testing.T) {
	code := http.StatusCreated
	project, got := said(t, func(string) int { return code })
	w := newWorld(t, project, token)
	w.verdict = Verdict{hashOf("aaaa"), Pending, "seen"}
	w.pass(t, 3*time.Second)
	w.verdict = Verdict{hashOf("bbbb"), Success, "in force"}
	w.pass(t, time.Second)
	code = http.StatusBadGateway
	w.pass(t, 2*time.Second)
	code = http.StatusCreated
	w.pass(t, time.Minute)
	end := "aaaa success: superseded by " + hashOf("bbbb")[:12]
	if diff := cmp.Diff([]string{"aaaa pending: seen", "bbbb success: in force", end, end}, *got); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
}

func TestWhyAStatusCannotBePostedIsKnown(t *testing.T) {
	code := http.StatusUnauthorized
	project, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	w := newWorld(t, project, token)
	begun := w.now
	w.verdict = verdictOf(Success, "in force")
	w.pass(t, time.Minute)
	since, why := w.Failing()
	if !since.Equal(begun) || why != "the forge does not take the token of git.commitStatus.tokenFile (401)" {
		t.Errorf("since %s: %q", since, why)
	}
	code = http.StatusCreated
	w.write(t, token+"2")
	w.pass(t, time.Minute)
	if since, why := w.Failing(); !since.IsZero() || why != "" {
		t.Errorf("it still fails since %s: %s", since, why)
	}
}

func TestWhoDoesNotLeadPostsNothing(t *testing.T) {
	project, posts := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w := newWorld(t, project, token)
	w.verdict, w.leads = verdictOf(Success, "in force"), false
	w.pass(t, time.Minute)
	if *posts != 0 {
		t.Errorf("%d posts", *posts)
	}
}

func TestTheNewestVerdictIsPostedOnceTheForgeAnswersAgain(t *testing.T) {
	well := false
	var bodies []string
	project, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if !well {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		bodies = append(bodies, b.String())
		w.WriteHeader(http.StatusCreated)
	})
	w := newWorld(t, project, token)
	for n := range 100 {
		w.verdict = verdictOf(Failure, fmt.Sprintf("%d errors", n))
		w.pass(t, time.Minute)
	}
	if got := w.unposted(); got < 5900 {
		t.Errorf("a status waits for %v s, want 100 minutes", got)
	}
	well = true
	w.pass(t, 15*time.Minute)
	if len(bodies) != 1 || !strings.Contains(bodies[0], `"99 errors"`) {
		t.Errorf("posted %v, want the newest alone", bodies)
	}
	if got := w.unposted(); got != 0 {
		t.Errorf("a status still waits for %v s", got)
	}
}

func TestAForgeIsNotAskedInATightLoop(t *testing.T) {
	for title, tc := range map[string]struct {
		code   int
		header map[string]string
		body   string
		least  int // posts within three hours
		most   int
		says   string
	}{
		"a token that is not taken": {code: 401, body: `{"message":"Bad credentials"}`, least: 3, most: 4, says: "Bad credentials"},
		"a token without the right": {code: 403, body: `{"message":"Resource not accessible"}`, least: 3, most: 4, says: "may not post"},
		"no such project":           {code: 404, least: 3, most: 4, says: "git.commitStatus.url"},
		"asked too often":           {code: 429, least: 15, most: 25, says: "too often"},
		"asked too often, with a time": {
			code: 429, header: map[string]string{"Retry-After": "1800"}, least: 6, most: 7, says: "too often",
		},
		"asked too often, as GitHub says it": {
			code: 403, header: map[string]string{"Retry-After": "3600"}, least: 3, most: 4, says: "too often",
		},
		"nothing left of a limit": {
			code: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767229200"}, // at 01:00
			least: 3, most: 25, says: "too often",
		},
		"a secondary limit without a time": {
			code: 403, body: `{"message":"You have exceeded a secondary rate limit"}`, least: 15, most: 25, says: "too often",
		},
		"a time that never comes": {code: 429, header: map[string]string{"Retry-After": "99999999999"}, least: 3, most: 25, says: "too often"},
		"a time that was": {
			code: 429, header: map[string]string{"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, least: 10, most: 30, says: "too often",
		},
		"trouble of the forge's own": {code: 500, least: 15, most: 30, says: "trouble"},
		"what it does not take":      {code: 422, body: `{"message":"No commit found"}`, least: 15, most: 30, says: "No commit found"},
		"a page in place of JSON":    {code: 400, body: strings.Repeat("<p>\x1b[31m", 10000), least: 15, most: 30, says: "<p>"},
		"the token in the answer": {
			code: 422, body: `{"message":"token ` + token + ` is odd"}`, least: 15, most: 30, says: "token … is odd",
		},
	} {
		t.Run(title, func(t *testing.T) {
			project, posts := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tc.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.body))
			})
			w := newWorld(t, project, token)
			w.verdict = verdictOf(Success, "in force")
			w.pass(t, 3*time.Hour)
			if *posts < tc.least || *posts > tc.most {
				t.Errorf("%d posts within three hours, want %d to %d", *posts, tc.least, tc.most)
			}
			log := w.log.String()
			if n := strings.Count(log, "level=WARN"); n > 3 {
				t.Errorf("%d warnings within three hours, want at most one an hour:\n%s", n, log)
			}
			if !strings.Contains(log, tc.says) || strings.Contains(log, token) || strings.Contains(log, "\x1b") || len(log) > 5000 {
				t.Errorf("the log does not say %q, or too much:\n%s", tc.says, log)
			}
		})
	}
}

func TestANewTokenIsTriedAtOnce(t *testing.T) {
	project, posts := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	w := newWorld(t, project, token)
	w.verdict = verdictOf(Success, "in force")
	w.pass(t, 10*time.Minute)
	w.write(t, "new\n")
	w.pass(t, 2*time.Second)
	if *posts != 2 || w.posted != w.verdict {
		t.Errorf("%d posts, and %+v is posted", *posts, w.posted)
	}
}

func TestATokenGoesNowhereElse(t *testing.T) {
	elsewhere, posts := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	project, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.API+r.URL.Path, http.StatusTemporaryRedirect)
	})
	w := newWorld(t, project, token)
	w.verdict = verdictOf(Success, "in force")
	w.pass(t, time.Minute)
	if *posts != 0 {
		t.Errorf("%d requests followed the redirect", *posts)
	}
	if want := strings.TrimPrefix(elsewhere.API, "http://"); !strings.Contains(w.log.String(), want) {
		t.Errorf("the log does not say where the forge is:\n%s", w.log.String())
	}
}

func TestAWrongTokenFileIsSaidWithoutItsContent(t *testing.T) {
	project, posts := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for title, content := range map[string]string{
		"empty": " \n", "two lines": token + "\n" + token, "a control character": token + "\x01", "too large": strings.Repeat(token, 10000),
	} {
		w := newWorld(t, project, content)
		w.verdict = verdictOf(Success, "in force")
		w.pass(t, time.Minute)
		if log := w.log.String(); *posts != 0 || !strings.Contains(log, "tokenFile") || strings.Contains(log, "glpat") {
			t.Errorf("%s: %d posts, and the log says:\n%s", title, *posts, log)
		}
	}
}

func TestAForgeThatCannotBeReachedIsNoHarm(t *testing.T) {
	w := newWorld(t, Project{Provider: "gitea", API: "http://127.0.0.1:1", Name: "infra/metal"}, token)
	w.verdict = verdictOf(Success, "in force")
	w.pass(t, 2*time.Hour)
	if n := strings.Count(w.log.String(), "cannot be reached"); n < 1 || n > 2 {
		t.Errorf("said %d times:\n%s", n, w.log.String())
	}
}
