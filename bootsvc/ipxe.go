package bootsvc

import (
	"net/http"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

func (s *Server) serveChain(r *request) { r.text(chainScript(s.links.of(r))) }

// serveScript answers with the script of one machine. That it was served is noted
// first: a server that cannot remember it must not boot anybody.
func (s *Server) serveScript(r *request) {
	id, ok := syntax.MachineID(r.args[0])
	if !ok {
		r.refuse(http.StatusNotFound, "this is neither a system UUID nor a MAC address")
		return
	}
	holder, known := s.gate.find(r, id)
	if !known {
		s.serveUnknown(r)
		return
	}
	// also a machine that is only sent on to its disk: whether a server has a ticket is
	// nobody else's business
	if why := s.gate.checkAddress(holder, r); why.refused() {
		s.gate.deny(r, holder, model.ThingScript, why)
		return
	}
	switch {
	case !holder.Ticket.MayBoot(holder.Progress):
		s.serveDisk(r, holder)
	case r.Method == http.MethodGet && !s.scripts.Allow(holder, s.clock()):
		s.log.Warn("server is in a boot loop: it fetches its boot script and never its kernel", "server", string(holder.Server))
		r.said = "goes round in circles and is held up"
		r.text(loopScript(r.id))
	default:
		s.serveTicketScript(r, holder)
	}
}

// serveUnknown answers a machine that is no known server. One without a UUID of its own
// is told to ask by its MAC address.
func (s *Server) serveUnknown(r *request) {
	if blankUUID(r.id) {
		s.serveChain(r)
		return
	}
	if s.rescueStranger(r) {
		return
	}
	r.refuse(http.StatusNotFound, "no server with this UUID or MAC address is known")
}

// serveDisk sends a machine on to its disk, in the way that its firmware understands.
func (s *Server) serveDisk(r *request, o model.TicketHolder) {
	if why := replay(o); why.refused() && r.Method == http.MethodGet {
		s.gate.noteRefusal(r, o, model.ThingScript, why.reason)
	}
	method := DiskExit
	if s.diskBoot != nil {
		method = s.diskBoot(o.Server)
	}
	if method == DiskNotFound {
		r.refuse(http.StatusNotFound, "there is no boot ticket for this server, it boots from disk")
		return
	}
	r.said = "no boot ticket, boots from its disk"
	r.text(diskScript(r.id, method))
}

// replay returns why a ticket does not let its server boot again. One that never had a
// ticket is refused nothing.
func replay(o model.TicketHolder) refusal {
	switch {
	case o.Ticket == nil:
		return refusal{}
	case o.Ticket.State(o.Progress) == model.TicketSpent:
		return refusedSpent
	}
	return refusedReplay
}

// serveTicketScript answers with the script of a ticket: the claim's own if it brings
// one, else one that boots the image. With a script that is all a claim brings, Ingot
// sees nothing more of the boot, so then it is noted as the last thing served: asked
// again, the machine boots from its disk.
func (s *Server) serveTicketScript(r *request, o model.TicketHolder) {
	b := s.gate.bootOf(o.Ticket, nextBoot(o))
	m, ok := s.optionsOf(r, b)
	if !ok {
		return
	}
	script, ok := s.scriptOf(r, b, m)
	switch {
	case !ok:
	case r.Method == http.MethodGet && !s.gate.note(r, o, model.StageScript):
	case r.Method == http.MethodGet && m.last && !s.gate.note(r, o, model.StageIgnition):
	default:
		s.gate.served(r, o.Ticket, model.ThingScript)
		r.text(script)
	}
}

// scriptOf returns the script of a ticket, and answers itself when there is none.
func (s *Server) scriptOf(r *request, b *boot, o scriptOptions) (string, bool) {
	if o.own {
		p, ok := s.gate.payload(r, b.ticket)
		return p.Script, ok
	}
	base := s.links.of(r)
	if last := b.script.Load(); last != nil && last.base == base && last.options == o {
		return last.text, true
	}
	script, err := ticketScript(base, b, o)
	if err != nil {
		s.log.Error("boot ticket cannot be served", "server", b.ticket.Server, "err", err)
		r.refuse(http.StatusInternalServerError, "the boot ticket of this server cannot be served; Ingot's log says why")
		return "", false
	}
	b.script.Store(&servedScript{base, o, script})
	return script, true
}

// optionsOf returns what a ticket's payload means for its script. Only claims have
// anything to say there.
func (s *Server) optionsOf(r *request, b *boot) (scriptOptions, bool) {
	if b.ticket.Purpose != model.PurposeClaim {
		return scriptOptions{}, true
	}
	if o := b.options.Load(); o != nil {
		return *o, true
	}
	p, ok := s.gate.payload(r, b.ticket)
	if !ok {
		return scriptOptions{}, false
	}
	o := newScriptOptions(p)
	b.options.Store(&o)
	return o, true
}

// scriptOptions are what a payload means for the boot script. They hold no secret, and
// are remembered by ticket, for a ticket's payload never changes.
type scriptOptions struct {
	own       bool // the script is the claim's own
	last      bool // nothing of Ingot's is fetched after it
	noCloud   bool // cloud-init configures the machine
	arguments string
}

func newScriptOptions(p ignition.Payload) scriptOptions {
	return scriptOptions{
		own:       p.Script != "",
		last:      p.Script != "" && p.Ignition == "" && p.NoCloud == nil,
		noCloud:   p.NoCloud != nil,
		arguments: p.KernelArguments,
	}
}
