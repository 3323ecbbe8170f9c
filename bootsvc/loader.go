package bootsvc

import (
	"net/http"
	"strings"
	"time"

	"ingot/model"
)

// serveLoader answers with a boot loader, to firmware that boots by HTTP. Firmware
// asks with HEAD first and needs the length (UEFI §24.7), so it is always said.
func (s *Server) serveLoader(r *request) {
	f, _, err := s.loaders.Open(r.args[0])
	if err != nil {
		r.refuse(http.StatusNotFound, "there is no boot loader of this name")
		return
	}
	defer f.Close()
	r.thing = r.args[0]
	if r.Method == http.MethodGet {
		s.noteLoader(r)
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if strings.HasSuffix(r.args[0], ".efi") {
		h.Set("Content-Type", "application/efi")
	}
	h.Set("Cache-Control", "no-store")
	http.ServeContent(&r.w, r.Request, "", time.Time{}, f)
}

// noteLoader notes that a server's firmware fetched its boot loader, if one is at
// the address that asks that may boot.
func (s *Server) noteLoader(r *request) {
	if own, ok := s.gate.rules.At(r.client); ok && own.Ticket.MayBoot(own.Progress) {
		r.id = own.Ticket.UUID
		s.gate.tryNote(r, own.Ticket, model.StageHTTPBoot)
	}
}
