package bootsvc

import (
	"net/http"
	"net/netip"
	"strings"

	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// maxIdentifiers bounds the addresses that one request may ask for.
const maxIdentifiers = 16

// bootDocument says what the machine at some addresses boots by UEFI HTTP boot, in
// boot-operator's words: DHCP servers and people's tools read it.
type bootDocument struct {
	ClientIPs  string // who was looked for, joined by commas
	UKIURL     string
	SystemUUID string
}

// serveHTTPBoot answers /httpboot with the bootDocument of the machine that asks.
// It is known by the address of the connection itself. X-Forwarded-For,
// a list of IP and MAC addresses, is heeded from this machine alone, where a DHCP
// server or a proxy may ask for others: anybody else could ask for anybody.
func (s *Server) serveHTTPBoot(r *request) {
	who := r.identifiers()
	for _, id := range who {
		if doc, ok := s.bootDocument(r, id); ok {
			doc.ClientIPs = strings.Join(who, ",")
			r.json(http.StatusOK, doc)
			return
		}
	}
	r.said = "no server with an open boot ticket is known at this address"
	r.json(http.StatusNotFound, map[string]string{
		"error": "no server with an open boot ticket is known to be at " + strings.Join(who, ", "),
	})
}

// bootDocument returns the document of the server with an IP or MAC address.
func (s *Server) bootDocument(r *request, id string) (bootDocument, bool) {
	holder, ok := s.gate.findHolder(r, id)
	if !ok || holder.Ticket == nil {
		return bootDocument{}, false
	}
	site := netboot.Site{HTTP: s.links.of(r)}
	file, ok := site.BootFile(netboot.HTTPClient(holder.Ticket.Image.Architecture), holder, s.loaders)
	if !ok {
		return bootDocument{}, false
	}
	r.id = holder.Ticket.UUID
	return bootDocument{UKIURL: file.File, SystemUUID: holder.Ticket.UUID}, true
}

// findHolder returns the boot ticket of the server with an IP or MAC address.
func (g *gate) findHolder(r *request, id string) (model.TicketHolder, bool) {
	addr, err := netip.ParseAddr(id)
	if err != nil {
		return g.tickets.Find(id)
	}
	holder, known := g.rules.At(addr)
	if !known {
		g.settle(r.Context())
		holder, known = g.rules.At(addr)
	}
	return holder, known
}

// identifiers returns the IP and MAC addresses that r is about, in canonical form.
func (r *request) identifiers() []string {
	client := r.client
	who := []string{client.String()}
	if !client.IsLoopback() {
		return who
	}
	for text := range strings.SplitSeq(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",") {
		text = strings.TrimSpace(text)
		if len(who) == maxIdentifiers {
			break
		}
		if addr, err := netip.ParseAddr(text); err == nil {
			who = append(who, addr.Unmap().String())
		} else if mac, ok := syntax.MachineID(text); ok && len(mac) == len("00:00:00:00:00:00") {
			who = append(who, mac)
		}
	}
	return who
}

// serveUKI answers /httpboot/<registry>/<repository…>/sha256-<hex>[.efi].
func (s *Server) serveUKI(r *request) {
	last := len(r.args) - 1
	sum, efi := strings.CutSuffix(r.args[last], ".efi")
	s.serveLayer(r, strings.Join(r.args[:last], "/"), strings.Replace(sum, "-", ":", 1), efi)
}
