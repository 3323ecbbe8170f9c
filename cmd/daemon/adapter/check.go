package adapter

import (
	"context"
	"time"

	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// checkLimit is how long the check of a boot may take.
const checkLimit = 30 * time.Second

// Check reports why a boot of a claim is not possible on a server of its architecture, as far as the registry and the
// own documents of the claim show. It fetches no image.
func (b *Boots) Check(ctx context.Context, boot proposal.Boot) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return bootReasoned(b.check(ctx, &boot))
}

func (b *Boots) check(ctx context.Context, boot *proposal.Boot) error {
	source, _, err := b.diskSource(ctx, boot)
	if err != nil {
		return err
	}
	t := model.Ticket{ID: "check", UUID: "00000000-0000-4000-8000-000000000000", Purpose: model.PurposeClaim}
	claim := b.claimBoot(&t, boot)
	if source == nil {
		_, err = b.Ignition.ForClaim(claim)
		return err
	}
	// How the image reads Ignition is known once it is fetched; Fedora CoreOS takes all that any image does.
	_, err = b.Ignition.ForDisk(ignition.DiskBoot{
		ClaimBoot: claim, RegistryURL: b.RegistryURL, Token: b.Registry.TokenKey.Report(&t), Seed: boot.Seed, IgnitionSeed: model.SeedFCOS,
	})
	if err != nil || !model.IsImageURL(boot.Image) {
		return err
	}
	if kept, err := b.Disks.Open(source.Digest); err == nil {
		kept.Close()
		return nil
	}
	body, err := source.Fetch(ctx, 0) // the answer's head is enough
	if err != nil {
		return err
	}
	return body.Close()
}
