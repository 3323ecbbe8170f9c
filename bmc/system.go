package bmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// systemState is what is remembered of one system between requests, so that a
// poll is one GET and a reset one POST.
type systemState struct {
	known bool // the resource was read, not only its power

	etag   string // of the newest answer, with what it showed
	shown  SystemState
	polled time.Time   // the newest whole answer
	seen   sighting    // of it
	first  *discovered // the system as it was discovered, until it is read again; nil = it was
	moved  time.Time   // the last reset that was asked for
	fickle bool        // the ETag stays when what is shown changes: of no use

	resets    []string // allowed reset types; nil = not read, empty = the BMC does not say
	resetURI  string   // "" = cannot be reset
	resetInfo string   // URI of what describes the reset types, or ""

	locator     locator
	boot        boot
	settings    string // URI of the settings object, as the system names it
	quirk       quirk
	variant     variant     // of the boot override, that worked last for a network boot
	diskVariant variant     // the same for a boot from disk
	refused     refusedBoot // all variants of an override
	armed       bool        // an override was set, and no reset followed
	noIfMatch   bool        // the BMC takes its own ETag for a stranger's
}

func (c *reader) state(uri string) systemState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.systems[uri]; s != nil {
		return *s
	}
	return systemState{}
}

func (c *reader) learn(uri string, change func(*systemState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.systems[uri]
	if s == nil {
		if len(c.systems) >= maxSystems {
			clear(c.systems) // no BMC has as many
		}
		s = new(systemState)
		c.systems[uri] = s
	}
	change(s)
}

// refusedBoot is the refusal of all variants of an override. They are not written again before a pause is over, which
// grows each time.
type refusedBoot struct {
	method model.BootMethod
	err    error
	times  int
	until  time.Time
}

// discovered is a system as its collection showed it, and what was left out of it.
type discovered struct {
	system
	odd []string
}

// sighting is an answer that shows which machine is behind a URI.
type sighting struct {
	at          time.Time
	by          *auth
	connections uint64 // that were opened before
	written     bool   // it followed the write of a boot override
}

// saw notes an answer of the system.
func (c *reader) saw(s *systemState, etag string, shown SystemState) {
	s.etag, s.shown, s.polled = etag, shown, c.opts.Clock()
	s.seen, s.first = sighting{at: s.polled, by: c.auth.Load(), connections: c.counted.connections.Load()}, nil
}

// counts reports whether what was seen still holds: not long ago, by the same session and without a new connection since.
func (c *reader) counts(s sighting, within time.Duration) bool {
	return c.opts.Clock().Sub(s.at) < within && s.by == c.auth.Load() && s.connections == c.counted.connections.Load()
}

func (c *reader) learnSystem(uri, etag string, sys *system) {
	c.learn(uri, func(s *systemState) {
		if !s.known { // or Discover knows better, which has seen the firmware
			s.quirk = quirkOf(sys.Manufacturer, sys.Model, "")
		}
		s.known = true
		c.saw(s, etag, sys.shown())
		s.boot, s.locator = sys.Boot, sys.locator()
		s.settings = path(sys.Settings.SettingsObject.ID)
		s.resetURI = ""
		if r := sys.Actions.Reset; r != nil {
			s.resetURI = cmp.Or(path(r.Target), under(uri, "Actions/ComputerSystem.Reset"))
			s.resetInfo = path(r.Info)
			if types := knownResets(r.Allowed); len(types) > 0 {
				s.resets = types
			}
		}
	})
}

func (c *reader) readSystem(ctx context.Context, uri string) (*system, []string, error) {
	a, err := c.get(ctx, uri)
	if err != nil {
		return nil, nil, err
	}
	sys, odd, err := decode[system](a.body)
	if err != nil {
		return nil, nil, c.unreadable(uri, err)
	}
	c.learnSystem(uri, a.etag(sys.ETag), &sys)
	return &sys, odd, nil
}

func (c *sender) unreadable(uri string, err error) error {
	return &Error{BMC: c.name, Method: "GET", URI: uri, Kind: ErrUnsupported, Detail: "not a Redfish resource: " + c.detail(err.Error()), Err: err}
}

// known returns the system's state, after reading it if it was not read yet.
func (c *reader) known(ctx context.Context, uri string) (systemState, error) {
	if s := c.state(uri); s.known {
		return s, nil
	}
	if _, _, err := c.readSystem(ctx, uri); err != nil {
		return systemState{}, err
	}
	return c.state(uri), nil
}

// powerStates are ours, in the words of PowerState (DSP0268, ComputerSystem).
var powerStates = []model.Power{model.PowerOn, model.PowerOff, model.PowerPaused, model.PowerPoweringOn, model.PowerPoweringOff}

// powerOf maps PowerState to ours, in whatever case it is written; what is not in the schema
// is unknown.
func powerOf(state string) model.Power {
	state = strings.TrimSpace(state)
	for _, p := range powerStates {
		if strings.EqualFold(state, string(p)) {
			return p
		}
	}
	return model.PowerUnknown
}

// usableUUID returns the canonical UUID, or "" and what is wrong with one that
// cannot tell one machine from another (B23).
func usableUUID(uuid string) (canonical, problem string) {
	uuid, _, _ = strings.Cut(strings.TrimSpace(uuid), "\x00")
	uuid = strings.TrimSpace(uuid)
	if uuid == "" {
		return "", "has no UUID"
	}
	u, ok := model.ParseUUID(uuid)
	if !ok || !u.IsUsable() {
		return "", fmt.Sprintf("has the UUID %q, which does not tell it from others", printable(uuid, 64))
	}
	return u.String(), ""
}

// asError returns the *Error in err, or nil.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// fatal reports whether err ends all that was asked for, whatever was read so far.
func fatal(err error) bool {
	return final(err) && !errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded)
}

// final reports whether err makes any further request to the BMC pointless for
// now: it is not about the resource but about the BMC or the caller.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		context.Canceled, context.DeadlineExceeded, ErrCircuitOpen, ErrRefusedForNow, ErrPasswordChange, ErrCertificateChanged, ErrUnreachable, errClosed,
	}, func(target error) bool { return errors.Is(err, target) })
}
