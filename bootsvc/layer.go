package bootsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// errCorrupt is returned for a layer that is not what its digest and size say.
var errCorrupt = errors.New("the registry sent other bytes than the layer's digest and size say")

// chunks are the buffers that layers are copied through.
var chunks = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// wanted is a layer that a client asked for.
type wanted struct {
	ref     Reference
	layer   *model.Layer
	ticket  *model.Ticket // that pins it
	unnamed bool          // whether the client is the ticket's server is not known
	efi     bool          // the path ends in .efi
	skip    int64         // bytes that the client has already
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

// serveUKI answers /httpboot/<registry>/<repository…>/sha256-<hex>[.efi].
func (s *Server) serveUKI(r *request) {
	last := len(r.args) - 1
	sum, efi := strings.CutSuffix(r.args[last], ".efi")
	s.serveLayer(r, strings.Join(r.args[:last], "/"), strings.Replace(sum, "-", ":", 1), efi)
}

// serveLayer answers with a layer that a ticket in use pins, and nothing else: the
// boot service is no way to a registry for anybody.
func (s *Server) serveLayer(r *request, name, sum string, efi bool) {
	want, ok := s.leave(r, name, sum)
	if !ok {
		return
	}
	want.efi = efi
	skip, satisfiable := resumeAt(r.Header, want.layer)
	if !satisfiable {
		r.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", want.layer.Size))
		r.refuse(http.StatusRequestedRangeNotSatisfiable, "the range begins behind the layer's end")
		return
	}
	want.skip = skip
	switch {
	case r.Method == http.MethodHead:
		r.layerHeader(want)
	case s.cache != nil:
		s.serveCached(r, want)
	case !s.enter(r.Context()):
		r.unavailable("too many images are being loaded at present")
	default:
		defer func() { <-s.downloads }()
		s.stream(r, want)
	}
}

// leave returns the layer that is asked for, if the client may have it, and answers
// itself when it may not.
func (s *Server) leave(r *request, name, sum string) (wanted, bool) {
	ref, err := ParseReference(name + "@" + sum)
	if s.images == nil || !validDigest(sum) || !validName(name) || err != nil {
		r.refuse(http.StatusNotFound, unpinned)
		return wanted{}, false
	}
	asker := s.layerAsker(r)
	if why := s.judgeAsker(asker, r); why.refused() {
		s.deny(r, asker.offer, model.ThingImage, why)
		return wanted{}, false
	}
	t := asker.offer.Ticket
	if layer := layerIn(t, name, sum); layer != nil && netboot.InUse(t) {
		return wanted{ref: ref, layer: layer, ticket: t}, true
	}
	pinning, why := s.judgeLayer(asker, name, sum)
	switch layer := layerIn(pinning.Ticket, name, sum); {
	case why.refused():
		s.deny(r, pinning, model.ThingImage, why)
	case layer == nil:
		r.refuse(http.StatusNotFound, unpinned)
	default:
		return wanted{ref: ref, layer: layer, ticket: pinning.Ticket, unnamed: true}, true
	}
	return wanted{}, false
}

// unpinned is said of a layer that nobody boots.
const unpinned = "no open boot ticket pins this layer"

// layerAsker is the server that is taken to ask for a layer.
type layerAsker struct {
	offer model.Offer
	named bool // by the URL, as any client can
	known bool // by the URL, or by the address that asks
}

// layerAsker returns the server that the URL names, else the one that is at the address
// that asks. Firmware that was told a UKI's path by somebody else's DHCP
// server is neither.
func (s *Server) layerAsker(r *request) layerAsker {
	if id, ok := machineID(r.URL.Query().Get("uuid")); ok {
		offer, known := s.offer(r, id)
		return layerAsker{offer, true, known}
	}
	offer, known := s.bindings.At(r.client)
	return layerAsker{offer, false, known}
}

// judgeAsker returns why the server that a URL names is not served at this address.
func (s *Server) judgeAsker(a layerAsker, r *request) refusal {
	if !a.named || !a.known {
		return refusal{}
	}
	return s.judgeAddress(a.offer, r)
}

// judgeLayer returns the ticket that a request for a layer bears on which the asker's own
// ticket does not give it, and why it is refused.
func (s *Server) judgeLayer(a layerAsker, name, sum string) (model.Offer, refusal) {
	if own := a.offer.Ticket; own != nil && (layerIn(own, name, sum) != nil || s.hadPinned(a.offer, name, sum)) {
		return a.offer, refusedSpent
	}
	t, ok := s.tickets.Pinned(name, sum)
	switch {
	case !ok || a.named && !a.known:
		return model.Offer{}, refusal{}
	case a.known:
		return model.Offer{Server: t.Server, Ticket: t}, refusedLayer
	}
	return model.Offer{Server: t.Server, Ticket: t}, refusal{}
}

// enter takes a slot of downloads, waiting for one if there is none and not too
// many wait already.
func (s *Server) enter(ctx context.Context) bool {
	select {
	case s.downloads <- struct{}{}:
		return true
	default:
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return false
	}
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case s.downloads <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// layerIn returns the layer of t's image with a digest, or nil.
func layerIn(t *model.Ticket, name, sum string) *model.Layer {
	if t == nil || t.Image.Repository != name {
		return nil
	}
	for _, l := range layersOf(&t.Image) {
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

// resumeAt returns from which byte the layer is wanted. Only "the rest from byte
// N on" is understood (RFC 9110 §14.2 lets any other range be ignored), and a
// range for another layer is ignored too (§13.1.5).
func resumeAt(h http.Header, l *model.Layer) (skip int64, satisfiable bool) {
	if match := h.Get("If-Range"); match != "" && match != etag(l) {
		return 0, true
	}
	from, ok := strings.CutPrefix(h.Get("Range"), "bytes=")
	from, last := strings.CutSuffix(from, "-")
	if !ok || !last {
		return 0, true
	}
	n, err := strconv.ParseUint(from, 10, 62)
	if err != nil {
		return 0, true
	}
	return int64(n), int64(n) < l.Size
}

func etag(l *model.Layer) string { return `"` + l.Digest + `"` }

func (w wanted) contentType() string {
	if w.efi || w.layer.MediaType == mediaUKI {
		return "application/efi"
	}
	return "application/octet-stream"
}

// layerHeader sends the header of a layer's answer.
func (r *request) layerHeader(want wanted) {
	h := r.w.Header()
	h.Set("Content-Type", want.contentType())
	h.Set("Content-Length", strconv.FormatInt(want.layer.Size-want.skip, 10))
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", etag(want.layer))
	code := http.StatusOK
	if want.skip > 0 {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", want.skip, want.layer.Size-1, want.layer.Size))
		code = http.StatusPartialContent
	}
	r.w.WriteHeader(code)
}

// stream fetches the layer and sends it on. What went wrong before the header is
// a 502; after it the connection is cut, so that the client knows the file to be
// incomplete.
func (s *Server) stream(r *request, want wanted) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	body, err := s.images.open(ctx, want.ref, want.layer)
	if err != nil {
		err = s.images.explain(want.ref.String(), err)
		s.log.Warn("image layer cannot be fetched", "server", want.ticket.Server, "err", err)
		r.refuse(http.StatusBadGateway, "the registry does not give this layer at present; Ingot's log says why")
		return
	}
	defer body.Close()
	s.noteLayer(r, want)
	r.layerHeader(want)
	src := &watched{src: body, limit: s.images.timeout, timer: time.AfterFunc(s.images.timeout, cancel)}
	defer src.timer.Stop()
	if err := s.copyVerified(&r.w, src, want); err != nil {
		s.log.Warn("image layer was cut off", "server", want.ticket.Server, "image", want.ref.String(), "err", clean(err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// noteLayer notes what a fetch that is served shows. A UKI that no script asked for was
// fetched by firmware itself. Of a client that is not known nothing is noted, for the
// ticket may be another server's.
func (s *Server) noteLayer(r *request, want wanted) {
	if want.unnamed {
		return
	}
	s.served(r, want.ticket, model.ThingImage)
	stage := stageOf(want.ticket.Image, want.layer)
	if stage == "" {
		return
	}
	if want.layer == want.ticket.Image.UKI && !s.scripted(want.ticket) {
		s.tryNote(r, want.ticket, model.StageHTTPBoot)
	}
	s.tryNote(r, want.ticket, stage)
}

// scripted reports whether t's server was served its script.
func (s *Server) scripted(t *model.Ticket) bool {
	offer, _ := s.tickets.Offer(t.UUID)
	p := offer.Progress
	return p != nil && p.Ticket == t.ID && !p.ScriptAt.IsZero()
}

// copyVerified copies src to w, but for the bytes that the client has already. It
// keeps the last chunk back until all bytes are known to be right, so that no
// client ever holds a whole file that is wrong.
func (s *Server) copyVerified(w *answer, src io.Reader, want wanted) error {
	buffer := chunks.Get().(*[128 << 10]byte)
	defer chunks.Put(buffer)
	sum := digest.Digest(want.layer.Digest).Verifier()
	for seen := int64(0); seen < want.layer.Size; {
		room := min(int64(len(buffer)), want.layer.Size-seen)
		chunk := buffer[:room]
		if _, err := io.ReadFull(src, chunk); err != nil {
			return fmt.Errorf("read layer: %w", err)
		}
		_, _ = sum.Write(chunk) // a hash takes everything
		seen += room
		if seen == want.layer.Size && (!sum.Verified() || !atEnd(src)) {
			return errCorrupt
		}
		from := max(0, min(room, want.skip-(seen-room)))
		n, err := w.Write(chunk[from:])
		s.metrics.imageBytes.Add(float64(n))
		if err != nil {
			return fmt.Errorf("send layer: %w", err)
		}
	}
	return nil
}

// atEnd reports whether src has nothing more.
func atEnd(src io.Reader) bool {
	var one [1]byte
	n, err := io.ReadFull(src, one[:])
	return n == 0 && err == io.EOF
}

// watched is a reader that is given up when nothing comes for a while: timer
// cancels the fetch that feeds src.
type watched struct {
	src   io.Reader
	limit time.Duration
	timer *time.Timer
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.limit)
	n, err := w.src.Read(p)
	w.timer.Stop()
	return n, err
}
