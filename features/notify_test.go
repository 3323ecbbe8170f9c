package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
)

// hookSecret is part of the address of webhooks. It is looked for with the BMCs' password.
const hookSecret = "hook-" + bmcPassword

// The webhooks of scenarios, by their names.
const (
	onCall    = "on-call"
	otherHook = "other"
)

// hook is a webhook, which notes what it takes.
type hook struct {
	server  *httptest.Server
	release chan struct{} // closed at the end, for what it does not answer
	refuses atomic.Bool
	asked   atomic.Int64

	mu    sync.Mutex // guards what is below
	taken []event
}

// event is what is read of a CloudEvent.
type event struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Data        struct {
		Notices []struct{ Object, Name string } `json:"notices"`
	} `json:"data"`
}

// defineNotify defines the steps of those who are told what needs somebody.
func defineNotify(sc *godog.ScenarioContext) {
	const news = `(\w+) of (server|claim) "([^"]*)"`
	for expression, do := range map[string]any{
		`^a webhook for those on call$`:                                            hookOnCall,
		`^a webhook that (has trouble of its own|never answers)$`:                  hookThatFails,
		`^the webhook takes (nothing for now|notices again)$`:                      hookTakes,
		`^those on call are told of ` + news + `$`:                                 toldOf,
		`^those on call are told of the end of ` + news + `$`:                      toldOfEnd,
		`^those on call were told of ` + news + ` once$`:                           toldOnce,
		`^Ingot has noted that they were told of (\w+)$`:                           toldIsNoted,
		`^the other webhook was asked, and the metrics count it as (unavailable)$`: otherHookAsked,
		`^no webhook's secret is in the log$`:                                      hookSecretUnseen,
	} {
		sc.Step(expression, do)
	}
}

// addHook makes a webhook.
func (w *site) addHook(name string, answer func(*hook, http.ResponseWriter)) error {
	h := &hook{release: make(chan struct{})}
	h.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		var e event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || e.SpecVersion != "1.0" || e.ID == "" || e.Source == "" {
			http.Error(rw, "this is no CloudEvent", http.StatusBadRequest)
			return
		}
		if answer != nil {
			answer(h, rw)
			return
		}
		if h.refuses.Load() {
			http.Error(rw, "not now, and not at "+r.URL.Path, http.StatusInternalServerError)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.taken = append(h.taken, e)
	}))
	if w.hooks == nil {
		w.hooks = make(map[string]*hook)
	}
	w.hooks[name] = h
	w.clients = append(w.clients, func() { close(h.release); h.server.Close() })
	return os.WriteFile(w.hookFile(name), []byte(h.server.URL+"/"+hookSecret+"\n"), 0o600)
}

func (w *site) hookFile(name string) string { return filepath.Join(w.dir, "hook-"+name) }

// notifySettings name the webhooks in the configuration.
func (w *site) notifySettings() string {
	var all []string
	for _, name := range sortedKeys(w.hooks) {
		all = append(all, fmt.Sprintf("{name: %s, urlFile: %q, resolved: true}", name, w.hookFile(name)))
	}
	return fmt.Sprintf("notify: {title: fleet, webhooks: [%s]}\n", strings.Join(all, ", "))
}

func hookOnCall(ctx context.Context) error { return siteOf(ctx).addHook(onCall, nil) }

func hookThatFails(ctx context.Context, how string) error {
	return siteOf(ctx).addHook(otherHook, func(h *hook, w http.ResponseWriter) {
		if how == "never answers" {
			<-h.release
			return
		}
		http.Error(w, "down for repair, says "+hookSecret, http.StatusInternalServerError)
	})
}

func hookTakes(ctx context.Context, what string) error {
	siteOf(ctx).hooks[onCall].refuses.Store(what == "nothing for now")
	return nil
}

// told counts how often the webhook was told of something.
func (h *hook) told(kind, object, name string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.taken {
		for _, of := range e.Data.Notices {
			if e.Type == "ingot."+kind && of.Object == object && of.Name == name {
				n++
			}
		}
	}
	return n
}

// noticed is an object as notices name it.
func (w *site) noticed(object, name string) string {
	if object == "claim" {
		return "default/" + name
	}
	return w.called(name)
}

func toldOf(ctx context.Context, kind, object, name string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		if h := w.hooks[onCall]; h.told(kind, object, w.noticed(object, name)) == 0 {
			h.mu.Lock()
			defer h.mu.Unlock()
			return fmt.Errorf("they were told of %+v", h.taken)
		}
		return nil
	})
}

func toldOfEnd(ctx context.Context, kind, object, name string) error {
	return toldOf(ctx, kind+".ended", object, name)
}

func toldOnce(ctx context.Context, kind, object, name string) error {
	w := siteOf(ctx)
	if n := w.hooks[onCall].told(kind, object, w.noticed(object, name)); n != 1 {
		return fmt.Errorf("they were told %d times", n)
	}
	return nil
}

// toldIsNoted waits until Ingot has noted what those on call were told: killed before that, it tells
// them again, with the same id.
func toldIsNoted(ctx context.Context, kind string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		noted, err := os.ReadFile(filepath.Join(w.stateDir(), "notify", onCall+".json"))
		if err != nil {
			return err
		}
		h := w.hooks[onCall]
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, e := range h.taken {
			if e.Type == "ingot."+kind && !strings.Contains(string(noted), e.ID) {
				return fmt.Errorf("they were told of %+v, and noted is %s", e, noted)
			}
		}
		return nil
	})
}

func otherHookAsked(ctx context.Context, outcome string) error {
	w := siteOf(ctx)
	if err := w.metricIsSet(ctx, "ingot_notify_total", fmt.Sprintf("outcome=%q,target=%q", outcome, otherHook)); err != nil {
		return err
	}
	if w.hooks[otherHook].asked.Load() == 0 {
		return errors.New("it was not asked")
	}
	return nil
}

func hookSecretUnseen(ctx context.Context) error {
	if strings.Contains(siteOf(ctx).log.text(), hookSecret) {
		return errors.New("it is")
	}
	return nil
}
