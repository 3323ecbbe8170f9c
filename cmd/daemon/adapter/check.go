package adapter

import (
	"context"
	"sync"
	"time"

	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

const (
	checkLimit   = 45 * time.Second // of the check of a boot; a registry has 30 s, after which a cached image is used
	answersFor   = 10 * time.Second // checks share the answer of a registry, less than the pause after a failure
	maxOfAnswers = 1000
)

// answers are the last results of images, so that claims with Secrets of their own do not ask for their image one by one.
type answers struct {
	mu sync.Mutex
	of map[imageAnswered]answer
}

type imageAnswered struct {
	image, architecture string
	always              bool
}

type answer struct {
	at     time.Time
	source *diskimage.Source // nil = not a disk image
	err    error
}

// Check reports why a boot of a claim is not possible on a server of its architecture, as far as the registry and the
// own documents of the claim show. It fetches no image.
func (b *Boots) Check(ctx context.Context, boot proposal.Boot) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return bootReasoned(b.check(ctx, &boot))
}

func (b *Boots) check(ctx context.Context, boot *proposal.Boot) error {
	source, err := b.answered(ctx, boot)
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
	return err
}

// answered returns how the disk image of a boot is fetched, nil if the image is not one, once its host has answered.
func (b *Boots) answered(ctx context.Context, boot *proposal.Boot) (*diskimage.Source, error) {
	key := imageAnswered{boot.Image, boot.Architecture, boot.Ticket.Always}
	b.answers.mu.Lock()
	a, ok := b.answers.of[key]
	b.answers.mu.Unlock()
	if ok && time.Since(a.at) < answersFor {
		return a.source, a.err
	}
	a.source, _, a.err = b.diskSource(ctx, boot)
	if a.err == nil && model.IsImageURL(boot.Image) {
		a.err = b.reach(ctx, a.source)
	}
	if ctx.Err() == nil {
		a.at = time.Now()
		b.answers.mu.Lock()
		defer b.answers.mu.Unlock()
		if b.answers.of == nil || len(b.answers.of) == maxOfAnswers {
			b.answers.of = make(map[imageAnswered]answer)
		}
		b.answers.of[key] = a
	}
	return a.source, a.err
}

// reach requests the file of a URL, unless it is stored.
func (b *Boots) reach(ctx context.Context, source *diskimage.Source) error {
	if stored, err := b.Disks.Open(source.Digest); err == nil {
		stored.Close()
		return nil
	}
	body, err := source.Fetch(ctx, 0) // the head of the answer is enough
	if err != nil {
		return err
	}
	return body.Close()
}
