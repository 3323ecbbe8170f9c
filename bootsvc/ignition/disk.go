package ignition

import (
	"errors"
	"fmt"
	"strings"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// installMark stands in a probe's Ignition in the place of the URL that its install document
// is at: that has the token of one boot, and is known once the Ignition is served.
const installMark = "ingot-install-url-of-this-boot"

// Where a document's chunks are, relative to the document itself.
const (
	installTable  = "table"
	installChunks = "chunks"
)

// bootEntryPrefix begins the labels of Ingot's entries in the boot order of UEFI firmware, by
// which a cleanup finds them.
const bootEntryPrefix = "Ingot "

// DiskBoot is what a server is installed with whose claim names a disk image.
type DiskBoot struct {
	// ClaimBoot is the claim's configuration; InstanceID names the install.
	ClaimBoot
	// RegistryURL is where the probe reports to, without the Token of the boot ticket.
	RegistryURL string
	Token       model.Sensitive
	// Seed is how the configuration reaches the installed system; "" = auto.
	Seed model.SeedKind
	// IgnitionSeed is the seed by which the image itself reads Ignition, as its filesystems
	// show: SeedFCOS or SeedFlatcar, "" = none of them.
	IgnitionSeed model.SeedKind

	Image        model.DiskImage
	Identities   model.DiskIdentities
	Hints        []string
	Previous     *model.RootDisk
	MayOverwrite bool

	arguments string // KernelArguments, checked
}

// SeedOf returns the seed by which an image of these filesystems reads Ignition, "" for
// none: of Fedora CoreOS the filesystem boot has the file ignition.firstboot, and Flatcar has a
// filesystem OEM.
func SeedOf(labels []string, firstBoot bool) model.SeedKind {
	for _, label := range labels {
		switch {
		case label == labelFCOS && firstBoot:
			return model.SeedFCOS
		case label == labelFlatcar:
			return model.SeedFlatcar
		}
	}
	return ""
}

// ForDisk returns the payload of the ticket of a server that a disk image is installed on: the
// Ignition of the probe that writes it, and the document that says what to write. The same
// values give the same bytes, in every process. What is wrong with the claim's own documents is
// a *SourceError, which quotes none of their values.
func (g *Compiler) ForDisk(b DiskBoot) (model.Sensitive, error) {
	if err := checkFill(b.BootStateURL, b.UUID); err != nil {
		return model.Sensitive{}, fmt.Errorf("install of a disk image: %w", err)
	}
	flags, err := b.probeFlags()
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("install of a disk image: %w", err)
	}
	document, err := g.installDocument(&b)
	if err != nil {
		return model.Sensitive{}, err
	}
	probe, err := g.probe.read()
	if err != nil {
		return model.Sensitive{}, err
	}
	return Payload{Ignition: probe.fill(map[field]string{fieldFlags: flags}), Install: document}.Seal(), nil
}

// probeFlags is the command line of the probe that installs.
func (b *DiskBoot) probeFlags() (string, error) {
	base := strings.TrimRight(b.RegistryURL, "/")
	if err := checkFill(base, b.UUID); err != nil {
		return "", err
	}
	if !syntax.Token(b.Token.Reveal()) {
		return "", errors.New("the boot ticket's token is not made of lower-case letters and digits")
	}
	return "--registry-url=" + base + "/r/" + b.Token.Reveal() + " --server-uuid=" + b.UUID + " --install=" + installMark, nil
}

func (g *Compiler) installDocument(b *DiskBoot) (*model.InstallDocument, error) {
	if err := b.takeDocuments(maxDiskSource); err != nil {
		return nil, err
	}
	var err error
	if b.arguments, err = KernelArguments(b.KernelArguments); err != nil {
		return nil, err
	}
	seed, err := g.seed(b)
	if err != nil {
		return nil, err
	}
	d := &model.InstallDocument{
		Version: model.InstallVersion, Install: b.InstanceID, Image: b.Image, Table: installTable, Chunks: installChunks,
		Identities: b.Identities, Hints: b.Hints, Previous: b.Previous, MayOverwrite: b.MayOverwrite, Seed: seed,
	}
	for _, start := range b.Image.Starts {
		if start != model.StartBIOS {
			d.BootEntry = bootEntryPrefix + hostname63(b.Hostname)
		}
	}
	return d, nil
}

// InstallIgnition is the Ignition of a probe that installs, whose document is at a URL. The URL is plain, as syntax.URL has it, so that it stands anywhere unescaped.
func (p Payload) InstallIgnition(url string) string {
	return strings.ReplaceAll(p.Ignition, installMark, url)
}
