package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

const (
	// maxBody bounds an announcement, in bytes.
	maxBody = 1 << 20
	// wakeEvery is how often pushes have the branch looked at.
	wakeEvery = 5 * time.Second
)

// result is the result of a request, the label of a counter.
type result string

const (
	resultAccepted     result = "accepted"
	resultUnauthorized result = "unauthorized"
	resultTooLarge     result = "too_large"
	resultMalformed    result = "malformed"
	resultNotFound     result = "not_found" // another path or method
)

// allResults have a series from the start, so that a rate can be taken of each.
var allResults = []result{resultAccepted, resultUnauthorized, resultTooLarge, resultMalformed, resultNotFound}

// unauthorized says what is accepted: some senders have other headers.
const unauthorized = "unauthorized: sign the body with HMAC-SHA256 under a secret of webhook.secretFile, in header X-Hub-Signature-256 or X-Hub-Signature (sha256=HEX), " +
	"X-Forgejo-Signature, X-Gitea-Signature, X-Gogs-Signature or X-Signature-256, or send the secret in X-Gitlab-Token; see docs/forges.md"

// WebhookOptions configure a Webhook.
type WebhookOptions struct {
	// SecretFile has the secrets that announcements are signed with, one a line.
	SecretFile string
	// Wake triggers a poll of the branch. It must not block.
	Wake       func()
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Webhook is the handler for announcements of pushes by GitHub, GitLab, Gitea, Forgejo and
// other senders that can sign a body. Each one with a valid signature or token triggers a poll of the branch.
// The content is not used. Many of them trigger one poll in five seconds.
type Webhook struct {
	opts     WebhookOptions
	secrets  secrets
	requests *prometheus.CounterVec
	wanted   chan struct{}
	broken   atomic.Bool // whether the secrets could not be read when last tried
}

// NewWebhook returns a Webhook. It fails if the file of secrets is not what it should be. While
// the file cannot be read or holds no secret, every announcement is refused: anybody could have
// the repository fetched all the time.
func NewWebhook(opts WebhookOptions) (*Webhook, error) {
	h := &Webhook{
		opts: opts, secrets: secrets{file: opts.SecretFile}, wanted: make(chan struct{}, 1),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_webhook_requests_total", Help: "Requests to the webhook listener, by result.",
		}, []string{"result"}),
	}
	if _, err := h.secrets.read(); err != nil && !isMissing(err) {
		return nil, fmt.Errorf("webhook.secretFile: %w", err)
	}
	for _, r := range allResults {
		h.requests.WithLabelValues(string(r))
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(h.requests)
	}
	return h, nil
}

// isMissing reports whether a file could not be opened, or is still to be written.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errNoSecret)
}

// Run passes on the wish to look at the branch, at once and then at most every five
// seconds, until ctx ends. It returns nil then.
func (h *Webhook) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wanted:
			h.opts.Wake()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wakeEvery):
		}
	}
}

// ServeHTTP implements http.Handler.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, came, text := h.handle(w, r)
	h.requests.WithLabelValues(string(came)).Inc()
	h.opts.Log.Debug("webhook", "result", string(came), "client", r.RemoteAddr)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // whoever went away does not miss it
}

func (h *Webhook) handle(w http.ResponseWriter, r *http.Request) (code int, came result, text string) {
	if r.URL.Path != "/" && r.URL.Path != "/webhook" {
		return http.StatusNotFound, resultNotFound, "not found"
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, resultNotFound, "pushes are announced by POST"
	}
	token, digest, all := r.Header.Get(tokenHeader), digestOf(r.Header), h.known()
	if token == "" && digest == nil || token != "" && !isToken(all, token) {
		return http.StatusUnauthorized, resultUnauthorized, unauthorized
	}
	signed := newSignatures(all)
	_, err := io.Copy(signed, http.MaxBytesReader(w, r.Body, maxBody))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		return http.StatusRequestEntityTooLarge, resultTooLarge, "the body is larger than 1 MiB"
	case err != nil:
		return http.StatusBadRequest, resultMalformed, "the body did not arrive"
	case token == "" && !signed.have(digest):
		return http.StatusUnauthorized, resultUnauthorized, unauthorized
	}
	select {
	case h.wanted <- struct{}{}:
	default: // a poll is pending
	}
	return http.StatusOK, resultAccepted, "accepted: the repository is polled"
}

// known returns the secrets. While the file cannot be read the last ones count, which is
// said once.
func (h *Webhook) known() []model.Sensitive {
	all, err := h.secrets.read()
	if was := h.broken.Swap(err != nil); err != nil && !was {
		h.opts.Log.Error("the secrets of webhook.secretFile cannot be read, those read last stay valid", "err", err)
	}
	return all
}
