package daemon

import (
	"testing"

	"ingot/cmd/daemon/holder"
	"ingot/gitsource"
	"ingot/model"
	"ingot/registry"
)

// An Ingot that is killed after its first push, and before it noted that, had the store all the
// same: the next one need not ask whether it lives, in a container or on another machine.
func TestWhoWasKilledBeforeItNotedItsFirstPushIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	start := func() *daemon {
		o := loopbackOptions()
		o.State.Dir, o.Git.URL = dir, t.TempDir()
		d, err := assemble(t.Context(), o, Environment{})
		if err != nil {
			t.Fatal(err)
		}
		d.holder.Machine, d.holder.Boot, d.holder.Namespace = "", "", "" // as in a container
		return d
	}
	first := start()
	noted := model.Published{Commit: "c", Fence: first.registry.Fence(), Holder: first.holder}
	if err := first.registry.SavePublished(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	first.close()
	killed := start()
	if err := killed.merge(t.Context(), gitsource.Snapshot{}); err != nil {
		t.Fatal(err)
	}
	killed.close()
	again := start()
	if err := again.merge(t.Context(), gitsource.Snapshot{Holder: killed.holder}); err != nil {
		t.Fatal(err)
	}
	again.close() // before its first push
	d := start()
	defer d.close()
	for name, tt := range map[string]struct {
		theirs model.Holder
		asked  bool
	}{
		"the last that noted its push": {theirs: first.holder},
		"the one after it":             {theirs: killed.holder},
		"the one after that":           {theirs: again.holder},
		"another":                      {theirs: model.Holder{ID: "another", Host: "h"}, asked: true},
	} {
		c := d.challenge(tt.theirs)
		if may, why := holder.MayLive(tt.theirs, c.Ours, c.Last); may != tt.asked {
			t.Errorf("%s: it may live: %t (%s)", name, may, why)
		}
	}
}

// The store may be an older copy, of which the status branch has the newer one: what is noted while
// that cannot be read must not make it seem the newer.
func TestWhatIsHealedBeforeTheStatusBranchIsReadDoesNotCountAsNewer(t *testing.T) {
	o := loopbackOptions()
	o.State.Dir, o.Git.URL = t.TempDir(), t.TempDir()
	d, err := assemble(t.Context(), o, Environment{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	stored := model.Version{Fence: 5, Seq: 90}
	rec := &model.ServerRecord{Version: stored, Name: "s1", State: model.StateReserved, Claim: "default/web"}
	older := model.Records{Servers: map[model.ServerName]*model.ServerRecord{rec.Name: rec}}
	if err := d.registry.Restore(t.Context(), older, model.Published{}); err != nil {
		t.Fatal(err)
	}
	note := func(name model.ServerName, failures int) model.Version {
		t.Helper()
		next := model.ServerRecord{Name: name}
		if was := d.registry.Observed().Servers[name]; was != nil {
			next = *was
		}
		next.Failures = failures
		if err := d.registry.Save(t.Context(), registry.Changes{Servers: []*model.ServerRecord{&next}}); err != nil {
			t.Fatal(err)
		}
		now := d.registry.Observed().Servers[name]
		if now.Failures != failures {
			t.Fatalf("it was not saved: %+v", now)
		}
		return now.Version
	}
	d.heal(t.Context(), "the status branch cannot be read")
	if v := note("s1", 1); v != stored {
		t.Errorf("a record that was noted in has version %s, want %s", v, stored)
	}
	if v := note("s2", 1); !v.IsZero() {
		t.Errorf("a record that was made has version %s, want none", v)
	}
	d.stopHealing()
	for _, name := range []model.ServerName{"s1", "s2"} {
		if v := note(name, 2); !v.After(stored) {
			t.Errorf("after the branch was read, %s has version %s", name, v)
		}
	}
}
