package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// push is what is read of an announcement. Forges name one thing differently; a field that
// one does not send stays empty.
type push struct {
	Ref        string `json:"ref"`
	EventName  string `json:"event_name"` // of a system hook of GitLab
	Repository places `json:"repository"`
	Project    places `json:"project"` // GitLab
}

// places are all addresses that a forge gives of a repository.
type places struct {
	CloneURL string `json:"clone_url"`
	SSHURL   string `json:"ssh_url"`
	HTMLURL  string `json:"html_url"`
	GitHTTP  string `json:"git_http_url"`
	GitSSH   string `json:"git_ssh_url"`
	WebURL   string `json:"web_url"`
}

// addresses are those of the repository that was pushed to.
func (p push) addresses() []string {
	var all []string
	for _, r := range []places{p.Repository, p.Project} {
		all = append(all, r.CloneURL, r.SSHURL, r.HTMLURL, r.GitHTTP, r.GitSSH, r.WebURL)
	}
	return slices.DeleteFunc(all, func(a string) bool { return a == "" })
}

// eventHeaders are where forges say what they announce.
var eventHeaders = []string{"X-GitHub-Event", "X-Forgejo-Event", "X-Gitea-Event", "X-Gitlab-Event"}

// isPush reports whether a push is announced. Who does not say what it is announces one.
func (p push) isPush(h http.Header) bool {
	for _, name := range eventHeaders {
		switch event := strings.ToLower(h.Get(name)); event {
		case "":
		case "system hook":
			return p.EventName == "push" || p.EventName == "tag_push"
		default:
			return event == "push" || event == "push hook" || event == "tag push hook"
		}
	}
	return true
}

// readPush reads the body of an announcement, which is JSON, or a form with JSON in its
// field payload. What curl sends is said to be a form, and is none.
func readPush(contentType string, body []byte) (p push, err error) {
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "application/x-www-form-urlencoded" {
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("payload") {
			body = []byte(form.Get("payload"))
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, errors.New("the body is not the JSON of a push")
	}
	return p, nil
}

// result is what came of a request, the label of a counter.
type result string

// The results.
const (
	resultAccepted     result = "accepted"
	resultNoPush       result = "no_push" // a ping, or another event
	resultOtherBranch  result = "other_branch"
	resultStatusBranch result = "status_branch" // Ingot's own pushes
	resultOtherRepo    result = "other_repository"
	resultUnauthorized result = "unauthorized"
	resultTooLarge     result = "too_large"
	resultMalformed    result = "malformed"
	resultBusy         result = "busy"
	resultNotFound     result = "not_found" // another path or method
)

// allResults are shown from the start, so that a rate can be taken of each.
var allResults = []result{
	resultAccepted, resultNoPush, resultOtherBranch, resultStatusBranch, resultOtherRepo, resultUnauthorized, resultTooLarge,
	resultMalformed, resultBusy, resultNotFound,
}

// Branches are what is followed: pushes to anything else are of no interest.
type Branches struct {
	// Repository is its address as the forge gives it. One that is no address of a forge,
	// such as a path, is that of whatever repository is announced.
	Repository string
	Branch     string // "" where tags are followed, or a commit
	Status     string // the branch that Ingot writes
}

// judge decides what to make of an announcement, and says it in words.
func (b Branches) judge(h http.Header, p push) (result, string) {
	if !p.isPush(h) {
		return resultNoPush, "ignored: this is no push"
	}
	if !b.isOurs(p.addresses()) {
		return resultOtherRepo, fmt.Sprintf("ignored: this is a push to another repository than %s; if it is the same, "+
			"name it in webhook.repository as the forge does", b.Repository)
	}
	switch branch := strings.TrimPrefix(p.Ref, "refs/heads/"); {
	case b.Branch == "" && (p.Ref == "" || strings.HasPrefix(p.Ref, "refs/tags/")):
		return resultAccepted, "accepted: the tags are polled"
	case b.Branch == "" && branch != b.Status:
		return resultOtherBranch, "ignored: this is no push of a tag"
	case p.Ref == "": // whoever sends no ref wants the branch looked at
	case branch == p.Ref, branch != b.Branch && branch != b.Status:
		return resultOtherBranch, "ignored: this is no push to branch " + b.Branch
	case branch == b.Status:
		return resultStatusBranch, "ignored: this branch is written by Ingot"
	}
	return resultAccepted, "accepted: branch " + b.Branch + " is polled"
}

// isOurs reports whether one of the addresses is our repository's. Who names none is
// believed, as it knows the secret.
func (b Branches) isOurs(addresses []string) bool {
	ours, ok := ParseAddress(b.Repository)
	if !ok || len(addresses) == 0 {
		return true
	}
	return slices.ContainsFunc(addresses, func(raw string) bool {
		a, ok := ParseAddress(raw)
		return ok && ours.same(a)
	})
}
