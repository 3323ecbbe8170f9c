package oci

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func TestParseChallenges(t *testing.T) {
	for title, tc := range map[string]struct {
		field string
		want  []challenge
	}{
		"a token server": {`Bearer realm="https://a/token",service="a b",scope="repository:x:pull"`,
			[]challenge{{"bearer", map[string]string{"realm": "https://a/token", "service": "a b", "scope": "repository:x:pull"}}}},
		"two at once": {`Basic realm="x", Bearer realm=y , service = "z"`,
			[]challenge{{"basic", map[string]string{"realm": "x"}}, {"bearer", map[string]string{"realm": "y", "service": "z"}}}},
		"capital letters":           {`BASIC REALM="x"`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"quotes within":             {`Basic realm="a\"b\\c,d"`, []challenge{{"basic", map[string]string{"realm": `a"b\c,d`}}}},
		"a scheme alone":            {`Negotiate`, []challenge{{"negotiate", map[string]string{}}}},
		"a quote that never ends":   {`Basic realm="x`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"a backslash at the end":    {`Basic realm="x\`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"nothing":                   {``, nil},
		"a parameter of no one":     {`realm="x"`, nil},
		"letters that are none":     {"Basic \x00\xff", []challenge{{"basic", map[string]string{}}}},
		"commas and spaces between": {`, ,Basic ,, realm=x,`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseChallenges(tc.field), cmp.AllowUnexported(challenge{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{`Bearer realm="https://a/token",service=a`, `Basic realm="x\`, `=,"`, `a=b c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ch := range parseChallenges(s) {
			if ch.scheme == "" || ch.params == nil {
				t.Fatalf("%q has a challenge of no scheme", s)
			}
		}
	})
}

// Where a registry may send credentials to.
func TestTokenServers(t *testing.T) {
	for title, tc := range map[string]struct {
		realm, registry string
		want            string // part of the error, "" = it is asked
	}{
		"I06: another host":         {realm: "https://auth.example/token", registry: "https://registry.example"},
		"I06: another private host": {realm: "https://10.0.0.7:8443/token", registry: "https://10.0.0.6:5000"},
		"a registry without TLS, one with it": {
			realm: "https://auth.example/token", registry: "http://registry.example",
		},
		"a registry without TLS, one without": {realm: "http://10.0.0.7/token", registry: "http://10.0.0.6:5000"},
		"Y05: a registry with TLS, one without": {
			realm: "http://auth.example/token", registry: "https://registry.example",
			want: "not spoken to by TLS",
		},
		"Y05: a file": {
			realm: "file:///etc/passwd", registry: "https://registry.example",
			want: "no token server that can be understood",
		},
		"Y05: another scheme": {
			realm: "gopher://x/", registry: "http://registry.example",
			want: "not spoken to by TLS",
		},
		"Y05: a name and password": {
			realm: "https://a:b@auth.example/", registry: "https://registry.example",
			want: "no token server",
		},
		"none":           {registry: "https://registry.example", want: "no token server"},
		"what is no URL": {realm: "https://%zz/", registry: "https://registry.example", want: "no token server"},
		"a path alone, which means another host": {
			realm: "/token", registry: "https://registry.example",
			want: "no token server",
		},
	} {
		t.Run(title, func(t *testing.T) {
			registry := must.Get(url.Parse(tc.registry))(t)
			u, err := realmOf(tc.realm, registry)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %q", u, err, tc.want)
			}
		})
	}
}
