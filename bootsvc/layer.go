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
	ref    Reference
	layer  *model.Layer
	ticket *model.Ticket // that pins it
	efi    bool          // the path ends in .efi
	skip   int64         // bytes that the client has already
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
	want, ok := s.pinned(r, name, sum)
	if !ok {
		r.refuse(http.StatusNotFound, "no open boot ticket pins this layer")
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
	if r.Method == http.MethodHead {
		r.layerHeader(want)
		return
	}
	if s.cache != nil {
		s.serveCached(r, want)
		return
	}
	if !s.enter(r.Context()) {
		r.unavailable("too many images are being loaded at present")
		return
	}
	defer func() { <-s.downloads }()
	s.stream(r, want)
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

// pinned finds the layer and the ticket that pins it. The ticket of the server
// that asks goes first, for many servers boot the same image.
func (s *Server) pinned(r *request, name, sum string) (wanted, bool) {
	if s.images == nil || !validDigest(sum) || !validName(name) {
		return wanted{}, false
	}
	t, ok := s.tickets.Pinned(name, sum)
	if !ok || t == nil {
		return wanted{}, false
	}
	if own, ok := s.ownOffer(r); ok && netboot.InUse(own.Ticket) && layerIn(own.Ticket, name, sum) != nil {
		t = own.Ticket
	}
	layer := layerIn(t, name, sum)
	ref, err := ParseReference(name + "@" + sum)
	return wanted{ref: ref, layer: layer, ticket: t}, layer != nil && err == nil
}

// ownOffer returns the boot ticket of the server that the URL names, else of the
// one that holds the lease on the address that asks.
func (s *Server) ownOffer(r *request) (model.Offer, bool) {
	if id, ok := machineID(r.URL.Query().Get("uuid")); ok {
		r.id = id
		return s.tickets.Offer(id)
	}
	return s.asker(r)
}

// layerIn returns the layer of t's image with a digest, or nil.
func layerIn(t *model.Ticket, name, sum string) *model.Layer {
	if t.Image.Repository != name {
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
	if err := s.copyVerified(r.w, src, want); err != nil {
		s.log.Warn("image layer was cut off", "server", want.ticket.Server, "image", want.ref.String(), "err", clean(err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// noteLayer notes the stages that a fetch shows. A UKI that no script asked for was
// fetched by firmware itself.
func (s *Server) noteLayer(r *request, want wanted) {
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

// tryNote notes a stage that a boot does not depend on.
func (s *Server) tryNote(r *request, t *model.Ticket, stage model.BootStage) {
	if err := s.tickets.Note(r.Context(), t, stage, r.client()); err != nil {
		s.log.Warn("boot progress cannot be recorded", "server", t.Server, "stage", string(stage), "err", err)
	}
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
