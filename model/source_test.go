package model

import "testing"

func TestCanonicalURLIsTheSameHoweverARepositoryIsReached(t *testing.T) {
	for text, want := range map[string]string{
		"https://git.example.com/infra/metal.git":         "git.example.com/infra/metal",
		"https://user:secret@Git.example.com/infra/metal": "git.example.com/infra/metal",
		"ssh://git@git.example.com/infra/metal/":          "git.example.com/infra/metal",
		"git@git.example.com:infra/metal.git":             "git.example.com/infra/metal",
		"https://git.example.com:8443/infra/metal.git":    "git.example.com:8443/infra/metal",
		"file:///srv/metal.git":                           "/srv/metal",
		"/srv/metal.git":                                  "/srv/metal",
		"../metal":                                        "../metal",
	} {
		if got := CanonicalURL(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
