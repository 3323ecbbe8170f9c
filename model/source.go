package model

import (
	"net/url"
	"path"
	"strings"
)

// CanonicalURL is a repository's URL without what does not tell one repository from
// another: scheme, user, password, a trailing slash and .git. Of
// https://u@git.example.com/infra/metal.git, ssh://git@git.example.com/infra/metal and
// git@git.example.com:infra/metal.git it is git.example.com/infra/metal.
func CanonicalURL(text string) string {
	host, folder := "", text
	switch u, err := url.Parse(text); {
	case err == nil && u.Scheme != "" && strings.Contains(text, "://"):
		host, folder = strings.ToLower(u.Host), u.Path
	case !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "."):
		// scp's way to write it: user@host:path
		if h, p, ok := strings.Cut(text, ":"); ok && !strings.Contains(h, "/") {
			_, after, found := strings.Cut(h, "@")
			if found {
				h = after
			}
			host, folder = strings.ToLower(h), "/"+p
		}
	}
	return host + strings.TrimSuffix(path.Clean(folder), ".git")
}
