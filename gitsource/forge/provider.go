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
	Name     string // infra/metal
	pages    string // of the repository
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

// statusContext is the name of the status at the forge.
const statusContext = "ingot"

type status struct {
	Verdict
	target, branch string
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
		return body{State: string(s.State), Context: statusContext, Description: s.Description, Target: s.target}
	},
	pages: "/src/branch/",
	header: func(h http.Header, token string) {
		h.Set("Authorization", "token "+token)
	},
}

var providers = map[string]provider{
	"github": {
		api: func(a Address) string {
			if a.host == "github.com" || strings.HasSuffix(a.host, ".ghe.com") {
				return "https://api." + a.host
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

// projectName matches owner/name.
var projectName = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$`)

// GitHubAPI returns the address of the API at the GitHub that has a repository, "" if the address has no host.
func GitHubAPI(repository string) string {
	a, known := ParseAddress(repository)
	if !known {
		return ""
	}
	return providers["github"].api(a)
}

// NewProject returns where the commits of a repository have their statuses: a project of that name at api, which
// is derived from the repository's address if empty.
func NewProject(kind, repository, api string) (Project, error) {
	p, ok := providers[kind]
	if !ok {
		return Project{}, fmt.Errorf("provider %q is not known, only %s", kind, strings.Join(Providers(), ", "))
	}
	a, known := ParseAddress(repository)
	if !known {
		return Project{}, fmt.Errorf("%q is not an address at a Git host; set git.webURL to the repository's page", repository)
	}
	project := Project{
		Provider: kind, API: cmp.Or(strings.TrimRight(api, "/"), p.api(a)), Name: a.path, pages: a.scheme + "://" + a.host + "/" + a.path,
	}
	if u, err := url.Parse(project.API); err == nil && p.nested {
		below, _, _ := strings.Cut(u.Path, "/api/")
		project.Name = strings.TrimPrefix(project.Name, strings.TrimPrefix(below+"/", "/"))
	} else {
		project.Name = strings.TrimPrefix("/"+a.path, a.above(2)+"/")
	}
	if !projectName.MatchString(project.Name) {
		return Project{}, fmt.Errorf("%q is not the address of a repository; expected https://HOST/OWNER/NAME", repository)
	}
	return project, nil
}

// Page is the page of a branch.
func (p Project) Page(branch string) string {
	return p.pages + providers[p.Provider].pages + branch
}

func (p Project) request(s status) (address string, content []byte, err error) {
	forge := providers[p.Provider]
	content, err = json.Marshal(forge.body(s))
	return p.API + forge.path(p.Name) + s.Commit, content, err
}
