package forge

import (
	"testing"

	"ingot/model/must"
)

func TestTheForgeOfARepositoryIsKnownByItsAddress(t *testing.T) {
	for name, tc := range map[string]struct{ repository, base, style, want string }{
		"GitHub over SSH":              {repository: "git@github.com:infra/metal.git", want: "https://github.com/infra/metal/blob/c0ffee/claims/web.yaml#L7"},
		"GitHub Enterprise":            {repository: "https://github.example.com/infra/metal", want: "https://github.example.com/infra/metal/blob/c0ffee/claims/web.yaml#L7"},
		"GitLab in groups":             {repository: "https://gitlab.com/a/b/metal.git", want: "https://gitlab.com/a/b/metal/-/blob/c0ffee/claims/web.yaml#L7"},
		"Codeberg":                     {repository: "ssh://git@codeberg.org/infra/metal.git", want: "https://codeberg.org/infra/metal/src/commit/c0ffee/claims/web.yaml#L7"},
		"one's own Forgejo":            {repository: "https://forgejo.example.com:8443/infra/metal", want: "https://forgejo.example.com:8443/infra/metal/src/commit/c0ffee/claims/web.yaml#L7"},
		"a host that tells nothing":    {repository: "https://git.example.com/infra/metal.git"},
		"with its style said":          {repository: "https://git.example.com/infra/metal.git", style: "gitlab", want: "https://git.example.com/infra/metal/-/blob/c0ffee/claims/web.yaml#L7"},
		"with its page said":           {repository: "/srv/git/metal.git", base: "https://git.example.com/infra/metal/", style: "gitea", want: "https://git.example.com/infra/metal/src/commit/c0ffee/claims/web.yaml#L7"},
		"a path":                       {repository: "/srv/git/metal.git"},
		"a name that only contains it": {repository: "https://notgithub.com/infra/metal"},
	} {
		t.Run(name, func(t *testing.T) {
			w := must.Get(NewWeb(tc.repository, tc.base, tc.style))(t)
			if got := w.File("c0ffee", "claims/web.yaml", 7); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestPagesOfARepository(t *testing.T) {
	w := must.Get(NewWeb("https://github.com/infra/metal", "", ""))(t)
	for name, tc := range map[string]struct{ got, want string }{
		"a commit":              {w.Commit("c0ffee"), "https://github.com/infra/metal/commit/c0ffee"},
		"a file of a branch":    {w.Branch("status", "servers/s1.yaml"), "https://github.com/infra/metal/tree/status/servers/s1.yaml"},
		"a branch":              {w.Branch("ops/status", ""), "https://github.com/infra/metal/tree/ops/status"},
		"the commits of a file": {w.History("status", "servers/s1.yaml"), "https://github.com/infra/metal/commits/status/servers/s1.yaml"},
		"a name with markup":    {w.File("c0ffee", `a b/"><script>?#.yaml`, 0), "https://github.com/infra/metal/blob/c0ffee/a%20b/%22%3E%3Cscript%3E%3F%23.yaml"},
		"no commit":             {w.Commit(""), ""},
		"no file":               {w.File("c0ffee", "", 3), ""},
		"no forge":              {Web{}.Commit("c0ffee"), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %s, want %s", name, tc.got, tc.want)
		}
	}
}

func TestAWrongPageIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ base, style string }{
		"a script":            {"javascript:alert(1)", "github"},
		"another scheme":      {"ftp://git.example.com/a/b", "github"},
		"with a password":     {"https://u:p@git.example.com/a/b", "github"},
		"without a host":      {"https:///a/b", "github"},
		"a question after it": {"https://git.example.com/a/b?x=1", "github"},
	} {
		if _, err := NewWeb("", tc.base, tc.style); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
