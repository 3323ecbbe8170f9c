package bmc

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func TestATrialIsOneLogin(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		change func(*fake)
		want   []string
	}{
		"with a session": {change: func(*fake) {}, want: []string{"GET /redfish/v1/", login}},
		"with HTTP Basic": {
			change: func(f *fake) { f.basic = true; delete(f.resources["/redfish/v1/"], "Links") },
			want:   []string{"GET /redfish/v1/", poll},
		},
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
		must.Get(p.Power(context.Background(), s))(t)
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

// A person who has put an account in order has its credentials tried at once, on the BMC
// that is named and once: what it refuses again is left alone as before.
func TestARetryTriesRefusedCredentialsOnce(t *testing.T) {
	ctx := context.Background()
	f, other := newFake(t, plain), newFake(t, plain)
	f.password, other.password = "changed", "changed"
	p := newPool(t, Options{})
	here, there, third := f.target(), other.target(), other.target()
	there.Name, third.Name = "bmc-2", "bmc-3"
	discover := func(retry bool) error {
		here.Retry = retry
		_, err := p.Discover(ctx, here)
		return err
	}
	if err := discover(false); !errors.Is(err, ErrUnauthorized) {
		t.Fatalf("got %v, want ErrUnauthorized", err)
	}
	for range 2 {
		if err := discover(false); !errors.Is(err, ErrCircuitOpen) {
			t.Fatalf("the same again: got %v, want ErrCircuitOpen", err)
		}
		if err := discover(true); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("a retry: got %v, want ErrUnauthorized", err)
		}
	}
	if _, err := p.Discover(ctx, there); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("on a second BMC: got %v, want ErrUnauthorized", err)
	}
	if _, err := p.Discover(ctx, third); !errors.Is(err, ErrCircuitOpen) {
		t.Errorf("on a third: got %v, want ErrCircuitOpen", err)
	}
	f.change(func() { f.password = password })
	if err := discover(true); err != nil {
		t.Errorf("a retry with what is right: %v", err)
	}
}
