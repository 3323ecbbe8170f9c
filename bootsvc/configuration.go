package bootsvc

import (
	"net/http"
	"slices"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// serveIgnition answers with a ticket's Ignition to who has its token, for as long as
// the ticket is in use.
func (s *Server) serveIgnition(r *request) {
	if offer, ok := s.bearer(r, model.ThingIgnition); ok {
		s.serveTicketIgnition(r, offer)
	}
}

// serveNoToken answers with Ignition to a machine that cannot know its token, for it
// booted a UKI or asks by DHCP: it must be the server beyond doubt.
func (s *Server) serveNoToken(r *request) {
	var offer model.Offer
	id, known := syntax.MachineID(r.args[0])
	if known {
		offer, known = s.offer(r, id)
	}
	if !known {
		r.refuse(http.StatusForbidden, missingToken)
		return
	}
	if why := s.judgeNoToken(offer, r); why.refused() {
		s.deny(r, offer, model.ThingIgnition, why)
		return
	}
	s.serveTicketIgnition(r, offer)
}

// judgeNoToken returns why who shows no token is not served.
func (s *Server) judgeNoToken(o model.Offer, r *request) refusal {
	v := s.bindings.JudgeMachine(o, r.client)
	r.by = v.By
	switch t := o.Ticket; {
	case v.Refusal != "":
		return refusal{v.Refusal, missingToken}
	case t == nil:
		return refusedNoToken
	case !netboot.InUse(t):
		return refusedSpent
	case !netboot.WithoutToken(t):
		return refusedNoToken
	case !t.Always && s.late(o): // nothing tells the boots of others apart
		return refusedLate
	}
	return refusal{}
}

func (s *Server) serveTicketIgnition(r *request, o model.Offer) {
	p, ok := s.payload(r, o.Ticket)
	if !ok {
		return
	}
	if p.Ignition == "" {
		r.refuse(http.StatusNotFound, "this server is not configured by Ignition: the Secret of its claim has cloud-init's user-data or a script of its own instead")
		return
	}
	if reads, have, ok := acceptable(r.Header.Values("Accept"), p.Ignition); !ok {
		r.refuse(http.StatusNotAcceptable, "the Ignition has version "+have+" and this machine reads "+reads)
		return
	}
	if r.Method == http.MethodGet && !s.note(r, o, model.StageIgnition) {
		return
	}
	s.served(r, o.Ticket, model.ThingIgnition)
	r.body(ignitionMedia, p.Ignition)
}

// serveNoCloud answers with a file of cloud-init's data source NoCloud, to who has the
// ticket's token. Like Ignition, user-data is what a machine is made of, so that it was
// served is noted as that.
func (s *Server) serveNoCloud(r *request) {
	offer, ok := s.bearer(r, model.ThingCloudInit)
	if !ok {
		return
	}
	name := r.args[2]
	if !slices.Contains(ignition.NoCloudFiles, name) {
		r.refuse(http.StatusNotFound, "cloud-init asks for meta-data, user-data, vendor-data and network-config, and for nothing else")
		return
	}
	p, ok := s.payload(r, offer.Ticket)
	if !ok {
		return
	}
	file, ok := p.NoCloud[name]
	switch {
	case p.NoCloud == nil:
		r.refuse(http.StatusNotFound, "this server is not configured by cloud-init: the Secret of its claim has no key user-data")
	case !ok:
		r.refuse(http.StatusNotFound, "the Secret of this server's claim has no key "+name)
	case r.Method == http.MethodGet && name == ignition.UserData && !s.note(r, offer, model.StageIgnition):
	default:
		s.served(r, offer.Ticket, model.ThingCloudInit)
		r.text(file)
	}
}

// payload returns what a ticket hands out beside its image, and answers itself when that
// cannot be had.
func (s *Server) payload(r *request, t *model.Ticket) (ignition.Payload, bool) {
	sealed, err := s.tickets.Payload(r.Context(), t)
	var p ignition.Payload
	if err == nil {
		p, err = ignition.Open(sealed)
	}
	if err != nil {
		s.log.Error("what a server boots with cannot be served", "server", t.Server, "err", err)
		r.unavailable("what this server is configured with is not available at present")
		return ignition.Payload{}, false
	}
	return p, true
}
