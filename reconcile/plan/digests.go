package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// digestKey is what a digest is made from. An object of the desired state is never
// changed, so that its address stands for what it holds while it is remembered.
type digestKey struct {
	namespace, image, arguments, rootDevice, seed string

	secret *model.Secret
}

// digest is bootDigest under a key, remembered for as long as the desired state has the
// same.
func (m *Memory) digest(b *proposal.Boot, key model.DigestKey) string {
	made := digestKey{b.Namespace, b.Image, b.KernelArguments, b.RootDevice, b.ClaimSeed, b.SecretObject}
	sum, known := m.now[made]
	if !known {
		if sum, known = m.previous[made]; !known {
			sum = proposal.KeyedDigest(key, b)
		}
		m.now[made] = sum
	}
	return sum
}

// digest is by what a boot is known.
func (s *server) digest(b *proposal.Boot) string {
	return s.fleet.memory.digest(b, s.fleet.in.DigestKey)
}

// runs reports whether a boot is what was installed.
func (s *server) runs(b *proposal.Boot) bool {
	key := s.fleet.in.DigestKey
	if key.Made(s.rec.Install.Digest) {
		return s.digest(b) == s.rec.Install.Digest
	}
	return proposal.SameBoot(key, s.rec.Install.Digest, s.rec.Boot.Ticket, b)
}

// rekey puts the digests on record under the present key. A digest under a lost key tells
// nothing. It decides nothing.
func (s *server) rekey() (Step, bool) {
	if s.fleet.observeOnly.Reason != "" {
		return Step{}, false
	}
	var ticketed, failed string
	if t := s.rec.Boot.Ticket; t != nil {
		ticketed = t.Digest
	}
	if p := s.rec.Boot.Problem; p != nil {
		failed = p.Digest
	}
	installed, ticket, problem := s.rekeyed(s.rec.Install.Digest), s.rekeyed(ticketed), s.rekeyed(failed)
	if installed == s.rec.Install.Digest && ticket == ticketed && problem == failed {
		return Step{}, false
	}
	rec := s.edit()
	rec.Install.Digest = installed
	if rec.Boot.Ticket != nil {
		t := *rec.Boot.Ticket
		t.Digest = ticket
		rec.Boot.Ticket = &t
	}
	if rec.Boot.Problem != nil {
		p := *rec.Boot.Problem
		p.Digest = problem
		rec.Boot.Problem = &p
	}
	return s.stay(), true
}

// rekeyed returns the digest of an installed boot under the present key. Any other digest
// stays as it is.
func (s *server) rekeyed(digest string) string {
	key := s.fleet.in.DigestKey
	if digest == "" || key.Made(digest) || digest != s.rec.Install.Digest || s.claim == nil {
		return digest
	}
	if boot, why := s.claimBoot(); why.Reason == "" && proposal.SameBoot(key, digest, s.rec.Boot.Ticket, &boot) {
		return s.digest(&boot)
	}
	return digest
}
