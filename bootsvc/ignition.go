package bootsvc

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// serveIgnition answers with a ticket's Ignition to the client that has its token,
// for as long as the ticket is in use.
func (s *Server) serveIgnition(r *request) {
	if holder, ok := s.gate.bearer(r, model.ThingIgnition); ok {
		s.serveTicketIgnition(r, holder)
	}
}

// serveNoToken answers with Ignition to a machine that cannot know its token, for it
// booted a UKI or asks by DHCP: it must be the server beyond doubt.
func (s *Server) serveNoToken(r *request) {
	var holder model.TicketHolder
	id, known := syntax.MachineID(r.args[0])
	if known {
		holder, known = s.gate.find(r, id)
	}
	if !known {
		r.refuse(http.StatusForbidden, missingToken)
		return
	}
	if why := s.gate.authorizeMachine(holder, r); why.refused() {
		s.gate.deny(r, holder, model.ThingIgnition, why)
		return
	}
	s.serveTicketIgnition(r, holder)
}

// authorizeMachine returns why a client that shows no token is not served.
func (g *gate) authorizeMachine(o model.TicketHolder, r *request) refusal {
	v := g.rules.JudgeMachine(o, r.client)
	r.by, r.judged = v.By, true
	switch t := o.Ticket; {
	case v.Refusal != "":
		return refusal{v.Refusal, missingToken}
	case t == nil:
		return refusedNoToken
	case !netboot.InUse(t):
		return refusedSpent
	case !netboot.WithoutToken(t):
		return refusedNoToken
	case t.Disk != nil && reached(o, model.StageScript): // it has its token by its script
		return refusedNoToken
	case t.Always: // nothing tells its boots apart
		return refusal{}
	}
	return checkTime(o, r.since)
}

func (s *Server) serveTicketIgnition(r *request, o model.TicketHolder) {
	p, ok := s.gate.payload(r, o.Ticket)
	if !ok {
		return
	}
	if p.Ignition == "" {
		r.refuse(http.StatusNotFound, "this server is not configured by Ignition: "+
			"the Secret of its claim has cloud-init's user-data or a script of its own instead")
		return
	}
	if reads, have, ok := acceptable(r.Header.Values("Accept"), p.Ignition); !ok {
		r.refuse(http.StatusNotAcceptable, "the Ignition has version "+have+" and this machine reads "+reads)
		return
	}
	if r.Method == http.MethodGet && !s.gate.note(r, o, model.StageIgnition) {
		return
	}
	s.gate.served(r, o.Ticket, model.ThingIgnition)
	if p.Install != nil {
		p.Ignition = p.InstallIgnition(s.installURL(r, o))
	}
	r.body(ignitionMedia, p.Ignition)
}

// payload returns what a ticket hands out beside its image, and answers itself when that
// cannot be had.
func (g *gate) payload(r *request, t *model.Ticket) (ignition.Payload, bool) {
	sealed, err := g.tickets.Payload(r.Context(), t)
	var p ignition.Payload
	if err == nil {
		p, err = ignition.Open(sealed)
	}
	if err != nil {
		g.log.Error("what a server boots with cannot be served", "server", t.Server, "err", err)
		r.unavailable("what this server is configured with is not available at present")
		return ignition.Payload{}, false
	}
	return p, true
}

// ignitionMedia is the media type that Ignition asks for, with the newest version
// it reads as a parameter.
const ignitionMedia = "application/vnd.coreos.ignition+json"

// acceptable reports whether a client reads the Ignition that there is, by the Accept
// headers that it sent (RFC 9110 §12.5.1). If not, it says what the client reads and
// what there is. Whoever reads a version reads all older ones. A client that does not
// speak of Ignition, or names no version, reads everything.
func acceptable(accept []string, ignition string) (reads, have string, ok bool) {
	ranges := ignitionRanges(accept)
	if len(ranges) == 0 {
		return "", "", true
	}
	have = ignitionVersion(ignition)
	is, err := semver.StrictNewVersion(have)
	if err != nil {
		return "", have, true
	}
	var newest *semver.Version
	for _, r := range ranges {
		switch {
		case r.refused:
		case r.version == nil, !r.version.LessThan(is):
			return "", have, true
		case newest == nil || newest.LessThan(r.version):
			newest = r.version
		}
	}
	if newest == nil {
		return "none", have, false
	}
	return "at most " + newest.String(), have, false
}

// ignitionRange is one media range of Ignition in an Accept header.
type ignitionRange struct {
	version *semver.Version // nil for any
	refused bool            // by the quality value 0
}

func ignitionRanges(accept []string) []ignitionRange {
	var ranges []ignitionRange
	for _, header := range accept {
		for part := range strings.SplitSeq(header, ",") {
			if !strings.Contains(strings.ToLower(part), ignitionMedia) {
				continue
			}
			media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil || media != ignitionMedia {
				continue
			}
			version, err := semver.StrictNewVersion(params["version"])
			if err != nil {
				version = nil
			}
			quality, err := strconv.ParseFloat(params["q"], 64)
			ranges = append(ranges, ignitionRange{version, err == nil && quality <= 0})
		}
	}
	return ranges
}

// ignitionVersion returns ignition.version of Ignition JSON, or "". It reads no
// further than the section ignition, which comes first in what Ingot makes.
func ignitionVersion(payload string) string {
	dec := json.NewDecoder(strings.NewReader(payload))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key != "ignition" {
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return ""
			}
			continue
		}
		var section struct {
			Version string `json:"version"`
		}
		_ = dec.Decode(&section) // "" is the answer to what cannot be read
		return section.Version
	}
	return ""
}
