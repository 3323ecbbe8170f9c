package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"ingot/model"
	"ingot/reconcile/report"
)

// maxAnswer bounds what is read of an answer, in bytes: some 50,000 servers.
const maxAnswer = 256 << 20

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
		return nil, usageError("the address of the daemon holds a user or a password; name them with --username and --password-file")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, usageError("%q is not the address of a daemon; write it as http://127.0.0.1:8080", address)
	}
	a := &adminClient{base: strings.TrimRight(address, "/"), username: f.Username}
	if a.http, err = f.client(); err != nil {
		return nil, err
	}
	a.password, err = f.password(u)
	return a, err
}

// documents returns the fleet and the documents of folders. The fleet is the oldest of them, so
// that the others are not older than its revision.
func (a *adminClient) documents(ctx context.Context, folders ...report.Folder) (*report.Documents, error) {
	fleet := new(report.Fleet)
	if err := a.get(ctx, "/api/v1/fleet", fleet); err != nil {
		return nil, err
	}
	var all []*report.Document
	for _, f := range folders {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := a.get(ctx, "/api/v1/"+string(f), &list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			d, err := report.ParseDocument(item)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	return report.NewDocuments(fleet, all), nil
}

// update returns documents of folders in which those at some paths of the status branch are read again.
func (a *adminClient) update(ctx context.Context, docs *report.Documents, paths []string, folders ...report.Folder) (*report.Documents, error) {
	fleet := docs.Fleet
	if slices.Contains(paths, model.ReportFleet) { // first, as in documents
		fleet = new(report.Fleet)
		if err := a.get(ctx, "/api/v1/fleet", fleet); err != nil {
			return nil, err
		}
	}
	var all []*report.Document
	for _, f := range folders {
		for _, d := range docs.List(f) {
			if !slices.Contains(paths, d.Path()) {
				all = append(all, d)
			}
		}
		for _, path := range paths {
			name, within := strings.CutPrefix(strings.TrimSuffix(path, ".yaml"), string(f)+"/")
			if !within {
				continue
			}
			switch d, err := a.document(ctx, f, name); {
			case err == nil:
				all = append(all, d)
			case !errors.Is(err, report.ErrUnknownObject): // otherwise it is gone
				return nil, err
			}
		}
	}
	return report.NewDocuments(fleet, all), nil
}

func (a *adminClient) document(ctx context.Context, f report.Folder, name string) (*report.Document, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." { // which would make another path of it
			return nil, fmt.Errorf("%q is not a name of a %s", name, f.Noun())
		}
	}
	var data json.RawMessage
	if err := a.get(ctx, "/api/v1/"+string(f)+"/"+(&url.URL{Path: name}).EscapedPath(), &data); err != nil {
		return nil, err
	}
	return report.ParseDocument(data)
}

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
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(v); err != nil {
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
	case ours && code == http.StatusBadRequest:
		return errors.New(words)
	case ours && code == http.StatusNotFound && strings.Contains(words, report.ErrUnknownObject.Error()):
		return unknownObject(words)
	case ours && (code == http.StatusForbidden || code == http.StatusServiceUnavailable):
		return fmt.Errorf("%s refuses: %s", req.URL, words)
	case code == http.StatusBadRequest && strings.Contains(words, "HTTPS server"):
		return fmt.Errorf("%s speaks TLS: write the address as https://%[1]s", req.URL.Host)
	}
	return fmt.Errorf("%s answered %s; is it the admin listener of an Ingot daemon?", req.URL, resp.Status)
}

// unknownObject is the daemon's answer that it has no object of a name.
type unknownObject string

func (u unknownObject) Error() string { return string(u) }

// Is makes it a report.ErrUnknownObject.
func (unknownObject) Is(err error) bool { return err == report.ErrUnknownObject }
