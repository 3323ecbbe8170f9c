package oci

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"ingot/bootsvc/internal/syntax"
)

// maxErrorBody bounds what is read of an answer that is no success.
const maxErrorBody = 64 << 10

// challengeTransport is a RoundTripper that makes what registries ask for fit for
// package auth. That reads the first challenge of the first field only, where some
// registries offer Negotiate before Bearer; takes the names of parameters as they are
// spelt; and may log in where an address without TLS leads to one with it, which is
// another origin.
type challengeTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t challengeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	a := attemptOf(req.Context())
	switch {
	case err != nil || resp.StatusCode != http.StatusUnauthorized || a.loggingIn:
		return resp, err
	case !sameOrigin(a.url, req.URL):
		resp.Header.Del("WWW-Authenticate")
		return resp, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half of it may still say enough
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	a.registry = a.registry || isRegistry(resp.Header, body)
	asked, err := a.challenge(resp.Header, req.URL)
	if err != nil {
		return nil, &loginError{err, a.registry}
	}
	resp.Header.Set("WWW-Authenticate", asked)
	return resp, nil
}

func (a *attempt) challenge(h http.Header, registry *url.URL) (string, error) {
	asked := challenges(h)
	ch, ok := offered(asked, "bearer")
	if !ok {
		if _, ok := offered(asked, "basic"); !ok {
			return "", unauthorized("the registry refuses access, and asks for credentials of a kind that Ingot does not have (Basic or Bearer)")
		}
		return "Basic", nil
	}
	realm, err := realmOf(ch.params["realm"], registry)
	if err != nil {
		return "", err
	}
	a.tokenServer = syntax.Printable(realm.Host)
	scope := ch.params["scope"]
	if scope == "" {
		scope = "repository:" + a.ref.Repository + ":pull"
	}
	return fmt.Sprintf("Bearer realm=%q,service=%q,scope=%q", realm, ch.params["service"], scope), nil
}

// realmOf returns where a registry says that tokens are to be had. It may be on another
// host, and on a private network: only what the egress filter refuses to everybody is out
// of bounds. A registry that is spoken to by TLS may not have credentials sent in the clear.
func realmOf(realm string, registry *url.URL) (*url.URL, error) {
	u, err := url.Parse(realm)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return nil, unauthorized("the registry names no token server that can be understood")
	case u.Scheme != "https" && (u.Scheme != "http" || registry.Scheme != "http"):
		return nil, unauthorized("the registry's token server %s is not spoken to by TLS, so no credentials are sent there",
			syntax.Printable(u.Host))
	}
	u.Fragment = ""
	return u, nil
}

// challenge is one way to log in that a registry offers (RFC 9110 §11.6.1).
type challenge struct {
	scheme string // lower case
	params map[string]string
}

func offered(asked []challenge, scheme string) (challenge, bool) {
	for _, ch := range asked {
		if ch.scheme == scheme {
			return ch, true
		}
	}
	return challenge{}, false
}

// challenges returns what the WWW-Authenticate fields of an answer offer.
func challenges(h http.Header) (all []challenge) {
	for _, field := range h.Values("WWW-Authenticate") {
		all = append(all, parseChallenges(field)...)
	}
	return all
}

// parseChallenges reads one field: a word that no "=" follows begins a challenge, others
// are its parameters.
func parseChallenges(field string) (all []challenge) {
	for {
		field = strings.TrimLeft(field, " \t,")
		word, rest := cutToken(field)
		if word == "" {
			return all
		}
		value, isParam := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "=")
		if !isParam {
			all = append(all, challenge{strings.ToLower(word), make(map[string]string)})
			field = rest
			continue
		}
		if len(all) == 0 {
			return nil
		}
		var text string
		text, field = cutValue(strings.TrimLeft(value, " \t"))
		all[len(all)-1].params[strings.ToLower(word)] = text
	}
}

// cutToken divides s behind the token that it begins with (RFC 9110 §5.6.2).
func cutToken(s string) (token, rest string) {
	end := strings.IndexFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// cutValue divides s behind the token or quoted string that it begins with (§5.6.4).
func cutValue(s string) (value, rest string) {
	quoted, ok := strings.CutPrefix(s, `"`)
	if !ok {
		return cutToken(s)
	}
	var text strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '"':
			return text.String(), quoted[i+1:]
		case '\\':
			if i++; i == len(quoted) {
				return text.String(), ""
			}
		}
		text.WriteByte(quoted[i])
	}
	return text.String(), ""
}

// sameOrigin reports whether two URLs have the same scheme, host and port (RFC 6454 §5).
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}
