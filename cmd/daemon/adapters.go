package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"ingot/bmc"
	"ingot/bootsvc"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/plan"
	"ingot/registry"
)

// store is the registry as reconcile knows it.
type store struct{ *registry.Registry }

func (s store) Save(ctx context.Context, c plan.Changes) error {
	return s.Registry.Save(ctx, registry.Changes{
		Fleet: c.Fleet, Servers: c.Servers, BMCs: c.BMCs, Claims: c.Claims,
		BMCFacts: c.BMCFacts, ServerFacts: c.ServerFacts, DeleteClaims: c.DropClaims,
		Endpoints: c.Endpoints, DeleteEndpoints: c.DropEndpoints, Payloads: c.Payloads,
	})
}

// bmcs is the pool of BMC clients as reconcile knows it.
type bmcs struct{ pool *bmc.Pool }

func (b bmcs) Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error) {
	f, err := b.pool.Discover(ctx, t)
	return f, reasoned(err)
}

func (b bmcs) Inventory(ctx context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	f, err := b.pool.Inventory(ctx, t)
	return f, reasoned(err)
}

func (b bmcs) Power(ctx context.Context, t model.SystemTarget) (model.MachineState, error) {
	s, err := b.pool.State(ctx, t)
	return model.MachineState{Power: s.Power, POST: s.POST}, reasoned(err)
}

func (b bmcs) Reset(ctx context.Context, t model.SystemTarget, k model.ResetKind, from model.Power) (model.ResetResult, error) {
	r, err := b.pool.Reset(ctx, t, k, from)
	return r, reasoned(err)
}

func (b bmcs) ClearBootOverride(ctx context.Context, t model.SystemTarget) error {
	return reasoned(b.pool.ClearBootOverride(ctx, t))
}

func (b bmcs) BootOnce(ctx context.Context, t model.SystemTarget, m model.BootMethod) (string, error) {
	variant, err := b.pool.BootOnce(ctx, t, m)
	return variant, reasoned(err)
}

// because is an error with the reason of the condition that shows it.
type because struct {
	error
	reason string
}

func (e *because) Reason() string { return e.reason }
func (e *because) Unwrap() error  { return e.error }

// bmcReasons are upstream's condition reasons of the errors of BMCs.
var bmcReasons = []struct {
	is     error
	reason model.Reason
}{
	{bmc.ErrOtherMachine, model.ReasonIdentityMismatch},
	{bmc.ErrNoIdentity, model.ReasonIdentityUnknown},
	{bmc.ErrUnauthorized, model.ReasonAuthenticationFailed},
	{bmc.ErrCircuitOpen, model.ReasonAuthenticationFailed},
	{bmc.ErrCertificateChanged, model.ReasonCertificateChanged},
	{bmc.ErrBusy, model.ReasonConnectionFailed},
	{bmc.ErrUnreachable, model.ReasonConnectionFailed},
	{bmc.ErrNotAllowed, model.ReasonAddressNotAllowed},
	{bmc.ErrHalfAnswer, model.ReasonHalfAnswer},
	{bmc.ErrNotFound, model.ReasonNotFound},
	{bmc.ErrUnsupported, model.ReasonUnsupported},
	{bmc.ErrOverrideNotKept, model.ReasonBootOverrideNotKept},
}

func reasoned(err error) error {
	if err == nil {
		return nil
	}
	for _, r := range bmcReasons {
		if errors.Is(err, r.is) {
			return &because{err, r.reason}
		}
	}
	return &because{err, model.ReasonUnknownError}
}

// bootReasoned gives what is wrong with an image or a source its reason. What is
// wrong with Ingot or its store has none.
func bootReasoned(err error) error {
	var image *oci.Error
	var source *ignition.SourceError
	switch {
	case errors.As(err, &image):
		return &because{err, image.Reason}
	case errors.As(err, &source):
		return &because{err, model.ReasonSourceInvalid}
	}
	return err
}

// boots prepares what servers boot, and hands it out.
type boots struct {
	registry    *registry.Registry
	images      *oci.Images
	cache       *imagecache.Cache
	log         *slog.Logger
	ignition    *ignition.Compiler
	registryURL string
	desired     func() *model.Desired
}

// Arm implements reconcile.Boots.
func (b *boots) Arm(ctx context.Context, boot plan.Boot) (t model.Ticket, payload model.Sensitive, err error) {
	t = boot.Ticket
	if t.Image, err = b.images.Resolve(ctx, boot.Image, boot.Architecture); err != nil {
		return t, payload, bootReasoned(err)
	}
	if payload, err = b.render(&t, boot); err != nil {
		return t, payload, bootReasoned(err)
	}
	if err := registry.CheckPayload(t.ID, payload); err != nil {
		return t, payload, err
	}
	return t, payload, bootReasoned(b.prefetch(ctx, &t))
}

// prefetchLimit is how long a server's power-on waits for its image. One that takes
// longer is fetched on, and handed out as it arrives.
const prefetchLimit = 45 * time.Second

// prefetch brings the image of a ticket into the cache, so that the server which
// boots it does not wait for the registry.
func (b *boots) prefetch(ctx context.Context, t *model.Ticket) error {
	limited, cancel := context.WithTimeout(ctx, prefetchLimit)
	defer cancel()
	err := b.images.Prefetch(limited, b.cache, t.Image)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, imagecache.ErrNoRoom), errors.Is(err, imagecache.ErrBusy), ctx.Err() == nil && limited.Err() != nil:
		b.log.Warn("image is not in the cache when its server is powered on: it is handed out as it arrives", "server", string(t.Server), "image", t.Image.Ref, "err", err)
		return nil
	}
	return fmt.Errorf("fetch image %s: %w", t.Image.Ref, err)
}

// lastPinned finds the image that the newest boot ticket for a reference pinned.
func lastPinned(observed func() *model.Observed) func(ref, architecture string) (model.PinnedImage, bool) {
	return func(ref, architecture string) (model.PinnedImage, bool) {
		var newest *model.Ticket
		for _, rec := range observed().Servers {
			t := rec.Ticket
			if t != nil && t.Image.Ref == ref && t.Image.Architecture == architecture && (newest == nil || t.ArmedAt.After(newest.ArmedAt)) {
				newest = t
			}
		}
		if newest == nil {
			return model.PinnedImage{}, false
		}
		return newest.Image, true
	}
}

// pins are the digests of the layers that tickets in use pin: those are not to be
// evicted from the cache.
type pins struct {
	observed func() *model.Observed

	mu   sync.Mutex // guards what is below
	of   *model.Observed
	held map[string]bool
}

// spare reports whether a ticket in use pins a digest.
func (p *pins) spare(digest string) bool {
	o := p.observed()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != o {
		p.of, p.held = o, heldLayers(o)
	}
	return p.held[digest]
}

func heldLayers(o *model.Observed) map[string]bool {
	held := make(map[string]bool)
	for _, rec := range o.Servers {
		if rec.Ticket == nil || !netboot.InUse(rec.Ticket) {
			continue
		}
		img := &rec.Ticket.Image
		for _, layer := range []*model.Layer{img.Kernel, img.Initrd, img.Squashfs, img.UKI} {
			if layer != nil {
				held[layer.Digest] = true
			}
		}
	}
	return held
}

// render makes the Ignition that a ticket hands out.
func (b *boots) render(t *model.Ticket, boot plan.Boot) (model.Sensitive, error) {
	token := b.registry.TokenKey().Report(t)
	if t.Purpose == model.PurposeClaim {
		_, name := model.SplitName(t.Claim)
		return b.ignition.ForClaim(ignition.ClaimBoot{
			UUID: t.UUID, Secret: boot.Secret, KernelArguments: boot.KernelArguments,
			BootStateURL: b.registryURL + "/r/" + token.Reveal() + "/bootstate",
			InstanceID:   t.ID, Hostname: name,
		})
	}
	return b.ignition.ForProbe(ignition.ProbeBoot{
		UUID: t.UUID, RegistryURL: b.registryURL, Token: token, Purpose: t.Purpose, CleanupMode: t.CleanupMode,
	})
}

// Find implements bootsvc.Tickets.
func (b *boots) Find(id string) (model.TicketHolder, bool) { return b.registry.Find(id) }

// Payload implements bootsvc.Tickets. What was kept for the ticket may be lost
// with the store; then it is made again from Git, if Git still holds the same.
func (b *boots) Payload(ctx context.Context, t *model.Ticket) (model.Sensitive, error) {
	ign, err := b.registry.Payload(ctx, t.ID)
	if !errors.Is(err, registry.ErrNotFound) {
		return ign, err
	}
	d := b.desired()
	if d == nil {
		return ign, err
	}
	boot, same := plan.BootOf(d, t, b.registry.DigestKey())
	if !same {
		return ign, fmt.Errorf("%w, and Git no longer holds what the ticket was armed for", err)
	}
	return b.render(t, boot)
}

// diskBoot is how a server's firmware is sent on to its disk.
func (b *boots) diskBoot(name model.ServerName) bootsvc.DiskBoot {
	if d := b.desired(); d != nil && d.Servers[name] != nil {
		return bootsvc.DiskBoot(d.Servers[name].Annotations[model.AnnotationBootFromDisk])
	}
	return bootsvc.DiskExit
}

// Note implements bootsvc.Tickets.
func (b *boots) Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	return b.registry.Note(ctx, t, stage, client)
}

// Use implements bootsvc.Tickets.
func (b *boots) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refusal model.TicketRefusal) {
	b.registry.Use(t, what, by, refusal)
}

// Pinned implements bootsvc.Tickets.
func (b *boots) Pinned(repository, digest string) (*model.Ticket, bool) {
	return b.registry.Pinned(repository, digest)
}

// janitor forgets the Ignition of tickets that ended, now and then until ctx ends.
func (b *boots) janitor(ctx context.Context, every time.Duration, log *slog.Logger) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		wanted := make(map[string]bool)
		for _, rec := range b.registry.Observed().Servers {
			if t := rec.Ticket; t.Open() || t != nil && t.Always {
				wanted[t.ID] = true
			}
		}
		err := b.registry.DropPayloads(ctx, func(id string) bool { return wanted[id] })
		if err != nil && ctx.Err() == nil {
			log.Warn("Ignition of ended tickets not forgotten, it is tried again", "err", err)
		}
	}
}

// sink is the status branch as reconcile knows it.
type sink struct{ *daemon }

func (s sink) Publish(ctx context.Context, r *model.Report) (reconcile.Publication, error) {
	p, err := s.status.Publish(ctx, r)
	switch {
	case errors.Is(err, gitsource.ErrFenced):
		s.registry.EndLead() // before the next request to a BMC
		return reconcile.Publication{}, fmt.Errorf("%w: %w", reconcile.ErrFenced, err)
	case err != nil:
		if after, ok := gitsource.RetryAfter(err); ok {
			err = &later{err, after}
		}
		return reconcile.Publication{}, err
	}
	s.sighted()
	if p.Foreign != nil {
		s.log.Warn("commit of somebody else on the status branch overwritten", "author", p.Foreign.Author, "commit", p.Foreign.Commit)
	}
	if p.SetBack {
		s.log.Warn("the status branch was set back, and is written again", "reason", "StatusBranchSetBack", "commit", p.Commit)
	}
	if p.Bare {
		s.log.Warn("the server refuses the status branch as it is, so it is published without free text")
	}
	done := reconcile.Publication{Head: p.Commit, Committed: p.New, Incomplete: p.Bare}
	for path := range p.Skipped {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(path, ".yaml"), "servers/"); ok {
			done.Skipped = append(done.Skipped, model.ServerName(name))
		}
	}
	return done, nil
}

// later is an error of a server that said when to come back.
type later struct {
	error
	after time.Duration
}

func (e *later) RetryAfter() time.Duration { return e.after }
func (e *later) Unwrap() error             { return e.error }

// sessions are the sessions of BMCs that outlive this process, as the BMC clients know
// them.
type sessions struct{ registry *registry.Registry }

// Kept implements bmc.Sessions.
func (s sessions) Kept(name model.BMCName) []bmc.Session {
	var kept []bmc.Session
	for _, k := range s.registry.Sessions() {
		if k.BMC == name {
			kept = append(kept, bmc.Session{URI: k.URI, Token: k.Token})
		}
	}
	return kept
}

// Keep implements bmc.Sessions.
func (s sessions) Keep(ctx context.Context, name model.BMCName, session bmc.Session) error {
	return s.registry.SaveSession(ctx, name, session.URI, session.Token)
}

// Drop implements bmc.Sessions.
func (s sessions) Drop(ctx context.Context, name model.BMCName, uri string) error {
	return s.registry.DropSession(ctx, name, uri)
}

// certificates reads a file of authorities, nil for none.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("bmc.caFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("bmc.caFile: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}
