package registry

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

func TestSessionsAreKeptSealed(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r, ctx := lead(t, b.options), t.Context()
		token := model.NewSensitive("correct-horse")
		var want []Session
		for i := range maxSessions + 3 {
			uri := fmt.Sprintf("/redfish/v1/SessionService/Sessions/%d", i)
			must.Do(t, r.Secrets.SaveSession(ctx, "bmc-0", uri, token))
			if i >= 4 { // three are too many, and one is dropped
				want = append(want, Session{uri, token})
			}
		}
		must.Do(t, r.Secrets.SaveSession(ctx, "bmc-1", "/s/1", token))
		other := []Session{{"/s/1", token}}
		seals := testutil.ToFloat64(r.metrics.writes.WithLabelValues("session"))
		for range 2 {
			if err := errors.Join(
				r.Secrets.SaveSession(ctx, "bmc-1", "/s/1", token),
				r.Secrets.DropSession(ctx, "bmc-1", "/s/none"),
				r.Secrets.DropSession(ctx, "bmc-2", "/s/1"),
			); err != nil {
				t.Error(err)
			}
		}
		if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("session")); got != seals {
			t.Errorf("%v writes, then %v", seals, got)
		}
		must.Do(t, r.Secrets.DropSession(ctx, "bmc-0", "/redfish/v1/SessionService/Sessions/3"))
		if raw := r.memory.sealed(store.Key{Bucket: store.BucketSession, Name: "bmc-1"}); len(raw) == 0 || len(raw) > 200 {
			t.Errorf("sealed as %d bytes", len(raw))
		}
		_ = r.Close()
		again := lead(t, b.options)
		for bmc, want := range map[model.BMCName][]Session{"bmc-0": want, "bmc-1": other, "bmc-2": nil} {
			sameText := cmp.Comparer(func(a, b model.Sensitive) bool { return a.Reveal() == b.Reveal() })
			if diff := cmp.Diff(want, again.Secrets.Sessions(bmc), sameText); diff != "" {
				t.Errorf("sessions with %s (-want +got):\n%s", bmc, diff)
			}
		}
		remove(t, again, "bmc-0", store.BucketBMC, store.BucketBMCFacts, store.BucketSession)
		if left := again.Secrets.Sessions("bmc-0"); len(left) != 0 {
			t.Errorf("left of a BMC that was removed: %v", left)
		}
		if err := again.Secrets.DropSession(ctx, "bmc-1", "/s/1"); err != nil || len(again.Secrets.Sessions("bmc-1")) != 0 {
			t.Errorf("%v, left %v", err, again.Secrets.Sessions("bmc-1"))
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	for name, tc := range map[string]struct {
		bmc model.BMCName
		Session
	}{
		"no BMC":       {"", Session{"/s/1", model.NewSensitive("t")}},
		"no URI":       {"bmc-0", Session{"", model.NewSensitive("t")}},
		"a long URI":   {"bmc-0", Session{large, model.NewSensitive("t")}},
		"a long token": {"bmc-0", Session{"/s/1", model.NewSensitive(large)}},
	} {
		if err := r.Secrets.SaveSession(t.Context(), tc.bmc, tc.URI, tc.Token); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
}
