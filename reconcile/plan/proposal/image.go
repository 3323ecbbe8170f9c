package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
)

// Architecture is a server's architecture as OCI has it, and what says so.
type Architecture struct {
	Name string
	By   string // "" = nothing does, it is assumed
}

func (a Architecture) String() string {
	if a.By == "" {
		return a.Name + " (assumed: neither its BMC nor DHCP nor a probe says what it is)"
	}
	return a.Name + " (by " + a.By + ")"
}

// ArchitectureOf is the server's architecture: as Redfish has its processors, else as DHCP does, else as its probe does.
func ArchitectureOf(s *Server) Architecture {
	if name := s.Facts.Inventory.Architecture(); name != "" {
		return Architecture{name, "its processors"}
	}
	if f := Firmware(s); f != nil && f.Architecture != "" {
		return Architecture{f.Architecture, "DHCP"}
	}
	if p := s.Observed.Probes[s.Name]; p != nil {
		if name := p.Data.Architecture(); name != "" {
			return Architecture{name, "its probe"}
		}
	}
	if s.Moment.assumed == "" {
		s.Moment.assumed = assumed(s.Observed)
	}
	return Architecture{Name: s.Moment.assumed}
}

// assumed is the architecture of all servers whose BMC reports one if they have the same, and otherwise amd64.
func assumed(o *model.Observed) string {
	all := ""
	for _, f := range o.ServerFacts {
		if name := f.Inventory.Architecture(); name != "" && all != "" && name != all {
			return "amd64"
		} else if name != "" {
			all = name
		}
	}
	return cmp.Or(all, "amd64")
}

// ImageOf is the image that the server boots for a claim that names one of the catalogue: as it was pinned, or else what
// the name means now. It is nil for a claim with a reference.
func ImageOf(s *Server, c *model.ServerClaim) (*model.CatalogImage, Why) {
	if pinned := s.Record.Claim.Image; pinned != nil && pinned.Name == c.Spec.Image {
		return pinned, Why{}
	}
	return ResolveImage(s, c)
}

// ResolveImage is what the name of a claim's image means now on the server. It is nil for a claim with a reference.
func ResolveImage(s *Server, c *model.ServerClaim) (*model.CatalogImage, Why) {
	if !model.IsCatalogName(c.Spec.Image) {
		return nil, Why{}
	}
	return FindImage(s.Desired, c.Spec.Image, ArchitectureOf(s).Name, &model.Guesses{Left: model.MaxGuesses})
}

// FindImage is what a name means in the catalogue for an architecture, or why that is not known.
func FindImage(d *model.Desired, name, architecture string, guesses *model.Guesses) (*model.CatalogImage, Why) {
	if why := CatalogLost(d); why.Reason != "" {
		return nil, why
	}
	images := d.CatalogImages(name)
	i := slices.IndexFunc(images, func(i model.CatalogImage) bool { return i.Architecture == "" || i.Architecture == architecture })
	switch {
	case i >= 0:
		return &images[i], Why{}
	case len(images) > 0:
		return nil, Why{Reason: model.ReasonNoArchitecture, Message: fmt.Sprintf("%s has image %s for %s, and the server is %s", model.CatalogFile, name, images[0].Architecture, architecture), Actor: Tenant}
	}
	return nil, Why{Reason: model.ReasonImageUnknown, Message: "image " + d.UnknownImage(name, guesses), Actor: Tenant}
}

// CatalogLost says why the catalogue in force is not what Git has. Its names have no meaning for claims without a server
// meanwhile.
func CatalogLost(d *model.Desired) Why {
	if a, absent := d.Absence(model.CatalogIdentity); absent {
		return Why{
			Reason: model.ReasonAbsentWithoutCommit, Since: a.Since, Actor: RackOperator,
			Message: model.CatalogFile + " is missing or different in Git without a commit, so the names in it mean nothing; put it back, or make a commit whose message ends with " + ApproveLine(a.Token),
		}
	}
	kept := func(l model.LastGood) bool { return l.Identity == model.CatalogIdentity }
	if d.IsQuarantined(model.CatalogIdentity) || slices.ContainsFunc(d.LastGood, kept) {
		return Why{
			Reason: model.ReasonManifestUnreadable, Actor: RackOperator,
			Message: model.CatalogFile + " cannot be used, so the names in it mean nothing until it is corrected; claims with a server keep their images",
		}
	}
	return Why{}
}

// BootKey identifies what is checked before a claim gets a server.
type BootKey struct {
	Digest, Architecture string // Digest is booting.BootDigest
	Always               bool
}

// Checked is the result of a check.
type Checked struct {
	Pending bool     // there is no result yet
	Failed  *Failure // why the boot is not possible, nil if it is
	Since   time.Time
}

// UncheckedWhy says why a claim must not get a server yet, by the result of its check.
func UncheckedWhy(image string, c Checked) Why {
	switch {
	case c.Pending:
		return Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("image %s and the claim's Secret are being checked", image)}
	case c.Failed == nil:
		return Why{}
	}
	why := Why{Reason: cmp.Or(c.Failed.Reason, model.ReasonArmFailed), Message: c.Failed.Text + "; the claim gets no server until this is corrected, and it is tried again", Since: c.Since, Actor: Tenant}
	if slices.Contains(operatorsReasons, why.Reason) {
		why.Actor = RackOperator
	}
	return why
}
