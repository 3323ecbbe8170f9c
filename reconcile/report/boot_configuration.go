package report

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/proposal"
)

// bootNamespace is where boot configurations stand that belong to no claim.
const bootNamespace = "ingot-system"

// BootConfigurationSpec is what a server boots.
type BootConfigurationSpec struct {
	ServerRef model.LocalRef `json:"serverRef"`
	Image     string         `json:"image"`
}

// BootConfigurationStatus is how far that is.
type BootConfigurationStatus struct {
	Overview
	State       string             `json:"state"`            // Pending, Ready, Error
	Server      model.ServerName   `json:"server,omitempty"` // of one in Git, as of a claim
	ImageDigest string             `json:"imageDigest,omitempty"`
	Image       *ImageStatus       `json:"image,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// ImageStatus is what a tag stood for when the ticket was armed.
type ImageStatus struct {
	Ref          string        `json:"ref"`
	Repository   string        `json:"repository,omitempty"`
	Architecture string        `json:"architecture,omitempty"`
	Layers       []LayerStatus `json:"layers,omitempty"`
}

// LayerStatus is one part of an image.
type LayerStatus struct {
	Name      string `json:"name"` // kernel, initramfs, squashfs or UKI
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"sizeBytes"`
}

// imageOf is what a ticket pins, as the status branch shows it.
func imageOf(p *model.PinnedImage) *ImageStatus {
	st := &ImageStatus{Ref: p.Ref, Repository: p.Repository, Architecture: p.Architecture}
	for _, l := range []struct {
		name  string
		layer *model.Layer
	}{{"kernel", p.Kernel}, {"initramfs", p.Initrd}, {"squashfs", p.Squashfs}, {"UKI", p.UKI}} {
		if l.layer != nil {
			st.Layers = append(st.Layers, LayerStatus{l.name, l.layer.Digest, l.layer.Size})
		}
	}
	return st
}

func (i *ImageStatus) found(by string) string {
	var parts []string
	for _, l := range i.Layers {
		parts = append(parts, fmt.Sprintf("%s of %s", l.Name, mebibytes(l.SizeBytes)))
	}
	return fmt.Sprintf("found %s for %s", strings.Join(parts, ", "), proposal.Architecture{Name: i.Architecture, By: by})
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// ticketShows reports whether the server's newest ticket is its boot configuration.
func (s serverView) ticketShows() bool {
	t := s.Record.Boot.Ticket
	return t != nil && (t.Open() || s.Record.Life.State == model.StateReserved && t.Claim == s.Record.Claim.Name)
}

// bootConfigurationName is where the server's boot configuration stands: it is called like
// its claim, or is in Git.
func (s serverView) bootConfigurationName() model.ClaimName {
	switch t := s.Record.Boot.Ticket; {
	case s.ticketShows() && t.Purpose == model.PurposeClaim:
		return t.Claim
	case s.Record.Life.State == model.StateReserved:
		return s.Record.Claim.Name
	}
	return model.Named[model.ClaimName](bootNamespace, string(s.Name))
}

// bootConfiguration shows the server's boot ticket in upstream's words.
func (s serverView) bootConfiguration() *Document {
	t := s.Record.Boot.Ticket
	d := s.newBootConfiguration(t.ImageName())
	image := imageOf(&t.Image)
	st := BootConfigurationStatus{State: "Ready", ImageDigest: t.Image.Digest, Image: image}
	found := image.found(t.ArchitectureBy)
	if t.Disk != nil {
		st.ImageDigest, found = t.Disk.Digest, foundDisk(t.Disk)+"; its probe: "+found
	}
	st.Conditions = append(st.Conditions, condition(typeImageValidation, true, reasonValidationSucceeded, found, t.ArmedAt))
	if why := s.Unbooted; why != nil {
		st.State = "Error"
		st.Conditions = append(st.Conditions, condition(typeBooted, false, why.Reason, why.Text(), why.Since))
		st.wait(*why, ways{})
	}
	if p := s.progress(); p != nil {
		st.Conditions = append(st.Conditions, fetched(t, p)...)
	}
	if b := s.in.Observed.BootStates[s.Name]; b != nil && b.Ticket == t.ID {
		st.Conditions = append(st.Conditions, condition(typeBootStateReceived, true, reasonBootState, "Server successfully posted boot state", b.ReceivedAt))
	}
	st.Summary = Summary{State: st.State, Since: t.ArmedAt.UTC().Truncate(time.Second), Server: s.Name, Image: t.ImageName()}
	d.Status = st
	return d
}

func fetched(t *model.Ticket, p *model.Progress) (conds []metav1.Condition) {
	if !p.ScriptAt.IsZero() {
		conds = append(conds, condition(typeIPXEScriptFetched, true, reasonScriptDelivered, "IPXE script has been successfully delivered to the client.", p.ScriptAt))
	}
	switch {
	case p.IgnitionAt.IsZero() || t.Config == model.ThingScript:
	case t.Config == model.ThingCloudInit:
		conds = append(conds, condition(typeCloudInitFetched, true, reasonCloudInitDelivered, "cloud-init data has been successfully delivered to the client.", p.IgnitionAt))
	default:
		conds = append(conds, condition(typeIgnitionFetched, true, reasonIgnitionDelivered, "Ignition data has been successfully delivered to the client.", p.IgnitionAt))
	}
	return conds
}

// pendingBoot shows a boot configuration that has no ticket yet, and why if
// something speaks against it.
func (s serverView) pendingBoot() *Document {
	image := ""
	switch p := s.Record.Boot.Problem; {
	case s.Claim != nil:
		image = s.Claim.Spec.Image
	case p != nil:
		image = p.Image
	}
	d := s.newBootConfiguration(image)
	st := BootConfigurationStatus{State: "Pending"}
	if s.Unarmed != nil {
		if s.Unarmed.Reason != model.ReasonImagePreparing {
			st.State = "Error"
		}
		st.Conditions = append(st.Conditions, validation(*s.Unarmed))
		st.wait(*s.Unarmed, ways{})
	}
	st.Summary = Summary{State: st.State, Server: s.Name, Image: image}
	d.Status = st
	return d
}

// validation is the condition that a boot's trouble is shown as.
func validation(why proposal.Why) metav1.Condition {
	kind := typeImageValidation
	if why.Reason == model.ReasonSourceInvalid {
		kind = typeIgnitionValidation
	}
	c := condition(kind, false, why.Reason, why.Text(), why.Since)
	if why.Reason == model.ReasonArmFailed || why.Reason == model.ReasonImagePreparing {
		c.Status = metav1.ConditionUnknown
	}
	return c
}

// requestedStatus is what has become of a ServerBootConfiguration in Git: that of a claim,
// and what its server boots.
func (v *view) requestedStatus(c *bind.Claim, claimed ClaimStatus) BootConfigurationStatus {
	st := BootConfigurationStatus{State: "Pending"}
	s := v.servers[c.Server]
	switch {
	case s != nil && (v.server(s).armed() || v.server(s).arming()):
		st = v.server(s).bootDocument().Status.(BootConfigurationStatus)
	case s == nil && c.Why.Actor == proposal.Tenant:
		st.State = "Error"
	}
	st.Overview, st.Server, st.Conditions = claimed.Overview, claimed.Server, append(claimed.Conditions, st.Conditions...)
	return st
}

// armed reports whether what the server boots has a ticket that shows it, arming whether
// that has none yet.
func (s serverView) armed() bool { return s.Unarmed == nil && s.ticketShows() }

func (s serverView) arming() bool {
	return s.Unarmed != nil || s.Record.Life.State == model.StateReserved && s.Claim != nil && !s.ticketShows()
}

// bootDocument shows what the server boots, or is about to.
func (s serverView) bootDocument() *Document {
	if s.armed() {
		return s.bootConfiguration()
	}
	return s.pendingBoot()
}

func (s serverView) newBootConfiguration(image string) *Document {
	ns, name := model.SplitName(s.bootConfigurationName())
	d := newDocument(model.KindServerBootConfiguration, name)
	d.Metadata.Namespace = ns
	d.Spec = BootConfigurationSpec{model.LocalRef{Name: string(s.Name)}, image}
	return d
}
