package ignition

import "testing"

func BenchmarkProbe(b *testing.B) {
	g := newIgnition(b, Options{})
	boot := probeBoot()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.ForProbe(boot); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClaimOfAKnownSource(b *testing.B) {
	g := newIgnition(b, Options{})
	boot := claimBoot("variant: fcos\nversion: 1.4.0\n", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.ForClaim(boot); err != nil {
			b.Fatal(err)
		}
	}
}
