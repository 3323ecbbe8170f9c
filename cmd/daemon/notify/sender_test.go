package notify

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestAWebhookThatNeverAnswersHoldsUpNoOther(t *testing.T) {
	release := make(chan struct{})
	var reached, told atomic.Int64
	silent := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1); <-release })
	other := serve(t, func(http.ResponseWriter, *http.Request) { told.Add(1) })
	defer close(release)
	s := New(Options{
		Webhooks: []Webhook{{Name: "silent", URL: silent.URL}, {Name: "other", URL: other.URL}}, Dir: t.TempDir(),
		Report: func() *model.Report { return inError(time.Now()) }, Leading: func() bool { return true }, Fence: func() uint64 { return 7 },
		Log: slog.New(slog.DiscardHandler), Clock: time.Now, Fast: true,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for told.Load() == 0 || reached.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// inError is a report of a server that is in Error.
func inError(since time.Time) *model.Report {
	d := &report.Document{Metadata: report.Metadata{Name: "s1"}, Status: report.ServerStatus{}}
	d.Record = &model.ServerRecord{State: model.StateError, Reason: "BootFailed", Since: since}
	return &model.Report{Documents: map[string]*model.Document{"servers/s1.yaml": {Object: d}}}
}

func TestWhatStandsIsLookedAtAsLongAsThisOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		leads.Store(true)
		s := New(Options{
			Report: func() *model.Report { return inError(time.Now()) }, Leading: leads.Load, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Run(ctx) }()
		time.Sleep(3 * time.Second)
		if got := s.standing.Load(); got == nil || len(*got) != 1 {
			t.Errorf("got %v", got)
		}
		leads.Store(false)
		time.Sleep(3 * time.Second)
		if got := s.standing.Load(); got != nil {
			t.Errorf("got %v of one that does not lead", *got)
		}
		cancel()
		synctest.Wait()
	})
}
