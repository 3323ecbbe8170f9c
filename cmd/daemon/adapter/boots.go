package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"ingot/bootsvc"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
	"ingot/registry"
)

// Boots prepares what servers boot, and hands it out.
type Boots struct {
	Registry    *registry.Registry
	Images      *oci.Images
	Cache       *imagecache.Cache
	Disks       *diskimage.Store
	Log         *slog.Logger
	Ignition    *ignition.Compiler
	RegistryURL string
	SSHKeys     []string // of all claims, in addition to their own
	Desired     func() *model.Desired
	// UnsignedLoader is the boot loader that the firmware of a server is told, if that has no
	// signature, "" if it has one or that is not known; nil = others than Ingot tell it.
	UnsignedLoader func(architecture string, server model.ServerName) string

	answers answers
}

// Arm implements reconcile.Boots.
func (b *Boots) Arm(ctx context.Context, boot proposal.Boot) (t model.Ticket, payload model.Sensitive, err error) {
	t = boot.Ticket
	source, img, err := b.diskSource(ctx, &boot)
	switch {
	case err != nil:
		return t, payload, bootReasoned(err)
	case source != nil:
		payload, err = b.armDisk(ctx, &t, &boot, source)
	default:
		t.Image = img
		payload, err = b.render(&t, &boot)
	}
	if err != nil {
		return t, payload, bootReasoned(err)
	}
	if err := registry.CheckPayload(t.ID, payload); err != nil {
		return t, payload, err
	}
	if err := b.prefetch(ctx, &t); err != nil {
		return t, payload, bootReasoned(err)
	}
	return t, payload, b.checkSecureBoot(ctx, &t, &boot)
}

// checkSecureBoot refuses what firmware that checks signatures is known to refuse: of all that it
// may be told, the image's UKI and a boot loader, neither has one.
func (b *Boots) checkSecureBoot(ctx context.Context, t *model.Ticket, boot *proposal.Boot) error {
	if !boot.SecureBoot || b.UnsignedLoader == nil {
		return nil
	}
	loader := b.UnsignedLoader(boot.Architecture, t.Server)
	if loader == "" {
		return nil
	}
	says := "has no UKI"
	if t.Image.UKI != nil {
		if !b.knownUnsigned(ctx, &t.Image) {
			return nil
		}
		says = "has a UKI without one"
	}
	return &because{fmt.Errorf("its BMC says that Secure Boot is on, so that its firmware starts nothing without a signature: boot loader %s has none, and image %s %s",
		loader, t.Image.Ref, says), model.ReasonSecureBootBlocksProbe}
}

// knownUnsigned reports whether an image's UKI is known to have no signature. Of one that cannot be
// read nothing is known.
func (b *Boots) knownUnsigned(ctx context.Context, img *model.PinnedImage) bool {
	unsigned, err := b.Images.Looks(ctx, b.Cache, img.Repository, img.UKI, netboot.KnownUnsigned)
	return err == nil && unsigned
}

// prefetchLimit is how long a server's power-on waits for its image. One that takes
// longer is fetched on, and handed out as it arrives.
const prefetchLimit = 45 * time.Second

// prefetch brings the image of a ticket into the cache, so that the server which
// boots it does not wait for the registry.
func (b *Boots) prefetch(ctx context.Context, t *model.Ticket) error {
	limited, cancel := context.WithTimeout(ctx, prefetchLimit)
	defer cancel()
	err := b.Images.Prefetch(limited, b.Cache, t.Image)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, imagecache.ErrNoRoom), errors.Is(err, imagecache.ErrBusy), ctx.Err() == nil && limited.Err() != nil:
		b.Log.Warn("image is not in the cache when its server is powered on: it is served while it is fetched", "server", string(t.Server), "image", t.Image.Ref, "err", err)
		return nil
	}
	return fmt.Errorf("fetch image %s: %w", t.Image.Ref, err)
}

func (b *Boots) render(t *model.Ticket, boot *proposal.Boot) (model.Sensitive, error) {
	if t.Purpose == model.PurposeClaim {
		return b.Ignition.ForClaim(b.claimBoot(t, boot))
	}
	token := b.Registry.TokenKey.Report(t)
	return b.Ignition.ForProbe(ignition.ProbeBoot{
		UUID: t.UUID, RegistryURL: b.RegistryURL, Token: token, Purpose: t.Purpose, CleanupMode: t.CleanupMode,
	})
}

// claimBoot is what the server of a claim is configured with.
func (b *Boots) claimBoot(t *model.Ticket, boot *proposal.Boot) ignition.ClaimBoot {
	_, name := model.SplitName(t.Claim)
	keys, _ := model.ParseSSHKeys(boot.SSHKeys) // claims with a wrong key are not read
	return ignition.ClaimBoot{
		SSHKeys: slices.Concat(keys, b.SSHKeys), User: boot.LoginUser(),
		UUID: t.UUID, Secret: boot.Secret, KernelArguments: boot.KernelArguments,
		BootStateURL: b.RegistryURL + "/r/" + b.Registry.TokenKey.Report(t).Reveal() + "/bootstate",
		InstanceID:   t.ID, Hostname: name,
	}
}

// Find implements bootsvc.Tickets.
func (b *Boots) Find(id string) (model.TicketHolder, bool) { return b.Registry.Boots.Find(id) }

// Payload implements bootsvc.Tickets. What was kept for the ticket may be lost
// with the store; then it is made again from Git, if Git still holds the same.
func (b *Boots) Payload(ctx context.Context, t *model.Ticket) (model.Sensitive, error) {
	ign, err := b.Registry.Secrets.Payload(ctx, t.ID)
	if !errors.Is(err, registry.ErrNotFound) {
		return ign, err
	}
	d := b.Desired()
	if d == nil {
		return ign, err
	}
	var pinned *model.CatalogImage
	if rec := b.Registry.Observed().Servers[t.Server]; rec != nil {
		pinned = rec.Claim.Image
	}
	boot, same := booting.BootOf(d, t, pinned, b.Registry.DigestKey)
	if !same {
		return ign, fmt.Errorf("%w, and Git no longer holds what the ticket was armed for", err)
	}
	if t.Disk != nil {
		return b.renderDiskAgain(t, &boot)
	}
	return b.render(t, &boot)
}

// DiskBoot is how a server's firmware is sent on to its disk.
func (b *Boots) DiskBoot(name model.ServerName) bootsvc.DiskBoot {
	if d := b.Desired(); d != nil && d.Servers[name] != nil {
		return bootsvc.DiskBoot(d.Servers[name].Annotations[model.AnnotationBootFromDisk])
	}
	return bootsvc.DiskExit
}

// Note implements bootsvc.Tickets.
func (b *Boots) Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	return b.Registry.Boots.Note(ctx, t, stage, client)
}

// Use implements bootsvc.Tickets.
func (b *Boots) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refusal model.TicketRefusal) {
	b.Registry.Boots.Use(t, what, by, refusal)
}

// Pinned implements bootsvc.Tickets.
func (b *Boots) Pinned(repository, digest string) (*model.Ticket, bool) {
	return b.Registry.Boots.Pinned(repository, digest)
}

// ForgetEnded forgets the Ignition of tickets that ended, now and then until ctx ends.
func (b *Boots) ForgetEnded(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		wanted := make(map[string]bool)
		for _, rec := range b.Registry.Observed().Servers {
			if t := rec.Boot.Ticket; t.Open() || t != nil && t.Always {
				wanted[t.ID] = true
			}
		}
		err := b.Registry.Secrets.DropPayloads(ctx, func(id string) bool { return wanted[id] })
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("Ignition of ended tickets not removed, this is retried", "err", err)
		}
	}
}
