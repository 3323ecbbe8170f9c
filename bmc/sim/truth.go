package sim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// maxEvents is how many events a server remembers.
const maxEvents = 20_000

// EventKind is what happened.
type EventKind string

// The kinds of events. All but EventNote are the ground truth: what really happened to a
// machine, whatever its BMC answers.
const (
	EventNote EventKind = "Note" // a line of text for people

	EventPowerOn  EventKind = "PowerOn"  // with Cause and Reset
	EventPowerOff EventKind = "PowerOff" // with Cause and Reset
	EventRestart  EventKind = "Restart"  // without loss of power; with Cause and Reset

	EventFetched      EventKind = "Fetched"      // by a network boot; with Stage, URL and Digest
	EventNetworkGone  EventKind = "NetworkGone"  // the firmware has left the network for the next device
	EventProbeRuns    EventKind = "ProbeRuns"    // metalprobe runs
	EventInstalled    EventKind = "Installed"    // on the disk, and runs; with Image and IgnitionSHA256
	EventWritten      EventKind = "Written"      // a disk image, whole, by a probe; with Image
	EventDiskBoot     EventKind = "DiskBoot"     // what is on the disk runs; with Image and IgnitionSHA256
	EventNoDevice     EventKind = "NoDevice"     // nothing to boot from: it stays so until it is restarted
	EventWiped        EventKind = "Wiped"        // with Image and IgnitionSHA256 of what was on the disk, if anything was, and Left
	EventRequest      EventKind = "Request"      // that changes something was answered; with Method, URI, Reset and Status
	EventPowerPressed EventKind = "PowerPressed" // a person pressed the button on the front
)

// Cause is who or what had the power change.
type Cause string

// The causes of power changes.
const (
	CauseRedfish Cause = "redfish"    // a reset of the type that Event.Reset says
	CauseButton  Cause = "button"     // on the front, by a person
	CauseLoss    Cause = "power loss" // PowerCut
	CauseSystem  Cause = "system"     // the machine's own operating system
	CauseTest    Cause = "test"       // SetRunning
)

// Event is a line of a server's log.
type Event struct {
	At   time.Time `json:"at"`
	Seq  uint64    `json:"seq"` // in the order of the whole rack's events
	Kind EventKind `json:"kind"`
	What string    `json:"what"` // for people

	Cause Cause  `json:"cause,omitempty"`
	Reset string `json:"reset,omitempty"` // the Redfish ResetType

	Stage  model.BootStage `json:"stage,omitempty"`
	URL    string          `json:"-"` // it may hold a token
	Digest string          `json:"digest,omitempty"`

	Image          string `json:"image,omitempty"` // as Disk.Image
	IgnitionSHA256 string `json:"ignitionSHA256,omitempty"`
	// Left are the serial numbers of the disks that a wipe left as they were.
	Left []string `json:"left,omitempty"`

	Method string `json:"method,omitempty"`
	URI    string `json:"uri,omitempty"`
	Status int    `json:"status,omitempty"` // as the BMC would answer if the answer were not lost
}

// RackEvent is an event with the server that it is of.
type RackEvent struct {
	Server *Server
	Event
}

// Events are the events of all servers in the order in which they happened.
func (r *Rack) Events() []RackEvent {
	var all []RackEvent
	for _, s := range r.servers {
		for _, e := range s.Events() {
			all = append(all, RackEvent{s, e})
		}
	}
	slices.SortFunc(all, func(a, b RackEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// Events are the server's log, oldest first: all of it up to maxEvents.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// note adds a line of text to the log; the caller holds mu.
func (s *mainboard) note(what string) { s.log(Event{Kind: EventNote, What: what}) }

// log adds an event; the caller holds mu.
func (s *mainboard) log(e Event) {
	e.At, e.Seq = time.Now(), s.rack().seq.Add(1)
	e.What = cmp.Or(e.What, string(e.Kind))
	if len(s.events) >= maxEvents { // a quarter at once, for the sake of those that remain
		s.events = slices.Clone(s.events[maxEvents/4:])
	}
	s.events = append(s.events, e)
	s.rack().opts.Log.Debug("simulated server", "server", string(s.name), "kind", string(e.Kind), "event", e.What)
}

// cause is why the power changes next.
type cause struct {
	by    Cause
	reset string
}

// logPower adds what a change of the power state from old comes to; the caller holds mu.
func (s *mainboard) logPower(old, now model.Power) {
	e := Event{What: "power " + string(now), Cause: s.cause.by, Reset: s.cause.reset}
	switch {
	case now == model.PowerOn && old != model.PowerPaused:
		e.Kind = EventPowerOn
	case now == model.PowerOff:
		e.Kind = EventPowerOff
	default:
		s.note(e.What)
		return
	}
	s.log(e)
	if e.Kind == EventPowerOn {
		s.cause = cause{by: CauseSystem} // of what comes without being asked for
	}
}

// logRestart adds a restart without loss of power; the caller holds mu.
func (s *mainboard) logRestart(what string) {
	s.log(Event{Kind: EventRestart, What: what, Cause: s.cause.by, Reset: s.cause.reset})
	s.cause = cause{by: CauseSystem}
}

// logDisk adds an event about what is on the disk; the caller holds mu.
func (s *mainboard) logDisk(kind EventKind, what string, by Cause) {
	e := Event{Kind: kind, What: what, Cause: by}
	if s.disk != nil {
		e.Image, e.IgnitionSHA256 = s.disk.Image, s.disk.IgnitionSHA256
	}
	s.log(e)
}

// logRequest adds a Redfish request that was to change a machine.
func (b *BMC) logRequest(method, path string, sent object, status int) {
	if method == http.MethodGet || method == http.MethodHead {
		return
	}
	for _, s := range b.servers {
		if path != s.URI() && !strings.HasPrefix(path, s.URI()+"/") {
			continue
		}
		reset, _ := sent["ResetType"].(string)
		s.mu.Lock()
		s.log(Event{Kind: EventRequest, What: method + " " + path + " " + reset, Cause: CauseRedfish, Method: method, URI: path, Reset: reset, Status: status})
		s.mu.Unlock()
	}
}
