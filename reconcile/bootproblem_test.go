package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

func image(ref string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) { c.Spec.Image = ref }
}

// shown reads a document of the status branch back.
func (w *world) shown(path string) (d struct {
	Status struct {
		State       string             `json:"state"`
		ImageDigest string             `json:"imageDigest"`
		Image       *imageStatus       `json:"image"`
		Conditions  []metav1.Condition `json:"conditions"`
		Cleanup     *cleanupStatus     `json:"cleanup"`
	} `json:"status"`
}) {
	w.t.Helper()
	if err := yaml.Unmarshal([]byte(w.document(path)), &d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// conditionOf is a condition in a line, "" when it is not there.
func conditionOf(conds []metav1.Condition, kind string) string {
	for _, c := range conds {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// armed is how often a ticket was to be armed.
func (w *world) armed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arms
}

const webBoot = "serverbootconfigurations/default/web.yaml"

func TestPowerIsLeftAloneForAnImageThatCannotBeBooted(t *testing.T) {
	const server = "servers/bmc00-system-0.yaml"
	live(t, 1, func(t *testing.T, w *world) {
		w.expect(time.Minute, 0, "Available Off")
		ons := w.seen(0).ons
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("broken"))) })
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if m, tried := w.seen(0), w.armed(); m.ons != ons || tried < 5 || tried > 30 {
			t.Errorf("powered on %d times, and tried %d times in an hour; want never, and with ever longer pauses", m.ons-ons, tried)
		}
		const says = "image broken has no kernel layer; it is not powered on for that, and it is tried again (to act: tenant)"
		boot := w.shown(webBoot).Status
		if got := conditionOf(boot.Conditions, "ImageValidation"); got != "False ValidationFailed: "+says || boot.State != "Error" {
			t.Errorf("the boot configuration is %s with ImageValidation %s", boot.State, got)
		}
		for _, path := range []string{server, "serverclaims/default/web.yaml"} {
			if got := conditionOf(w.shown(path).Status.Conditions, "Ready"); got != "False ValidationFailed: "+says {
				t.Errorf("%s says %s", path, got)
			}
		}
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(20*time.Second, 0, "Reserved On default/web")
		boot = w.shown(webBoot).Status
		if got := conditionOf(boot.Conditions, "ImageValidation"); boot.State != "Ready" ||
			got != "True ValidationSucceeded: found kernel of 1.0 MiB, initramfs of 1.5 MiB for amd64 (assumed: neither its BMC nor DHCP nor a probe says what it is)" {
			t.Errorf("once mended the boot configuration is %s with ImageValidation %s", boot.State, got)
		}
	})
}

func TestAServerKeepsRunningWhileItsNewImageCannotBeBooted(t *testing.T) {
	live(t, 1, func(t *testing.T, w *world) {
		w.serve("web")
		boots, disk := len(w.seen(0).boots), w.seen(0).disk
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", image("broken"), annotated(model.AnnotationReprovision, "1")))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); len(m.boots) != boots || m.forced > 0 {
			t.Fatalf("it was forced off %d times and booted %v, for an image that cannot be booted", m.forced, m.boots[boots:])
		}
		const says = "False ValidationFailed: image broken has no kernel layer; it keeps running what it has, and it is tried again (to act: tenant)"
		if got := conditionOf(w.shown("serverclaims/default/web.yaml").Status.Conditions, "Ready"); got != says {
			t.Errorf("the claim says %s", got)
		}
		if got := conditionOf(w.shown(webBoot).Status.Conditions, "ImageValidation"); got != says {
			t.Errorf("the boot configuration says %s", got)
		}
		w.set(w.machine(0), model.PowerOff) // a power cut
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if last := w.seen(0).boots[len(w.seen(0).boots)-1]; last != "disk "+disk {
			t.Errorf("it was healed by a boot of %s, want its disk", last)
		}
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", image("os:2"), annotated(model.AnnotationReprovision, "1")))
		})
		w.expect(time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 2 || m.disk == disk {
			t.Errorf("installed %d times after the image was mended, want 2", m.installs)
		}
	})
}

func TestARunningServerIsNotDiscoveredWithAProbeThatCannotBeBooted(t *testing.T) {
	published(t, 1, func(w *world, b *branch) {
		w.expect(time.Minute, 0, "Initial On")
		w.commit(func(d *model.Desired) {
			d.Add(serverFile(0, func(s *model.Server) { s.Annotations[model.AnnotationDiscover] = "1" }))
		})
		w.expect(time.Hour, 0, "Initial On")
		if m := w.seen(0); m.forced > 0 || len(m.boots) > 0 {
			t.Errorf("it was touched: forced off %d times, boots %v", m.forced, m.boots)
		}
		boot := w.shown("serverbootconfigurations/ingot-system/bmc00-system-0.yaml").Status
		if got := conditionOf(boot.Conditions, "ImageValidation"); !strings.HasPrefix(got, "False ValidationFailed: image registry/probe:1 has no kernel layer") {
			t.Errorf("its boot configuration says %s", got)
		}
		if n := len(b.at); n > 6 {
			t.Errorf("%d commits in an hour of trying again:\n%s", n, strings.Join(b.subjects, "\n"))
		}
		w.mu.Lock()
		w.broken = false
		w.mu.Unlock()
		w.expect(10*time.Minute, 0, "Available Off")
	}, func(w *world) { w.machine(0).power, w.broken = model.PowerOn, true })
}

func TestAMistakeInTheSourceIsShownByLine(t *testing.T) {
	live(t, 1, func(t *testing.T, w *world) {
		w.expect(time.Minute, 0, "Available Off")
		secret := func(ignition string) *model.Secret {
			return &model.Secret{Meta: model.Meta{Name: "ign", Namespace: "default"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive(ignition)}}
		}
		w.commit(func(d *model.Desired) {
			d.Add(secret("bad"))
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }))
		})
		w.expect(time.Minute, 0, "Reserved Off default/web")
		boot := w.shown(webBoot).Status
		if got := conditionOf(boot.Conditions, "IgnitionValidation"); boot.State != "Error" ||
			!strings.HasPrefix(got, "False SourceInvalid: ignition: line 3, column 5: unknown key; it is not powered on") {
			t.Errorf("the boot configuration is %s with IgnitionValidation %s", boot.State, got)
		}
		if got := conditionOf(boot.Conditions, "ImageValidation"); got != "" {
			t.Errorf("the image, of which nothing is known, is %s", got)
		}
		w.commit(func(d *model.Desired) { d.Add(secret("good")) })
		w.expect(20*time.Second, 0, "Reserved On default/web")
	})
}

func TestTryingAgainCostsNoCommit(t *testing.T) {
	published(t, 1, func(w *world, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("broken"))) })
		w.expect(time.Minute, 0, "Reserved Off default/web")
		n := len(b.at)
		w.expect(3*time.Hour, 0, "Reserved Off default/web")
		if tried := w.armed(); len(b.at) != n || tried < 10 {
			t.Errorf("%d commits while it was tried %d times:\n%s", len(b.at)-n, tried, strings.Join(b.subjects, "\n"))
		}
	})
}

func TestWhatStandsAgainstABoot(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const running = "it keeps running what it has, and it is tried again"
	tests := map[string]struct {
		change func(in *Input, rec *model.ServerRecord)
		want   Why    // "" = it is armed
		do     string // what is done
	}{
		"nothing is known against it": {do: "arm boot ticket for os:1"},
		"a problem of it is waited out": {
			change: func(_ *Input, rec *model.ServerRecord) { rec.BootProblem.NotBefore = now.Add(time.Minute) },
			want:   Why{"NotFound", "no such tag; it is not powered on for that, and it is tried again", now, Tenant},
		},
		"the time for another attempt is come": {
			change: func(_ *Input, rec *model.ServerRecord) { rec.BootProblem.NotBefore = now },
			want:   Why{"NotFound", "no such tag; it is not powered on for that, and it is tried again", now, Tenant},
			do:     "arm boot ticket for os:1",
		},
		"a problem of another boot is no matter": {
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.BootProblem.NotBefore, rec.BootProblem.Digest = now.Add(time.Minute), "sha256:other"
			},
			do: "arm boot ticket for os:1",
		},
		"nor is one of another architecture": {
			change: func(in *Input, rec *model.ServerRecord) {
				rec.BootProblem.NotBefore = now.Add(time.Minute)
				in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{Processors: []model.Processor{{Architecture: "ARM"}}}
			},
			do: "arm boot ticket for os:1",
		},
		"an unreachable registry is the operator's": {
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.BootProblem.NotBefore, rec.BootProblem.Reason = now.Add(time.Minute), "RegistryUnreachable"
			},
			want: Why{"RegistryUnreachable", "no such tag; it is not powered on for that, and it is tried again", now, RackOperator},
		},
		"an architecture that is not served": {
			change: func(in *Input, rec *model.ServerRecord) {
				in.Policy.Architectures = []string{"amd64", "riscv64"}
				in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{Processors: []model.Processor{{InstructionSet: "ARM-A64"}}}
			},
			want: Why{ArchitectureNotServed, "it is arm64 (by its processors), and boot.architectures has only amd64, riscv64: " +
				"add arm64 there and restart Ingot, or take the server's BMC out of Git", now.Add(-time.Hour), RackOperator},
		},
		"a running server whose new image cannot be had": {
			change: func(in *Input, rec *model.ServerRecord) {
				rec.Installed, rec.Reprovision = "sha256:old", "1"
				rec.BootProblem.NotBefore = now.Add(time.Minute)
				in.Observed.ServerFacts[rec.Name].Power = model.PowerOn
			},
			want: Why{"NotFound", "no such tag; " + running, now, Tenant},
		},
		"a running server whose new image may be had": {
			change: func(in *Input, rec *model.ServerRecord) {
				rec.Installed, rec.Reprovision, rec.BootProblem = "sha256:old", "1", nil
				in.Observed.ServerFacts[rec.Name].Power = model.PowerOn
			},
			do: "arm boot ticket for os:1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers["bmc00000-system-0"]
			rec.Installed = ""
			rec.BootProblem = &model.BootProblem{
				Digest: bootDigest(Boot{Image: "os:1"}), Architecture: "amd64", Image: "os:1", Reason: "NotFound", Message: "no such tag", Since: now,
			}
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
			if tc.change == nil {
				rec.BootProblem = nil
			} else {
				tc.change(in, rec)
			}
			st := newFleet(in).byName[rec.Name].step()
			if diff := cmp.Diff(tc.want, st.Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
			if got := done(st); got != tc.do {
				t.Errorf("does %q, want %q", got, tc.do)
			}
		})
	}
}

// done is what a step does beyond reading.
func done(st Step) string {
	if st.Move == nil || !acts(st.Move) {
		return ""
	}
	return moveText(st.Move)
}
