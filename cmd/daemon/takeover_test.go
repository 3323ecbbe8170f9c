package daemon

import (
	"testing"

	"ingot/cmd/daemon/holder"
	"ingot/gitsource"
	"ingot/model"
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
