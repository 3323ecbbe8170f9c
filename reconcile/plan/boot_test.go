package plan

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
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
	// as it was before there was anything but Ignition
	const before = "sha256:42c77778b9a5f8aeba9eb968e5412ef0e1a6a3183ff066fe47de4ac7578bc4c7"
	d, c := desiredBoot("", "ignition", "{}", "format", "fcos", "note", "not booted")
	boot, why := proposal.BootOfClaim(d, c)
	if got := proposal.BootDigest(boot); got != before || why.Reason != "" {
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
		boot, why := proposal.BootOfClaim(d, c)
		sum := proposal.BootDigest(boot)
		if why.Reason != "" || seen[sum] != "" {
			t.Errorf("%s is known as %s, like %q; %v", title, sum, seen[sum], why)
		}
		seen[sum] = title
		ticket := &model.Ticket{Purpose: model.PurposeClaim, Claim: "team-a/web", Digest: sum}
		if again, same := proposal.BootOf(d, ticket, model.DigestKey{}); !same || again.KernelArguments != pairs[0] {
			t.Errorf("%s is not found again for its ticket", title)
		}
	}
	for name, value := range map[string]string{model.AnnotationRootDevice: "serial=S1", model.AnnotationSeed: "openstack"} { // N26
		d, c := desiredBoot("", "user-data", "a")
		c.Annotations[name] = value
		boot, why := proposal.BootOfClaim(d, c)
		sum := proposal.BootDigest(boot)
		if why.Reason != "" || seen[sum] != "" {
			t.Errorf("with %s it is known as %s, like %q; %v", name, sum, seen[sum], why)
		}
		seen[sum] = name
	}
	d, c = desiredBoot("", "meta-data", "{}", "format", "fcos")
	if _, why := proposal.BootOfClaim(d, c); why.Reason != "SecretMissing" {
		t.Errorf("a Secret that boots nothing: %v", why)
	}
}
