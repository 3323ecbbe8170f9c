package bootsvc

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// piece is how much of a file the kernel sends before the client's time is extended.
const piece = 1 << 20

// chunks are the buffers that layers are copied through.
var chunks = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// answer is a ResponseWriter that remembers its code, and gives the client a
// while for each piece that it is sent.
type answer struct {
	http.ResponseWriter
	stall time.Duration
	code  int
	sent  int64 // bytes of the body
	// counter counts them as they are sent, for an answer may take minutes; nil = nothing does.
	counter prometheus.Counter
}

func (a *answer) note(bytes int64) {
	a.sent += bytes
	if a.counter != nil {
		a.counter.Add(float64(bytes))
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.code = code
	a.extend()
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.extend()
	n, err := a.ResponseWriter.Write(p)
	a.note(int64(n))
	return n, err
}

// extend moves the write deadline on. A connection keeps its deadline from one
// request to the next, so it is moved for each answer. That a writer in a test has
// no deadlines is no matter.
func (a *answer) extend() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.stall))
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
	a.note(n)
	return n, err
}

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
