package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Overview is the beginning of each status: what all lists show of an object.
type Overview struct {
	// Waiting is empty for an object that waits for nothing. The first entry is the most important.
	Waiting []Waiting `json:"waiting,omitempty"`
	Summary Summary   `json:"summary"`
}

// Waiting is one thing that an object waits for.
type Waiting struct {
	Reason  model.Reason   `json:"reason"`
	Message string         `json:"message,omitempty"`
	Since   time.Time      `json:"since,omitzero"`
	Actor   proposal.Actor `json:"actor,omitempty"`   // empty: Ingot continues by itself
	Next    string         `json:"next,omitempty"`    // what to do
	Approve string         `json:"approve,omitempty"` // the line of a commit message that approves it
	Revert  string         `json:"revert,omitempty"`  // the command that takes back the commit that caused it
}

// Summary has the columns of lists. Each kind has some of them.
type Summary struct {
	State  string           `json:"state"`
	Since  time.Time        `json:"since,omitzero"` // when State was entered
	Server model.ServerName `json:"server,omitempty"`
	Claim  model.ClaimName  `json:"claim,omitempty"`
	BMC    model.BMCName    `json:"bmc,omitempty"`
	Power  model.Power      `json:"power,omitempty"`
	Rack   string           `json:"rack,omitempty"` // berlin/r7 U4
	Image  string           `json:"image,omitempty"`
	// Addresses are those of the machine: leased to its MAC addresses, or as AddressFrom says.
	// Of a BMC it is host:port.
	Addresses []string `json:"addresses,omitempty"`
	// AddressFrom says where Addresses come from that are not leases of Ingot; empty = they are.
	AddressFrom string `json:"addressFrom,omitempty"`
	// Login is the command that logs in to a claim's server, empty if its user or its address is unknown.
	Login string `json:"login,omitempty"`
}

// The states of a claim. Bound says that it has a server, Booted that the server
// reported that the claimed image runs, Unconfirmed that it did not report in time.
const (
	ClaimUnbound     = "Unbound"
	ClaimBound       = "Bound"
	ClaimUnconfirmed = "Unconfirmed"
	ClaimBooted      = "Booted"
)

// ClaimStates are the states of a claim, in their order.
func ClaimStates() []string {
	return []string{ClaimUnbound, ClaimBound, ClaimUnconfirmed, ClaimBooted}
}

// The states of a device. Awaited says that its MAC address is unknown, Recognised that its BMC
// is known, Lost that its address was leased to another device.
const (
	EndpointAwaited      = "Awaited"
	EndpointRecognised   = "Recognised"
	EndpointUnrecognised = "Unrecognised"
	EndpointLost         = "Lost"
)

func (o Overview) overview() Overview { return o }

// Overview is what lists show of the object, empty for kinds without a status of their own.
func (d *Document) Overview() Overview {
	if st, ok := d.Status.(interface{ overview() Overview }); ok {
		return st.overview()
	}
	return Overview{}
}

// First is the most important thing that the object waits for, empty for nothing.
func (o Overview) First() Waiting {
	if len(o.Waiting) == 0 {
		return Waiting{}
	}
	return o.Waiting[0]
}

// NeedsAction reports whether a person has to act.
func (o Overview) NeedsAction() bool {
	return slices.ContainsFunc(o.Waiting, func(w Waiting) bool { return w.Actor != proposal.ActorNone })
}

// Text is the message, or the reason of a waiting without one.
func (w Waiting) Text() string {
	if w.Message == "" {
		return w.Reason
	}
	return w.Message
}

// wait adds what an object waits for, if it is anything. The zero value of ways adds neither approval nor revert.
func (o *Overview) wait(why proposal.Why, by ways) {
	if why.Reason == "" {
		return
	}
	same := func(w Waiting) bool { return w.Reason == why.Reason && w.Message == shownText(why.Message) }
	if slices.ContainsFunc(o.Waiting, same) {
		return
	}
	w := Waiting{
		Reason: why.Reason, Message: shownText(why.Message), Since: why.Since.UTC().Truncate(time.Second), Actor: why.Actor,
		Approve: by.approve, Revert: by.revert,
	}
	switch a := adviceOn(why.Reason); {
	case w.Actor != proposal.ActorNone:
		w.Next = a.Text
	case a.Actor != proposal.ActorNone: // not this time
		w.Next = model.GoesOn
	}
	o.Waiting = append(o.Waiting, w)
}

// ways are how a person approves or refuses what an object waits for.
type ways struct{ approve, revert string }

// waysOf returns how a person approves or refuses a reason for which a server, or a claim, waits.
func (v *view) waysOf(why proposal.Why, server model.ServerName, claim model.ClaimName) ways {
	fleet := &v.in.Observed.Fleet
	switch why.Reason {
	case model.ReasonGuardHeld:
		for _, h := range fleet.Holds { // a server may have steps in several, and its message names the right one
			if approve := proposal.ApproveLine(h.Token); strings.Contains(why.Message, approve) {
				return ways{approve, proposal.Refuse(h.Revision)}
			}
		}
	case model.ReasonAbsentWithoutCommit:
		if a, listed := v.in.Desired.Absence(claim.Identity()); listed {
			return approvedBy(a.Token)
		}
	case model.ReasonFleetUnknown:
		return approvedBy(fleet.UnknownToken)
	case model.ReasonRecordUnreadable:
		for _, u := range fleet.Unreadable {
			if u.Claim == claim {
				return approvedBy(u.Token)
			}
		}
	case model.ReasonFoundRunning:
		if server == "" {
			return approvedBy(fleet.GapToken)
		}
		if s := v.servers[server]; s != nil && (s.Record.Life.State == model.StateAvailable || s.Record.Life.State == model.StateCleanup) {
			return approvedBy(fleet.GapToken)
		}
	}
	return ways{}
}

func approvedBy(token string) ways {
	if token == "" {
		return ways{}
	}
	return ways{approve: proposal.ApproveLine(token)}
}

// conditions are those of an object's status.
type conditions []metav1.Condition

func (c conditions) of(kind string) metav1.Condition {
	at := slices.IndexFunc(c, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 {
		return metav1.Condition{}
	}
	return c[at]
}

// text is the place as lists show it, empty without a rack.
func (p place) text() string {
	text := p.rack
	if p.location != "" {
		text = p.location + "/" + p.rack
	}
	if p.unit > 0 {
		text += fmt.Sprintf(" U%d", p.unit)
	}
	return text
}
