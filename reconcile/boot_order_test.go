package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
)

func booting(device string, more ...func(*model.Server)) func(*model.Desired) {
	return func(d *model.Desired) {
		d.Add(serverFile(0, append(more, func(s *model.Server) {
			s.Spec.BootOrder = []model.BootOrder{{Name: "first", Device: device}}
		})...))
	}
}

func TestABootOrderIsSetOfServersThatNobodyHas(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.change(0, func(m *machine) { m.order = []string{"Boot0001", "Boot0002"} })
		w.serve("web")
		expect := func(first string, asks int) {
			t.Helper()
			pass(10 * time.Minute)
			if m := w.seen(0); m.order[0] != first || m.orderAsks != asks {
				t.Errorf("the order is %q, asked for %d times; want %q and %d", m.order, m.orderAsks, first, asks)
			}
		}
		w.commit(booting("Boot0002"))
		expect("Boot0001", 0) // it runs a claim
		before := w.seen(0)
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(20 * time.Minute)
		w.expect(time.Hour, 0, "Available Off")
		expect("Boot0002", 1)
		saves := w.seen(0)
		w.commit(booting("Boot0002", operation1("retry#1")))
		expect("Boot0002", 1)
		w.commit(booting("Boot0001"))
		expect("Boot0001", 2)
		if m := w.seen(0); m.ons != saves.ons || m.ons != before.ons+1 { // the wipe
			t.Errorf("%d power-ons, before %d", m.ons, before.ons)
		}
	})
}

func TestABootOrderThatCannotBeSetIsToldOf(t *testing.T) {
	published(t, 1, func(w *loopWorld, _ *branch) {
		w.change(0, func(m *machine) {
			m.order, m.noOrder = []string{"Boot0001", "Boot0002"}, &resetError{model.ReasonSettingNotKept, "asked, refused"}
		})
		w.expect(10*time.Minute, 0, "Available Off")
		w.commit(booting("Boot0002"))
		pass(2 * time.Hour)
		shown := func() string {
			return conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "BootOrder")
		}
		if m := w.seen(0); m.orderAsks != 3 || !strings.HasPrefix(shown(), "False SettingNotKept: its boot order is not as its manifest says: asked, refused; ") {
			w.t.Errorf("it was asked %d times, shown is %q", m.orderAsks, shown())
		}
		if why := w.why(0); why != "" {
			w.t.Errorf("it is not Ready: %s", why)
		}
		w.change(0, func(m *machine) { m.noOrder = nil })
		w.commit(booting("Boot0002", operation1("retry#1")))
		pass(time.Minute)
		if m := w.seen(0); !slices.Equal(m.order, []string{"Boot0002", "Boot0001"}) || shown() != "" {
			w.t.Errorf("after a retry it is %q, and shown is %q", m.order, shown())
		}
	})
}

// What a BMC takes for the next start only is shown as that, and not asked for again before.
func TestABootOrderThatIsPendingIsToldOf(t *testing.T) {
	tests := map[string]struct {
		forgetful bool // the firmware does not take it over
		asks      int  // once the machine has started
		shown     string
	}{
		"until the machine starts": {asks: 2},
		"and that it is not kept by firmware that does not take it over": {
			forgetful: true, asks: 2,
			shown: "False SettingNotKept: its boot order is not as its manifest says: Boot0002, Boot0001 has been pending since 2000-01-01T00:10:00Z, " +
				"and the machine has started since with Boot0001, Boot0002; it is asked for again once ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.change(0, func(m *machine) {
					m.order, m.ordersLater, m.forgetful = []string{"Boot0001", "Boot0002"}, true, tt.forgetful
				})
				w.expect(10*time.Minute, 0, "Available Off")
				w.commit(booting("Boot0002"))
				expect := func(asks int, want string) {
					t.Helper()
					pass(10 * time.Hour)
					shown := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "BootOrder")
					if n := w.seen(0).orderAsks; n != asks || want == "" && shown != "" || !strings.HasPrefix(shown, want) {
						t.Errorf("it was asked %d times, shown is %q; want %d and %q", n, shown, asks, want)
					}
				}
				expect(1, "False SettingPending: its BMC has taken the boot order, which counts from its next start on: Boot0002, Boot0001")
				w.serve("web")
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				pass(20 * time.Minute)
				w.expect(time.Hour, 0, "Available Off")
				expect(tt.asks, tt.shown)
			})
		})
	}
}
