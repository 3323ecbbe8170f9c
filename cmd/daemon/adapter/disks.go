package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ingot/bootsvc"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/oci"
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// diskSource is how the disk image of a boot is fetched, nil if the boot's image is none, and
// the image in a registry that it was asked in, if it is in one.
func (b *Boots) diskSource(ctx context.Context, boot *proposal.Boot) (*diskimage.Source, model.PinnedImage, error) {
	if model.IsImageURL(boot.Image) {
		u, err := model.ParseImageURL(boot.Image)
		if err != nil {
			return nil, model.PinnedImage{}, &because{err, model.ReasonInvalidReference}
		}
		client, named, err := b.Images.Client(u)
		if err != nil {
			return nil, model.PinnedImage{}, err
		}
		s := diskimage.FromURL(boot.Image, u, client, named)
		return &s, model.PinnedImage{}, nil
	}
	img, err := b.Images.Resolve(ctx, boot.Image, boot.Architecture)
	switch {
	case err != nil:
		return nil, img, err
	case img.Disk != nil && boot.Ticket.Purpose == model.PurposeClaim && !boot.Ticket.Always:
		s, err := b.layerSource(boot.Image, &img)
		return s, img, err
	}
	return nil, img, oci.CheckNetworkBoot(&img)
}

// layerSource is how the disk layer of an image in a registry is fetched.
func (b *Boots) layerSource(ref string, img *model.PinnedImage) (*diskimage.Source, error) {
	layer := img.Disk
	at, err := model.ParseImageReference(img.Repository + "@" + layer.Digest)
	if err != nil {
		return nil, err
	}
	return &diskimage.Source{
		Ref: ref, Digest: layer.Digest, Bytes: layer.Size, Kind: oci.DiskKind(layer), Container: oci.InContainer(layer),
		Fetch: b.Images.Fetch(at, layer),
	}, nil
}

// armDisk completes a ticket whose disk image a probe writes: the image is prepared, and fits
// the server as far as that can be known before it is powered on.
func (b *Boots) armDisk(ctx context.Context, t *model.Ticket, boot *proposal.Boot, source *diskimage.Source) (model.Sensitive, error) {
	if boot.Doubtful {
		if err := b.Disks.Check(ctx, source.Digest); err != nil {
			return model.Sensitive{}, fmt.Errorf("check disk image %s where it is kept: %w", boot.Image, err)
		}
	}
	img, err := b.Disks.Prepare(ctx, *source)
	if err != nil {
		return model.Sensitive{}, err
	}
	if err := fitsServer(&img.Disk, boot); err != nil {
		return model.Sensitive{}, err
	}
	if boot.ProbeImage == "" {
		return model.Sensitive{}, errors.New("a disk image is written by the probe, and discovery.image names none")
	}
	if t.Image, err = b.Images.Resolve(ctx, boot.ProbeImage, boot.Architecture); err != nil {
		return model.Sensitive{}, err
	}
	if err := oci.CheckNetworkBoot(&t.Image); err != nil {
		return model.Sensitive{}, err
	}
	t.Disk = &img.Disk
	d := b.diskBoot(t, boot, &img)
	var notes []string
	for _, note := range []string{img.Disk.Note, d.SeedNote()} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	t.Disk.Note = strings.Join(notes, "; ")
	return b.Ignition.ForDisk(d)
}

// diskBoot is what the probe that writes a ticket's disk image is told of.
func (b *Boots) diskBoot(t *model.Ticket, boot *proposal.Boot, img *diskimage.Image) ignition.DiskBoot {
	return ignition.DiskBoot{
		ClaimBoot: b.claimBoot(t, boot), RegistryURL: b.RegistryURL, Token: b.Registry.TokenKey.Report(t),
		Seed: boot.Seed, IgnitionSeed: ignitionSeed(img.Partitions), Image: *t.Disk, Identities: img.Identities,
		Hints: boot.Hints, Previous: boot.Previous, MayOverwrite: boot.MayOverwrite,
	}
}

// ignitionSeed is the seed by which an image of these partitions reads Ignition, "" for none.
// That of Fedora CoreOS is told by the labels that its own tools give to it.
func ignitionSeed(partitions []diskimage.Partition) model.SeedKind {
	var labels []string
	for _, p := range partitions {
		labels = append(labels, p.Label)
	}
	firstBoot := slices.ContainsFunc(partitions, func(p diskimage.Partition) bool { return p.Name == "boot" && p.Label == "boot" }) &&
		slices.Contains(labels, "EFI-SYSTEM")
	return ignition.SeedOf(labels, firstBoot)
}

// renderDiskAgain makes anew what a ticket hands out that installs a disk image, which has to
// be here for that.
func (b *Boots) renderDiskAgain(t *model.Ticket, boot *proposal.Boot) (model.Sensitive, error) {
	o, err := b.Disks.Open(t.Disk.Digest)
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("disk image %s: %w", t.Disk.Ref, err)
	}
	defer o.Close()
	return b.Ignition.ForDisk(b.diskBoot(t, boot, &o.Image))
}

// Open implements bootsvc.DiskImages. An image that is not here any more is prepared again from
// where its ticket's claim has it.
func (b *Boots) Open(ctx context.Context, image *model.DiskImage) (*bootsvc.DiskChunks, error) {
	o, err := b.Disks.Open(image.Digest)
	if errors.Is(err, diskimage.ErrNotHere) {
		return nil, b.prepareAgain(ctx, image)
	}
	if err != nil {
		return nil, err
	}
	return &bootsvc.DiskChunks{Table: o.Table, Chunks: o.Chunks, TableDigest: o.Image.TableDigest}, nil
}

// prepareAgain has an image prepared that is not here any more, without waiting for it.
func (b *Boots) prepareAgain(ctx context.Context, image *model.DiskImage) error {
	for _, rec := range b.Registry.Observed().Servers {
		t := rec.Boot.Ticket
		if !t.Open() || t.Disk == nil || t.Disk.Digest != image.Digest {
			continue
		}
		source, err := b.sourceAgain(ctx, t)
		if err != nil {
			return err
		}
		if _, err = b.Disks.Prepare(ctx, *source); err == nil || isPreparing(err) {
			return bootsvc.ErrNotPrepared
		}
		return err
	}
	return diskimage.ErrNotHere
}

// sourceAgain is how a ticket's disk image is fetched, by the digest that the ticket has.
func (b *Boots) sourceAgain(ctx context.Context, t *model.Ticket) (*diskimage.Source, error) {
	source, _, err := b.diskSource(ctx, &proposal.Boot{Ticket: *t, Image: t.Disk.Ref, Architecture: t.Image.Architecture})
	switch {
	case err != nil:
		return nil, err
	case source == nil || source.Digest != t.Disk.Digest:
		return nil, fmt.Errorf("disk image %s is another now than its boot ticket has", t.Disk.Ref)
	}
	return source, nil
}

func isPreparing(err error) bool {
	_, ok := errors.AsType[*diskimage.Preparing](err)
	return ok
}

// fitsServer returns why a server cannot be installed from an image, as far as is known before
// it is powered on.
func fitsServer(img *model.DiskImage, boot *proposal.Boot) error {
	if err := starts(img, boot); err != nil {
		return err
	}
	need, problem := model.NeedOf(*img, boot.Hints, boot.Previous)
	if problem != nil {
		return &because{problem, problem.Reason}
	}
	if len(boot.Disks) == 0 {
		return nil // its probe sees for itself
	}
	candidates := make([]model.CandidateDisk, len(boot.Disks))
	for i, d := range boot.Disks {
		candidates[i].ProbeDisk = d
	}
	if _, problem := model.ChooseRootDisk(candidates, need); problem != nil {
		return &because{problem, problem.Reason}
	}
	return nil
}

// starts returns why the server's firmware cannot start an image. What is not known of the
// firmware is not held against it.
func starts(img *model.DiskImage, boot *proposal.Boot) error {
	can, named := []model.StartMethod{model.StartBIOS, model.StartUEFIAMD64}, "firmware of "+boot.Architecture
	switch f := boot.Firmware; {
	case boot.Architecture == "arm64":
		can = []model.StartMethod{model.StartUEFIARM64}
	case f != nil && f.UEFI:
		can, named = can[1:], "UEFI firmware of "+boot.Architecture
	case f != nil:
		can, named = can[:1], "BIOS"
	}
	if slices.ContainsFunc(img.Starts, func(m model.StartMethod) bool { return slices.Contains(can, m) }) {
		return nil
	}
	has := "nothing that firmware starts"
	if len(img.Starts) > 0 {
		texts := make([]string, len(img.Starts))
		for i, m := range img.Starts {
			texts[i] = string(m)
		}
		has = strings.Join(texts, ", ")
	}
	return &because{fmt.Errorf("image %s cannot be started by the server, which has %s: the image has %s", img.Ref, named, has), model.ReasonImageCannotBoot}
}
