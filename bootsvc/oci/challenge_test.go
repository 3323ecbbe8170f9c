package oci

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"I06: another host":                      {"https://auth.example/token", "https://registry.example", ""},
		"I06: another private host":              {"https://10.0.0.7:8443/token", "https://10.0.0.6:5000", ""},
		"a registry without TLS, one with it":    {"https://auth.example/token", "http://registry.example", ""},
		"a registry without TLS, one without":    {"http://10.0.0.7/token", "http://10.0.0.6:5000", ""},
		"Y05: a registry with TLS, one without":  {"http://auth.example/token", "https://registry.example", "not spoken to by TLS"},
		"Y05: a file":                            {"file:///etc/passwd", "https://registry.example", "no token server that can be understood"},
		"Y05: another scheme":                    {"gopher://x/", "http://registry.example", "not spoken to by TLS"},
		"Y05: a name and password":               {"https://a:b@auth.example/", "https://registry.example", "no token server"},
		"none":                                   {"", "https://registry.example", "no token server"},
		"what is no URL":                         {"https://%zz/", "https://registry.example", "no token server"},
		"a path alone, which means another host": {"/token", "https://registry.example", "no token server"},
	} {
		t.Run(title, func(t *testing.T) {
			registry, err := url.Parse(tc.registry)
			if err != nil {
				t.Fatal(err)
			}
			u, err := realmOf(tc.realm, registry)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %q", u, err, tc.want)
			}
		})
	}
}
