package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"ingot/model"
	"ingot/reconcile/report"
)

// maxSummary bounds what is read of an answer, in bytes: some 100,000 servers.
const maxSummary = 64 << 20

// errNoDaemon is returned when nobody answers at the address of the daemon.
var errNoDaemon = errors.New("no daemon listens")

// adminClient reads from the admin listener of a daemon.
type adminClient struct {
	base     string // http://127.0.0.1:8080
	http     *http.Client
	username string // "" = nobody in particular asks
	password model.Sensitive
}

// newAdminClient returns a client of the admin listener at address, which may
// leave out the scheme.
func newAdminClient(address string, f daemonFlags) (*adminClient, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case strings.Contains(address, "@"):
		return nil, errors.New("the address of the daemon holds a user or a password; name them with --username and --password-file")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not the address of a daemon; write it as http://127.0.0.1:8080", address)
	}
	a := &adminClient{base: strings.TrimRight(address, "/"), username: f.Username}
	if a.http, err = f.client(); err != nil {
		return nil, err
	}
	a.password, err = f.password(u)
	return a, err
}

// summary returns the state of the fleet.
func (a *adminClient) summary(ctx context.Context) (s report.Summary, err error) {
	return s, a.get(ctx, "/api/v1/status", &s)
}

// explain returns the explanation of one object.
func (a *adminClient) explain(ctx context.Context, kind, name string) (x report.Explanation, err error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." { // which are no names, and would make another path of it
			return x, fmt.Errorf("%q is not a name of a %s", name, kind)
		}
	}
	return x, a.get(ctx, "/api/v1/explain/"+url.PathEscape(kind)+"/"+(&url.URL{Path: name}).EscapedPath(), &x)
}

// request makes the request for a path.
func (a *adminClient) request(ctx context.Context, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	if a.username != "" {
		req.SetBasicAuth(a.username, a.password.Reveal())
	}
	return req, nil
}

// get reads the JSON answer at path into v.
func (a *adminClient) get(ctx context.Context, path string, v any) error {
	req, err := a.request(ctx, path)
	if err != nil {
		return err
	}
	resp, err := a.http.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w at %s; name another with --address", errNoDaemon, a.base)
	}
	if err != nil {
		return unreached(err)
	}
	defer resp.Body.Close() // read only: nothing is lost
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return a.wantsPassword()
	default:
		return refusal(req, resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxSummary)).Decode(v); err != nil {
		return fmt.Errorf("read the answer of %s: %w", req.URL, err)
	}
	return nil
}

// refusal returns why a request was refused: in the daemon's own words, if it is one.
func refusal(req *http.Request, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	words := printable(strings.TrimSpace(string(text)))
	ours := err == nil && words != "" && resp.Header.Get("X-Content-Type-Options") != ""
	switch code := resp.StatusCode; {
	case ours && code == http.StatusBadRequest, ours && strings.HasPrefix(req.URL.Path, "/api/v1/explain/") && code != http.StatusForbidden:
		return errors.New(words)
	case ours && (code == http.StatusForbidden || code == http.StatusTooManyRequests):
		return fmt.Errorf("%s refuses: %s", req.URL, words)
	case code == http.StatusBadRequest && strings.Contains(words, "HTTPS server"):
		return fmt.Errorf("%s speaks TLS: write the address as https://%[1]s", req.URL.Host)
	}
	return fmt.Errorf("%s answered %s; is it the admin listener of an Ingot daemon?", req.URL, resp.Status)
}
