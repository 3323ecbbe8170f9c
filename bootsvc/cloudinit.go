package bootsvc

import (
	"net/http"
	"slices"

	"ingot/bootsvc/ignition"
	"ingot/model"
)

// serveNoCloud answers with a file of cloud-init's data source NoCloud, to the client that has
// the ticket's token. Like Ignition, user-data is what a machine is made of, so that it was
// served is noted as that.
func (s *Server) serveNoCloud(r *request) {
	holder, ok := s.gate.bearer(r, model.ThingCloudInit)
	if !ok {
		return
	}
	name := r.args[2]
	if !slices.Contains(ignition.NoCloudFiles, name) {
		r.refuse(http.StatusNotFound, "cloud-init asks for meta-data, user-data, vendor-data and network-config, and for nothing else")
		return
	}
	p, ok := s.gate.payload(r, holder.Ticket)
	if !ok {
		return
	}
	file, ok := p.NoCloud[name]
	switch {
	case p.NoCloud == nil:
		r.refuse(http.StatusNotFound, "this server is not configured by cloud-init: the Secret of its claim has no key user-data")
	case !ok:
		r.refuse(http.StatusNotFound, "the Secret of this server's claim has no key "+name)
	case r.Method == http.MethodGet && name == ignition.UserData && !s.gate.note(r, holder, model.StageIgnition):
	default:
		s.gate.served(r, holder.Ticket, model.ThingCloudInit)
		r.text(file)
	}
}
