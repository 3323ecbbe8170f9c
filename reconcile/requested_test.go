package reconcile

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

// requested is a ServerBootConfiguration in Git.
func requested(name, image string) *model.ServerBootConfiguration {
	return &model.ServerBootConfiguration{
		Meta: model.Meta{Name: name, Namespace: "ops"},
		Spec: model.ServerBootConfigurationSpec{ServerRef: model.LocalRef{Name: "bmc00-system-0"}, Image: image},
	}
}

const burnInBoot = model.ClaimName("ServerBootConfiguration ops/burn-in")

// TestAServerBootConfigurationIsBootedOnce has a server that no claim has boot what a person
// wrote for it: once, whatever its power does after that, and after it its disks are wiped.
func TestAServerBootConfigurationIsBootedOnce(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(requested("burn-in", "burn:1")) })
		w.expect(5*time.Minute, 0, "Reserved On "+string(burnInBoot))
		path := "serverbootconfigurations/ops/burn-in.yaml"
		if st := w.shown(path).Status; st.State != "Ready" || st.Image == nil || st.Image.Ref != "burn:1" {
			t.Errorf("the status branch shows %+v", st)
		}
		if server := w.document("servers/bmc00-system-0.yaml"); !strings.Contains(server, "bootConfigurationRef:\n    name: burn-in") ||
			strings.Contains(server, "serverClaimRef") {
			t.Errorf("its server is shown as\n%s", server)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOff }) // as what was booted had it
		w.expect(time.Hour, 0, "Reserved Off "+string(burnInBoot))

		w.commit(func(d *model.Desired) { d.Add(claim("web", on("bmc00-system-0"))) })
		w.expect(time.Hour, 0, "Reserved Off "+string(burnInBoot))
		if why := plantest.ClaimWhy(w.loop.Input(time.Now()), "default/web"); !strings.Contains(why.Message, "Reserved for "+string(burnInBoot)) {
			t.Errorf("the claim says %+v", why)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, burnInBoot) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		m := w.seen(0)
		var network []string
		for _, b := range m.boots {
			if strings.HasPrefix(b, "network") {
				network = append(network, strings.TrimPrefix(b, "network "))
			}
		}
		if got := strings.Join(network, " "); got != "registry/probe:1 burn:1 registry/probe:1 os:1" {
			t.Errorf("it booted %s: discovery, what was asked for, the wipe, the claim", got)
		}
	})
}

// TestWhatAClaimSaysComesBeforeAServerBootConfiguration: one that is in Git for a server of
// a claim waits, and says for what.
func TestWhatAClaimSaysComesBeforeAServerBootConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		commit func(d *model.Desired)
		gets   string // what has the server
		why    string // of the configuration, if that is not what has it
	}{
		"alone": {func(*model.Desired) {}, string(burnInBoot), ""},
		"a claim names its server": {
			func(d *model.Desired) { d.Add(claim("web", on("bmc00-system-0"))) },
			"default/web", "server bmc00-system-0 boots what ServerClaim default/web says",
		},
		"a claim that could have any": {
			func(d *model.Desired) { d.Add(claim("web")) }, "default/web", "server bmc00-system-0 is Reserved for default/web",
		},
		"a claim of its name": {
			func(d *model.Desired) {
				c := claim("burn-in", on("bmc00-system-0"))
				c.Namespace = "ops"
				d.Add(c)
			}, "ops/burn-in", "server bmc00-system-0 boots what ServerClaim ops/burn-in says",
		},
		"its server is tainted": {
			func(d *model.Desired) {
				s := fleettest.ServerFile(0)
				s.Spec.Taints = []model.Taint{{Key: "new"}}
				d.Add(s)
			}, string(burnInBoot), "",
		},
		"its server names another": {
			func(d *model.Desired) {
				s := fleettest.ServerFile(0)
				s.Spec.BootConfigurationRef = &model.ObjectRef{Namespace: "ops", Name: "other"}
				d.Add(s)
				d.Add(requested("other", "other:1"))
			},
			"ServerBootConfiguration ops/other", "Server bmc00-system-0 () names another in bootConfigurationRef: ops/other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) {
					d.Add(requested("burn-in", "burn:1"))
					c.commit(d)
				})
				w.expect(10*time.Minute, 0, "Reserved On "+c.gets)
				if why := plantest.ClaimWhy(w.loop.Input(time.Now()), burnInBoot); why.Message != c.why {
					t.Errorf("it says %q, and not %q", why.Message, c.why)
				}
			})
		})
	}
}

// TestAServerBootConfigurationOutlivesTheStore: what the status branch shows of it is read
// back, and its server keeps what it was booted with.
func TestAServerBootConfigurationOutlivesTheStore(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(requested("burn-in", "burn:1")) })
		w.expect(5*time.Minute, 0, "Reserved On "+string(burnInBoot))
		before := w.seen(0)
		w.loseStore(w.files())
		if w.Observed().Claims[burnInBoot] == nil {
			t.Errorf("its record was not read back: %v", w.Observed().Claims)
		}
		w.expect(time.Hour, 0, "Reserved On "+string(burnInBoot))
		if m := w.seen(0); len(m.boots) != len(before.boots) {
			t.Errorf("it booted %v", m.boots[len(before.boots):])
		}
	})
}
