package bootsvc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// ErrNotPrepared is what DiskImages returns of an image whose chunks have to be made first.
var ErrNotPrepared = errors.New("the disk image is being prepared")

// DiskImages is where the chunks of disk images are.
type DiskImages interface {
	// Open returns the chunks of a disk image, to be closed. Where they are not here, as after
	// the cache was lost, the error is ErrNotPrepared, and they are being made anew from then on.
	Open(ctx context.Context, image *model.DiskImage) (*DiskChunks, error)
}

// DiskChunks is a disk image as it is served.
type DiskChunks struct {
	Table, Chunks *os.File
	TableDigest   string // sha256:…
}

// Close closes both files.
func (c *DiskChunks) Close() {
	_ = c.Table.Close()
	_ = c.Chunks.Close()
}

// The kinds of what a probe that installs is served, as metrics have them.
const (
	installDocument = "document"
	installTable    = "table"
	installChunks   = "chunks"
)

// refusedInstalled is said once a probe has written and verified the ticket's disk image.
var refusedInstalled = refusal{model.RefusedSpent,
	"the disk image of this boot ticket is written and verified: the server boots from its disk, and is not installed again"}

// serveInstall answers a probe that installs: with the document that says what to write, the
// table of chunks and the chunks themselves. It may ask for as long as its ticket is in use
// and nothing was verified, however long writing takes.
func (s *Server) serveInstall(r *request) {
	holder, ok := s.gate.bearer(r, model.ThingInstall)
	if !ok {
		return
	}
	if holder.Ticket.Disk == nil || s.disks == nil {
		r.refuse(http.StatusNotFound, "the boot ticket of this server installs no disk image")
		return
	}
	kind := r.args[2]
	switch kind {
	case installDocument, installTable, installChunks:
	default:
		r.refuse(http.StatusNotFound, "an install has a document, a table and chunks, and nothing else")
		return
	}
	image, ok := s.openDisk(r, holder.Ticket)
	if !ok {
		return
	}
	defer image.Close()
	r.thing, r.w.counter = installThings[kind], s.metrics.installBytes.WithLabelValues(kind)
	switch kind {
	case installDocument:
		s.serveInstallDocument(r, holder, image)
	case installTable:
		s.serveInstallFile(r, holder, image.Table, image.TableDigest)
	case installChunks:
		s.serveInstallFile(r, holder, image.Chunks, image.TableDigest)
	}
}

// installThings are what is asked for, for people.
var installThings = map[string]string{
	installDocument: "install document", installTable: "chunk table", installChunks: "disk image",
}

// openDisk returns the chunks of a ticket's disk image, and answers itself when there are none.
func (s *Server) openDisk(r *request, t *model.Ticket) (*DiskChunks, bool) {
	image, err := s.disks.Open(r.Context(), t.Disk)
	switch {
	case err == nil:
		return image, true
	case errors.Is(err, ErrNotPrepared):
		r.unavailable("the disk image is being prepared anew: come again")
	default:
		s.log.Error("disk image cannot be served", "server", t.Server, "image", t.Disk.Ref, "err", syntax.Printable(err.Error()))
		r.unavailable("the disk image cannot be served at present; Ingot's log says why")
	}
	return nil, false
}

// serveInstallDocument answers with what to write to which disk. It holds the secrets of the
// seed. The table's digest is that of the table as it is here now.
func (s *Server) serveInstallDocument(r *request, o model.TicketHolder, image *DiskChunks) {
	p, ok := s.gate.payload(r, o.Ticket)
	switch {
	case !ok:
		return
	case p.Install == nil:
		s.log.Error("boot ticket of a disk image has no install document", "server", o.Ticket.Server)
		r.refuse(http.StatusInternalServerError, "the install of this server cannot be served; Ingot's log says why")
		return
	}
	document := *p.Install
	document.TableDigest = image.TableDigest
	if p := o.Progress; p != nil && p.Install.Writes() && p.Install.Disk != nil {
		document.Previous = p.Install.Disk // what an earlier boot of this install has written there is its own
	}
	raw, err := json.Marshal(document)
	if err != nil {
		r.refuse(http.StatusInternalServerError, "the install document cannot be encoded")
		return
	}
	s.gate.served(r, o.Ticket, model.ThingInstall)
	r.body("application/json", string(raw))
}

// serveInstallFile answers with a file, or a range of it. What chunks are at which place is for
// one table alone, so that is what both are tagged by.
func (s *Server) serveInstallFile(r *request, o model.TicketHolder, f *os.File, tableDigest string) {
	s.gate.served(r, o.Ticket, model.ThingInstall)
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("ETag", `"`+tableDigest+`"`)
	h.Set("Cache-Control", "no-store")
	http.ServeContent(&r.w, r.Request, "", time.Time{}, f)
}

// installURL is where the ticket's install document is served to the bearer of the token of the
// boot that its server is in.
func (s *Server) installURL(r *request, o model.TicketHolder) string {
	token := s.gate.bootOf(o.Ticket, presentBoot(o)).token
	return strings.Join([]string{s.links.of(r), "install", o.Ticket.UUID, token.Reveal(), installDocument}, "/")
}
