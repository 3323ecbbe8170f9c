package model

import (
	"net/netip"
	"slices"
	"time"
)

// MaxTicketUses bounds the uses that are kept of a ticket. Those behind it are
// counted by metrics alone.
const MaxTicketUses = 32

// TicketUse is one kind of request that was made with a ticket, or for it: the same
// thing, by the same client, with the same answer.
type TicketUse struct {
	What    TicketThing   `json:"what"`
	Client  string        `json:"client,omitempty"`  // IP address, "" when it is not known
	MAC     string        `json:"mac,omitempty"`     // of the client, "" when nothing shows it
	Own     bool          `json:"own,omitempty"`     // MAC is one of the server's
	Token   bool          `json:"token,omitempty"`   // the client showed the ticket's token
	Port    string        `json:"port,omitempty"`    // that a DHCP relay heard MAC on
	Refusal TicketRefusal `json:"refusal,omitempty"` // "" when it was served
	First   time.Time     `json:"first"`
	Last    time.Time     `json:"last"`
	Count   int           `json:"count"`
}

// Served reports whether the request was answered with what it asked for.
func (u TicketUse) Served() bool { return u.Refusal == "" }

// TicketThing is what a request asked a ticket for.
type TicketThing string

// The things that a ticket stands for.
const (
	ThingScript    TicketThing = "iPXE script"
	ThingIgnition  TicketThing = "Ignition"
	ThingCloudInit TicketThing = "cloud-init data"
	ThingImage     TicketThing = "image"
	ThingInstall   TicketThing = "disk image" // to a probe that writes it: what to write, and its chunks
	ThingReport    TicketThing = "report"
	ThingBootState TicketThing = "boot state"
	ThingWipe      TicketThing = "wipe result"
	// ThingBootFile is what DHCP tells firmware that asks what to boot.
	ThingBootFile TicketThing = "boot file"
)

// TicketRefusal is why a request was refused.
type TicketRefusal string

// The reasons to refuse a request.
const (
	// RefusedAddress: another client than the one that may use the ticket.
	RefusedAddress TicketRefusal = "WrongAddress"
	// RefusedUnknown: the MAC address of the client belongs to no known server.
	RefusedUnknown TicketRefusal = "UnknownInterface"
	// RefusedCannotTell: nothing shows the MAC address of the client.
	RefusedCannotTell TicketRefusal = "CannotTell"
	// RefusedContested: the client's address is, or was a moment ago, another machine's.
	RefusedContested TicketRefusal = "Contested"
	// RefusedOther: the MAC address of the client is another server's.
	RefusedOther TicketRefusal = "OtherServer"
	// RefusedToken: a token that is not that of the server's ticket, or none where one
	// is needed.
	RefusedToken TicketRefusal = "WrongToken"
	// RefusedSpent: the ticket is spent, or was superseded.
	RefusedSpent TicketRefusal = "Spent"
	// RefusedReplay: what a ticket gives once was asked for again.
	RefusedReplay TicketRefusal = "Replay"
)

// TicketRefusals are all of them.
var TicketRefusals = []TicketRefusal{
	RefusedAddress, RefusedUnknown, RefusedCannotTell, RefusedContested, RefusedOther, RefusedToken, RefusedSpent, RefusedReplay,
}

// Untold reports whether a request was refused because it is not clear whose it was, or
// because it is clear that it was not the server's.
func (r TicketRefusal) Untold() bool {
	return r == RefusedUnknown || r == RefusedCannotTell || r == RefusedContested || r == RefusedOther
}

// Asker is who made a request, as far as that is known.
type Asker struct {
	Client netip.Addr // the zero value when it is not known
	MAC    string     // canonical; "" when nothing shows it
	Own    bool       // MAC is one of the server's whose ticket was asked for
	Token  bool       // the request showed the ticket's token
	Port   string     // that a DHCP relay heard MAC on
}

// MaxSightings bounds the sightings that are kept with a ticket.
const MaxSightings = 16

// Sighting is a network card that asked DHCP for a boot file under a server's UUID.
// Anybody can say so of himself.
type Sighting struct {
	MAC   string    `json:"macAddress"` // canonical
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Within reports whether the card asked between two times, as far as is known.
func (s Sighting) Within(from, to time.Time) bool { return !s.Last.Before(from) && s.First.Before(to) }

// sightedEvery is how often it is noted at most that a card asks again.
const sightedEvery = 10 * time.Second

// Sighted returns p with a sighting noted at now, and whether that is news.
func (p Progress) Sighted(mac string, now time.Time) (Progress, bool) {
	at := slices.IndexFunc(p.Sightings, func(s Sighting) bool { return s.MAC == mac })
	switch {
	case at >= 0 && now.Sub(p.Sightings[at].Last).Abs() < sightedEvery:
		return p, false
	case at >= 0:
		p.Sightings = slices.Clone(p.Sightings) // nobody changes what others may read
		p.Sightings[at].Last = now
	case len(p.Sightings) < MaxSightings:
		p.Sightings = append(slices.Clip(p.Sightings), Sighting{mac, now, now})
	case p.SightedMore:
		return p, false
	default:
		p.SightedMore = true
	}
	return p, true
}
