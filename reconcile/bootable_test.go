package reconcile

import (
	"testing"
	"time"

	"ingot/model"
)

func TestAServerIsNotPoweredOnForAnImageThatItsFirmwareCannotStart(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.stop()
		w.loaders = []string{}
		w.mu.Lock()
		name := w.machine(0).name
		facts := *w.observed.ServerFacts[name]
		facts.Inventory = &model.Inventory{BootTargets: []string{"UefiHttp"}}
		w.observed.ServerFacts[name] = &facts
		w.mu.Unlock()
		w.start()
		ons := w.seen(0).ons
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Hour, 0, "Reserved Off default/web")
		boot := w.shown(webBoot).Status
		const want = "False BootMethodMismatch: image os:1 has no UKI layer, " +
			"and the server boots from the network by UEFI HTTP boot alone, " +
			"for which boot.loaderDirs has no iPXE of amd64 that could start a kernel; it is not powered on for that, " +
			"and it is tried again (to act: tenant)"
		if got := conditionOf(boot.Conditions, "ImageValidation"); got != want || boot.State != "Error" || w.seen(0).ons != ons {
			t.Errorf("powered on %d times, and the boot configuration is %s with ImageValidation\n%s", w.seen(0).ons-ons, boot.State, got)
		}
	})
}
