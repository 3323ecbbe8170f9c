package bmc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stmcginnis/gofish"
)

// service is what the service root says (DSP0268, ServiceRoot).
type service struct {
	uuid, vendor    string
	systems         string
	managers        string
	sessions        string // "" = there are none
	huawei          bool
	expand          string // "", "." or "*": how to ask for members in one request
	levels          int    // how many levels can be asked for; 0 = cannot be said
	wantsCredential bool   // the root itself did

	expands *atomic.Bool // it has expanded a collection
	until   time.Time    // when the root is read again: it lacks something, as while a BMC starts; zero = with the next login
}

// A root that lacks the link to the systems is used for noSystems, because nothing can be done without. One that lacks something
// else, or that promises what fails, is used for lacking. BMCs have such roots while they start, and some always.
const (
	noSystems = time.Minute
	lacking   = 10 * time.Minute
)

// isCurrent reports whether the root may still be used.
func (s *service) isCurrent(now time.Time) bool {
	return s != nil && (s.until.IsZero() || now.Before(s.until))
}

// query returns the query for a collection with its members, and up to levels of
// what these link to; "" when the service cannot do that.
func (s *service) query(levels int) string {
	switch {
	case s.expand == "":
		return ""
	case s.levels == 0:
		return "?$expand=" + s.expand
	}
	return fmt.Sprintf("?$expand=%s($levels=%d)", s.expand, min(levels, s.levels))
}

// root returns the service root, read once for each session, and again if it lacks something.
func (c *connection) root(ctx context.Context) (*service, error) {
	if svc := c.service.Load(); svc.isCurrent(c.opts.Clock()) && !svc.wantsCredential {
		return svc, nil
	}
	// Logging in reads it, and may tell that it is worth reading again.
	if _, err := c.authorized(ctx); err != nil {
		return nil, err
	}
	unlock, err := c.lockLogin(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return c.rootLocked(context.WithValue(ctx, loginKey{}, c.auth.Load()))
}

// rootLocked returns the service root with the credentials in ctx, or none. The
// caller holds the login lock.
func (c *connection) rootLocked(ctx context.Context) (*service, error) {
	own, _ := ctx.Value(loginKey{}).(*auth)
	if svc := c.service.Load(); svc.isCurrent(c.opts.Clock()) && (!svc.wantsCredential || own == nil) {
		return svc, nil
	}
	svc, err := c.connect(context.WithValue(ctx, loginKey{}, own))
	if err != nil && own == nil && statusOf(err) == http.StatusUnauthorized {
		svc, err = &service{sessions: defaultSessions, wantsCredential: true, expands: new(atomic.Bool)}, nil
	}
	if err != nil {
		return nil, err
	}
	switch now := c.opts.Clock(); {
	case svc.systems == "":
		svc.until = now.Add(noSystems)
	case svc.managers == "" || svc.sessions == "" || svc.expand == "":
		svc.until = now.Add(lacking)
	}
	c.service.Store(svc)
	return svc, nil
}

func (c *connection) connect(ctx context.Context) (*service, error) {
	k := &keeper{next: (*transport)(c)}
	api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint:              c.base,
		HTTPClient:            &http.Client{Transport: k, CheckRedirect: sameHost},
		NoModifyTransport:     true,
		ReuseConnections:      true,
		MaxConcurrentRequests: int64(c.opts.MaxInFlight),
	})
	const uri = "/redfish/v1/"
	switch {
	case k.answer != nil && k.answer.status/100 != 2:
		refusal := c.refusal(http.MethodGet, uri, k.answer)
		if k.answer.status < 500 && (refusal.Kind == nil || errors.Is(refusal.Kind, ErrNotFound) || errors.Is(refusal.Kind, ErrUnsupported)) {
			refusal.Kind = ErrNotRedfish
		}
		return nil, refusal
	case err != nil && k.answer != nil:
		return nil, &Error{BMC: c.name, Method: http.MethodGet, URI: uri, Status: k.answer.status, Kind: ErrNotRedfish, Detail: "not a Redfish service root: " + c.detail(err.Error())}
	case err != nil:
		return nil, c.noAnswer(ctx, http.MethodGet, uri, err)
	}
	if c.target.Scheme == "http" && k.url.Scheme == "https" {
		c.safer.Store(k.url)
	}
	links, _, err := decode[rootLinks](k.answer.body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("bmc %s: read service root: %w", c.name, err)
	case isError(k.answer.body):
		return nil, c.refusal(http.MethodGet, uri, k.answer)
	case links.none():
		return nil, &Error{BMC: c.name, Method: http.MethodGet, URI: uri, Status: k.answer.status, Kind: ErrNotRedfish, Detail: "not a Redfish service root: it leads nowhere"}
	}
	return newService(api.Service, links), nil
}

// rootLinks are the links that gofish keeps to itself.
type rootLinks struct {
	Systems, Managers, UpdateService link
	Links                            struct{ Sessions link }
	Oem                              map[string]json.RawMessage
}

func (l *rootLinks) none() bool {
	return l.Systems.ID == "" && l.Managers.ID == "" && l.UpdateService.ID == "" && l.Links.Sessions.ID == ""
}

func newService(s *gofish.Service, l rootLinks) *service {
	svc := &service{
		uuid:     s.UUID,
		vendor:   s.Vendor,
		systems:  path(l.Systems.ID),
		managers: path(l.Managers.ID),
		sessions: path(l.Links.Sessions.ID),
		expands:  new(atomic.Bool),
	}
	_, svc.huawei = l.Oem["Huawei"]
	expand := s.ProtocolFeaturesSupported.ExpandQuery
	switch {
	case expand.NoLinks:
		svc.expand = "." // without what is under Links: less to send
	case expand.ExpandAll:
		svc.expand = "*"
	}
	if expand.Levels {
		svc.levels = max(1, int(min(expand.MaxLevels, 6)))
	}
	return svc
}

// keeper hands gofish a service root that it can read even where one property is
// odd, and keeps the answer.
type keeper struct {
	next   http.RoundTripper
	answer *answer
	url    *url.URL // of the service that answered
}

// RoundTrip implements http.RoundTripper.
func (k *keeper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	k.answer = &answer{resp.StatusCode, resp.Header, bodyOf(resp)}
	k.url = req.URL
	if resp.StatusCode/100 != 2 {
		return resp, nil
	}
	fits := func(raw json.RawMessage) bool { return json.Unmarshal(raw, new(gofish.Service)) == nil }
	if repaired, ok := (&repairer{}).repair(k.answer.body, "", fits, 0); ok {
		resp.Body = io.NopCloser(bytes.NewReader(repaired))
	}
	return resp, nil
}

// link is a reference to another resource.
type link struct {
	ID string `json:"@odata.id"`
}

// under returns the URI of something below uri, whether that ends in a slash or not.
func under(uri, name string) string { return strings.TrimSuffix(uri, "/") + "/" + name }
