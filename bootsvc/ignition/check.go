package ignition

import "ingot/model"

// CheckFor is what is known of the boot that documents are checked for.
type CheckFor struct {
	Image  string
	Seed   model.SeedKind // of the claim's annotation
	Always bool           // the server boots from the network each time
}

// Check returns why no server can be configured with a claim's documents, whatever its image turns out to be: a
// *SourceError, or nil. Only Secret, KernelArguments and Hostname are needed.
func (g *Compiler) Check(b ClaimBoot, boot CheckFor) (first error) {
	b.UUID, b.BootStateURL, b.InstanceID = "00000000-0000-4000-8000-000000000001", "https://ingot.example.com/r/0/bootstate", "i"
	if !model.IsImageURL(boot.Image) {
		if _, first = g.claimed(b); first == nil || boot.Always {
			return first
		}
	}
	for _, image := range []model.SeedKind{"", model.SeedFCOS, model.SeedFlatcar} {
		_, err := g.installDocument(&DiskBoot{ClaimBoot: b, Seed: boot.Seed, IgnitionSeed: image})
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
