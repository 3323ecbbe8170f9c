package daemon

import "testing"

func TestAnIngotThatNeverReadGitHasMetricsAndAStatus(t *testing.T) {
	o := loopbackOptions()
	o.State.Dir, o.Git.URL = t.TempDir(), t.TempDir()
	d, err := assemble(t.Context(), o, Environment{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if _, err := d.metrics.Gather(); err != nil {
		t.Error(err)
	}
	if s := newFleet(d).Summary(); s.Source == nil {
		t.Errorf("the status is %+v", s)
	}
}
