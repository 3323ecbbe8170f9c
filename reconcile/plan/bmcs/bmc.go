// Package bmcs decides about BMCs and the devices on their networks: where each is, why it cannot be
// used, which credentials are tried, when it is read next, and what the result of a reading means.
package bmcs

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// BMC is all that is known of one BMC, in Git or found on the network.
type BMC struct {
	Name     model.BMCName
	Manifest *model.BMC // made up for one that was Found
	Found    bool       // recognised by the MAC prefix database
	Record   *model.BMCRecord
	Facts    *model.BMCFacts // nil = it was never read
	Endpoint *Endpoint       // the device that it is, nil if that is not known
	// Target is how it is reached. Nothing is sent to it while the address is empty.
	Target model.BMCTarget
	Why    proposal.Why // why it cannot be used
	ReadAt time.Time    // when this process last read it

	// Problems are why systems of it cannot become servers, Duplicates its systems with the UUID of another server.
	Problems, Duplicates []string

	reread Reread    // how soon its servers need another reading
	taken  bool      // it is within a Server, and another BMC has its address
	trial  string    // the credential of the MAC prefix database that is tried next
	resume time.Time // when the next credential may be tried, if none may be now
}

// Reread is how soon a BMC is read again.
type Reread int

// The times of the next reading.
const (
	RereadInTime Reread = iota // at each RefreshInterval
	RereadOften                // at each PollInterval, because it contradicts the record of a server
	RereadNow                  // because a decision waits for it
)

// Needs notes that a server needs another reading.
func (b *BMC) Needs(r Reread) { b.reread = max(b.reread, r) }

// IsUnasked reports whether the BMC has not answered yet, and no problem is known.
func (b *BMC) IsUnasked() bool { return b.Facts == nil && b.Why.Reason == model.ReasonPending }

// DuplicateAdvice says what to do about two machines of one UUID.
const DuplicateAdvice = "if it is one machine behind two BMCs, take one of them out of Git; " +
	"if there are two, give the one that is newer here a UUID of its own with its vendor's tool"

// Console says where the consoles of its servers are.
func (b *BMC) Console() string {
	if c := b.Manifest.Spec.ConsoleProtocol; c != nil {
		return fmt.Sprintf("its console is that of BMC %s (%s, port %d)", b.Name, c.Name, c.Port)
	}
	return "its console is that of BMC " + string(b.Name)
}

// why is a reason that holds since the state of the BMC changed last.
func (b *BMC) why(reason, message string, actor proposal.Actor) proposal.Why {
	return proposal.Why{Reason: reason, Message: message, Since: b.Record.Since, Actor: actor}
}

func (b *BMC) isIgnored() bool {
	return b.Manifest.Annotations[model.AnnotationOperation] == model.OperationIgnore
}

// load adds what was recorded and read of a BMC.
func (s *Set) load(b *BMC) {
	b.Record, b.Facts, b.ReadAt = s.in.Observed.BMCs[b.Name], s.in.Observed.BMCFacts[b.Name], s.in.Read[b.Name]
	if b.Record == nil {
		b.Record = &model.BMCRecord{Name: b.Name}
	}
	b.Why = s.reach(b)
	if problem := s.withinProblem(b); problem != "" {
		b.Problems = append(b.Problems, problem)
	}
	if uuid := b.Manifest.Spec.BMCUUID; uuid != "" && b.Facts != nil && b.Facts.UUID == "" {
		b.Problems = append(b.Problems, fmt.Sprintf("it shows no UUID, so spec.bmcUUID %s (%s) cannot be compared", uuid, b.Manifest.Source))
	}
}
