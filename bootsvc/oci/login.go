package oci

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"ingot/bootsvc/internal/lru"
	"ingot/model"
)

// grantLife is for how long what a registry took is shown to it without looking at the
// credentials file again. A token that ends sooner is refused, and then another is asked
// for.
const grantLife = time.Hour

// login sends requests to registries, with the credentials that they ask for. It is safe
// for concurrent use.
//
// A credential is shown to its registry alone, or to the token server that this registry
// names, which may be anywhere that the egress filter lets through: the registry could as
// well hand on what it is shown. What either leads to is shown nothing.
type login struct {
	client      *auth.Client
	credentials credentialsFile
	grants      *lru.Cache[string, grant] // by registry/repository
	now         func() time.Time
}

// grant is what a registry wants to see in each request.
type grant struct {
	scheme auth.Scheme
	token  model.Sensitive
	until  time.Time
}

func newLogin(transport http.RoundTripper, credentials credentialsFile) *login {
	l := &login{credentials: credentials, grants: lru.New[string, grant](256), now: time.Now}
	l.client = &auth.Client{
		Client:     &http.Client{Transport: challengeTransport{transport}, CheckRedirect: checkRedirect},
		Header:     http.Header{"User-Agent": {userAgent}},
		Credential: l.credential,
		Cache:      l,
		ClientID:   userAgent,
		// the egress filter looks at each address that is really dialled
		BlockedRealmPrefixes: []netip.Prefix{},
	}
	return l
}

// attempt is one request to a registry, and what came of logging in for it.
type attempt struct {
	ref         model.ImageReference
	url         *url.URL
	registry    bool   // that it is one is certain
	tokenServer string // that it names, for errors
	loggingIn   bool   // the present request is for a token
	loggedIn    bool
	anonymous   bool // there is no credential
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

// do sends a request that is about r. When the registry asks for it, do logs in and sends
// it once more.
func (l *login) do(req *http.Request, r model.ImageReference) (*http.Response, error) {
	a := &attempt{ref: r, url: req.URL}
	resp, err := l.client.Do(req.WithContext(context.WithValue(req.Context(), attemptKey{}, a)))
	if why, ok := errors.AsType[*loginError](err); ok {
		return nil, why // without the URLs that it came by
	}
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !a.loggedIn || !sameOrigin(req.URL, resp.Request.URL) {
		return resp, err
	}
	resp.Body.Close()
	l.grants.Drop(r.Name())
	if a.anonymous {
		lacks := l.credentials.lacks(r)
		return nil, &loginError{unauthorized("the image does not exist, or credentials are needed to see it: %s", lacks), a.registry}
	}
	return nil, &loginError{unauthorized("the registry refuses the credentials that %s has for it", l.credentials.name()), a.registry}
}

func unauthorized(format string, args ...any) *Error {
	return &Error{Reason: model.ReasonUnauthorized, Message: fmt.Sprintf(format, args...)}
}

// redacted takes out of an answer the credentials that were sent: some registries repeat them.
func (l *login) redacted(ctx context.Context, r model.ImageReference, answer []byte) []byte {
	c, _ := l.credentials.lookup(ctx, r) // without any there is nothing to take out
	g, _ := l.grants.Get(r.Name())
	for _, secret := range []string{c.Password, c.RefreshToken, c.AccessToken, g.token.Reveal()} {
		if len(secret) > 3 {
			answer = bytes.ReplaceAll(answer, []byte(secret), []byte("[redacted]"))
		}
	}
	return answer
}

// credential returns the credential of what an attempt is about. It is an
// auth.CredentialFunc, to which a registry is its host; here each path may have its own.
func (l *login) credential(ctx context.Context, _ string) (auth.Credential, error) {
	a := attemptOf(ctx)
	c, err := l.credentials.lookup(ctx, a.ref)
	if err != nil {
		return auth.EmptyCredential, &Error{Reason: model.ReasonUnauthorized, Message: err.Error(), Err: err}
	}
	a.anonymous = c == auth.EmptyCredential
	return c, nil
}

// GetScheme implements auth.Cache, by repository for the same reason.
func (l *login) GetScheme(ctx context.Context, _ string) (auth.Scheme, error) {
	g, ok := l.grants.Get(attemptOf(ctx).ref.Name())
	if !ok || !l.now().Before(g.until) {
		return auth.SchemeUnknown, errdef.ErrNotFound
	}
	return g.scheme, nil
}

// GetToken implements auth.Cache. It is asked with a scope once a registry has refused
// what was shown, and then there is nothing better.
func (l *login) GetToken(ctx context.Context, _ string, _ auth.Scheme, scope string) (string, error) {
	g, ok := l.grants.Get(attemptOf(ctx).ref.Name())
	if !ok || scope != "" {
		return "", errdef.ErrNotFound
	}
	return g.token.Reveal(), nil
}

// Set implements auth.Cache: it remembers what fetch logs in by.
func (l *login) Set(ctx context.Context, _ string, scheme auth.Scheme, _ string,
	fetch func(context.Context) (string, error),
) (string, error) {
	a := attemptOf(ctx)
	if scheme == auth.SchemeBasic {
		fetch = l.basic
	}
	a.loggingIn = true
	token, err := fetch(ctx)
	a.loggingIn = false
	if err == nil && strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		err = errors.New("the token cannot stand in a header")
	}
	if err != nil {
		return "", &loginError{l.explain(a, scheme, err), a.registry}
	}
	a.loggedIn = true
	l.grants.Put(a.ref.Name(), grant{scheme, model.NewSensitive(token), l.now().Add(grantLife)}, 1)
	return token, nil
}

// basic returns the credential as RFC 7617 has it. Package auth would refuse one with an
// empty password, which that permits.
func (l *login) basic(ctx context.Context) (string, error) {
	c, err := l.credential(ctx, "")
	if err == nil && c.Username == "" {
		err = auth.ErrBasicCredentialNotFound
	}
	return base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password)), err
}

// explain says for people why there is nothing to show to a registry.
func (l *login) explain(a *attempt, scheme auth.Scheme, err error) *Error {
	var known *Error
	var answer *errcode.ErrorResponse
	var link *url.Error
	switch {
	case errors.As(err, &known):
		return known
	case scheme == auth.SchemeBasic:
		return unauthorized("the registry asks for credentials: %s", l.credentials.lacks(a.ref))
	case errors.As(err, &answer):
		return l.refused(a, answer.StatusCode)
	case errors.As(err, &link):
		return unreachable("token server "+a.tokenServer, err)
	}
	return unauthorized("token server %s of registry %s sent no token", a.tokenServer, a.ref.Registry)
}

// refused says why a token server gives no token.
func (l *login) refused(a *attempt, code int) *Error {
	host := a.tokenServer
	switch {
	case code >= 500 || code == http.StatusTooManyRequests:
		message := fmt.Sprintf("token server %s answered %d %s", host, code, http.StatusText(code))
		return &Error{Reason: model.ReasonRegistryUnreachable, Message: message}
	case a.anonymous:
		return unauthorized("token server %s gives no token without credentials (%d): %s", host, code, l.credentials.lacks(a.ref))
	}
	return unauthorized("token server %s refuses the credentials that %s has for %s (%d)", host, l.credentials.name(), a.ref.Registry, code)
}

// maxRedirects bounds how often a request is led elsewhere.
const maxRedirects = 10

var errRedirects = fmt.Errorf("it leads elsewhere more than %d times", maxRedirects)

// checkRedirect is the CheckRedirect of all requests. Package auth takes the credentials
// from a chain that has once left its origin, for good.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	req.Header.Del("Referer") // of signed URLs
	return nil
}
