package features

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/model"
	"ingot/reconcile/report"
)

// happened is what the bookkeeper calls an event of the rack; ok is false for what is
// none of its business.
func happened(e sim.RackEvent) (_ ledger.Event, ok bool) {
	h := ledger.Event{At: e.At, Machine: e.Server.UUID(), ByHand: e.Cause == sim.CauseButton}
	switch {
	case e.Kind == sim.EventInstalled && e.Cause == sim.CauseTest:
		h.Kind = ledger.Found
	case e.Kind == sim.EventInstalled, e.Kind == sim.EventWritten:
		h.Kind = ledger.Install
	case e.Kind == sim.EventPowerOn && e.Cause != sim.CauseTest:
		h.Kind = ledger.PowerOn
	case e.Kind == sim.EventPowerOff && e.Cause == sim.CauseLoss:
		h.Kind = ledger.PowerLost
	case e.Kind == sim.EventPowerOff:
		h.Kind = ledger.PowerOff
	case e.Kind == sim.EventRestart:
		h.Kind = ledger.Restart
	case e.Kind == sim.EventFetched && e.Stage == model.StageKernel:
		h.Kind = ledger.NetBoot
	case e.Kind == sim.EventFetched && e.Stage == model.StageIgnition:
		h.Kind = ledger.Ignition // whoever's it is
	case e.Kind == sim.EventDiskBoot:
		h.Kind = ledger.DiskBoot
	case e.Kind == sim.EventWiped:
		h.Kind, h.Left = ledger.Wipe, e.Left
	}
	return h, h.Kind != ""
}

func (w *site) happenings() []ledger.Event {
	var events []ledger.Event
	if w.rack == nil {
		return nil
	}
	claims := make(map[string]model.ClaimName) // by the SHA-256 of their Ignition
	for _, e := range w.boot.exchanges(func(e exchange) bool { return e.claim != "" }) {
		claims[e.sum] = e.claim
		events = append(events, ledger.Event{At: e.at, Machine: e.uuid, Kind: ledger.Ignition, Claim: e.claim})
	}
	events = append(events, w.given...)
	given := make(map[string]model.ClaimName) // whose Ignition the probe was given that writes disks
	for _, e := range w.rack.Events() {
		h, ok := happened(e)
		if !ok {
			continue
		}
		if h.Kind == ledger.Found {
			h.Claim = w.taken[e.Server.UUID()]
		}
		if h.Kind == ledger.Install || h.Kind == ledger.Ignition {
			h.Claim = claims[cmp.Or(e.IgnitionSHA256, strings.TrimPrefix(e.Digest, "sha256:"))]
		}
		switch {
		case h.Kind == ledger.Ignition:
			given[h.Machine] = h.Claim
		case e.Kind == sim.EventWritten:
			h.Claim = given[h.Machine]
		}
		events = append(events, h)
	}
	return events
}

func (w *site) books() (*ledger.Book, error) {
	pushes, err := ledger.Pushes(w.repo.Dir)
	if err != nil {
		return nil, err
	}
	revisions, err := w.commits.Revisions(pushes, w.followed)
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

func (w *site) audit() error {
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

func (w *site) auditAtRest() error {
	return rig.Within(patience, func() error {
		book, err := w.books()
		if err != nil {
			return err
		}
		shown, err := w.claimsShown()
		if err != nil {
			return err
		}
		for claim := range w.claims {
			if s := shown[claimName(claim)]; w.protected.Load() { // it cannot say why
				s.Waits = cmp.Or(s.Waits, "protected")
				shown[claimName(claim)] = s
			}
		}
		return violations(book.AtRest(shown, time.Now()))
	})
}

func (w *site) claimsShown() (map[model.ClaimName]ledger.Shown, error) {
	files, err := w.statusBranch()
	if err != nil {
		return nil, err
	}
	all := make(map[model.ClaimName]ledger.Shown)
	for path, text := range files {
		if name, is := report.ClaimAt(path); is {
			all[name] = shownBy(text)
		}
	}
	return all, nil
}

var (
	bootedCondition = regexp.MustCompile(`(?s)reason: Booted\b`)
	otherReason     = regexp.MustCompile(`reason: (AbsentWithoutCommit|InstallUnknown)`)
)

func shownBy(text string) ledger.Shown {
	shown := ledger.Shown{Booted: bootedCondition.MatchString(text), Reason: otherReason.FindString(text)}
	var document struct {
		Status struct {
			Conditions []struct{ Status, Reason string } `json:"conditions"`
		} `json:"status"`
	}
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return shown // then it says nothing
	}
	for _, c := range document.Status.Conditions {
		if c.Status != "True" {
			shown.Waits = cmp.Or(shown.Waits, c.Reason)
		}
	}
	return shown
}

var markerOf = regexp.MustCompile(`((?:[a-z0-9-]+/)?[a-z0-9-]+)-` + regexp.QuoteMeta(claimSecret))

const bootConfigurationMark = "boot-configuration/"

// ignitionOwner is the claim whose Ignition a document is, or draws in; "" if it is none's.
func ignitionOwner(document []byte) model.ClaimName {
	if m := markerOf.FindSubmatch(document); m != nil {
		if name, is := strings.CutPrefix(string(m[1]), bootConfigurationMark); is {
			return model.BootConfigurationName("", name)
		}
		return claimName(string(m[1]))
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
