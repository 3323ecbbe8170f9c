package adapter

import (
	"context"

	"ingot/bmc"
	"ingot/model"
	"ingot/registry"
)

// BMCs is the pool of BMC clients as reconcile knows it.
type BMCs struct{ Pool *bmc.Pool }

// Discover implements reconcile.BMCs.
func (b BMCs) Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error) {
	f, err := b.Pool.Discover(ctx, t)
	return f, reasoned(err)
}

// Inventory implements reconcile.BMCs.
func (b BMCs) Inventory(ctx context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	f, err := b.Pool.Inventory(ctx, t)
	return f, reasoned(err)
}

// Power implements reconcile.BMCs.
func (b BMCs) Power(ctx context.Context, t model.SystemTarget) (model.MachineState, error) {
	s, err := b.Pool.State(ctx, t)
	return model.MachineState{Power: s.Power, POST: s.POST}, reasoned(err)
}

// Reset implements reconcile.BMCs.
func (b BMCs) Reset(ctx context.Context, t model.SystemTarget, k model.ResetKind, from model.Power) (model.ResetResult, error) {
	r, err := b.Pool.Reset(ctx, t, k, from)
	return r, reasoned(err)
}

// ClearBootOverride implements reconcile.BMCs.
func (b BMCs) ClearBootOverride(ctx context.Context, t model.SystemTarget) error {
	return reasoned(b.Pool.ClearBootOverride(ctx, t))
}

// BootOnce implements reconcile.BMCs.
func (b BMCs) BootOnce(ctx context.Context, t model.SystemTarget, m model.BootMethod) (string, error) {
	variant, err := b.Pool.BootOnce(ctx, t, m)
	return variant, reasoned(err)
}

// SetIndicator implements reconcile.BMCs.
func (b BMCs) SetIndicator(ctx context.Context, t model.SystemTarget, led string) (model.Indicator, error) {
	shown, err := b.Pool.SetIndicator(ctx, t, led)
	return shown, reasoned(err)
}

// Forget implements reconcile.BMCs.
func (b BMCs) Forget(ctx context.Context, name model.BMCName) { b.Pool.Forget(ctx, name) }

// SetBootOrder implements reconcile.BMCs.
func (b BMCs) SetBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) (model.ShownBootOrder, error) {
	order, err := b.Pool.SetBootOrder(ctx, t, want)
	return order, reasoned(err)
}

// Sessions are the sessions on BMCs that outlive this process, as the BMC clients know
// them.
type Sessions struct{ Secrets *registry.Secrets }

// Kept implements bmc.Sessions.
func (s Sessions) Kept(name model.BMCName) []bmc.Session {
	var kept []bmc.Session
	for _, k := range s.Secrets.Sessions(name) {
		kept = append(kept, bmc.Session{URI: k.URI, Token: k.Token})
	}
	return kept
}

// Keep implements bmc.Sessions.
func (s Sessions) Keep(ctx context.Context, name model.BMCName, session bmc.Session) error {
	return s.Secrets.SaveSession(ctx, name, session.URI, session.Token)
}

// Drop implements bmc.Sessions.
func (s Sessions) Drop(ctx context.Context, name model.BMCName, uri string) error {
	return s.Secrets.DropSession(ctx, name, uri)
}
