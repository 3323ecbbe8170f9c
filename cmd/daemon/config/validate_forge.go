package config

import (
	"slices"
	"strings"

	"ingot/gitsource/forge"
)

// forge checks what is said to the Git host and heard of it, beside Git.
func (c *checks) forge(o *Options) {
	c.webhook(&o.Webhook)
	c.commitStatus(o)
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

// commitStatus checks what is posted to the forge, and the links to its pages.
func (c *checks) commitStatus(o *Options) {
	s := o.Git.CommitStatus
	c.httpURL("git.commitStatus.url", s.URL)
	web, err := o.Git.Web()
	switch known := strings.Join(forge.Providers(), ", "); {
	case s.Provider == "" && s.URL+s.TokenFile != "":
		c.wrong("git.commitStatus.provider", "is empty though other keys of git.commitStatus are set; set it to one of %s, or take those out", known)
	case s.Provider != "" && !slices.Contains(forge.Providers(), s.Provider):
		c.wrong("git.commitStatus.provider", "%q is not allowed: must be one of %s, or empty", s.Provider, known)
	case s.URL != "" && s.TokenFile == "":
		c.wrong("git.commitStatus.tokenFile", "is empty though git.commitStatus.url is set; name the file with a token that may write "+
			"commit statuses")
	case err != nil:
		c.wrong("git.webURL", "%v", err)
	case o.Git.WebURL != "" && web == forge.Web{}:
		c.wrong("git.commitStatus.provider", "is empty, and git.webURL does not tell which forge it is: set it to one of %s", known)
	case s.TokenFile != "" && wrongGitURL(o.Git.URL) == "":
		if _, err := o.Git.Project(); err != nil {
			c.wrong("git.url", "%v", err)
		}
	}
}
