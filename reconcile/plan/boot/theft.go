package boot

import (
	"cmp"
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

// maxThefts is how many tickets in a row may be used up by others before a person is asked.
const maxThefts = 3

// takenBy returns the first client with another machine's MAC address that got what configures the server.
func takenBy(t *model.Ticket, p *model.Progress) (by model.TicketUse, taken bool) {
	if t == nil || p == nil {
		return by, false
	}
	for _, u := range p.Uses {
		configures := u.What == model.ThingIgnition || u.What == model.ThingCloudInit ||
			u.What == model.ThingScript && t.Config == model.ThingScript
		if configures && u.Served() && u.MAC != "" && !u.Own {
			return u, true
		}
	}
	return by, false
}

var boots = []model.TicketThing{model.ThingScript, model.ThingIgnition, model.ThingCloudInit, model.ThingImage, model.ThingInstall}

// stolen returns the client that used a ticket up and is not its server, which was refused it since. Both have
// to be certain: the client's MAC address is another machine's, the one that asked is the server's, and nothing to boot
// was served to what may be the server: it may be installing.
func stolen(t *model.Ticket, p *model.Progress) (by model.TicketUse, yes bool) {
	by, taken := takenBy(t, p)
	if !taken || len(p.Uses) >= model.MaxTicketUses { // some may be missing
		return by, false
	}
	asked := false
	for _, u := range p.Uses {
		if slices.Contains(boots, u.What) && u.Served() && (u.Own || u.MAC == "") {
			return by, false
		}
		asked = asked || u.Own && (u.What == model.ThingScript || u.What == model.ThingBootFile) &&
			u.Refusal == model.RefusedReplay && !u.Last.Before(by.First)
	}
	return by, asked
}

// Theft arms a server again whose ticket was stolen, while nothing is installed and it boots nothing.
func Theft(s *server) (p proposal.Proposal, ok bool) {
	t := s.Ticket()
	if !t.Open() || !bootsNothing(s) {
		return p, false
	}
	by, yes := stolen(t, s.Progress())
	if !yes || mayHave(s, by.MAC) {
		return p, false
	}
	theft := &model.Theft{Purpose: t.Purpose, Claim: t.Claim, Client: by.Client, MAC: by.MAC, At: by.First, Count: 1}
	if s.Claim != nil {
		if boot, why := booting.ClaimBoot(s); why.Reason == "" && boot.SecretObject != nil {
			theft.Secret = booting.Digest(s.DigestKey, secretOf(&boot))
		}
	}
	if old := s.Record.Boot.Theft; old != nil && old.Purpose == t.Purpose && old.Claim == t.Claim {
		theft.Count += old.Count
	}
	s = s.Change(func(rec *model.ServerRecord) { rec.Boot.Theft = theft })
	if theft.Count >= maxThefts {
		return s.Fail(proposal.Look, model.ReasonTicketStolen, fmt.Sprintf("its boot tickets were used up by others %d times, last by %s at %s: find "+
			"that machine and take it off the network, or let tickets be used by their own machine alone (boot.bindTickets); then set %s",
			theft.Count, thiefText(theft), text.Time(theft.At), proposal.RetryText(s))), true
	}
	return s.Change(func(rec *model.ServerRecord) {
		proposal.EndTicket(rec, model.TicketSpent)
		if t.Purpose == model.PurposeDiscovery {
			rec.Boot.Attempts = max(rec.Boot.Attempts-1, 0) // it counts as no attempt
		} else if t.Purpose == model.PurposeCleanup {
			rec.Power.Asked = nil
		}
	}).Stay(proposal.Look), true
}

// mayHave reports whether a MAC address may be the server's, also that of a card that only its probe found.
func mayHave(s *server, mac string) bool {
	if slices.ContainsFunc(s.Record.MACs, func(m model.ServerMAC) bool { return m.Address == mac }) {
		return true
	}
	p := s.Observed.Probes[s.Name]
	return p != nil && slices.Contains(p.Data.MACs(), mac)
}

// bootsNothing reports whether a new ticket would interrupt nothing: nothing is installed or was reported.
func bootsNothing(s *server) bool {
	t := s.Ticket()
	switch s.Record.Life.State {
	case model.StateReserved:
		return t.Purpose == model.PurposeClaim && t.Claim == s.Record.Claim.Name && proposal.Installs(s) && proposal.DiskInstall(s) == nil
	case model.StateDiscovery:
		return t.Purpose == model.PurposeDiscovery && proposal.ProbeReport(s) == nil
	case model.StateCleanup:
		return t.Purpose == model.PurposeCleanup && proposal.WipeReport(s) == nil && s.Trace().Wiping() == nil
	case model.StateInitial, model.StateAvailable, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	return false
}

// Exposed says that the Secret of the claim was served to another machine, until it is another Secret.
func Exposed(s *server) proposal.Why {
	theft := s.Record.Boot.Theft
	if by, taken := takenBy(s.Ticket(), s.Progress()); taken && !mayHave(s, by.MAC) && s.Ticket().Claim == s.Record.Claim.Name {
		theft = &model.Theft{Claim: s.Record.Claim.Name, Client: by.Client, MAC: by.MAC, At: by.First}
	}
	if theft == nil || s.Claim == nil || theft.Claim != s.Record.Claim.Name {
		return proposal.Why{}
	}
	boot, why := booting.ClaimBoot(s)
	same := theft.Secret == "" || booting.SameBoot(s.DigestKey, theft.Secret, nil, secretOf(&boot)) // as far as is known
	if why.Reason != "" || boot.SecretObject == nil || !same {
		return proposal.Why{}
	}
	text := fmt.Sprintf("Secret %s was served to %s, which is not known to be its server: rotate what is "+
		"in it", boot.SecretObject.Identity().Name, thiefText(theft))
	return proposal.Why{Reason: model.ReasonTicketStolen, Message: text, Since: theft.At, Actor: proposal.Tenant}
}

// secretOf is a boot of nothing but its Secret, to compare that alone.
func secretOf(b *proposal.Boot) *proposal.Boot {
	return &proposal.Boot{SecretObject: b.SecretObject, Namespace: b.Namespace}
}

func thiefText(t *model.Theft) string {
	return fmt.Sprintf("%s (%s)", cmp.Or(t.Client, "an unknown address"), t.MAC)
}
