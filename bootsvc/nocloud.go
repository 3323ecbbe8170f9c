package bootsvc

import (
	"net/http"
	"slices"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// serveNoCloud answers with a file of cloud-init's data source NoCloud, to who has the
// ticket's token. Like Ignition, user-data is what a machine is made of, so that it was
// served is noted as that.
func (s *Server) serveNoCloud(r *request) {
	t, ok := s.bearer(r)
	if !ok {
		return
	}
	name := r.args[2]
	if !slices.Contains(noCloudFiles, name) {
		r.refuse(http.StatusNotFound, "cloud-init asks for meta-data, user-data, vendor-data and network-config, and for nothing else")
		return
	}
	p, ok := s.payload(r, t)
	if !ok {
		return
	}
	file, ok := p.NoCloud[name]
	switch {
	case p.NoCloud == nil:
		r.refuse(http.StatusNotFound, "this server is not configured by cloud-init: the Secret of its claim has no key user-data")
	case !ok:
		r.refuse(http.StatusNotFound, "the Secret of this server's claim has no key "+name)
	case r.Method == http.MethodGet && name == keyUserData && !s.note(r, t, model.StageIgnition):
	default:
		r.text(file)
	}
}

// bearer returns the ticket in use whose token the path shows, and answers itself when
// it shows none.
func (s *Server) bearer(r *request) (*model.Ticket, bool) {
	id, ok := machineID(r.args[0])
	if !ok {
		r.refuse(http.StatusNotFound, "this is not a system UUID")
		return nil, false
	}
	r.id = id
	offer, known := s.tickets.Offer(id)
	switch t := offer.Ticket; {
	case !known:
		r.refuse(http.StatusNotFound, "no server with this UUID is known")
	case t == nil || !sameToken(s.token(t), r.args[1]) || !netboot.InUse(t):
		r.refuse(http.StatusForbidden, "the token is not that of an open boot ticket of this server")
	case s.foreign(r, t):
		r.refuse(http.StatusForbidden, foreignAddress)
	default:
		return t, true
	}
	return nil, false
}

// payload returns what a ticket hands out beside its image, and answers itself when
// that cannot be had.
func (s *Server) payload(r *request, t *model.Ticket) (payload, bool) {
	sealed, err := s.tickets.Payload(r.Context(), t)
	var p payload
	if err == nil {
		p, err = openPayload(sealed)
	}
	if err != nil {
		s.log.Error("what a server boots with cannot be served", "server", t.Server, "err", err)
		r.unavailable("what this server is configured with is not available at present")
		return payload{}, false
	}
	return p, true
}

// mannerOf returns what a ticket's payload means for its script. Only claims have
// anything to say there.
func (s *Server) mannerOf(r *request, t *model.Ticket) (manner, bool) {
	if t.Purpose != model.PurposeClaim {
		return manner{}, true
	}
	if m, ok := s.manners.get(t.ID); ok {
		return m, true
	}
	p, ok := s.payload(r, t)
	if !ok {
		return manner{}, false
	}
	m := p.manner()
	s.manners.put(t.ID, m, mannerOverhead+len(t.ID)+len(m.arguments))
	return m, true
}
