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
	"time"

	"ingot/reconcile/report"
)

// maxSummary bounds what is read of an answer, in bytes: some 100,000 servers.
const maxSummary = 64 << 20

// errNoDaemon is returned when nobody answers at the address of the daemon.
var errNoDaemon = errors.New("no daemon listens")

// adminClient reads from the admin listener of a daemon.
type adminClient struct {
	base string // http://127.0.0.1:8080
	http *http.Client
}

// newAdminClient returns a client of the admin listener at address, which may
// leave out the scheme.
func newAdminClient(address string) (*adminClient, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a daemon; write it as http://127.0.0.1:8080", address)
	}
	return &adminClient{base: strings.TrimRight(address, "/"), http: &http.Client{Timeout: 10 * time.Second}}, nil
}

// summary returns the state of the fleet.
func (a *adminClient) summary(ctx context.Context) (s report.Summary, err error) {
	return s, a.get(ctx, "/api/v1/status", &s)
}

// explain returns the explanation of one object.
func (a *adminClient) explain(ctx context.Context, kind, name string) (x report.Explanation, err error) {
	return x, a.get(ctx, "/api/v1/explain/"+url.PathEscape(kind)+"/"+(&url.URL{Path: name}).EscapedPath(), &x)
}

// request makes the request for a path.
func (a *adminClient) request(ctx context.Context, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
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
		return fmt.Errorf("%w at %s; name another with --address, or read the status branch with --git", errNoDaemon, a.base)
	}
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	defer resp.Body.Close() // read only: nothing is lost
	if resp.StatusCode != http.StatusOK {
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
	if err == nil && words != "" && strings.HasPrefix(req.URL.Path, "/api/v1/explain/") && resp.Header.Get("X-Content-Type-Options") != "" {
		return errors.New(words)
	}
	return fmt.Errorf("%s answered %s; is it the admin listener of an Ingot daemon?", req.URL, resp.Status)
}
