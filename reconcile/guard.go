package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
)

// maxApproved is how many approvals are remembered.
const maxApproved = 20

// guard decides which releases and reprovisions may be begun. If the revision
// asks for more of them than the limit, none is, until a commit approves the
// list by its hash (law 2). What was decided before does not count again.
func (f *fleet) guard() {
	steps, bound := f.disruptions()
	var let []model.Disruption
	for _, d := range f.record.Letting {
		if slices.Contains(steps, d) {
			let = append(let, d)
		}
	}
	f.record.Letting = let
	f.allow(let)
	steps = slices.DeleteFunc(steps, func(d model.Disruption) bool { return slices.Contains(let, d) })
	limit := max(f.in.Policy.MaxDisruptions, (bound+9)/10)
	if len(steps) <= limit {
		f.record.Guard = nil
		f.allow(steps)
		return
	}
	hash := f.stepsHash(steps)
	if slices.Contains(f.record.Approved, hash) || slices.Contains(f.in.Desired.Approvals, hash) {
		f.approve(hash)
		f.record.Letting = append(let, steps...)
		f.allow(steps)
		return
	}
	for _, d := range steps {
		f.held[d.Server] = true
	}
	if g := f.record.Guard; g != nil && g.Hash == hash {
		return
	}
	f.record.Guard = &model.GuardHold{
		Revision: f.in.Desired.Revision, Hash: hash, Since: f.in.Now, Limit: limit, Steps: steps,
	}
}

// disruptions lists what this revision would take from users of servers and was
// not decided yet, in the order of servers, and how many servers are bound.
func (f *fleet) disruptions() (steps []model.Disruption, bound int) {
	for _, s := range f.servers {
		out := s.rec.State == model.StateMaintenance && s.rec.Back == model.StateReserved
		if s.rec.State == model.StateReserved || out {
			bound++
		}
		if s.rec.State != model.StateReserved && s.rec.State != model.StateReleased && !out ||
			s.rec.State == model.StateReserved && s.rec.Release != nil || f.observeOnly.Reason != "" {
			continue
		}
		if action := f.disruption(s); action != "" {
			steps = append(steps, model.Disruption{Action: action, Server: s.name, Claim: s.rec.Claim})
		}
	}
	return steps, bound
}

// disruption is what the revision would do to a Reserved server, "" if nothing.
func (f *fleet) disruption(s *server) string {
	switch {
	case s.rec.State == model.StateReleased && (s.claim != nil || s.spec == nil || s.spec.Spec.ReclaimPolicy == model.ReclaimRetain):
		return ""
	case s.rec.State == model.StateReleased:
		return "wipe"
	case s.claim == nil && f.untrusted(s.rec.Claim):
		return ""
	case s.claim == nil && s.spec != nil && s.spec.Spec.ReclaimPolicy == model.ReclaimRetain:
		return "retain"
	case s.claim == nil:
		return "release"
	case s.reprovisionAsked() && s.rec.Installed != "":
		return "reprovision"
	}
	return ""
}

// reprovisionAsked reports whether the claim asks anew to be installed again.
func (s *server) reprovisionAsked() bool {
	v := s.claim.Annotations[model.AnnotationReprovision]
	return v != "" && !wasHandled(s.rec, askedReprovision, v)
}

// allow lets steps be begun.
func (f *fleet) allow(steps []model.Disruption) {
	for _, d := range steps {
		if d.Action != "reprovision" {
			f.toRelease[d.Server] = true
			continue
		}
		s := f.byName[d.Server]
		rec := s.edit()
		rec.Reprovision = s.claim.Annotations[model.AnnotationReprovision]
		handle(rec, askedReprovision, rec.Reprovision)
	}
}

func (f *fleet) approve(hash string) {
	f.record.Guard = nil
	if slices.Contains(f.record.Approved, hash) {
		return
	}
	approved := append(slices.Clone(f.record.Approved), hash)
	f.record.Approved = approved[max(0, len(approved)-maxApproved):]
}

// stepsHash is the short hash that a commit approves a list by. The binding and the value asked for are part of it, so that an approval is good
// for nothing that is asked for later.
func (f *fleet) stepsHash(steps []model.Disruption) string {
	var b strings.Builder
	for _, d := range steps {
		s, value := f.byName[d.Server], ""
		if s.claim != nil {
			value = s.claim.Annotations[model.AnnotationReprovision]
		}
		fmt.Fprintf(&b, "%s %s %s %d %q\n", d.Action, d.Server, d.Claim, s.rec.ClaimedAt.UnixNano(), value)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:6])
}
