package features

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/model"
)

// truth is what really happened to the machines of a rack. It implements slog.Handler:
// the rack says there what happens to its machines, each thing once and in order,
// whereas a machine itself remembers the newest only.
type truth struct {
	mu     sync.Mutex
	events []happened
}

// happened is one thing that happened to a machine.
type happened struct {
	at      time.Time
	machine string // the rack's name for it
	what    string
}

// Enabled implements slog.Handler.
func (*truth) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs and WithGroup implement slog.Handler; the rack uses neither.
func (t *truth) WithAttrs([]slog.Attr) slog.Handler { return t }

func (t *truth) WithGroup(string) slog.Handler { return t }

// Handle implements slog.Handler.
func (t *truth) Handle(_ context.Context, r slog.Record) error {
	e := happened{at: r.Time}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "server":
			e.machine = a.Value.String()
		case "event":
			e.what = a.Value.String()
		}
		return true
	})
	if e.what == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	return nil
}

func (t *truth) all() []happened {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]happened(nil), t.events...)
}

// kindOf is what the bookkeeper calls what the rack says of a machine.
func kindOf(what string) ledger.Kind {
	switch {
	case what == "power PoweringOn":
		return ledger.PowerOn
	case what == "forced off", what == "power cycled", what == "shut down":
		return ledger.PowerOff
	case what == "power failed":
		return ledger.PowerLost
	case strings.HasPrefix(what, "restarted by "):
		return ledger.Restart
	case strings.HasPrefix(what, "runs from disk "):
		return ledger.DiskBoot
	case strings.HasPrefix(what, "runs "):
		return ledger.Found
	case what == "fetched kernel":
		return ledger.NetBoot
	case what == "boot: installed":
		return ledger.Install
	case what == "disk erased":
		return ledger.Wipe
	}
	return ""
}

// happenings is the rack's truth as the bookkeeper takes it.
func (w *world) happenings() (events []ledger.Event) {
	if w.rack == nil {
		return nil
	}
	uuids := make(map[string]string)
	installs := make(map[string][]sim.Install)
	for _, s := range w.rack.Servers() {
		uuids[string(s.Name())], installs[s.UUID()] = s.UUID(), s.Installs()
	}
	claims := make(map[string]model.ClaimName) // by the SHA-256 of their Ignition
	for _, e := range w.boot.exchanges(func(e exchange) bool { return e.claim != "" }) {
		claims[e.sum] = e.claim
		events = append(events, ledger.Event{At: e.at, Machine: e.uuid, Kind: ledger.Ignition, Claim: e.claim})
	}
	for _, h := range w.truth.all() {
		e := ledger.Event{At: h.at, Machine: uuids[h.machine], Kind: kindOf(h.what)}
		if e.Kind == "" {
			continue
		}
		if left := installs[e.Machine]; e.Kind == ledger.Install && len(left) > 0 {
			e.Claim, installs[e.Machine] = claims[left[0].IgnitionSHA256], left[1:]
		}
		e.ByHand = w.byHand(e)
		events = append(events, e)
	}
	return events
}

// byHand reports whether a person pressed the button when an event took place.
func (w *world) byHand(e ledger.Event) bool {
	for _, p := range w.pressed {
		if since := e.At.Sub(p.At); p.Machine == e.Machine && since >= 0 && since < 200*time.Millisecond {
			return true
		}
	}
	return false
}

// books has the bookkeeper read all that happened until now.
func (w *world) books() (*ledger.Book, error) {
	pushes, err := ledger.Pushes(w.repo.Dir)
	if err != nil {
		return nil, err
	}
	revisions, err := ledger.Revisions(w.repo.Dir, pushes, w.followed)
	if err != nil {
		return nil, err
	}
	h := ledger.History{Revisions: revisions, Events: w.happenings(), Names: make(map[model.ServerName]string)}
	if w.rack != nil {
		for _, s := range w.rack.Servers() {
			h.Names[s.Name()] = s.UUID()
		}
	}
	return ledger.Replay(h), nil
}

// audit reports what was done to machines that no commit named.
func (w *world) audit() error {
	book, err := w.books()
	if err != nil {
		return fmt.Errorf("keep the books: %w", err)
	}
	return violations(book.Violations)
}

func violations(found []ledger.Violation) error {
	var errs []error
	for _, v := range found {
		errs = append(errs, errors.New(v.String()))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("no commit named this:\n%w", errors.Join(errs...))
}

// auditAtRest compares disks with what the status branch says of claims.
func (w *world) auditAtRest() error {
	return rig.Within(patience, func() error {
		book, err := w.books()
		if err != nil {
			return err
		}
		shown, err := w.claimsShown()
		if err != nil {
			return err
		}
		return violations(book.AtRest(shown, time.Now()))
	})
}

// claimsShown is what the status branch says of claims.
func (w *world) claimsShown() (map[model.ClaimName]ledger.Shown, error) {
	files, err := w.statusBranch()
	if err != nil {
		return nil, err
	}
	all := make(map[model.ClaimName]ledger.Shown)
	for path, text := range files {
		name, is := strings.CutPrefix(strings.TrimSuffix(path, ".yaml"), "serverclaims/")
		if !is {
			continue
		}
		all[model.ClaimName(name)] = shownBy(text)
	}
	return all, nil
}

var (
	bootedCondition = regexp.MustCompile(`(?s)reason: Booted\b`)
	otherReason     = regexp.MustCompile(`reason: (Disputed|AbsentWithoutCommit|InstallUnknown|ClaimDisputed)`)
)

// shownBy reads the document of a claim.
func shownBy(text string) ledger.Shown {
	return ledger.Shown{Booted: bootedCondition.MatchString(text), Reason: otherReason.FindString(text)}
}

// markerOf is the name of the claim in whose Ignition a text is.
var markerOf = regexp.MustCompile(`([a-z0-9-]+)-` + regexp.QuoteMeta(claimSecret))

// ignitionOwner is the claim whose Ignition a document is, or draws in; "" if it is none's.
func ignitionOwner(document []byte) model.ClaimName {
	if m := markerOf.FindSubmatch(document); m != nil {
		return model.ClaimName("default/" + string(m[1]))
	}
	var v any
	if json.Unmarshal(document, &v) != nil {
		return ""
	}
	return ownerInValue(v)
}

func ownerInValue(v any) model.ClaimName {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if c := ownerInValue(x); c != "" {
				return c
			}
		}
	case []any:
		for _, x := range v {
			if c := ownerInValue(x); c != "" {
				return c
			}
		}
	case string:
		if data := dataURL(v); data != nil {
			return ignitionOwner(data)
		}
	}
	return ""
}

// dataURL returns the data of a URL after RFC 2397, unpacked; nil if it is none.
func dataURL(s string) []byte {
	head, data, ok := strings.Cut(s, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return nil
	}
	text, err := url.PathUnescape(data)
	if err != nil {
		return nil
	}
	raw := []byte(text)
	if strings.HasSuffix(head, ";base64") {
		if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil
		}
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw
	}
	plain, err := io.ReadAll(io.LimitReader(z, 4<<20))
	if err != nil {
		return nil
	}
	return plain
}
