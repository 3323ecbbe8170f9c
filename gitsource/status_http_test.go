package gitsource

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

// requests are those that an HTTP server was sent since they were last taken.
type requests struct {
	mu  sync.Mutex
	all []string // "GET", or "POST receive-pack"
}

func (r *requests) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		what := "look"
		if req.Method == http.MethodPost {
			what = strings.TrimPrefix(req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:], "git-")
		}
		r.mu.Lock()
		r.all = append(r.all, what)
		r.mu.Unlock()
		h.ServeHTTP(w, req)
	})
}

func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func TestAPushSoonAfterAnotherLooksNoMore(t *testing.T) {
	t.Parallel()
	look, push := "look", "receive-pack"
	next := with(fleet, "README.md", "next\n")
	for name, test := range map[string]struct {
		between func(*testing.T, *servedRepo, *clock)
		want    []string // the requests of the second push begin like this
		commits int
		foreign bool
		err     error
	}{
		"nothing":                 {want: []string{push}, commits: 3},
		"less than a minute":      {between: later(believeFor - 1), want: []string{push}, commits: 3},
		"a minute":                {between: later(believeFor), want: []string{look, push}, commits: 3},
		"somebody else's commit":  {between: foreignCommit, want: []string{push, look, look}, commits: 4, foreign: true},
		"the branch is deleted":   {between: deleted, want: []string{push, look, look}, commits: 1},
		"another Ingot took over": {between: takenOver, want: []string{push, look, look}, err: errEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, now, seen := newGitRepo(t), newClock(), &requests{}
			server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: seen.counted})
			b := newStatus(t, server.URL, Auth{})
			b.opts.Clock, b.opts.Watch = now.Now, endsByOthers
			ok[Published](t)(b.Publish(t.Context(), report(1, with(fleet, "README.md", "zeroth\n"))))
			ok[Published](t)(b.Publish(t.Context(), report(1, fleet))) // of a branch that is there
			if test.between != nil {
				test.between(t, repo, now)
			}
			seen.take()
			p, err := b.Publish(t.Context(), report(1, next))
			if got := seen.take(); len(got) < len(test.want) || !slices.Equal(got[:len(test.want)], test.want) {
				t.Errorf("requests %q, want %q first", got, test.want)
			}
			if test.err != nil {
				if !errors.Is(err, test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
				return
			}
			if err != nil || !p.New || (p.Foreign != nil) != test.foreign {
				t.Errorf("published %+v, %v", p, err)
			}
			holds(t, repo, next, test.commits)
		})
	}
}

func later(d time.Duration) func(*testing.T, *servedRepo, *clock) {
	return func(_ *testing.T, _ *servedRepo, c *clock) { c.now = c.now.Add(d) }
}

func foreignCommit(t *testing.T, repo *servedRepo, _ *clock) {
	ok[string](t)(repo.CommitTo("status", map[string]string{"mine.txt": "x"}, "I know better"))
}

func deleted(t *testing.T, repo *servedRepo, _ *clock) {
	must.Do(t, repo.DeleteBranch("status"))
}

func takenOver(t *testing.T, repo *servedRepo, _ *clock) {
	ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), held("other", 6, with(fleet, "README.md", "theirs\n"))))
}

// TestTheServerIsLookedAtNowAndThen publishes often: what the server can do is asked for again.
func TestTheServerIsLookedAtNowAndThen(t *testing.T) {
	t.Parallel()
	repo, now, seen := newGitRepo(t), newClock(), &requests{}
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: seen.counted})
	b := newStatus(t, server.URL, Auth{})
	b.opts.Clock = now.Now
	looks := 0
	for i := range 25 { // 12 minutes
		ok[Published](t)(b.Publish(t.Context(), report(1, with(fleet, "README.md", fmt.Sprint(i)))))
		now.now = now.now.Add(believeFor / 2)
		if slices.Contains(seen.take(), "look") {
			looks++
		}
	}
	if diff := cmp.Diff(4, looks); diff != "" { // for the new branch twice, and after 5 and 10 minutes
		t.Errorf("looks (-want +got):\n%s", diff)
	}
}

// A request with a body is not sent elsewhere by a redirect, so each push follows it first.
func TestARedirectIsFollowedByEachPush(t *testing.T) {
	t.Parallel()
	repo := newGitRepo(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{})
	from := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := server.URL[:strings.LastIndex(server.URL, "/")] + r.URL.Path + "?" + r.URL.RawQuery
			http.Redirect(w, r, to, http.StatusMovedPermanently)
		})
	}})
	b := newStatus(t, from.URL, Auth{})
	for i := range 3 {
		next := with(fleet, "README.md", fmt.Sprint(i))
		ok[Published](t)(b.Publish(t.Context(), report(1, next)))
		holds(t, repo, next, i+1)
	}
}
