package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// adoptable reports whether Git says that this server serves a claim already.
func (s *server) adoptable() bool {
	c := s.adopter()
	return c != nil && s.fleet.serving(c.ClaimName()) == nil
}

// adopter is the claim that the server's manifest names in serverClaimRef.
func (s *server) adopter() *model.ServerClaim {
	if s.spec == nil || s.spec.Spec.ServerClaimRef == nil {
		return nil
	}
	ref := s.spec.Spec.ServerClaimRef
	return s.fleet.in.Desired.Claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)]
}

// unreadyToAdopt says why the server is not adopted yet: what it runs is taken to be what its
// claim asks for, so that has to be known.
func (s *server) unreadyToAdopt() proposal.Why {
	_, why := proposal.BootOfClaim(s.fleet.in.Desired, s.adopter())
	if why.Reason != "" {
		why.Message += fmt.Sprintf("; the server is left alone until it is, and serves claim %s then (spec.serverClaimRef)", s.adopter().ClaimName())
		why.Since = s.rec.Life.Since
	}
	return why
}

// adopt takes over a server as it runs, without touching it (L01).
func (s *server) adopt() Step {
	s.claim = s.adopter()
	s.fleet.serve(s.claim.ClaimName(), s)
	rec := s.edit()
	rec.Claim.Name, rec.Claim.BoundAt, rec.Claim.Power = s.claim.ClaimName(), s.now(), s.claim.Spec.Power
	rec.Claim.Tenant, rec.Claim.Cleanup = s.claim.Tenant, s.claim.Annotations[model.AnnotationCleanup]
	s.announce(model.IntentAdopt, string(rec.Claim.Name))
	proposal.ResetHandled(rec, proposal.AskedReprovision, s.claim.Annotations[model.AnnotationReprovision])
	rec.Life.FoundRunning = time.Time{}
	boot, _ := s.claimBoot()
	rec.Install.Digest, rec.Install.Unconfirmed = s.digest(&boot), time.Time{}
	return s.enter(model.StateReserved)
}
