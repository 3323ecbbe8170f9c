package forge

import "testing"

func TestParseAddress(t *testing.T) {
	const metal = "git.example.com/infra/metal"
	for raw, want := range map[string]string{
		"https://git.example.com/infra/metal":            metal,
		"https://git.example.com/infra/metal.git/":       metal,
		"HTTPS://Git.Example.COM/Infra/Metal.git":        "git.example.com/Infra/Metal",
		"http://git.example.com:3000/infra/metal.git":    "git.example.com:3000/infra/metal",
		"https://me@git.example.com:443/infra/metal":     metal,
		"ssh://git@git.example.com:2222/infra/metal.git": metal,
		"ssh://git.example.com/infra/metal":              metal,
		"git+ssh://git@git.example.com/infra/metal.git":  metal,
		"git@git.example.com:infra/metal.git":            metal,
		"git@git.example.com:/infra/metal.git":           metal,
		"git.example.com:infra/metal":                    metal,
		"https://git.example.com./infra//metal":          metal,
		"https://git.example.com/infra/metal.git/more":   "git.example.com/infra/metal.git/more",
		"https://git.example.com/x/../infra/metal/../me": "git.example.com/infra/me",
		"https://git.example.com@evil.test/infra/metal":  "evil.test/infra/metal",
		"/srv/git/infra/metal.git":                       "",
		"file:///infra/metal.git":                        "",
		"https://git.example.com":                        "",
		"https://%zz":                                    "",
		"":                                               "",
	} {
		a, ok := ParseAddress(raw)
		if got := a.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %t; want %q", raw, got, ok, want)
		}
	}
}

func TestForgesHaveHostsForSSHAlone(t *testing.T) {
	a, _ := ParseAddress("ssh://git@ssh.github.com:443/infra/metal.git")
	if got, want := a.String(), "github.com/infra/metal"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
