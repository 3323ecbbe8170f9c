package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ingot/bootsvc/internal/lru"
	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// Bounds on the answer of a token server, and how long a token is good for that does not
// say so (distribution specification, "Token Authentication").
const (
	maxToken     = 128 << 10
	tokenLife    = time.Minute
	maxTokenLife = time.Hour
)

// login sends requests to registries, with what they ask for. It is safe for concurrent
// use.
//
// A credential is shown to its registry alone, or to the token server that this registry
// names, which may be anywhere: the registry could as well hand on what it is shown.
// What either leads to is shown nothing.
type login struct {
	registry    *http.Client
	tokens      *http.Client
	credentials credentialsFile
	grants      *lru.Cache[string, grant] // by registry/repository
	now         func() time.Time
}

// grant is what a registry wants to see in each request.
type grant struct {
	authorization model.Sensitive
	until         time.Time
	anonymous     bool
}

func newLogin(transport http.RoundTripper, credentials credentialsFile) *login {
	return &login{
		registry:    &http.Client{Transport: transport, CheckRedirect: strip},
		tokens:      &http.Client{Transport: transport, CheckRedirect: stay},
		credentials: credentials,
		grants:      lru.New[string, grant](256),
		now:         time.Now,
	}
}

// do sends a request that is about r. When the registry asks for it, do logs in and sends
// it once more.
func (l *login) do(req *http.Request, r Reference) (*http.Response, error) {
	if g, ok := l.grants.Get(r.Name()); ok && l.now().Before(g.until) {
		req.Header.Set("Authorization", g.authorization.Reveal())
	}
	resp, err := l.registry.Do(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !sameOrigin(req.URL, resp.Request.URL) {
		return resp, err
	}
	registry := isRegistry(resp)
	resp.Body.Close()
	g, err := l.grant(req, r, challenges(resp.Header))
	if err != nil {
		return nil, &loginError{err, registry}
	}
	again := req.Clone(req.Context())
	again.Header.Set("Authorization", g.authorization.Reveal())
	resp, err = l.registry.Do(again)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !sameOrigin(req.URL, resp.Request.URL) {
		l.grants.Put(r.Name(), g, 1)
		return resp, err
	}
	registry = isRegistry(resp)
	resp.Body.Close()
	if g.anonymous {
		return nil, &loginError{unauthorized("the image does not exist, or credentials are needed to see it: %s", l.credentials.lacks(r)), registry}
	}
	return nil, &loginError{unauthorized("the registry refuses the credentials that boot.credentialsFile has for it"), registry}
}

// unauthorized returns an Error for credentials that do not do.
func unauthorized(format string, args ...any) *Error {
	return &Error{Reason: ReasonUnauthorized, Message: fmt.Sprintf(format, args...)}
}

// grant returns what the registry that req was sent to asks for.
func (l *login) grant(req *http.Request, r Reference, asked []challenge) (grant, error) {
	c, err := l.credentials.lookup(r)
	if err != nil {
		return grant{}, &Error{Reason: ReasonUnauthorized, Message: err.Error(), Err: err}
	}
	if ch, ok := offered(asked, "bearer"); ok {
		return l.bearer(req, r, ch, c)
	}
	if _, ok := offered(asked, "basic"); !ok {
		return grant{}, unauthorized("the registry refuses access, and asks for credentials of a kind that Ingot does not have (Basic or Bearer)")
	}
	if c.username == "" {
		return grant{}, unauthorized("the registry asks for credentials: %s", l.credentials.lacks(r))
	}
	return grant{authorization: c.basic(), until: l.now().Add(maxTokenLife)}, nil
}

// basic returns the credential as RFC 7617 has it.
func (c credential) basic() model.Sensitive {
	pair := c.username + ":" + c.password.Reveal()
	return model.NewSensitive("Basic " + base64.StdEncoding.EncodeToString([]byte(pair)))
}

// bearer returns the token that a challenge asks for.
func (l *login) bearer(req *http.Request, r Reference, ch challenge, c credential) (grant, error) {
	if !c.bearer.IsZero() {
		return grant{authorization: model.NewSensitive("Bearer " + c.bearer.Reveal()), until: l.now().Add(maxTokenLife)}, nil
	}
	realm, err := realmOf(ch.params["realm"], req.URL)
	if err != nil {
		return grant{}, err
	}
	ask, err := tokenRequest(req.Context(), realm, ch.params["service"], ch.scope(r), c)
	if err != nil {
		return grant{}, unauthorized("the registry names a token server that cannot be asked")
	}
	token, life, err := l.token(ask, r, c.anonymous())
	if err != nil {
		return grant{}, err
	}
	return grant{
		authorization: model.NewSensitive("Bearer " + token.Reveal()),
		until:         l.now().Add(life),
		anonymous:     c.anonymous(),
	}, nil
}

// realmOf returns where a registry says that tokens are to be had. It may be on another
// host, and on a private network: only what egressTransport refuses to everybody is out of bounds.
// A registry that is spoken to by TLS may not have credentials sent in the clear.
func realmOf(realm string, registry *url.URL) (*url.URL, error) {
	u, err := url.Parse(realm)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return nil, unauthorized("the registry names no token server that can be understood")
	case u.Scheme != "https" && (u.Scheme != "http" || registry.Scheme != "http"):
		return nil, unauthorized("the registry's token server %s is not spoken to by TLS, so no credentials are sent there", syntax.Printable(u.Host))
	}
	u.Fragment = ""
	return u, nil
}

// tokenRequest returns the request for a token: by OAuth 2 for an identity token, else
// the way that all token servers know.
func tokenRequest(ctx context.Context, realm *url.URL, service, scope string, c credential) (*http.Request, error) {
	form := url.Values{"service": {service}, "scope": {scope}}
	if !c.identity.IsZero() {
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", c.identity.Reveal())
		form.Set("client_id", userAgent)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	query := realm.Query()
	maps.Copy(query, form)
	asked := *realm
	asked.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err == nil && c.username != "" {
		req.Header.Set("Authorization", c.basic().Reveal())
	}
	return req, err
}

// token asks a token server for a token, and for how long it is good.
func (l *login) token(req *http.Request, r Reference, anonymous bool) (model.Sensitive, time.Duration, error) {
	var none model.Sensitive
	host := syntax.Printable(req.URL.Host)
	req.Header.Set("User-Agent", userAgent)
	resp, err := l.tokens.Do(req)
	if err != nil {
		return none, 0, unreachable("token server "+host, err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code >= 500 || code == http.StatusTooManyRequests:
		return none, 0, &Error{Reason: ReasonUnreachable, Message: fmt.Sprintf("token server %s answered %d %s", host, code, http.StatusText(code))}
	case anonymous:
		return none, 0, unauthorized("token server %s gives no token without credentials (%d): %s", host, code, l.credentials.lacks(r))
	default:
		return none, 0, unauthorized("token server %s refuses the credentials that boot.credentialsFile has for %s (%d)", host, r.Registry, code)
	}
	return parseToken(host, io.LimitReader(resp.Body, maxToken), r)
}

// parseToken reads the answer of a token server.
func parseToken(host string, body io.Reader, r Reference) (model.Sensitive, time.Duration, error) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"` // OAuth 2's name for the same, goes first
		ExpiresIn   int64  `json:"expires_in"`   // seconds
	}
	token := &answer.AccessToken
	if err := json.NewDecoder(body).Decode(&answer); err == nil && *token == "" {
		token = &answer.Token
	}
	if *token == "" || strings.ContainsFunc(*token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return model.Sensitive{}, 0, unauthorized("token server %s of registry %s sent no token", host, r.Registry)
	}
	life := tokenLife
	if answer.ExpiresIn > 0 {
		life = time.Duration(min(answer.ExpiresIn, int64(maxTokenLife/time.Second))) * time.Second
	}
	return model.NewSensitive(*token), life * 9 / 10, nil
}

// challenge is one way to log in that a registry offers (RFC 9110 §11.6.1).
type challenge struct {
	scheme string // lower case
	params map[string]string
}

// scope returns what a token is to be good for.
func (ch challenge) scope(r Reference) string {
	if scope := ch.params["scope"]; scope != "" {
		return scope
	}
	return "repository:" + r.Repository + ":pull"
}

// offered returns the challenge of a scheme.
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

// maxRedirects bounds how often a request is led elsewhere.
const maxRedirects = 10

var (
	errRedirects     = fmt.Errorf("it leads elsewhere more than %d times", maxRedirects)
	errTokenRedirect = errors.New("it leads to another host, where no credentials are sent")
)

// strip is the CheckRedirect of requests to registries: what is meant for a registry is
// shown to nobody that it leads to. net/http makes each hop's header from the first
// request's, and keeps credentials for subdomains and other ports; here a chain that
// has once left its origin has left it for good.
func strip(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	req.Header.Del("Referer") // of signed URLs
	if leftOrigin(req, via) {
		for _, secret := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			req.Header.Del(secret)
		}
	}
	return nil
}

// stay is the CheckRedirect of requests to token servers, all of which show credentials.
func stay(req *http.Request, via []*http.Request) error {
	if leftOrigin(req, via) {
		return errTokenRedirect
	}
	return strip(req, via)
}

// leftOrigin reports whether a chain of redirects has left its first scheme, host or port.
func leftOrigin(req *http.Request, via []*http.Request) bool {
	for _, hop := range append(via[1:len(via):len(via)], req) {
		if !sameOrigin(via[0].URL, hop.URL) {
			return true
		}
	}
	return false
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
