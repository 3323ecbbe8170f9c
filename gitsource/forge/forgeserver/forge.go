package forgeserver

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ingot/gitsource/gitserver"
)

// owner is who the repository belongs to.
const owner = "infra"

// Forge is the host of one repository.
type Forge struct {
	// URL is that of the repository, for Git.
	URL string

	kind    string
	token   string
	root    string // of the forge, http://127.0.0.1:port
	project string // infra/fleet
	repo    *gitserver.Repo
	server  *gitserver.HTTPServer
	api     *regexp.Regexp
	web     *http.Client
	pushes  atomic.Int64

	stop     chan struct{}
	watching sync.WaitGroup

	mu       sync.Mutex // guards what is below
	secret   string
	hooks    []string // where pushes are announced
	branches []string // that are announced
	answers  []int    // codes of the announcements' answers
	statuses []Status
	throttle int // how many posts are yet refused with 429
	posts    int // all of them
}

// Keys are what a forge and those who speak with it share.
type Keys struct {
	Token  string // that commit statuses are posted with
	Secret string // that announcements are signed with
}

// Serve serves a repository as a forge of a kind does: github, gitlab, gitea or forgejo. It
// announces pushes to the branches.
func Serve(kind string, repo *gitserver.Repo, keys Keys, branches ...string) (*Forge, error) {
	f := &Forge{
		kind: kind, repo: repo, token: keys.Token, secret: keys.Secret, branches: branches,
		stop: make(chan struct{}), web: &http.Client{Timeout: 10 * time.Second},
	}
	server, err := repo.ServeHTTP(gitserver.HTTPOptions{RealGit: true, Wrap: f.route})
	if err != nil {
		return nil, err
	}
	at := strings.LastIndexByte(server.URL, '/')
	f.server, f.root = server, server.URL[:at]
	f.project = owner + "/" + strings.TrimSuffix(server.URL[at+1:], ".git")
	f.URL = f.root + "/" + f.project + ".git"
	path, ok := map[string]string{
		"github": "/api/v3/repos/" + f.project, "gitlab": "/api/v4/projects/" + strings.ReplaceAll(f.project, "/", "%2F"),
		"gitea": "/api/v1/repos/" + f.project, "forgejo": "/api/v1/repos/" + f.project,
	}[kind]
	if !ok {
		server.Close()
		return nil, fmt.Errorf("there is no forge of the kind %q", kind)
	}
	f.api = regexp.MustCompile("^" + regexp.QuoteMeta(path) + "/statuses/([0-9a-f]+)$")
	f.watching.Go(f.watch)
	return f, nil
}

// Close stops the forge.
func (f *Forge) Close() {
	close(f.stop)
	f.watching.Wait()
	f.server.Close()
	f.web.CloseIdleConnections()
}

// route serves the API, and Git below the owner's name.
func (f *Forge) route(git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			f.serveAPI(w, r)
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			f.pushes.Add(1)
		}
		http.StripPrefix("/"+owner, git).ServeHTTP(w, r)
	})
}

// Pushes is how many pushes were tried over HTTP.
func (f *Forge) Pushes() int { return int(f.pushes.Load()) }

// Protect refuses pushes to a branch, as a forge does where a rule protects it.
func (f *Forge) Protect(branch string) error {
	return f.refuse(branch, "this branch is protected: you are not allowed to push to it")
}

// FindSecrets refuses pushes to a branch, as a forge does whose scanner finds a secret.
func (f *Forge) FindSecrets(branch string) error {
	return f.refuse(branch, "push blocked: README.md:1 holds what looks like a secret")
}

func (f *Forge) refuse(branch, text string) error {
	script := `while read -r old new ref; do if [ "$ref" = "refs/heads/` + branch + `" ]; then echo "` + text + `" >&2; exit 1; fi; done`
	return f.repo.Hook("pre-receive", script)
}

// Allow takes pushes again.
func (f *Forge) Allow() error { return f.repo.Hook("pre-receive", "exit 0") }
