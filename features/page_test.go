package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"ingot/features/internal/rig"
	"ingot/reconcile/report"
)

const script = `<script>alert(1)</script>`

func (w *site) pagePath(what string) string {
	kind, name, _ := strings.Cut(what, " ")
	switch name = strings.Trim(name, `"`); kind {
	case "server":
		return "/servers/" + w.called(name)
	case "claim":
		return "/claims/" + string(claimName(name))
	}
	return map[string]string{"the fleet": "/", "the problems": "/problems"}[what]
}

func (w *site) page(ctx context.Context, path, host string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.ingot.where.Admin+path, nil)
	if err != nil {
		return nil, "", err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, unfolded(string(body)), err
}

func pageIs(ctx context.Context, what string, check func(*http.Response, string) error) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		resp, body, err := w.page(ctx, w.pagePath(what), "")
		switch {
		case err != nil:
			return err
		case resp.StatusCode != http.StatusOK:
			return fmt.Errorf("the page of %s: %s: %s", what, resp.Status, body)
		}
		if err := check(resp, body); err != nil {
			return fmt.Errorf("the page of %s: %w:\n%s", what, err, body)
		}
		return nil
	})
}

func pageContains(ctx context.Context, what, want string) error {
	return pageIs(ctx, what, func(_ *http.Response, body string) error {
		if !strings.Contains(body, want) && !strings.Contains(html.UnescapeString(withoutTags(body)), want) {
			return fmt.Errorf("no %q", want)
		}
		return nil
	})
}

var tag = regexp.MustCompile(`<[^>]*>`)

func withoutTags(body string) string { return unfolded(tag.ReplaceAllString(body, " ")) }

func pageShowsInRack(ctx context.Context, what, server, letter, rack string) error {
	drawn := regexp.MustCompile(`aria-label="rack ` + rack + `: [^"]*"> (.*?)</svg>`)
	tile := fmt.Sprintf(`<a href="/servers/%s"><g class="%s`, siteOf(ctx).called(server), letter)
	return pageIs(ctx, what, func(_ *http.Response, body string) error {
		if found := drawn.FindStringSubmatch(body); found == nil || !strings.Contains(found[1], tile) {
			return fmt.Errorf("rack %s does not show %s", rack, tile)
		}
		return nil
	})
}

func pageApproves(ctx context.Context, what string) error {
	var line string
	err := rig.Within(patience, func() error {
		fleet, err := siteOf(ctx).fleetDocument(ctx)
		if err == nil && len(fleet.Holds) == 0 {
			err = errors.New("no steps are held")
		}
		if err == nil {
			line = fleet.Holds[0].Approve
		}
		return err
	})
	if err != nil {
		return err
	}
	return pageContains(ctx, what, "<code>"+line+"</code>")
}

// fleetDocument returns the fleet document of the API.
func (w *site) fleetDocument(ctx context.Context) (*report.Fleet, error) {
	resp, body, err := w.page(ctx, "/api/v1/fleet", "")
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fleet document: %s: %s", resp.Status, body)
	}
	fleet := new(report.Fleet)
	return fleet, json.Unmarshal([]byte(body), fleet)
}

func pageHasBoot(ctx context.Context, what string) error {
	return pageContains(ctx, what, `<svg class="timeline"`)
}

func pageScripts(ctx context.Context, what string) error {
	return pageIs(ctx, what, func(_ *http.Response, body string) error {
		const own = `<script src="/static/page.js" defer>`
		if n := strings.Count(body, "<script"); n != 1 || !strings.Contains(body, own) {
			return fmt.Errorf("it has %d scripts", n)
		}
		return nil
	})
}

func pageIsClosed(ctx context.Context, what string) error {
	return pageIs(ctx, what, func(resp *http.Response, body string) error {
		policy := resp.Header.Get("Content-Security-Policy")
		switch {
		case !strings.Contains(policy, "default-src 'none'"), strings.Contains(policy, "unsafe"):
			return fmt.Errorf("its content security policy is %q", policy)
		case len(resp.Cookies()) > 0:
			return fmt.Errorf("it sets %v", resp.Cookies())
		case regexp.MustCompile(`(?:src|<link[^>]*href)="(?:https?:)?//`).MatchString(body):
			return errors.New("it loads something from another host")
		case regexp.MustCompile(`<[a-z][^>]* (?:style|on[a-z]+)=`).MatchString(body):
			return errors.New("it has an inline style or script")
		}
		return nil
	})
}

func pageIsOurs(ctx context.Context, what string) error {
	w := siteOf(ctx)
	resp, body, err := w.page(ctx, w.pagePath(what), "evil.example")
	if err == nil && resp.StatusCode != http.StatusForbidden {
		err = fmt.Errorf("got %s: %s", resp.Status, body)
	}
	return err
}

var rowName = regexp.MustCompile(`<th scope="row"><a href="/servers/([^"]*)">`)

func listHas(ctx context.Context, state, server string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		_, body, err := w.page(ctx, "/servers?state="+state, "")
		if err != nil {
			return err
		}
		var names []string
		for _, m := range rowName.FindAllStringSubmatch(body, -1) {
			names = append(names, m[1])
		}
		if !slices.Equal(names, []string{w.called(server)}) {
			return fmt.Errorf("the servers that are %s are %v:\n%s", state, names, body)
		}
		return nil
	})
}

func longSearchRefused(ctx context.Context) error {
	resp, body, err := siteOf(ctx).page(ctx, "/servers?q="+url.QueryEscape(strings.Repeat("x", 10_000)), "")
	if err == nil && (resp.StatusCode != http.StatusBadRequest || len(body) > 5000) {
		err = fmt.Errorf("got %s and %d bytes", resp.Status, len(body))
	}
	return err
}

func searchOpens(ctx context.Context, name string) error {
	w := siteOf(ctx)
	want := "<h1>" + w.called(name) + "</h1>"
	return rig.Within(patience, func() error {
		resp, body, err := w.page(ctx, "/servers?q="+url.QueryEscape(w.called(name)), "")
		if err == nil && (resp.Request.URL.Path != "/servers/"+w.called(name) || !strings.Contains(body, want)) {
			err = fmt.Errorf("got %s:\n%s", resp.Request.URL, body)
		}
		return err
	})
}

func commitScriptLabel(ctx context.Context, name string) error {
	w := siteOf(ctx)
	labels := w.servers[name]["metadata"].(map[string]any)["labels"].(map[string]any)
	labels["owner"] = script
	return w.commit(map[string]string{serverPath(name): text(w.servers[name])}, "label a server with a script")
}
