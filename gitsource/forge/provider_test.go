package forge

import (
	"strings"
	"testing"
)

func TestWhereStatusesArePostedFollowsFromTheRepository(t *testing.T) {
	type want struct{ address, page string }
	for title, tc := range map[string]struct {
		provider, repository, api string
		want                      want
		err                       string
	}{
		"GitHub": {
			provider: "github", repository: "git@github.com:infra/metal.git",
			want: want{"https://api.github.com/repos/infra/metal/statuses/c", "https://github.com/infra/metal/tree/status"},
		},
		"GitHub, SSH on port 443": {
			provider: "github", repository: "ssh://git@ssh.github.com:443/infra/metal.git",
			want: want{"https://api.github.com/repos/infra/metal/statuses/c", "https://github.com/infra/metal/tree/status"},
		},
		"GitHub Enterprise": {
			provider: "github", repository: "https://ghe.example.com/infra/metal",
			want: want{"https://ghe.example.com/api/v3/repos/infra/metal/statuses/c", "https://ghe.example.com/infra/metal/tree/status"},
		},
		"GitLab with groups of groups": {
			provider: "gitlab", repository: "https://gitlab.example.com/infra/berlin/metal.git",
			want: want{
				"https://gitlab.example.com/api/v4/projects/infra%2Fberlin%2Fmetal/statuses/c",
				"https://gitlab.example.com/infra/berlin/metal/-/tree/status",
			},
		},
		"GitLab below a path": {
			provider: "gitlab", repository: "https://example.com/gitlab/infra/metal.git", api: "https://example.com/gitlab/api/v4",
			want: want{
				"https://example.com/gitlab/api/v4/projects/infra%2Fmetal/statuses/c", "https://example.com/gitlab/infra/metal/-/tree/status",
			},
		},
		"GitHub Enterprise Cloud": {
			provider: "github", repository: "https://octo.ghe.com/infra/metal",
			want: want{"https://api.octo.ghe.com/repos/infra/metal/statuses/c", "https://octo.ghe.com/infra/metal/tree/status"},
		},
		"Gitea on a port": {
			provider: "gitea", repository: "http://git.example.com:3000/Infra/Metal.git",
			want: want{
				"http://git.example.com:3000/api/v1/repos/Infra/Metal/statuses/c", "http://git.example.com:3000/Infra/Metal/src/branch/status",
			},
		},
		"Forgejo below a path": {
			provider: "forgejo", repository: "https://example.com/git/infra/metal.git",
			want: want{"https://example.com/git/api/v1/repos/infra/metal/statuses/c", "https://example.com/git/infra/metal/src/branch/status"},
		},
		"SSH on a port of its own says nothing of the pages'": {
			provider: "gitea", repository: "ssh://git@git.example.com:2222/infra/metal.git",
			want: want{"https://git.example.com/api/v1/repos/infra/metal/statuses/c", "https://git.example.com/infra/metal/src/branch/status"},
		},
		"a path on this machine":    {provider: "gitea", repository: "/srv/git/metal.git", err: "set git.webURL to the repository's page"},
		"a forge that is not known": {provider: "bitbucket", repository: "git@bitbucket.org:a/b.git", err: "forgejo, gitea, github, gitlab"},
		"a project without owner":   {provider: "gitea", repository: "https://git.example.com/metal.git", err: "expected https://HOST/OWNER/NAME"},
		"a project with a query":    {provider: "github", repository: "https://github.com/a/b%3Fx=", err: "expected https://HOST/OWNER/NAME"},
	} {
		p, err := NewProject(tc.provider, tc.repository, tc.api)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %s", title, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		address, _, err := p.request(status{Verdict: Verdict{Commit: "c"}})
		if got := (want{address, p.Page("status")}); err != nil || got != tc.want {
			t.Errorf("%s: got %v, %v; want %v", title, got, err, tc.want)
		}
	}
}
