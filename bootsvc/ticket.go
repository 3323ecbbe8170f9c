package bootsvc

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/internal/lru"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// refusal is why a request that bears on a ticket is not served, or nothing when it is.
type refusal struct {
	reason model.TicketRefusal
	told   string // to the client
}

func (f refusal) refused() bool { return f.reason != "" }

// The refusals for what is shown, and for the ticket's own state; those for addresses
// are netboot's.
var (
	refusedToken = refusal{model.RefusedToken,
		"the token is not that of this server's boot ticket: it is in the boot script that the server is served"}
	refusedNoToken = refusal{model.RefusedToken, missingToken}
	refusedSpent   = refusal{model.RefusedSpent,
		"the boot ticket that this was for has ended, by success, by timeout or by a newer one: " +
			"a server is served again once its next ticket is armed, see ingot explain server"}
	refusedLate   = refusal{model.RefusedSpent, "the configuration was fetched more than 5 minutes ago, and is not given again in this boot"}
	refusedLayer  = refusal{model.RefusedAddress, "the boot ticket of the server that asks does not pin this layer"}
	refusedReplay = refusal{reason: model.RefusedReplay} // it is told to boot from disk
)

// configLife is for how long the configuration can be fetched again: the token for it
// stays on the kernel's command line for as long as the machine runs.
const configLife = 5 * time.Minute

// missingToken is said in the same words to whoever asks without a token, so that they
// tell a stranger nothing about the server.
const missingToken = "the token is missing: /ignition/{uuid}/{token}, as the boot script has it; " +
	"without it only the machine itself is served"

// gate decides who may use which boot ticket, and notes each use.
type gate struct {
	tickets    Tickets
	token      func(*model.Ticket, int) model.Sensitive
	rules      netboot.AddressRules
	settle     func(context.Context)
	boots      *lru.Cache[string, *boot] // by UUID
	refusals   *prometheus.CounterVec
	refusalLog *logLimiter
	log        *slog.Logger
	clock      func() time.Time
}

// find returns the boot ticket of the server with a UUID in any case, or a MAC address.
func (g *gate) find(r *request, id string) (holder model.TicketHolder, known bool) {
	r.id = id
	return g.tickets.Find(id)
}

// bearer returns the boot ticket, which is in use, whose token the path shows, and
// answers itself when it shows none.
func (g *gate) bearer(r *request, what model.TicketThing) (model.TicketHolder, bool) {
	id, ok := syntax.MachineID(r.args[0])
	if !ok {
		r.refuse(http.StatusNotFound, "this is not a system UUID")
		return model.TicketHolder{}, false
	}
	holder, known := g.find(r, id)
	if !known {
		r.refuse(http.StatusNotFound, "no server with this UUID is known")
		return model.TicketHolder{}, false
	}
	if why := g.authorize(holder, r, r.args[1]); why.refused() {
		g.deny(r, holder, what, why)
		return model.TicketHolder{}, false
	}
	return holder, true
}

// authorize returns why a client that shows a token is not served. The address comes first, so
// that nobody else learns whether a token is right.
func (g *gate) authorize(o model.TicketHolder, r *request, shown string) refusal {
	misplaced, wrong := g.checkAddress(o, r), g.checkToken(o, shown, r.since)
	r.by.Token = !wrong.refused()
	if misplaced.refused() {
		return misplaced
	}
	return wrong
}

func (g *gate) checkToken(o model.TicketHolder, shown string, now time.Time) refusal {
	if o.Ticket == nil {
		return refusedToken
	}
	b := g.bootOf(o.Ticket, presentBoot(o))
	isShown := func(b *boot) bool { return sameToken(b.token, shown) }
	switch {
	case isShown(b) && netboot.InUse(o.Ticket):
		return checkTime(o, now)
	case isShown(b), slices.ContainsFunc(b.previous, isShown):
		return refusedSpent
	}
	return refusedToken
}

// checkTime returns why what configures a server is not given any more in its present boot:
// it was fetched so long ago that nobody needs it. A probe that writes a disk image needs its
// own until it is done.
func checkTime(o model.TicketHolder, now time.Time) refusal {
	at := configured(o)
	if at.IsZero() && !o.Ticket.Always && o.Ticket.BootedBy != model.BootedKernel { // then it may be when the kernel was served
		at = o.Ticket.IgnitionAt // which is not lost with the store
	}
	switch {
	case o.Ticket.Disk != nil && !o.Ticket.ServedAt(o.Progress).IsZero():
		return refusedInstalled
	case o.Ticket.Disk != nil, at.IsZero(), now.Before(at.Add(configLife)):
		return refusal{}
	}
	return refusedLate
}

// checkAddress returns why a server's ticket may not be used from where r comes from.
func (g *gate) checkAddress(o model.TicketHolder, r *request) refusal {
	v := g.rules.Judge(o, r.client)
	if v.Refusal == model.RefusedUnknown && o.Ticket != nil && o.Ticket.Purpose == model.PurposeDiscovery {
		g.settle(r.Context())
		v = g.rules.Judge(o, r.client)
	}
	r.by, r.judged = v.By, true
	return refusal{v.Refusal, v.Told}
}

// sameToken compares in constant time.
func sameToken(token model.Sensitive, shown string) bool {
	return !token.IsZero() && subtle.ConstantTimeCompare([]byte(token.Reveal()), []byte(shown)) == 1
}

func (g *gate) deny(r *request, o model.TicketHolder, what model.TicketThing, why refusal) {
	g.noteRefusal(r, o, what, why.reason)
	r.refuse(http.StatusForbidden, why.told)
}

// noteRefusal counts a refusal, and tells it to the ticket's history and to the log.
func (g *gate) noteRefusal(r *request, o model.TicketHolder, what model.TicketThing, reason model.TicketRefusal) {
	g.refusals.WithLabelValues(string(what), string(reason)).Inc()
	if o.Ticket != nil {
		g.tickets.Use(o.Ticket, what, r.by, reason)
	}
	if g.refusalLog.allow(loggedRefusal{o.Server, reason}, g.clock()) {
		g.log.LogAttrs(r.Context(), levelOf(reason), "boot request refused", slog.String("server", string(o.Server)),
			slog.String("what", string(what)), slog.String("reason", string(reason)), slog.String("client", r.client.String()), slog.String("mac", r.by.MAC))
	}
}

// levelOf is how much a refusal is worth. A server whose firmware tries the network first
// asks again each time it is rebooted, and then there is nothing to look at.
func levelOf(reason model.TicketRefusal) slog.Level {
	if reason == model.RefusedReplay {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// served tells a ticket's history that a client was given a thing. A HEAD gives nothing.
func (g *gate) served(r *request, t *model.Ticket, what model.TicketThing) {
	if r.Method == http.MethodGet {
		g.tickets.Use(t, what, r.by, "")
	}
}

// note records that a server reached a stage, before its answer goes out, and answers
// itself when that cannot be. A stage is recorded once.
func (g *gate) note(r *request, o model.TicketHolder, stage model.BootStage) bool {
	t := o.Ticket
	again := reached(o, stage)
	if again && !beginsAnew(o, stage) {
		return true
	}
	if err := g.tickets.Note(r.Context(), t, stage, r.client); err != nil {
		g.log.Error("boot progress cannot be recorded", "server", t.Server, "stage", string(stage), "err", err)
		r.unavailable("boot progress cannot be recorded at present")
		return false
	}
	if again {
		return true
	}
	g.log.LogAttrs(r.Context(), slog.LevelInfo, "server boots", slog.String("server", string(t.Server)),
		slog.String("uuid", t.UUID), slog.String("purpose", string(t.Purpose)), slog.String("stage", string(stage)))
	return true
}

// reached reports whether a server is known to have been served its script, or its
// Ignition, with its ticket.
func reached(o model.TicketHolder, stage model.BootStage) bool {
	p := o.Progress
	switch {
	case p == nil || p.Ticket != o.Ticket.ID:
		return false
	case stage == model.StageScript:
		return !p.ScriptAt.IsZero()
	}
	return stage == model.StageIgnition && !p.IgnitionAt.IsZero()
}

// beginsAnew reports whether a stage that was reached before is of another boot.
func beginsAnew(o model.TicketHolder, stage model.BootStage) bool {
	if stage == model.StageScript {
		return !configured(o).IsZero()
	}
	return configured(o).IsZero()
}

// tryNote notes a stage that a boot does not depend on.
func (g *gate) tryNote(r *request, t *model.Ticket, stage model.BootStage) {
	if err := g.tickets.Note(r.Context(), t, stage, r.client); err != nil {
		g.log.Warn("boot progress cannot be recorded", "server", t.Server, "stage", string(stage), "err", err)
	}
}
