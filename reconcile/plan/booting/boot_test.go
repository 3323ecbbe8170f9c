package booting_test

import (
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

var (
	digestsKey = model.NewDigestKey([]byte(strings.Repeat("d", 32)))
	lostKey    = model.NewDigestKey([]byte(strings.Repeat("l", 32)))
)

// desiredBoot is a claim whose Secret has these keys and values.
func desiredBoot(arguments string, pairs ...string) (*model.Desired, *model.ServerClaim) {
	secret := &model.Secret{Values: make(map[string]model.Sensitive)}
	for n := 0; n < len(pairs); n += 2 {
		secret.Values[pairs[n]] = model.NewSensitive(pairs[n+1])
	}
	claim := &model.ServerClaim{
		Meta: model.Meta{Namespace: "team-a", Name: "web", Annotations: map[string]string{model.AnnotationKernelArguments: arguments}},
		Spec: model.ServerClaimSpec{Image: "r.example/os:1", IgnitionSecretRef: &model.LocalRef{Name: "s"}},
	}
	return &model.Desired{
		Secrets: map[model.ObjectName]*model.Secret{"team-a/s": secret},
		Claims:  map[model.ClaimName]*model.ServerClaim{"team-a/web": claim},
	}, claim
}

func TestWhatABootIsKnownBy(t *testing.T) {
	// Records hold digests for as long as an install lasts: another digest shows each server as outdated.
	const before = "sha256:d98a01e4cc01e3076d3a0f2836e60a392ad4527a863d204eba64e326eacc86b8"
	d, c := desiredBoot("", "ignition", "{}", "format", "fcos", "note", "not booted")
	boot, why := booting.BootOfClaim(d, c)
	if got := booting.BootDigest(boot); got != before || why.Reason != "" {
		t.Errorf("an install with Ignition alone is known as %s, not %s; %v", got, before, why)
	}
	seen := map[string]string{before: "Ignition"}
	for title, pairs := range map[string][]string{
		"user-data":                  {"", "user-data", "a"},
		"user-data and meta-data":    {"", "user-data", "a", "meta-data", "b"},
		"user-data and vendor-data":  {"", "user-data", "a", "vendor-data", "b"},
		"user-data and a network":    {"", "user-data", "a", "network-config", "b"},
		"a script":                   {"", "ipxe-script", "a"},
		"Ignition and a script":      {"", "ignition", "{}", "format", "fcos", "ipxe-script", "a"},
		"Ignition and an argument":   {"a", "ignition", "{}", "format", "fcos"},
		"Ignition and two arguments": {"a b", "ignition", "{}", "format", "fcos"},
	} {
		d, c := desiredBoot(pairs[0], pairs[1:]...)
		boot, why := booting.BootOfClaim(d, c)
		sum := booting.BootDigest(boot)
		if why.Reason != "" || seen[sum] != "" {
			t.Errorf("%s is known as %s, like %q; %v", title, sum, seen[sum], why)
		}
		seen[sum] = title
		ticket := &model.Ticket{Purpose: model.PurposeClaim, Claim: "team-a/web", Digest: sum}
		if again, same := booting.BootOf(d, ticket, nil, model.DigestKey{}); !same || again.KernelArguments != pairs[0] {
			t.Errorf("%s is not found again for its ticket", title)
		}
	}
	for name, value := range map[string]string{model.AnnotationRootDevice: "serial=S1", model.AnnotationSeed: "openstack"} { // N26
		d, c := desiredBoot("", "user-data", "a")
		c.Annotations[name] = value
		boot, why := booting.BootOfClaim(d, c)
		sum := booting.BootDigest(boot)
		if why.Reason != "" || seen[sum] != "" {
			t.Errorf("with %s it is known as %s, like %q; %v", name, sum, seen[sum], why)
		}
		seen[sum] = name
	}
	d, c = desiredBoot("", "ignition", "{}", "format", "fcos", "note", "not booted")
	c.Annotations[model.AnnotationSSHKeys] = "ssh-ed25519 AAAA"
	if boot, _ := booting.BootOfClaim(d, c); booting.BootDigest(boot) != before || boot.SSHKeys == "" {
		t.Errorf("SSH keys %q count in the digest, or are lost", boot.SSHKeys)
	}
	d, c = desiredBoot("", "meta-data", "{}", "format", "fcos")
	if _, why := booting.BootOfClaim(d, c); why.Reason != "SecretMissing" {
		t.Errorf("a Secret that boots nothing: %v", why)
	}
}

func TestSameBootComparesBothFormsOfDigest(t *testing.T) {
	d, c := desiredBoot("", "ignition", "{}")
	boot, _ := booting.BootOfClaim(d, c)
	plain := booting.BootDigest(boot)
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
		ticket := &model.Ticket{Purpose: model.PurposeClaim, Claim: "team-a/web", Digest: tc.digest, Image: model.PinnedImage{Ref: tc.image}}
		if _, same := booting.BootOf(d, ticket, nil, digestsKey); same != tc.want {
			t.Errorf("%s of %s: found = %t", tc.digest, tc.image, same)
		}
	}
}

// TestNoClaimConfirmsAGuessOfAnothersSecret: a tenant may have Ingot make the digest of any
// guess, by a claim of its own, and reads it on the status branch.
func TestNoClaimConfirmsAGuessOfAnothersSecret(t *testing.T) {
	d, c := desiredBoot("", "ignition", "{}")
	boot, _ := booting.BootOfClaim(d, c)
	guess := *c
	guess.Namespace = "team-b"
	secret := *boot.SecretObject
	secret.Namespace = "team-b"
	d.Secrets["team-b/s"] = &secret
	guessed, why := booting.BootOfClaim(d, &guess)
	if why.Reason != "" || booting.BootDigest(guessed) != booting.BootDigest(boot) {
		t.Fatalf("the guess is not what the other claim boots: %+v", why)
	}
	if booting.Digest(digestsKey, &boot) == booting.Digest(digestsKey, &guessed) {
		t.Error("a guess in another namespace has the digest of what is right")
	}
}

func TestDisksThatAreHeldAgainstAClaim(t *testing.T) {
	reported := []model.ProbeDisk{{Name: "sda", Serial: "S1", WWID: "eui.1", SizeBytes: 4e9}, {Name: "sdb", Serial: "S2", WWID: "eui.2", SizeBytes: 8e9}}
	wiped := func(serials ...string) (all []model.DiskWipe) {
		for _, d := range reported {
			for _, serial := range serials {
				if d.Serial == serial {
					all = append(all, model.DiskWipe{Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes})
				}
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		rec  model.ServerRecord
		held bool
	}{
		"as its discovery reported them":                 {held: true},
		"a wipe has seen the same":                       {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: wiped("S1", "S2")}}, held: true},
		"a wipe has seen fewer":                          {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: wiped("S1")}}},
		"a wipe has seen another":                        {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: append(wiped("S1"), model.DiskWipe{Serial: "S3", SizeBytes: 8e9})}}},
		"a drive was replaced under a ServerMaintenance": {rec: model.ServerRecord{Disks: model.RecordDisks{Known: []model.Disk{{Serial: "S1", ReplacedBy: "S9"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := model.NewObserved()
			o.Probes["s1"] = &model.ProbeReport{Data: model.ProbeData{Storage: reported}}
			d, c := desiredBoot("")
			p := policy.Default()
			s := &proposal.Server{Moment: &proposal.Moment{Observed: o, Desired: d, Policy: &p}, Name: "s1", Record: &tc.rec, Claim: c, Facts: &model.ServerFacts{}}
			boot, _ := booting.ClaimBoot(s)
			if got := len(boot.Disks); got != len(reported) && tc.held || got != 0 && !tc.held {
				t.Errorf("%d disks are held against a claim, want all: %t", got, tc.held)
			}
		})
	}
}
