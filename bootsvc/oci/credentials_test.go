package oci

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"ingot/model"
	"ingot/model/must"
)

func TestCredentialsOfARepository(t *testing.T) {
	for title, tc := range map[string]struct {
		file string
		ref  string
		want string // username:password, identity, bearer; "" when there are none
	}{
		"base64 of username and password": {
			file: `{"auths":{"ghcr.io":{"auth":"` + encode("ann:pw") + `"}}}`, ref: "ghcr.io/a/b",
			want: "ann:pw,,",
		},
		"base64 without its padding": {
			file: `{"auths":{"ghcr.io":{"auth":"` + strings.TrimRight(encode("ann:p"), "=") + `"}}}`, ref: "ghcr.io/a/b", want: "ann:p,,",
		},
		"a password with colons": {
			file: `{"auths":{"ghcr.io":{"auth":"` + encode("ann:p:w") + `"}}}`, ref: "ghcr.io/a/b",
			want: "ann:p:w,,",
		},
		"username and password in clear": {
			file: `{"auths":{"ghcr.io":{"username":"ann","password":"pw"}}}`, ref: "ghcr.io/a/b",
			want: "ann:pw,,",
		},
		"base64 goes before both": {
			file: `{"auths":{"ghcr.io":{"username":"x","password":"y","auth":"` + encode("ann:pw") + `"}}}`, ref: "ghcr.io/a/b",
			want: "ann:pw,,",
		},
		"an identity token": {file: `{"auths":{"ghcr.io":{"identitytoken":"id"}}}`, ref: "ghcr.io/a/b", want: ":,id,"},
		"a registry token":  {file: `{"auths":{"ghcr.io":{"registrytoken":"bt"}}}`, ref: "ghcr.io/a/b", want: ":,,bt"},
		"those of the repository go before its registry's": {
			file: `{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"},"ghcr.io/a/b":{"username":"ab"}}}`,
			ref:  "ghcr.io/a/b:1",
			want: "ab:,,",
		},
		"those of the nearest path above it are next": {
			file: `{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"},"ghcr.io/a/b":{"username":"ab"}}}`,
			ref:  "ghcr.io/a/c:1",
			want: "a:,,",
		},
		"a path is one of whole names": {
			file: `{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"}}}`, ref: "ghcr.io/ab",
			want: "all:,,",
		},
		"Docker Hub's odd key": {
			file: `{"auths":{"https://index.docker.io/v1/":{"username":"hub"}}}`, ref: "debian",
			want: "hub:,,",
		},
		"Docker Hub's odd key without the scheme": {
			file: `{"auths":{"index.docker.io/v1/":{"username":"hub"}}}`, ref: "docker.io/a/b",
			want: "hub:,,",
		},
		"a key that is a URL": {
			file: `{"auths":{"https://ghcr.io/v2/":{"username":"ann"}}}`, ref: "ghcr.io/a",
			want: "ann:,,",
		},
		"a key in capital letters": {file: `{"auths":{"GHCR.IO":{"username":"ann"}}}`, ref: "ghcr.io/a", want: "ann:,,"},
		"of two keys the one in normal form": {
			file: `{"auths":{"GHCR.IO":{"username":"old"},"ghcr.io":{"username":"new"},"https://ghcr.io":{"username":"old"}}}`,
			ref:  "ghcr.io/a", want: "new:,,",
		},
		"I08: a look-alike has none": {
			file: `{"auths":{"ghcr.io":{"username":"ann"}}}`, ref: "ghcr.io.evil.example/a",
			want: ":,,",
		},
		"I08: another port has none": {file: `{"auths":{"ghcr.io":{"username":"ann"}}}`, ref: "ghcr.io:8443/a", want: ":,,"},
		"I08: a repository called so has none": {
			file: `{"auths":{"ghcr.io":{"username":"ann"}}}`, ref: "evil.example/ghcr.io",
			want: ":,,",
		},
		"a file without any": {file: `{}`, ref: "ghcr.io/a", want: ":,,"},
	} {
		t.Run(title, func(t *testing.T) {
			r := must.Get(model.ParseImageReference(tc.ref))(t)
			c := must.Get(credentialsFile{path: writeFile(t, tc.file)}.lookup(t.Context(), r))(t)
			got := c.Username + ":" + c.Password + "," + c.RefreshToken + "," + c.AccessToken
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	for title, tc := range map[string]struct {
		path string
		want string // part of the error; "" when it shows only once a registry asks
		late string // part of the error then
	}{
		"a file that is missing": {filepath.Join(t.TempDir(), "none"), "no such file", ""},
		"a folder":               {t.TempDir(), "is a directory", ""},
		"what is not JSON":       {writeFile(t, "auths: {}"), "is not JSON as docker login writes it", ""},
		"an empty file":          {writeFile(t, ""), "is not JSON", ""},
		"auths that are a list":  {writeFile(t, `{"auths":[]}`), "is not JSON as docker login", ""},
		"a file that never ends": {"/dev/zero", "is larger than 1048576 bytes", ""},
		"what is not base64": {
			path: writeFile(t, `{"auths":{"ghcr.io":{"auth":"s3cret!"}}}`),
			late: "entry ghcr.io: its auth is not base64 of username:password",
		},
		"base64 of something else": {
			path: writeFile(t, `{"auths":{"ghcr.io":{"auth":"`+encode("s3cret")+`"}}}`), late: "entry ghcr.io: its auth is not base64",
		},
		"a program that keeps them": {
			path: writeFile(t, `{"auths":{},"credsStore":"desktop"}`), late: "leaves the credentials of ghcr.io to a helper program",
		},
		"a program for a registry": {writeFile(t, `{"credHelpers":{"ghcr.io":"gh"}}`), "", "write them into its auths"},
	} {
		t.Run(title, func(t *testing.T) {
			images, err := New(Options{CredentialsFile: tc.path})
			if err != nil {
				t.Fatal(err) // images that ask for no credentials are resolved without them
			}
			err = CheckCredentials(tc.path)
			want := tc.want
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = images.login.credentials.lookup(t.Context(), model.ImageReference{Registry: "ghcr.io", Repository: "a"})
				want = tc.late
			}
			if err == nil || !strings.Contains(err.Error(), want) ||
				!strings.HasPrefix(err.Error(), "boot.credentialsFile: ") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %s and what to correct", err, want)
			}
		})
	}
}

func TestAPersonsCredentialsComeFromDockerLogin(t *testing.T) {
	var asked string
	f := credentialsFile{helper: func(_ context.Context, registry string) (auth.Credential, error) {
		asked = registry
		return auth.Credential{Username: "ann"}, nil
	}}
	c, err := f.lookup(t.Context(), model.ImageReference{Registry: "ghcr.io", Repository: "a"})
	if err != nil || c.Username != "ann" || asked != "ghcr.io" {
		t.Errorf("got %v, %v of %q", c, err, asked)
	}
	if got := f.lacks(model.ImageReference{Registry: "ghcr.io"}); got != "docker login has none for ghcr.io" {
		t.Errorf("got %q", got)
	}
}
