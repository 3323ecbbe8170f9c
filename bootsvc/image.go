package bootsvc

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/model"
)

// wanted is a layer that a client asked for.
type wanted struct {
	ref     model.ImageReference
	layer   *model.Layer
	ticket  *model.Ticket // that pins it
	unnamed bool          // whether the client is the ticket's server is not known
	efi     bool          // the path ends in .efi
}

// serveImage answers /image?imageName=&layerDigest=&version=.
func (s *Server) serveImage(r *request) {
	q := r.URL.Query()
	name, efi := strings.CutSuffix(q.Get("imageName"), ".efi")
	if q.Get("version") == "" {
		name = "" // all three are required
	}
	s.serveLayer(r, name, q.Get("layerDigest"), efi)
}

// serveLayer answers with a layer that a ticket in use pins, and nothing else: the
// boot service is no way to a registry for anybody.
func (s *Server) serveLayer(r *request, name, sum string, efi bool) {
	want, ok := s.authorizeLayer(r, name, sum)
	if !ok {
		return
	}
	want.efi = efi
	r.thing = partOf(want.ticket.Image, want.layer)
	if isBehind(r.Header, want.layer) { // it would count as a use of the ticket
		r.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", want.layer.Size))
		r.refuse(http.StatusRequestedRangeNotSatisfiable, "the range begins behind the layer's end")
		return
	}
	if r.Method == http.MethodHead { // fetches nothing
		h := r.w.Header()
		h.Set("Content-Type", want.contentType())
		h.Set("Content-Length", strconv.FormatInt(want.layer.Size, 10))
		h.Set("Accept-Ranges", "bytes")
		h.Set("ETag", etag(want.layer))
		return
	}
	s.serveCached(r, want)
}

func (s *Server) serveCached(r *request, want wanted) {
	blob, err := s.cache.Get(r.Context(), oci.CacheKey(want.ref, want.layer), s.images.Fetch(want.ref, want.layer))
	switch {
	case errors.Is(err, imagecache.ErrBusy):
		r.unavailable("too many images are being loaded at present")
		return
	case err != nil:
		s.log.Warn("image layer cannot be fetched", "server", want.ticket.Server, "err", syntax.Printable(err.Error()))
		r.refuse(http.StatusBadGateway, "the registry does not give this layer at present; Ingot's log says why")
		return
	}
	defer func() { _ = blob.Close() }()
	s.noteLayer(r, want)
	r.w.counter = s.metrics.imageBytes.WithLabelValues(string(blob.Source()))
	h := r.w.Header()
	h.Set("Content-Type", want.contentType())
	h.Set("ETag", etag(want.layer))
	http.ServeContent(&r.w, r.Request, "", time.Time{}, blob)
	if err := blob.Err(); err != nil && r.Context().Err() == nil {
		s.log.Warn("image layer was cut off", "server", want.ticket.Server, "err", syntax.Printable(err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// authorizeLayer returns the layer that is asked for, if the client may have it, and answers
// itself when it may not.
func (s *Server) authorizeLayer(r *request, name, sum string) (wanted, bool) {
	ref, err := model.ParseImageReference(name + "@" + sum)
	if s.images == nil || !model.IsImageDigest(sum) || !model.IsImageName(name) || err != nil {
		r.refuse(http.StatusNotFound, unpinned)
		return wanted{}, false
	}
	asker := s.gate.layerRequester(r)
	if why := s.gate.checkRequester(asker, r); why.refused() {
		s.gate.deny(r, asker.holder, model.ThingImage, why)
		return wanted{}, false
	}
	t := asker.holder.Ticket
	if layer := layerIn(t, name, sum); layer != nil && netboot.InUse(t) {
		return wanted{ref: ref, layer: layer, ticket: t}, true
	}
	pinning, why := s.gate.checkLayer(asker, name, sum)
	switch layer := layerIn(pinning.Ticket, name, sum); {
	case why.refused():
		s.gate.deny(r, pinning, model.ThingImage, why)
	case layer == nil:
		r.refuse(http.StatusNotFound, unpinned)
	default:
		return wanted{ref: ref, layer: layer, ticket: pinning.Ticket, unnamed: true}, true
	}
	return wanted{}, false
}

const unpinned = "no open boot ticket pins this layer"

// layerRequester is the server that is taken to ask for a layer.
type layerRequester struct {
	holder model.TicketHolder
	named  bool // by the URL, as any client can
	known  bool // by the URL, or by the address that asks
}

// layerRequester returns the server that the URL names, else the one that is at the address
// that asks. Firmware that was told a UKI's path by somebody else's DHCP
// server is neither.
func (g *gate) layerRequester(r *request) layerRequester {
	if id, ok := syntax.MachineID(r.URL.Query().Get("uuid")); ok {
		holder, known := g.find(r, id)
		return layerRequester{holder, true, known}
	}
	holder, known := g.rules.At(r.client)
	return layerRequester{holder, false, known}
}

// checkRequester returns why the server that a URL names is not served at this address.
func (g *gate) checkRequester(a layerRequester, r *request) refusal {
	if !a.named || !a.known {
		return refusal{}
	}
	return g.checkAddress(a.holder, r)
}

// checkLayer returns the ticket that a request for a layer bears on which the asker's own
// ticket does not give it, and why it is refused.
func (g *gate) checkLayer(a layerRequester, name, sum string) (model.TicketHolder, refusal) {
	if own := a.holder.Ticket; own != nil && (layerIn(own, name, sum) != nil || g.hadPinned(a.holder, name, sum)) {
		return a.holder, refusedSpent
	}
	t, ok := g.tickets.Pinned(name, sum)
	switch {
	case !ok || a.named && !a.known:
		return model.TicketHolder{}, refusal{}
	case a.known:
		return model.TicketHolder{Server: t.Server, Ticket: t}, refusedLayer
	}
	return model.TicketHolder{Server: t.Server, Ticket: t}, refusal{}
}

// layerIn returns the layer of t's image with a digest, or nil.
func layerIn(t *model.Ticket, name, sum string) *model.Layer {
	if t == nil || t.Image.Repository != name {
		return nil
	}
	for _, l := range oci.Layers(&t.Image) {
		if l != nil && l.Digest == sum {
			return l
		}
	}
	return nil
}

// stageOf returns the boot stage that the fetch of a layer shows, or "".
func stageOf(img model.PinnedImage, l *model.Layer) model.BootStage {
	switch l {
	case img.Kernel, img.UKI:
		return model.StageKernel
	case img.Initrd:
		return model.StageInitrd
	}
	return ""
}

func partOf(img model.PinnedImage, l *model.Layer) string {
	switch l {
	case img.Kernel:
		return "kernel"
	case img.Initrd:
		return "initramfs"
	case img.Squashfs:
		return "squashfs"
	case img.UKI:
		return "UKI"
	}
	return ""
}

// isBehind reports whether what is asked for is the rest from a byte on that a layer does
// not have (RFC 9110 §14.1.2), unless that is meant for another layer (§13.1.5).
func isBehind(h http.Header, l *model.Layer) bool {
	if match := h.Get("If-Range"); match != "" && match != etag(l) {
		return false
	}
	from, ok := strings.CutPrefix(h.Get("Range"), "bytes=")
	from, last := strings.CutSuffix(from, "-")
	if !ok || !last {
		return false
	}
	n, err := strconv.ParseUint(from, 10, 62)
	return err == nil && int64(n) >= l.Size
}

func etag(l *model.Layer) string { return `"` + l.Digest + `"` }

func (w wanted) contentType() string {
	if w.efi || w.layer.MediaType == oci.MediaUKI {
		return "application/efi"
	}
	return "application/octet-stream"
}

// noteLayer notes what a fetch that is served shows. A UKI that no script asked for was
// fetched by firmware itself. Of a client that is not known nothing is noted, for the
// ticket may be another server's.
func (s *Server) noteLayer(r *request, want wanted) {
	if want.unnamed {
		return
	}
	s.gate.served(r, want.ticket, model.ThingImage)
	stage := stageOf(want.ticket.Image, want.layer)
	if stage == "" {
		return
	}
	if want.layer == want.ticket.Image.UKI && !s.gate.scripted(want.ticket) {
		s.gate.tryNote(r, want.ticket, model.StageHTTPBoot)
	}
	s.gate.tryNote(r, want.ticket, stage)
}

func (g *gate) scripted(t *model.Ticket) bool {
	holder, _ := g.tickets.Find(t.UUID)
	p := holder.Progress
	return p != nil && p.Ticket == t.ID && !p.ScriptAt.IsZero()
}
