package forgeserver

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"unicode/utf8"
)

// Status is one commit status that was taken.
type Status struct {
	Commit      string
	Context     string
	State       string // by the forge's own name
	Description string
	Target      string
	Branch      string // GitLab's alone
}

// Statuses are all that were taken, oldest first.
func (f *Forge) Statuses() []Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.statuses)
}

// Posts is how many were posted, those that were not taken included.
func (f *Forge) Posts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posts
}

// Throttle refuses the next n posts: the forge was asked too often.
func (f *Forge) Throttle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.throttle = n
}

// states are what each kind of forge knows.
var states = map[string][]string{
	"github":  {"error", "failure", "pending", "success"},
	"gitlab":  {"pending", "running", "success", "failed", "canceled", "skipped"},
	"gitea":   {"pending", "success", "error", "failure", "warning"},
	"forgejo": {"pending", "success", "error", "failure", "warning"},
}

// longest is how many characters a description may have.
var longest = map[string]int{"github": 140, "gitlab": 255, "gitea": 65535, "forgejo": 65535}

// serveAPI takes commit statuses.
func (f *Forge) serveAPI(w http.ResponseWriter, r *http.Request) {
	code, text := f.take(w.Header(), r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": text})
}

func (f *Forge) take(answer http.Header, r *http.Request) (code int, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	match := f.api.FindStringSubmatch(r.URL.EscapedPath())
	if match == nil || r.Method != http.MethodPost {
		return http.StatusNotFound, "Not Found"
	}
	f.posts++
	if !f.authorized(r.Header) {
		return http.StatusUnauthorized, "Bad credentials"
	}
	if f.throttle > 0 {
		f.throttle--
		answer.Set("Retry-After", "1")
		return http.StatusTooManyRequests, "Too Many Requests"
	}
	if _, err := f.repo.Git("cat-file", "-e", match[1]+"^{commit}"); err != nil {
		return http.StatusUnprocessableEntity, "No commit found for SHA: " + match[1]
	}
	var body struct {
		State, Context, Description, Ref string
		TargetURL                        string `json:"target_url"`
	}
	content, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil || json.Unmarshal(content, &body) != nil {
		return http.StatusBadRequest, "Problems parsing JSON"
	}
	s := Status{match[1], body.Context, body.State, body.Description, body.TargetURL, body.Ref}
	if !slices.Contains(states[f.kind], s.State) || s.Context == "" || utf8.RuneCountInString(s.Description) > longest[f.kind] {
		return http.StatusUnprocessableEntity, "Validation Failed"
	}
	if f.kind == "gitlab" && f.isIn(s) {
		return http.StatusBadRequest, "Cannot transition status via :run from :" + s.State
	}
	f.statuses = append(f.statuses, s)
	return http.StatusCreated, "created"
}

// isIn reports whether a commit has a state already.
func (f *Forge) isIn(s Status) bool {
	for _, before := range slices.Backward(f.statuses) {
		if before.Commit == s.Commit && before.Context == s.Context {
			return before.State == s.State
		}
	}
	return false
}

func (f *Forge) authorized(h http.Header) bool {
	switch f.kind {
	case "github":
		return h.Get("Authorization") == "Bearer "+f.token
	case "gitlab":
		return h.Get("PRIVATE-TOKEN") == f.token
	default:
		return h.Get("Authorization") == "token "+f.token
	}
}
