package model

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TicketPurpose is what a boot ticket boots a server for.
type TicketPurpose string

// The purposes of a boot ticket.
const (
	PurposeDiscovery TicketPurpose = "Discovery"
	PurposeClaim     TicketPurpose = "Claim"
	PurposeCleanup   TicketPurpose = "Cleanup"
)

// TicketState is how far a boot ticket has come.
type TicketState string

// The states of a boot ticket, in order.
const (
	TicketArmed          TicketState = "Armed"
	TicketScriptServed   TicketState = "ScriptServed"
	TicketIgnitionServed TicketState = "IgnitionServed"
	TicketBooted         TicketState = "Booted" // it served its purpose
	TicketSpent          TicketState = "Spent"  // revoked or expired
)

// Ticket is leave for one server to boot one thing from the network once.
// reconcile alone writes it; how far the server has come since is in Progress.
type Ticket struct {
	ID      string        `json:"id"` // unique for ever: server, serial and time of arming
	Server  ServerName    `json:"server"`
	UUID    string        `json:"uuid"` // canonical system UUID
	Purpose TicketPurpose `json:"purpose"`
	Claim   ClaimName     `json:"claim,omitempty"`
	Image   PinnedImage   `json:"image"`
	// Digest identifies all that is booted: image, Ignition, kernel arguments.
	Digest  string    `json:"digest"`
	ArmedAt time.Time `json:"armedAt"`
	// IgnitionAt is when its Ignition was served, or its kernel where BootedBy says so,
	// once that was seen: kept here it outlives a lost store, which loses Progress.
	IgnitionAt time.Time `json:"ignitionAt,omitzero"`
	// Ended is empty while the ticket is open, else TicketBooted or TicketSpent.
	Ended TicketState `json:"ended,omitempty"`
	// Always lets the pinned image be booted from the network on every boot, also
	// after the ticket is Booted (annotation ingot/boot: always).
	Always bool `json:"always,omitempty"`
	// BootedBy is AnnotationBooted of its claim. With BootedKernel the server may hold an
	// installed disk from when its kernel was fetched.
	BootedBy string `json:"bootedBy,omitempty"`
	// CleanupMode is the wipe that a Cleanup ticket asks for.
	CleanupMode string `json:"cleanupMode,omitempty"`
	// AwaitingOff is set while the server may still run what the ticket is to replace: it is
	// ready, and nothing boots with it before the server was seen to be off.
	AwaitingOff bool `json:"held,omitempty"`
	// Config is what configures the machine where that is not Ignition: ThingCloudInit,
	// or ThingScript for a claim whose own iPXE script is all that is served.
	Config TicketThing `json:"config,omitempty"`
	// ArchitectureBy is what says that the server has the image's architecture; empty
	// when nothing does and it is assumed.
	ArchitectureBy string `json:"architectureBy,omitempty"`
}

// PinnedImage is an OCI image whose tag was resolved once, by digest.
type PinnedImage struct {
	Ref          string `json:"ref"`          // as the person wrote it
	Repository   string `json:"repository"`   // registry/repository, without tag or digest
	Digest       string `json:"digest"`       // of the manifest of this architecture
	Architecture string `json:"architecture"` // amd64, arm64
	Kernel       *Layer `json:"kernel,omitempty"`
	Initrd       *Layer `json:"initrd,omitempty"`
	Squashfs     *Layer `json:"squashfs,omitempty"`
	UKI          *Layer `json:"uki,omitempty"`
}

// Layer is one blob of an image.
type Layer struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"` // bytes
	MediaType string `json:"mediaType,omitempty"`
}

// Progress is how far a server has come with a ticket. The boot service alone
// writes it.
type Progress struct {
	Ticket     string    `json:"ticket"`
	DHCPAt     time.Time `json:"dhcpAt,omitzero"`
	TFTPAt     time.Time `json:"tftpAt,omitzero"`
	HTTPBootAt time.Time `json:"httpBootAt,omitzero"`
	ScriptAt   time.Time `json:"scriptAt,omitzero"`
	KernelAt   time.Time `json:"kernelAt,omitzero"`
	InitrdAt   time.Time `json:"initrdAt,omitzero"`
	IgnitionAt time.Time `json:"ignitionAt,omitzero"`
	// Boots counts how often the script was served again after the configuration was
	// fetched, as it is with a ticket for always. ConfigAt is when that was fetched in the
	// newest of these boots; in the first it was at IgnitionAt.
	Boots    int       `json:"boots,omitempty"`
	ConfigAt time.Time `json:"configAt,omitzero"`
	Client   string    `json:"client,omitempty"` // IP address of the last request
	// Firmware is what DHCP heard of the machine's firmware, nil when it heard nothing.
	Firmware *BootFirmware `json:"firmware,omitempty"`
	// Sightings are the network cards that asked DHCP for a boot file under the server's
	// UUID and are not known to be the server's, the first first; at most MaxSightings of
	// them. SightedMore is set if there were more.
	Sightings   []Sighting `json:"sightings,omitempty"`
	SightedMore bool       `json:"sightedMore,omitempty"`
	// Uses are what the ticket was asked for and by whom, the first of each kind
	// first; at most MaxTicketUses of them.
	Uses []TicketUse `json:"uses,omitempty"`
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

// BootFirmware is what a machine's firmware says of itself when it asks DHCP for a boot
// file: the client system architecture type (RFC 4578 §2.1, RFC 5970 §3.3).
type BootFirmware struct {
	Architecture string `json:"architecture,omitempty"` // as OCI has it: amd64, arm64; "" = not known
	UEFI         bool   `json:"uefi,omitempty"`         // else BIOS
}

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
	// RefusedUnknown: the MAC address of the client is no known server's.
	RefusedUnknown TicketRefusal = "UnknownInterface"
	// RefusedCannotTell: nothing shows the MAC address of the client.
	RefusedCannotTell TicketRefusal = "CannotTell"
	// RefusedContested: the client's address is, or was a moment ago, somebody else's.
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

// Used returns p with a use noted at now, joined with an equal one, and whether there
// was room for it.
func (p Progress) Used(what TicketThing, client string, refusal TicketRefusal, now time.Time) (Progress, bool) {
	at := slices.IndexFunc(p.Uses, func(u TicketUse) bool {
		return u.What == what && u.Client == client && u.Refusal == refusal
	})
	switch {
	case at >= 0:
		p.Uses = slices.Clone(p.Uses) // nobody changes what others may read
		p.Uses[at].Last = now
		p.Uses[at].Count++
	case len(p.Uses) < MaxTicketUses:
		p.Uses = append(slices.Clip(p.Uses), TicketUse{What: what, Client: client, Refusal: refusal, First: now, Last: now, Count: 1})
	default:
		return p, false
	}
	return p, true
}

// BootStage is one thing that a booting server is seen to fetch.
type BootStage string

// The boot stages that the boot service sees, in order.
const (
	StageDHCP     BootStage = "DHCP"      // firmware was told a boot file
	StageTFTP     BootStage = "TFTP"      // it fetched a boot loader by TFTP
	StageHTTPBoot BootStage = "HTTP boot" // it fetched a boot loader or a UKI by HTTP
	StageScript   BootStage = "iPXE script"
	StageKernel   BootStage = "kernel"
	StageInitrd   BootStage = "initrd"
	StageIgnition BootStage = "Ignition"
)

// Configured is when the configuration was fetched in the present boot, zero when it was
// not yet.
func (p *Progress) Configured() time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.Boots == 0:
		return p.IgnitionAt
	}
	return p.ConfigAt
}

// Reached returns p with stage noted at now, if it was not reached before, and
// whether that changed anything. A script after the configuration begins another boot.
func (p Progress) Reached(stage BootStage, now time.Time) (Progress, bool) {
	switch {
	case stage == StageScript && !p.Configured().IsZero():
		p.Boots, p.ConfigAt = p.Boots+1, time.Time{}
		return p, true
	case stage == StageIgnition && p.Boots > 0 && p.ConfigAt.IsZero():
		p.ConfigAt = now
		return p, true
	}
	at := map[BootStage]*time.Time{
		StageDHCP: &p.DHCPAt, StageTFTP: &p.TFTPAt, StageHTTPBoot: &p.HTTPBootAt,
		StageScript: &p.ScriptAt, StageKernel: &p.KernelAt, StageInitrd: &p.InitrdAt, StageIgnition: &p.IgnitionAt,
	}[stage]
	if at == nil || !at.IsZero() {
		return p, false
	}
	*at = now
	return p, true
}

// Last returns the last stage that was reached and when, or "" if none was.
func (p Progress) Last() (BootStage, time.Time) {
	switch {
	case !p.IgnitionAt.IsZero():
		return StageIgnition, p.IgnitionAt
	case !p.InitrdAt.IsZero():
		return StageInitrd, p.InitrdAt
	case !p.KernelAt.IsZero():
		return StageKernel, p.KernelAt
	case !p.ScriptAt.IsZero():
		return StageScript, p.ScriptAt
	case !p.HTTPBootAt.IsZero():
		return StageHTTPBoot, p.HTTPBootAt
	case !p.TFTPAt.IsZero():
		return StageTFTP, p.TFTPAt
	case !p.DHCPAt.IsZero():
		return StageDHCP, p.DHCPAt
	}
	return "", time.Time{}
}

// State is the ticket's state, given the progress seen.
func (t *Ticket) State(p *Progress) TicketState {
	switch {
	case t == nil:
		return TicketSpent
	case t.Ended != "":
		return t.Ended
	case !t.ServedAt(p).IsZero():
		return TicketIgnitionServed
	case p == nil || p.Ticket != t.ID:
		return TicketArmed
	case !p.ScriptAt.IsZero():
		return TicketScriptServed
	}
	return TicketArmed
}

// ServedAt is when the server was served the last thing that it needs to install what the
// ticket is for: its Ignition, or its kernel where that is all. Zero is not yet.
func (t *Ticket) ServedAt(p *Progress) time.Time {
	switch {
	case !t.IgnitionAt.IsZero():
		return t.IgnitionAt
	case p == nil || p.Ticket != t.ID:
		return time.Time{}
	case p.IgnitionAt.IsZero() && t.BootedBy == BootedKernel:
		return p.KernelAt
	}
	return p.IgnitionAt
}

// Open reports whether the server may still use the ticket.
func (t *Ticket) Open() bool { return t != nil && t.Ended == "" }

// MayBoot reports whether the server may be served an iPXE script for a network
// boot. Once Ignition was served the machine may hold an installed disk, so from
// then on it boots from disk (law 1), unless the ticket is for always.
func (t *Ticket) MayBoot(p *Progress) bool {
	if t != nil && t.AwaitingOff {
		return false
	}
	switch t.State(p) {
	case TicketArmed, TicketScriptServed:
		return true
	case TicketIgnitionServed, TicketBooted:
		return t.Always
	case TicketSpent:
	}
	return false
}

// TokenKey makes the tokens of boot tickets. Tokens are derived, never stored:
// they survive restarts and a lost Redis, and are of no use to who reads either.
type TokenKey struct{ key Sensitive }

// NewTokenKey returns a key made from secret, which must be at least 32 bytes of
// randomness.
func NewTokenKey(secret []byte) TokenKey {
	return TokenKey{NewSensitive(string(secret))}
}

// Report returns the token that a server reports with. It stands in its Ignition alone.
func (k TokenKey) Report(t *Ticket) Sensitive { return k.token("boot ticket", t) }

// Config returns the token that a server fetches its configuration with in one of the
// boots that Progress counts. It stands on the kernel's command line, where every program
// of the machine reads it.
func (k TokenKey) Config(t *Ticket, boot int) Sensitive {
	return k.token("configuration of boot "+strconv.Itoa(boot), t)
}

// token returns a 128-bit token of a ticket as 26 lower-case letters and digits, fit for
// a URL path.
func (k TokenKey) token(use string, t *Ticket) Sensitive {
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte(use + "\x00" + t.ID + "\x00" + t.UUID))
	enc := base32.StdEncoding.WithPadding(base32.NoPadding)
	return NewSensitive(strings.ToLower(enc.EncodeToString(mac.Sum(nil)[:16])))
}

// MayReport reports, in constant time, whether token is the one that t's server reports
// with.
func (k TokenKey) MayReport(t *Ticket, token string) bool {
	return subtle.ConstantTimeCompare([]byte(k.Report(t).Reveal()), []byte(token)) == 1
}

// TicketHolder is a server's boot ticket and how far the server has come with it.
type TicketHolder struct {
	Server   ServerName
	Ticket   *Ticket   // nil when the server never had one
	Progress *Progress // nil before the first request
}

// LockedOut reports whether the server may have asked to boot with its ticket and was
// never served: such a boot is no failure of the server's.
func (p *Progress) LockedOut() bool {
	if p == nil {
		return false
	}
	isServed := func(u TicketUse) bool { return u.Served() && u.What != ThingImage }
	isUntold := func(u TicketUse) bool { return u.Refusal.Untold() }
	return slices.ContainsFunc(p.Uses, isUntold) && !slices.ContainsFunc(p.Uses, isServed)
}
