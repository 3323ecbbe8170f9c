package forge

import "testing"

// G14: case, .git, ssh://, user and port do not make another repository.
func TestOneRepositoryHasManyAddresses(t *testing.T) {
	ours, ok := ParseAddress("https://git.example.com/infra/metal.git")
	if !ok {
		t.Fatal("our address is none")
	}
	for address, want := range map[string]bool{
		"https://git.example.com/infra/metal":            true,
		"https://git.example.com/infra/metal/":           true,
		"https://git.example.com/infra/metal.git/":       true,
		"HTTPS://Git.Example.COM/Infra/Metal.git":        true,
		"http://git.example.com:3000/infra/metal.git":    true,
		"https://me@git.example.com:443/infra/metal":     true,
		"ssh://git@git.example.com:2222/infra/metal.git": true,
		"ssh://git.example.com/infra/metal":              true,
		"git+ssh://git@git.example.com/infra/metal.git":  true,
		"git@git.example.com:infra/metal.git":            true,
		"git@git.example.com:/infra/metal.git":           true,
		"git.example.com:infra/metal":                    true,
		"https://git.example.com./infra//metal":          true,
		"https://git.example.org/infra/metal.git":        false,
		"https://git.example.com/infra/metals.git":       false,
		"https://git.example.com/infra/metal.git/more":   false,
		"https://git.example.com/x/../infra/metal/../me": false,
		"git@git.example.com:other/metal.git":            false,
		"/srv/git/infra/metal.git":                       false,
		"file:///infra/metal.git":                        false,
		"https://git.example.com":                        false,
		"https://git.example.com.evil.test/infra/metal":  false,
		"https://evil.test/git.example.com/infra/metal":  false,
		"https://git.example.com@evil.test/infra/metal":  false,
		"https://%zz": false,
		"":            false,
	} {
		theirs, ok := ParseAddress(address)
		if got := ok && ours.same(theirs); got != want {
			t.Errorf("%s is our repository: %v, want %v", address, got, want)
		}
	}
}

func TestForgesHaveHostsForSSHAlone(t *testing.T) {
	a, _ := ParseAddress("ssh://git@ssh.github.com:443/infra/metal.git")
	if got, want := a.String(), "github.com/infra/metal"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
