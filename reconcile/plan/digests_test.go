package plan

import (
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

var (
	digestsKey = model.NewDigestKey([]byte(strings.Repeat("d", 32)))
	lostKey    = model.NewDigestKey([]byte(strings.Repeat("l", 32)))
)

func TestDigestsAreThoseOfTheBoots(t *testing.T) {
	m, key := &Memory{}, digestsKey
	for range 3 { // revisions
		desired, c := desiredBoot("", "ignition", "{}")
		m.see(desired)
		for range 2 {
			for _, change := range []string{"", "x"} {
				boot, _ := proposal.BootOfClaim(desired, c)
				boot.Image += change
				if got, want := m.digest(&boot, key), key.For("team-a").Sum(proposal.BootDigest(boot)); got != want {
					t.Errorf("%s is known as %s, want %s", boot.Image, got, want)
				}
				boot.KernelArguments += change
				if got, want := m.digest(&boot, key), key.For("team-a").Sum(proposal.BootDigest(boot)); got != want {
					t.Errorf("%s with %q is known as %s, want %s", boot.Image, boot.KernelArguments, got, want)
				}
			}
		}
		other, c := desiredBoot("", "ignition", `{"other": true}`)
		m.see(other)
		boot, _ := proposal.BootOfClaim(other, c)
		if got, want := m.digest(&boot, key), key.For("team-a").Sum(proposal.BootDigest(boot)); got != want {
			t.Errorf("another Secret is known as %s, want %s", got, want)
		}
		if n := len(m.now) + len(m.previous); n > 8 {
			t.Errorf("%d digests are remembered, of two revisions", n)
		}
	}
}

// TestDigestsOnRecordAreRekeyed: whatever form a digest on record has, no machine is
// touched for it.
func TestDigestsOnRecordAreRekeyed(t *testing.T) {
	plain, other := proposal.BootDigest(proposal.Boot{Image: "os:1"}), proposal.BootDigest(proposal.Boot{Image: "os:0"})
	key := digestsKey.For("default")
	ours := key.Sum(plain)
	booted := func(rec *model.ServerRecord, digest, image string) {
		rec.Install.Digest = digest
		rec.Boot.Ticket = &model.Ticket{
			ID: "t", Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Digest: digest,
			Image: model.PinnedImage{Ref: image}, Ended: model.TicketBooted,
		}
	}
	tests := map[string]struct {
		before   func(rec *model.ServerRecord)
		want     string
		ticket   string
		outdated bool
	}{
		"one under a lost key": {
			before: func(rec *model.ServerRecord) { booted(rec, lostKey.Sum(plain), "os:1") }, want: ours, ticket: ours,
		},
		"one under a lost key, without a ticket": {
			before: func(rec *model.ServerRecord) { rec.Install.Digest = lostKey.Sum(plain) }, want: ours,
		},
		"one under a lost key, of another image": {
			before: func(rec *model.ServerRecord) { booted(rec, lostKey.Sum(other), "os:0") },
			want:   lostKey.Sum(other), ticket: lostKey.Sum(other), outdated: true,
		},
		"one under our key": {
			before: func(rec *model.ServerRecord) { booted(rec, ours, "os:1") }, want: ours, ticket: ours,
		},
		"one under our key, of something else": {
			before: func(rec *model.ServerRecord) { booted(rec, key.Sum(other), "os:0") }, want: key.Sum(other),
			ticket: key.Sum(other), outdated: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			in.DigestKey = digestsKey
			rec := in.Observed.Servers["bmc00000-system-0"]
			tc.before(rec)
			isOutdated := func() bool {
				s := newFleet(in).server(rec.Name)
				return s.claim != nil && s.outdated()
			}
			if got := isOutdated(); got != tc.outdated {
				t.Errorf("before: outdated = %t", got)
			}
			for range 3 {
				for _, m := range Plan(in).Moves {
					if m.touches() {
						t.Fatalf("the machine is touched: %+v", m.Do)
					}
					in.Observed.Servers[rec.Name] = m.Then
				}
			}
			got := in.Observed.Servers[rec.Name]
			ticket := ""
			if got.Boot.Ticket != nil {
				ticket = got.Boot.Ticket.Digest
			}
			if got.Install.Digest != tc.want || ticket != tc.ticket || isOutdated() != tc.outdated {
				t.Errorf("installed %s, ticket %s, outdated %t; want %s, %s, %t",
					got.Install.Digest, ticket, isOutdated(), tc.want, tc.ticket, tc.outdated)
			}
			for _, m := range Plan(in).Moves {
				t.Errorf("it goes on: %+v", m)
			}
		})
	}
}

func TestBootOfATicketIsFoundByAnyFormOfItsDigest(t *testing.T) {
	d, c := desiredBoot("", "ignition", "{}")
	boot, _ := proposal.BootOfClaim(d, c)
	plain := proposal.BootDigest(boot)
	for _, tc := range []struct {
		digest, image string
		want          bool
	}{
		{digestsKey.For("team-a").Sum(plain), boot.Image, true},
		{digestsKey.For("team-b").Sum(plain), boot.Image, false},
		{lostKey.Sum(plain), boot.Image, true},
		{lostKey.Sum(plain), "other", false},
		{digestsKey.Sum(plain + "0"), boot.Image, false},
	} {
		ticket := &model.Ticket{
			Purpose: model.PurposeClaim, Claim: "team-a/web", Digest: tc.digest, Image: model.PinnedImage{Ref: tc.image},
		}
		if _, same := proposal.BootOf(d, ticket, digestsKey); same != tc.want {
			t.Errorf("%s of %s: found = %t", tc.digest, tc.image, same)
		}
	}
}

// TestNoClaimConfirmsAGuessOfAnothersSecret: a tenant may have Ingot make the digest of any
// guess, by a claim of its own, and reads it on the status branch.
func TestNoClaimConfirmsAGuessOfAnothersSecret(t *testing.T) {
	d, c := desiredBoot("", "ignition", "{}")
	boot, _ := proposal.BootOfClaim(d, c)
	guess := *c
	guess.Namespace = "team-b"
	secret := *boot.SecretObject
	secret.Namespace = "team-b"
	d.Secrets["team-b/s"] = &secret
	guessed, why := proposal.BootOfClaim(d, &guess)
	if why.Reason != "" || proposal.BootDigest(guessed) != proposal.BootDigest(boot) {
		t.Fatalf("the guess is not what the other claim boots: %+v", why)
	}
	var m Memory
	m.see(d)
	if m.digest(&boot, digestsKey) == m.digest(&guessed, digestsKey) {
		t.Error("a guess in another namespace has the digest of what is right")
	}
}
