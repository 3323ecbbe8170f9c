package features

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
	"ingot/reconcile/report/query"
)

func defineAPI(sc *godog.ScenarioContext) {
	const text = `"([^"]*)"`
	for expression, do := range map[string]any{
		`^the API lists the servers with (\w+) ` + text + `: ` + text + `$`:   apiLists,
		`^the API refuses the servers with (\w+) ` + text + `: ` + text + `$`: apiRefuses,
		`^the API sends the servers once, and again only when one changed$`:   apiSendsOnce,
		`^somebody watches the API$`:                                          watchAPI,
		`^the watcher is told that claim ` + text + ` is (\w+)$`:              watcherTold,
	} {
		sc.Step(expression, do)
	}
}

func (w *site) apiServers(ctx context.Context, asked url.Values, etag string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.ingot.where.Admin+"/api/v1/servers?"+asked.Encode(), nil)
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

func apiLists(ctx context.Context, field, value, names string) error {
	return rig.Within(patience, func() error {
		_, body, err := siteOf(ctx).apiServers(ctx, url.Values{field: {value}}, "")
		if err != nil {
			return err
		}
		var list query.Result[*query.Server]
		if err := json.Unmarshal(body, &list); err != nil {
			return err
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, s.Name)
		}
		if want := strings.Split(names, ", "); !slices.Equal(got, want) || list.Total != len(want) {
			return fmt.Errorf("it lists %q, %d in all", got, list.Total)
		}
		return nil
	})
}

func apiRefuses(ctx context.Context, field, value, why string) error {
	resp, body, err := siteOf(ctx).apiServers(ctx, url.Values{field: {value}}, "")
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), why) {
		return fmt.Errorf("it says %s: %s", resp.Status, body)
	}
	return nil
}

// apiSendsOnce asks twice, and says what is there with the second time.
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

// watcher is who is told of changes by the API.
type watcher struct {
	body  io.ReadCloser
	lines *bufio.Reader
	last  string // id of the event that it was told of last
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

func watcherTold(ctx context.Context, claim, state string) error {
	w := siteOf(ctx)
	late := time.AfterFunc(patience, w.watcher.leave)
	defer late.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		kind, data, err := w.watcher.next()
		switch {
		case err != nil:
			if err := w.watcher.connect(w.ingot.where.Admin); err != nil {
				return err
			}
		case kind == "reload":
			s, err := w.ingot.summary(ctx)
			if err != nil {
				return err
			}
			for _, c := range s.Claims {
				if string(c.Name) == "default/"+claim && string(c.State) == state {
					return nil
				}
			}
		case strings.Contains(data, fmt.Sprintf(`{"kind":"claim","name":"default/%s","state":"%s"}`, claim, state)):
			return nil
		}
	}
	return fmt.Errorf("it was not told that claim %s is %s", claim, state)
}
