package reconcile

import "testing"

func TestDigestsAreThoseOfTheBoots(t *testing.T) {
	d := &Digests{}
	for range 3 { // revisions
		desired, c := desiredBoot("", "ignition", "{}")
		for range 2 {
			for _, change := range []string{"", "x"} {
				boot, _ := bootOfClaim(desired, c)
				boot.Image += change
				if got := d.digest(desired, &boot); got != bootDigest(boot) {
					t.Errorf("%s is known as %s, want %s", boot.Image, got, bootDigest(boot))
				}
				boot.KernelArguments += change
				if got := d.digest(desired, &boot); got != bootDigest(boot) {
					t.Errorf("%s with %q is known as %s, want %s", boot.Image, boot.KernelArguments, got, bootDigest(boot))
				}
			}
		}
		other, c := desiredBoot("", "ignition", `{"other": true}`)
		boot, _ := bootOfClaim(other, c)
		if got := d.digest(other, &boot); got != bootDigest(boot) {
			t.Errorf("another Secret is known as %s, want %s", got, bootDigest(boot))
		}
		if n := len(d.now) + len(d.previous); n > 8 {
			t.Errorf("%d digests are remembered, of two revisions", n)
		}
	}
}
