package forge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Project is where commit statuses are posted to.
type Project struct {
	Provider string // one of Providers
	API      string // such as https://api.github.com, without a slash at the end
	Name     string // infra/metal; at GitLab also its number
	pages    string // of the repository, "" if not known
}

// provider is what is different from forge to forge.
type provider struct {
	api    func(Address) string
	path   func(project string) string // of the statuses, the commit follows
	body   func(s status) body
	header func(h http.Header, token string)
	pages  string // the path of a branch below that of the repository
	nested bool   // a project may be in groups of groups
}

// status is what is posted.
type status struct {
	Verdict
	context, target, branch string
}

// body is a status as all forges take it, but for the names of states and for the branch.
type body struct {
	State       string `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description"`
	Target      string `json:"target_url,omitempty"`
	Ref         string `json:"ref,omitempty"` // GitLab, where a commit on several branches has a pipeline for each
}

var gitea = provider{
	api:  func(a Address) string { return a.scheme + "://" + a.host + a.above(2) + "/api/v1" },
	path: func(project string) string { return "/repos/" + project + "/statuses/" },
	body: func(s status) body {
		return body{State: string(s.State), Context: s.context, Description: s.Description, Target: s.target}
	},
	pages: "/src/branch/",
	header: func(h http.Header, token string) {
		h.Set("Authorization", "token "+token)
	},
}

var providers = map[string]provider{
	"github": {
		api: func(a Address) string {
			if a.host == "github.com" {
				return "https://api.github.com"
			}
			return a.scheme + "://" + a.host + "/api/v3"
		},
		path:  gitea.path,
		body:  gitea.body,
		pages: "/tree/",
		header: func(h http.Header, token string) {
			h.Set("Authorization", "Bearer "+token)
			h.Set("Accept", "application/vnd.github+json")
			h.Set("X-GitHub-Api-Version", "2022-11-28")
		},
	},
	"gitlab": {
		api:  func(a Address) string { return a.scheme + "://" + a.host + "/api/v4" },
		path: func(project string) string { return "/projects/" + url.PathEscape(project) + "/statuses/" },
		body: func(s status) body {
			b := gitea.body(s)
			b.State, b.Ref = gitlabState(s.State), s.branch
			return b
		},
		pages:  "/-/tree/",
		header: func(h http.Header, token string) { h.Set("PRIVATE-TOKEN", token) },
		nested: true,
	},
	"gitea":   gitea,
	"forgejo": gitea,
}

// gitlabState is a state by the name that GitLab has for it.
func gitlabState(s State) string {
	if s == Failure {
		return "failed"
	}
	return string(s)
}

// Providers are the forges that commit statuses can be posted to.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// above is the path that a forge is served below, "" or /git, where its projects have
// names of n elements.
func (a Address) above(n int) string {
	elements := strings.Split(a.path, "/")
	if len(elements) <= n {
		return ""
	}
	return "/" + strings.Join(elements[:len(elements)-n], "/")
}

// projectName is what a project may be called: owner/name, or a number at GitLab.
var projectName = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*$`)

// NewProject returns where the commits of a repository have their statuses. What is empty
// is derived from the repository's address; it fails if that is not possible.
func NewProject(kind, repository, api, name string) (Project, error) {
	p, ok := providers[kind]
	if !ok {
		return Project{}, fmt.Errorf("provider %q is not known, only %s", kind, strings.Join(Providers(), ", "))
	}
	a, known := ParseAddress(repository)
	if !known && (api == "" || name == "") {
		return Project{}, fmt.Errorf("%q is no address of a Git host, so both url and project have to be set", repository)
	}
	own := a.path
	if above := a.above(2); !p.nested {
		own = strings.TrimPrefix(strings.TrimPrefix("/"+a.path, above), "/")
	}
	project := Project{Provider: kind, API: strings.TrimRight(api, "/"), Name: cmp.Or(name, own)}
	if project.API == "" {
		project.API = p.api(a)
	}
	if known {
		project.pages = a.scheme + "://" + a.host + "/" + a.path
	}
	number := strings.Trim(project.Name, "0123456789") == ""
	if !projectName.MatchString(project.Name) || !strings.Contains(project.Name, "/") && (!p.nested || !number) ||
		!p.nested && strings.Count(project.Name, "/") != 1 {
		return Project{}, fmt.Errorf("project %q is not allowed: must be owner/name, as in the address of the repository's page", project.Name)
	}
	return project, nil
}

// Page is where people look at a branch, "" if that is not known.
func (p Project) Page(branch string) string {
	if p.pages == "" {
		return ""
	}
	return p.pages + providers[p.Provider].pages + branch
}

// request is what posts a status, without the token.
func (p Project) request(s status) (address string, content []byte, err error) {
	forge := providers[p.Provider]
	content, err = json.Marshal(forge.body(s))
	return p.API + forge.path(p.Name) + s.Commit, content, err
}
