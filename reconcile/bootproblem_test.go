package reconcile

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/report"
)

func image(ref string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) { c.Spec.Image = ref }
}

// shown reads a document of the status branch back.
func (w *loopWorld) shown(path string) (d struct {
	Status struct {
		State       string                `json:"state"`
		ImageDigest string                `json:"imageDigest"`
		Image       *report.ImageStatus   `json:"image"`
		Conditions  []metav1.Condition    `json:"conditions"`
		Cleanup     *report.CleanupStatus `json:"cleanup"`
	} `json:"status"`
}) {
	w.t.Helper()
	if err := yaml.Unmarshal([]byte(w.document(path)), &d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// armed is how often a ticket was to be armed.
func (w *loopWorld) armed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arms
}

const webBoot = "serverbootconfigurations/default/web.yaml"

func TestPowerIsLeftAloneForAnImageThatCannotBeBooted(t *testing.T) {
	const server = "servers/bmc00-system-0.yaml"
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		ons := w.seen(0).ons
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("broken:1"))) })
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if m, tried := w.seen(0), w.armed(); m.ons != ons || tried < 5 || tried > 30 {
			t.Errorf("powered on %d times, and tried %d times in an hour; want never, and with ever longer pauses", m.ons-ons, tried)
		}
		const says = "image broken:1 has no kernel layer; it is not powered on for that, and it is tried again (to act: tenant)"
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
		const mended = "True ValidationSucceeded: found kernel of 1.0 MiB, initramfs of 1.5 MiB for amd64 " +
			"(assumed: neither its BMC nor DHCP nor a probe says what it is)"
		if got := conditionOf(boot.Conditions, "ImageValidation"); boot.State != "Ready" || got != mended {
			t.Errorf("once mended the boot configuration is %s with ImageValidation %s", boot.State, got)
		}
	})
}

func TestAServerKeepsRunningWhileItsNewImageCannotBeBooted(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		boots, disk := len(w.seen(0).boots), w.seen(0).disk
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", image("broken:1"), annotated(model.AnnotationReprovision, "1")))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); len(m.boots) != boots || m.forced > 0 {
			t.Fatalf("it was forced off %d times and booted %v, for an image that cannot be booted", m.forced, m.boots[boots:])
		}
		const says = "False ValidationFailed: image broken:1 has no kernel layer; " +
			"it keeps running what it has, and it is tried again (to act: tenant)"
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
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Initial On")
		w.commit(func(d *model.Desired) {
			d.Add(serverFile(0, func(s *model.Server) { s.Annotations[model.AnnotationDiscover] = "1" }))
		})
		w.expect(time.Hour, 0, "Initial On")
		if m := w.seen(0); m.forced > 0 || len(m.boots) > 0 {
			t.Errorf("it was touched: forced off %d times, boots %v", m.forced, m.boots)
		}
		boot := w.shown("serverbootconfigurations/ingot-system/bmc00-system-0.yaml").Status
		got := conditionOf(boot.Conditions, "ImageValidation")
		if !strings.HasPrefix(got, "False ValidationFailed: image registry/probe:1 has no kernel layer") {
			t.Errorf("its boot configuration says %s", got)
		}
		if n := len(b.at); n > 6 {
			t.Errorf("%d commits in an hour of trying again:\n%s", n, strings.Join(b.subjects, "\n"))
		}
		w.mu.Lock()
		w.broken = false
		w.mu.Unlock()
		w.expect(10*time.Minute, 0, "Available Off")
	}, func(w *loopWorld) { w.machine(0).power, w.broken = model.PowerOn, true })
}

func TestAMistakeInTheSourceIsShownByLine(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		secret := func(ignition string) *model.Secret {
			return fleettest.IgnitionSecret(ignition)
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
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("broken:1"))) })
		w.expect(time.Minute, 0, "Reserved Off default/web")
		n := len(b.at)
		w.expect(3*time.Hour, 0, "Reserved Off default/web")
		if tried := w.armed(); len(b.at) != n || tried < 10 {
			t.Errorf("%d commits while it was tried %d times:\n%s", len(b.at)-n, tried, strings.Join(b.subjects, "\n"))
		}
	})
}
