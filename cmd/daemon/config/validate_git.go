package config

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"ingot/gitsource"
	"ingot/gitsource/forge"
)

func (c *checks) git(o *Options) {
	if problem := wrongGitURL(o.Git.URL); problem != "" {
		c.wrong("git.url", "%s", problem)
	}
	c.ref(o)
	c.branch("status.branch", o.Status.Branch)
	if o.Git.Branch != "" && o.Git.Branch == o.Status.Branch {
		c.wrong("status.branch", "%q is git.branch too, and Ingot would overwrite it; name a branch that is Ingot's alone, such "+
			"as status", o.Status.Branch)
	}
	if p := o.Git.Path; p == "" || path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
		c.wrong("git.path", `%q is not allowed: must be a folder inside the repository, such as fleet/berlin; "." for all of it`, p)
	}
	c.githubApp(o)
	auth := o.Git.Auth
	if auth.UsernameFile != "" && auth.PasswordFile == "" {
		c.wrong("git.auth.passwordFile", "is empty though git.auth.usernameFile is set; name the file that holds the password or token")
	}
	if auth.SSHKeyFile != "" && auth.KnownHostsFile == "" {
		c.wrong("git.auth.knownHostsFile", "is empty though git.auth.sshKeyFile is set: the server's key must be known; write it with "+
			"ssh-keyscan, compare it, and name the file")
	}
}

// githubApp checks an installation, which excludes other credentials.
func (c *checks) githubApp(o *Options) {
	app := o.Git.app()
	if app == nil {
		return
	}
	const key = "git.auth.githubApp."
	field, err := app.Check()
	switch {
	case err != nil:
		c.wrong(key+field, "%v", err)
	case !strings.HasPrefix(o.Git.URL, "https://"):
		c.wrong(key+"appID", "is set, but git.url is not https://…: a GitHub App logs in over https alone")
	case o.Git.Auth.UsernameFile != "" || o.Git.Auth.PasswordFile != "":
		c.wrong(key+"appID", "is set beside git.auth.usernameFile or passwordFile: leave one of both out")
	}
}

// app is the installation of a GitHub App to log in as, nil if there is none.
func (g Git) app() *gitsource.GitHubApp {
	a := g.Auth.GitHubApp
	if a == (GitHubApp{}) {
		return nil
	}
	return &gitsource.GitHubApp{AppID: a.AppID, InstallationID: a.InstallationID, PrivateKeyFile: a.PrivateKeyFile, API: forge.GitHubAPI(g.URL)}
}

// Ref is what of the repository is followed.
func (g Git) Ref() gitsource.Ref {
	return gitsource.Ref{Branch: g.Branch, Tag: g.Tag, Semver: g.Semver}
}

// Verification says which signatures a revision must carry.
func (g Git) Verification() gitsource.Verify {
	return gitsource.Verify{Mode: gitsource.VerifyMode(g.Verify.Mode), Keys: g.Verify.Keys}
}

func (c *checks) ref(o *Options) {
	g := o.Git
	keys := map[string]string{"git.tag": g.Tag, "git.semver": g.Semver}
	maps.DeleteFunc(keys, func(_, value string) bool { return value == "" })
	if err := g.Ref().Check(); len(keys) == 0 {
		c.branch("git.branch", g.Branch)
	} else if err != nil {
		c.wrong(slices.Min(slices.Collect(maps.Keys(keys))), "%v", err)
	}
	switch err := g.Verification().Check(g.Ref()); {
	case err == nil:
	case g.Verification().Mode == gitsource.VerifyNone || g.Verify.Keys != "":
		c.wrong("git.verify.mode", "%v", err)
	default:
		c.wrong("git.verify.keys", "%v", err)
	}
}

// scpURL is the short form of an SSH address: user@host:path.
var scpURL = regexp.MustCompile(`^[\w.-]+@[\w.-]+:.+`)

// wrongGitURL returns what is wrong with the address of a repository. It never repeats an
// address that may contain a password.
func wrongGitURL(address string) string {
	if address == "" {
		return "is required: the address of the repository that holds your manifests, such as https://git.example.com/infra/metal.git; " +
			"set it in the file that --config names, or as INGOT_GIT_URL"
	}
	if scpURL.MatchString(address) {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return "is not an address; write it as https://host/repository.git, ssh://user@host/repository.git, user@host:repository.git or a local path"
	}
	if _, has := u.User.Password(); has {
		return "holds a password, which must not stand in a configuration; take it out and name its file in git.auth.passwordFile"
	}
	switch u.Scheme {
	case "https", "http", "ssh":
		if u.Host == "" {
			return fmt.Sprintf("%q names no host; write it as %s://host/repository.git", address, u.Scheme)
		}
	case "", "file":
	default:
		return fmt.Sprintf("%q has scheme %s, allowed are https, http, ssh and file; write it as https://host/repository.git", address, u.Scheme)
	}
	return ""
}

// branchName is what we allow of git-check-ref-format(1): letters and digits
// with single separators between them.
var branchName = regexp.MustCompile(`^[0-9A-Za-z_]+([./-][0-9A-Za-z_-]+)*$`)

func (c *checks) branch(key, name string) {
	if !branchName.MatchString(name) {
		c.wrong(key, "%q is not a name of a branch; letters, digits and single - . / between them are allowed, such as main", name)
	}
}
