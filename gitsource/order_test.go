package gitsource

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"ingot/model/must"
)

// forceWatch is a log handler that looks, whenever a revision comes into force,
// at what a restart would begin with.
type forceWatch struct {
	slog.Handler
	stateFile string
	kept      []string
}

func (f *forceWatch) Enabled(context.Context, slog.Level) bool { return true }

func (f *forceWatch) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "revision in force" {
		return nil
	}
	st, err := readState(f.stateFile)
	f.kept = append(f.kept, st.head().Commit)
	return err
}

func TestARevisionIsWrittenDownBeforeAnybodyActsUponIt(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	opts := testOptions(t, repo.URL())
	watch := &forceWatch{Handler: slog.DiscardHandler, stateFile: filepath.Join(opts.Dir, "state.json")}
	opts.Log = slog.New(watch)
	s := newSource(t, opts)
	for i, files := range []map[string]string{{"a.yaml": claimYAML("a", "os:1")}, {"b.yaml": claimYAML("b", "os:1")}} {
		commit := must.Get(repo.Commit(files, "change"))(t)
		mustSync(t, s)
		if len(watch.kept) != i+1 || watch.kept[i] != commit {
			t.Errorf("when commit %d, %s, came into force a restart would have begun with %q", i, commit, watch.kept)
		}
	}
}
