package features

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
)

func definePage(sc *godog.ScenarioContext) {
	const (
		name = `"([^"]*)"`
		page = `the page of (the fleet|the problems|server "[^"]*"|claim "[^"]*")`
	)
	for expression, do := range map[string]any{
		`^` + page + ` says: "(.*)"$`: pageSays,
		`^` + page + ` shows server ` + name + ` as ` + name + ` in rack ` + name + `$`: pageShowsInRack,
		`^` + page + ` shows the line that approves it$`:                                pageApproves,
		`^` + page + ` has a picture of its boot$`:                                      pageHasBoot,
		`^` + page + ` has no script but its own$`:                                      pageScripts,
		`^` + page + ` allows nothing from elsewhere, and sets no cookie$`:              pageIsClosed,
		`^` + page + ` is refused to whoever asks for another host$`:                    pageIsOurs,
		`^the list of the servers that are (\w+) has ` + name + ` alone$`:               listHas,
		`^a filter of 10 kB of the list of servers is refused$`:                         longFilterRefused,
		`^a label that is a script is committed for server ` + name + `$`:               commitScriptLabel,
	} {
		sc.Step(expression, do)
	}
}

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

func pageSays(ctx context.Context, what, want string) error {
	return pageIs(ctx, what, func(_ *http.Response, body string) error {
		if !strings.Contains(body, want) && !strings.Contains(html.UnescapeString(withoutTags(body)), want) {
			return fmt.Errorf("it does not say %q", want)
		}
		return nil
	})
}

var tag = regexp.MustCompile(`<[^>]*>`)

func withoutTags(body string) string { return unfolded(tag.ReplaceAllString(body, " ")) }

func pageShowsInRack(ctx context.Context, what, server, letter, rack string) error {
	w := siteOf(ctx)
	drawn := regexp.MustCompile(`aria-label="rack ` + rack + `: [^"]*"> (.*?)</svg>`)
	tile := fmt.Sprintf(`<a href="/servers/%s"><g class="%s`, w.called(server), letter)
	return pageIs(ctx, what, func(_ *http.Response, body string) error {
		if found := drawn.FindStringSubmatch(body); found == nil || !strings.Contains(found[1], tile) {
			return fmt.Errorf("rack %s does not show %s", rack, tile)
		}
		return nil
	})
}

func pageApproves(ctx context.Context, what string) error {
	var token string
	err := rig.Within(patience, func() error {
		s, err := siteOf(ctx).ingot.summary(ctx)
		if err == nil && len(s.Guard) == 0 {
			err = errors.New("the guard holds nothing")
		}
		if err == nil {
			token = s.Guard[0].Token
		}
		return err
	})
	if err != nil {
		return err
	}
	return pageSays(ctx, what, "<code>Ingot-Approve: "+token+"</code>")
}

func pageHasBoot(ctx context.Context, what string) error {
	return pageSays(ctx, what, `<svg class="timeline"`)
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
			return errors.New("it has something from elsewhere")
		case regexp.MustCompile(`<[a-z][^>]* (?:style|on[a-z]+)=`).MatchString(body):
			return errors.New("it has a style or a script within")
		}
		return nil
	})
}

func pageIsOurs(ctx context.Context, what string) error {
	w := siteOf(ctx)
	resp, body, err := w.page(ctx, w.pagePath(what), "evil.example")
	if err == nil && resp.StatusCode != http.StatusForbidden {
		err = fmt.Errorf("it is answered with %s: %s", resp.Status, body)
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

func longFilterRefused(ctx context.Context) error {
	resp, body, err := siteOf(ctx).page(ctx, "/servers?q="+url.QueryEscape(strings.Repeat("x", 10_000)), "")
	if err == nil && (resp.StatusCode != http.StatusBadRequest || len(body) > 5000) {
		err = fmt.Errorf("it is answered with %s and %d bytes", resp.Status, len(body))
	}
	return err
}

func commitScriptLabel(ctx context.Context, name string) error {
	w := siteOf(ctx)
	labels := w.servers[name]["metadata"].(map[string]any)["labels"].(map[string]any)
	labels["owner"] = script
	_, err := w.repo.Commit(map[string]string{serverPath(name): text(w.servers[name])}, "say whose it is")
	return err
}
