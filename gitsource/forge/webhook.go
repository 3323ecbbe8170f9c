package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
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

// WebhookOptions configure a Webhook.
type WebhookOptions struct {
	Branches
	// SecretFile has the secrets that announcements are signed with, one a line.
	SecretFile string
	// Wake has the branch looked at. It must not block.
	Wake       func()
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Webhook is the handler for announcements of pushes by GitHub, GitLab, Gitea, Forgejo and
// whatever else can sign a body. One that is signed and is of the branch that is followed
// has it looked at; nothing else of an announcement is used, so that a repeated one costs
// a look, and many come to one look in five seconds.
type Webhook struct {
	opts     WebhookOptions
	secrets  secrets
	requests *prometheus.CounterVec
	turns    *turns // to read bodies
	wanted   chan struct{}
	broken   atomic.Bool // whether the secrets could not be read when last tried
}

// NewWebhook returns a Webhook. It fails if the file of secrets is not what it should be. While
// the file cannot be read or holds no secret, every announcement is refused: anybody could have
// the repository fetched all the time.
func NewWebhook(opts WebhookOptions) (*Webhook, error) {
	h := &Webhook{
		opts: opts, secrets: secrets{file: opts.SecretFile}, turns: newTurns(), wanted: make(chan struct{}, 1),
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

// handle returns the answer to a request, and what came of it.
func (h *Webhook) handle(w http.ResponseWriter, r *http.Request) (code int, came result, text string) {
	if r.URL.Path != "/" && r.URL.Path != "/webhook" {
		return http.StatusNotFound, resultNotFound, "not found"
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, resultNotFound, "pushes are announced by POST"
	}
	shown, ok := proofOf(r.Header)
	if !ok || !shown.ofBody() && !known(h.known(), shown, nil) {
		return http.StatusUnauthorized, resultUnauthorized, "unauthorized"
	}
	done, ok := h.turns.take(r.Context(), clientOf(r))
	if !ok {
		w.Header().Set("Retry-After", "10")
		return http.StatusServiceUnavailable, resultBusy, "too many requests at once"
	}
	defer done()
	body, err := readBody(w, r)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge, resultTooLarge, "the body is larger than 1 MiB"
	}
	if err != nil {
		return http.StatusBadRequest, resultMalformed, "the body did not arrive"
	}
	if shown.ofBody() && !known(h.known(), shown, body) {
		return http.StatusUnauthorized, resultUnauthorized, "unauthorized"
	}
	p, err := readPush(r.Header.Get("Content-Type"), body)
	if err != nil {
		return http.StatusBadRequest, resultMalformed, err.Error()
	}
	came, text = h.opts.judge(r.Header, p)
	if came == resultAccepted {
		select {
		case h.wanted <- struct{}{}:
		default: // it is wished for already
		}
	}
	return http.StatusOK, came, text
}

// clientOf returns the address that a request came from.
func clientOf(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // of another kind of network all are one client
	return from.Addr()
}

// readBody fails with an http.MaxBytesError for a body that is too large.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close") // nobody reads the rest
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
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
