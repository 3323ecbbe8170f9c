package features

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ingot/features/internal/rig"
	"ingot/reconcile/report"
)

func (w *site) apiServers(ctx context.Context, query url.Values, etag string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.ingot.where.Admin+"/api/v1/servers?"+query.Encode(), nil)
	if err != nil {
		return nil, nil, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func apiLists(ctx context.Context, parameter, value, names string) error {
	return rig.Within(patience, func() error {
		docs, err := siteOf(ctx).ingot.documents(ctx, "/api/v1/servers?"+url.Values{parameter: {value}}.Encode())
		if err != nil {
			return err
		}
		var got []string
		for _, d := range docs {
			got = append(got, d.Name())
		}
		if want := strings.Split(names, ", "); !slices.Equal(got, want) {
			return fmt.Errorf("it lists %q", got)
		}
		return nil
	})
}

func apiRefuses(ctx context.Context, parameter, value, why string) error {
	resp, body, err := siteOf(ctx).apiServers(ctx, url.Values{parameter: {value}}, "")
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), why) {
		return fmt.Errorf("it answers %s: %s", resp.Status, body)
	}
	return nil
}

// apiSendsOnce requests the list twice, the second time with the ETag of the first.
func apiSendsOnce(ctx context.Context) error {
	return rig.Within(patience, func() error {
		first, body, err := siteOf(ctx).apiServers(ctx, nil, "")
		if err != nil {
			return err
		}
		again, more, err := siteOf(ctx).apiServers(ctx, nil, first.Header.Get("ETag"))
		switch {
		case err != nil:
			return err
		case again.StatusCode != http.StatusNotModified || len(more) > 0:
			return fmt.Errorf("it sends %d bytes again, after %d", len(more), len(body))
		}
		return nil
	})
}

// watcher is a client of the API's events.
type watcher struct {
	body  io.ReadCloser
	lines *bufio.Reader
	last  string // id of the last event
}

func watchAPI(ctx context.Context) error {
	w := siteOf(ctx)
	w.watcher = &watcher{}
	w.clients = append(w.clients, w.watcher.leave)
	if err := w.watcher.connect(w.ingot.where.Admin); err != nil {
		return err
	}
	_, _, err := w.watcher.next()
	return err
}

// connect asks for the events since the last. It outlasts the step.
func (v *watcher) connect(address string) error {
	v.leave()
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/api/v1/events", nil)
	if err != nil {
		return err
	}
	if v.last != "" {
		req.Header.Set("Last-Event-ID", v.last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	v.body, v.lines = resp.Body, bufio.NewReader(resp.Body)
	return nil
}

func (v *watcher) leave() {
	if v.body != nil {
		_ = v.body.Close()
	}
}

func (v *watcher) next() (kind, data string, err error) {
	if v.lines == nil {
		return "", "", errors.New("it is not connected")
	}
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			v.last = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if value == "" && kind != "" {
				return kind, data, nil
			}
		}
	}
}

// watcherReceives waits for events of a claim until its document, which they name, has a state.
func watcherReceives(ctx context.Context, claim, state string) error {
	w := siteOf(ctx)
	late := time.AfterFunc(patience, w.watcher.leave)
	defer late.Stop()
	path := report.Claims.Path("default/" + claim)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		kind, data, err := w.watcher.next()
		switch {
		case err != nil:
			if err := w.watcher.connect(w.ingot.where.Admin); err != nil {
				return err
			}
		case kind == "reload" || strings.Contains(data, `{"path":"`+path+`","etag":`):
			s, err := w.ingot.summary(ctx)
			if err != nil {
				return err
			}
			for _, c := range s.Claims {
				if c.Name == "default/"+claim && c.State == state {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no event of claim %s as %s came", claim, state)
}
