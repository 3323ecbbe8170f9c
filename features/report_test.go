package features

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
)

func sendReport(ctx context.Context, m *machine, flaw string) error {
	w := siteOf(ctx)
	token, body := "", fmt.Sprintf(`{"systemUUID": %q, "data": {}}`, m.UUID())
	current, err := w.reportTokenOf(m.name)
	if err != nil {
		return err
	}
	switch flaw {
	case "bears no token":
	case `bears the token of "s2"`:
		token, err = w.reportTokenOf("s2")
	case "bears the token of its discovery":
		token, err = w.tokenOf(m.name, "/register")
	case "bears a token that was made up":
		token = strings.Repeat("a", len(current))
	case "is too large":
		token, body = current, `{"systemUUID": "`+m.UUID()+`", "data": {"lldp": [{"name": "`+strings.Repeat("x", 5<<20)+`"}]}}`
	case "is malformed":
		token, body = current, `{"systemUUID": `
	default:
		err = fmt.Errorf("no report is known that %s", flaw)
	}
	if err != nil {
		return err
	}
	path := "/register"
	if token != "" {
		path = "/r/" + token + path
	}
	return w.send(ctx, m, http.MethodPost, w.report.server.URL+path, body)
}

func (w *site) tokenOf(server, path string) (string, error) {
	m, err := w.machine(server)
	if err != nil {
		return "", err
	}
	used := func(e exchange) bool { return e.token != "" && e.uuid == m.UUID() && strings.Contains(e.path, path) }
	all := append(w.report.exchanges(used), w.boot.exchanges(used)...)
	if len(all) == 0 {
		return "", fmt.Errorf("%s was never seen to use a token", server)
	}
	return all[len(all)-1].token, nil
}

func (w *site) reportTokenOf(server string) (string, error) {
	m, err := w.machine(server)
	if err != nil {
		return "", err
	}
	all := w.boot.exchanges(func(e exchange) bool { return e.report != "" && e.uuid == m.UUID() })
	if len(all) == 0 {
		return "", fmt.Errorf("%s was never given a token to report with", server)
	}
	return all[len(all)-1].report, nil
}

func askIgnitionAs(ctx context.Context, server, how, other string) error {
	w := siteOf(ctx)
	if how == "from the address" {
		return askIgnitionFrom(ctx, server, other)
	}
	m, err := w.machine(server)
	if err != nil {
		return err
	}
	token, err := w.tokenOf(other, "/ignition/")
	if err != nil {
		return err
	}
	return w.send(ctx, m, http.MethodGet, w.boot.server.URL+"/ignition/"+m.UUID()+"/"+token, "")
}

func (w *site) send(ctx context.Context, from *machine, method, url, body string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	web := webFrom(from.HostAddress())
	defer web.CloseIdleConnections()
	resp, err := web.RoundTrip(req)
	if err != nil {
		return err
	}
	w.refused = resp.StatusCode
	return resp.Body.Close()
}
