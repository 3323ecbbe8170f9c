package bmc

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATrialIsOneLogin(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		change func(*fake)
		want   []string
	}{
		"with a session":  {func(*fake) {}, []string{"GET /redfish/v1/", login}},
		"with HTTP Basic": {func(f *fake) { f.basic = true; delete(f.resources["/redfish/v1/"], "Links") }, []string{"GET /redfish/v1/", poll}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.password = "changed"
			tc.change(f)
			p := newPool(t, Options{})
			s := f.system1()
			s.BMC.Trial, s.BMC.Default = true, true
			if _, err := p.Power(ctx, s); !errors.Is(err, ErrUnauthorized) {
				t.Fatalf("got %v, want ErrUnauthorized", err)
			}
			if diff := cmp.Diff(tc.want, f.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if _, err := p.Power(ctx, s); !errors.Is(err, ErrCircuitOpen) {
				t.Errorf("the same again: got %v, want ErrCircuitOpen", err)
			}
		})
	}
}

func TestATrialThatSucceedsIsTheSameSessionAfterwards(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{})
	s := f.system1()
	s.BMC.Default = true
	for _, trial := range []bool{true, false} {
		s.BMC.Trial = trial
		if _, err := p.Power(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"GET /redfish/v1/", login, poll, poll}, f.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestADefaultPasswordIsRefusedByOneBMCForItselfAlone(t *testing.T) {
	ctx := context.Background()
	f, other := newFake(t, plain), newFake(t, plain)
	f.password = "changed"
	p := newPool(t, Options{})
	first, second := f.system1(), other.system1()
	first.BMC.Default, second.BMC.Default = true, true
	second.BMC.Name = "bmc-2"
	if _, err := p.Power(ctx, first); !errors.Is(err, ErrUnauthorized) {
		t.Fatalf("got %v, want ErrUnauthorized", err)
	}
	if _, err := p.Power(ctx, second); err != nil {
		t.Errorf("another BMC with the same default: %v", err)
	}
	named := f.system1()
	named.BMC.Name = "bmc-3"
	if _, err := p.Power(ctx, named); !errors.Is(err, ErrUnauthorized) {
		t.Fatalf("a BMCSecret with the same password: got %v, want ErrUnauthorized", err)
	}
	if _, err := p.Power(ctx, named); !errors.Is(err, ErrCircuitOpen) {
		t.Errorf("the BMCSecret again: got %v, want ErrCircuitOpen", err)
	}
}
