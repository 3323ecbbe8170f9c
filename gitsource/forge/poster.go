package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/gitsource/smallfile"
	"ingot/model"
)

const (
	// lookEvery is how often it is checked whether there is another verdict.
	lookEvery = time.Second
	// postTimeout bounds one attempt.
	postTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 10
	// warnEvery is how often the same failure is logged.
	warnEvery = time.Hour
	// maxOvertaken is how many overtaken commits are told their end at most, the newest.
	maxOvertaken = 8
)

// PosterOptions configure a Poster.
type PosterOptions struct {
	Project
	Branch    string // that the commits are on
	Target    string // the page that it leads to, "" for none
	TokenFile string // read again for each attempt
	// StateFile remembers what was posted, so that it is not posted again after a restart.
	StateFile string

	// Verdict is what is to be said, false while there is nothing.
	Verdict func() (Verdict, bool)
	// Leading reports whether this process acts; another one posts nothing.
	Leading func() bool
	// Transport is what requests go by. It is asked for each attempt, so that a CA file
	// may change.
	Transport func() (*http.Transport, error)

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

// Poster posts what became of the newest commit, once for each change. It looks at the
// newest verdict and queues none: what it missed is not worth saying any more, but that a
// commit whose status is pending was overtaken.
type Poster struct {
	opts  PosterOptions
	posts *prometheus.CounterVec

	posted    Verdict         // the last that the forge took of a newest commit
	overtaken []string        // commits whose status is pending at the forge, and which are the newest no more
	failures  int             // in a row
	token     model.Sensitive // of the last attempt
	notBefore time.Time
	warned    time.Time
	warning   outcome
	waiting   atomic.Int64           // since when a verdict waits to be posted, in Unix nanoseconds; 0 = none does
	trouble   atomic.Pointer[string] // why it cannot be posted; nil = it can
}

// NewPoster returns a Poster, which posts nothing before Run.
func NewPoster(opts PosterOptions) *Poster {
	p := &Poster{opts: opts, posts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_commit_status_posts_total", Help: "Attempts to post a commit status to the forge, by result.",
	}, []string{"result"})}
	for _, o := range allOutcomes {
		p.posts.WithLabelValues(string(o))
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(p.posts, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ingot_commit_status_unposted_seconds", Help: "For how long a commit status has waited to be posted; 0 when none does.",
		}, p.unposted))
	}
	return p
}

func (p *Poster) unposted() float64 {
	since := p.waiting.Load()
	if since == 0 {
		return 0
	}
	return p.opts.Clock().Sub(time.Unix(0, since)).Seconds()
}

// Failing returns since when a status waits to be posted, and why it cannot be; zero and "" while
// it can.
func (p *Poster) Failing() (since time.Time, why string) {
	at, text := p.waiting.Load(), p.trouble.Load()
	if at == 0 || text == nil {
		return time.Time{}, ""
	}
	return time.Unix(0, at).UTC(), *text
}

// Run posts until ctx ends. It returns nil then.
func (p *Poster) Run(ctx context.Context) error {
	p.remember()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.step(ctx)
		}
	}
}

// next is what is to be posted, by the newest verdict: that, if it is another than the last, and
// once it is final the end of a commit that was overtaken while it was pending.
func (p *Poster) next(newest Verdict) (Verdict, bool) {
	if newest != p.posted {
		return newest, true
	}
	if newest.State == Pending || len(p.overtaken) == 0 {
		return Verdict{}, false
	}
	return Verdict{Commit: p.overtaken[0], State: newest.State, Description: "superseded by " + newest.Commit[:min(12, len(newest.Commit))]}, true
}

// took notes that the forge shows what is said of the newest commit.
func (p *Poster) took(newest Verdict) {
	if p.posted.State == Pending {
		p.overtaken = append(p.overtaken, p.posted.Commit)
	}
	p.posted = newest
	p.ended(newest.Commit)
	p.overtaken = p.overtaken[max(0, len(p.overtaken)-maxOvertaken):]
}

// ended notes that nothing is to be said of a commit as of an overtaken one.
func (p *Poster) ended(commit string) {
	p.overtaken = slices.DeleteFunc(p.overtaken, func(c string) bool { return c == commit })
}

// step posts what is to be posted next, if the forge may be asked.
func (p *Poster) step(ctx context.Context) {
	v, ok := p.opts.Verdict()
	if !ok || !p.opts.Leading() {
		return
	}
	newest := v
	if v, ok = p.next(newest); !ok {
		p.waiting.Store(0)
		return
	}
	now := p.opts.Clock()
	p.waiting.CompareAndSwap(0, now.UnixNano())
	token, err := readToken(p.opts.TokenFile)
	if now.Before(p.notBefore) && (token == p.token || p.warning == outcomeThrottled) {
		return
	}
	p.token = token
	if err == nil {
		err = p.post(ctx, v, token)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err == nil && v == newest:
		p.took(v)
	case err == nil:
		p.ended(v.Commit)
	case v != newest && p.givesUp(err):
		p.ended(v.Commit)
		p.save()
		return
	}
	p.note(v, err, now)
}

// givesUp reports whether a forge that is asked again says the same of an overtaken commit,
// which may be gone with a rewritten history.
func (p *Poster) givesUp(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.outcome != outcomeRefused && r.outcome != outcomeNotFound {
		return false
	}
	p.posts.WithLabelValues(string(r.outcome)).Inc()
	return true
}

func (p *Poster) note(v Verdict, err error, now time.Time) {
	if err == nil {
		p.posts.WithLabelValues(string(outcomePosted)).Inc()
		p.opts.Log.Info("commit status posted", "commit", v.Commit, "state", string(v.State), "description", v.Description)
		p.failures, p.notBefore, p.warning = 0, time.Time{}, ""
		p.waiting.Store(0)
		p.trouble.Store(nil)
		p.save()
		return
	}
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = &refusal{outcome: outcomeUnavailable, text: err.Error()}
	}
	p.failures++
	p.trouble.Store(new(err.Error()))
	p.posts.WithLabelValues(string(r.outcome)).Inc()
	wait := r.wait(p.failures)
	p.notBefore = now.Add(wait)
	if r.outcome == p.warning && now.Sub(p.warned) < warnEvery {
		return
	}
	p.warned, p.warning = now, r.outcome
	p.opts.Log.Warn("commit status cannot be posted", "provider", p.opts.Provider, "commit", v.Commit, "again", wait, "err", err)
}

func (p *Poster) post(ctx context.Context, v Verdict, token model.Sensitive) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	address, content, err := p.opts.request(status{v, p.opts.Target, p.opts.Branch})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(content))
	if err != nil {
		return errors.New("the address of the forge's API cannot be read; look at git.commitStatus.url")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "ingot")
	providers[p.opts.Provider].header(req.Header, token.Reveal())
	transport, err := p.opts.Transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	// The token is for this address alone: a redirect is not followed.
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the forge cannot be reached: %w", cause(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		text = nil // the code says enough
	}
	// whatever is shown of an answer, a token that it repeats is not
	if r := refusalOf(p.opts.Provider, res, strings.ReplaceAll(string(text), token.Reveal(), "…"), p.opts.Clock()); r != nil {
		return r
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

func readToken(file string) (model.Sensitive, error) {
	content, err := readSmall(file)
	token := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		return model.Sensitive{}, fmt.Errorf("read git.commitStatus.tokenFile: %w", err)
	case token == "":
		return model.Sensitive{}, errors.New("git.commitStatus.tokenFile is empty")
	case token != printable(token) || strings.ContainsAny(token, " \t\n"):
		return model.Sensitive{}, errors.New("git.commitStatus.tokenFile holds more than a token: it is to be one line without blanks")
	}
	return model.NewSensitive(token), nil
}

// memory is what is kept over a restart.
type memory struct {
	To        string   `json:"to"` // where it was posted
	Posted    Verdict  `json:"posted"`
	Overtaken []string `json:"overtaken,omitempty"`
}

// to is where statuses go, as text: another place was told nothing yet.
func (p *Poster) to() string {
	return strings.Join([]string{p.opts.Provider, p.opts.API, p.opts.Name}, " ")
}

// remember reads what was posted before a restart. Without it, or elsewhere, the newest is
// posted again, which the forge shows in place of the same.
func (p *Poster) remember() {
	content, err := readSmall(p.opts.StateFile)
	var m memory
	if err == nil && json.Unmarshal(content, &m) == nil && m.To == p.to() {
		p.posted = m.Posted
		p.overtaken = slices.DeleteFunc(m.Overtaken[:min(len(m.Overtaken), maxOvertaken)], func(c string) bool { return !isHex(c) })
	}
}

// save keeps what was posted. Failing to costs a request after the next restart.
func (p *Poster) save() {
	content, err := json.Marshal(memory{To: p.to(), Posted: p.posted, Overtaken: p.overtaken})
	if err == nil {
		err = smallfile.Replace(p.opts.StateFile, content)
	}
	if err != nil {
		p.opts.Log.Warn("what was posted to the forge is not saved across a restart", "err", err)
	}
}
