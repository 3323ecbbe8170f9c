package bootsvc

import (
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/oci"
)

// piece is how much of a file the kernel sends before the client's time is extended.
const piece = 1 << 20

// serveCached answers with a layer from the cache.
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
	h := r.w.Header()
	h.Set("Content-Type", want.contentType())
	h.Set("ETag", etag(want.layer))
	http.ServeContent(&r.w, r.Request, "", time.Time{}, blob)
	s.metrics.imageBytes.Add(float64(r.w.sent))
	if err := blob.Err(); err != nil && r.Context().Err() == nil {
		s.log.Warn("image layer was cut off", "server", want.ticket.Server, "err", syntax.Printable(err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// ReadFrom implements io.ReaderFrom. A file is sent by the kernel, piece by piece, for
// the client is given a while for each; anything else is copied, for it may have to be
// waited for, which is not the client's fault.
func (a *answer) ReadFrom(src io.Reader) (total int64, err error) {
	limited, ok := src.(*io.LimitedReader) // what http.ServeContent sends
	if !ok {
		limited = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	for limited.N > 0 {
		n, err := a.send(limited.R, limited.N)
		limited.N -= n
		total += n
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// send sends the next piece of src, of at most limit bytes. It returns io.EOF behind
// the last.
func (a *answer) send(src io.Reader, limit int64) (int64, error) {
	if !isFile(src) {
		return a.copy(src, limit)
	}
	a.extend()
	n, err := io.CopyN(a.ResponseWriter, src, min(limit, piece))
	a.sent += n
	return n, err
}

// copy sends what src has next.
func (a *answer) copy(src io.Reader, limit int64) (int64, error) {
	buffer := chunks.Get().(*[128 << 10]byte)
	defer chunks.Put(buffer)
	n, err := src.Read(buffer[:min(limit, int64(len(buffer)))])
	if n == 0 {
		return 0, err
	}
	sent, writeErr := a.Write(buffer[:n])
	return int64(sent), writeErr // an error of src comes again
}

// isFile reports whether the kernel can send src, which may change while it is read.
func isFile(src io.Reader) bool {
	f, ok := src.(syscall.Conn)
	if !ok {
		return false
	}
	_, err := f.SyscallConn()
	return err == nil
}
