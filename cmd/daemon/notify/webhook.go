package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"ingot/gitsource/smallfile"
	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/notice"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 16 << 10

// maxSecret bounds a file with an address, headers or certificates, in bytes.
const maxSecret = 256 << 10

// Webhook says where notices go, and which.
type Webhook struct {
	Name     string // of files and metrics
	URL      string
	URLFile  string // holds the URL, where that is a secret
	Format   string
	Header   string              // file of header lines, such as Authorization: Bearer …; "" = none
	CAFile   string              // certificates to trust beside the system's; "" = none
	On       []report.NoticeKind // empty = all
	Resolved bool                // tells also that trouble has ended
}

// endpoint is where a request goes, all of which may be a secret.
type endpoint struct {
	url     model.Sensitive
	headers []header
	roots   *x509.CertPool
}

type header struct {
	name  string
	value model.Sensitive
}

// endpoint reads the files of the webhook. No error repeats what they hold.
func (w *Webhook) endpoint() (e endpoint, err error) {
	address := w.URL
	if w.URLFile != "" {
		content, err := smallfile.Read(w.URLFile, maxSecret)
		if err != nil {
			return e, misconfigured("read urlFile: %v", err)
		}
		address = strings.TrimSpace(string(content))
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(address, " \n\t") {
		return e, misconfigured("the address of the webhook is no URL with http:// or https://; it is to be one line")
	}
	e.url = model.NewSensitive(address)
	if e.headers, err = w.headers(); err != nil {
		return e, err
	}
	if w.CAFile == "" {
		return e, nil
	}
	content, err := smallfile.Read(w.CAFile, maxSecret)
	if err != nil {
		return e, misconfigured("read caFile: %v", err)
	}
	if e.roots, err = x509.SystemCertPool(); err != nil {
		e.roots = x509.NewCertPool()
	}
	if !e.roots.AppendCertsFromPEM(content) {
		return e, misconfigured("caFile %s holds no certificate", w.CAFile)
	}
	return e, nil
}

// headers reads the file of header lines.
func (w *Webhook) headers() (all []header, err error) {
	if w.Header == "" {
		return nil, nil
	}
	content, err := smallfile.Read(w.Header, maxSecret)
	if err != nil {
		return nil, misconfigured("read headerFile: %v", err)
	}
	n := 0
	for line := range strings.Lines(string(content)) {
		if n++; strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || value == "" {
			return nil, misconfigured("headerFile %s:%d is no header line, such as Authorization: Bearer TOKEN", w.Header, n)
		}
		all = append(all, header{name, model.NewSensitive(value)})
	}
	return all, nil
}

// post makes one attempt.
func (t *target) post(ctx context.Context, to endpoint, m notice.Message, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, t.pace.timeout)
	defer cancel()
	kind, body, err := t.render(m, now)
	if err != nil {
		return &failure{outcome: outcomeRejected, text: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url.Reveal(), bytes.NewReader(body))
	if err != nil {
		return misconfigured("the address of the webhook cannot be used")
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "ingot")
	for _, h := range to.headers {
		req.Header.Set(h.name, h.value.Reveal())
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: to.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
	}
	// The secrets are for this address alone: no redirect is followed.
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return &failure{outcome: outcomeUnavailable, text: "the webhook cannot be reached: " + to.hide(cause(err).Error())}
	}
	defer res.Body.Close() // read only: nothing is lost
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		text = nil // the code says enough
	}
	if f := failureOf(res, to.hide(string(text)), now); f != nil {
		return f
	}
	return nil
}

// cause is an error without the address that was asked.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// hide takes out of a text what an answer repeats of the secrets.
func (e endpoint) hide(text string) string {
	secrets := []string{e.url.Reveal()}
	if u, err := url.Parse(e.url.Reveal()); err == nil {
		secrets = append(secrets, u.EscapedPath(), u.Path, u.RawQuery)
		secrets = append(secrets, strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })...)
		for _, values := range u.Query() {
			secrets = append(secrets, values...)
		}
		if u.User != nil {
			password, _ := u.User.Password()
			secrets = append(secrets, u.User.Username(), password)
		}
	}
	for _, h := range e.headers {
		secrets = append(secrets, h.value.Reveal())
		secrets = append(secrets, strings.Fields(h.value.Reveal())...)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= 4 { // what is shorter is no secret, and part of many words
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return text
}
