package config

import (
	"slices"
	"strings"
	"unicode"

	"ingot/gitsource/forge"
)

// forge checks what is said to the Git host and heard of it, beside Git.
func (c *checks) forge(o *Options) {
	c.webhook(&o.Webhook)
	c.commitStatus(o)
	c.web(&o.Git)
}

// web checks where the web page links to.
func (c *checks) web(g *Git) {
	if g.WebStyle != "" && !slices.Contains(forge.Providers(), g.WebStyle) {
		c.wrong("git.webStyle", "%q is not allowed: must be one of %s, or empty", g.WebStyle, strings.Join(forge.Providers(), ", "))
		return
	}
	if _, err := forge.NewWeb(g.URL, g.WebURL, g.WebStyle); err != nil {
		c.wrong("git.webURL", "%v", err)
		return
	}
	if g.WebURL != "" && g.WebStyle == "" {
		if w, _ := forge.NewWeb(g.URL, g.WebURL, ""); w == (forge.Web{}) {
			c.wrong("git.webStyle", "is empty, and git.webURL does not tell which forge it is: set it to one of %s", strings.Join(forge.Providers(), ", "))
		}
	}
}

func (c *checks) webhook(w *Webhook) {
	switch {
	case w.Listen != "" && w.SecretFile == "":
		c.wrong("webhook.secretFile", "is empty though webhook.listen is set: anybody could have the repository fetched; name a file "+
			"with a secret, and give the same to the Git host")
	case w.Listen == "" && w.SecretFile != "":
		c.wrong("webhook.listen", "is empty though webhook.secretFile is set; set it, such as :8083, or take webhook.secretFile out")
	}
}

func (c *checks) commitStatus(o *Options) {
	s := o.Git.CommitStatus
	c.httpURL("git.commitStatus.url", s.URL)
	if s.Provider == "" {
		if s.URL+s.Project+s.TokenFile != "" {
			c.wrong("git.commitStatus.provider", "is empty though other keys of git.commitStatus are set; set it to one of %s, or take those out",
				strings.Join(forge.Providers(), ", "))
		}
		return
	}
	if !slices.Contains(forge.Providers(), s.Provider) {
		c.wrong("git.commitStatus.provider", "%q is not allowed: must be one of %s, or empty", s.Provider, strings.Join(forge.Providers(), ", "))
		return
	}
	if s.TokenFile == "" {
		c.wrong("git.commitStatus.tokenFile", "is empty though git.commitStatus.provider is set; name the file with a token that may write "+
			"commit statuses")
	}
	if s.Context == "" || len(s.Context) > 100 || strings.ContainsFunc(s.Context, unicode.IsControl) {
		c.wrong("git.commitStatus.context", "%q is not allowed: must be a name of at most 100 bytes in one line, such as ingot", s.Context)
	}
	if _, err := forge.NewProject(s.Provider, o.Git.URL, s.URL, s.Project); err != nil && wrongGitURL(o.Git.URL) == "" {
		c.wrong("git.commitStatus.project", "%v", err)
	}
}
