package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

const (
	maxDocument = 96 << 20 // bytes: the seed may be 64 MiB, and JSON quotes
	maxImage    = 1 << 46  // bytes of a disk: 64 TiB
	maxTable    = 64 << 20 // bytes: of a disk of 5 TiB
)

// Waits of a source; tests have shorter ones.
var (
	stalled    = 30 * time.Second // without a byte, after which a connection is given up
	patience   = 5 * time.Minute  // without progress, after which an install is given up
	firstPause = time.Second      // between two attempts, then twice as long each time
)

const (
	maxPause = 15 * time.Second // between two attempts
	maxAsked = time.Minute      // that a server may ask for
)

// wrongChunks is how often one chunk may arrive other than its sum says.
const wrongChunks = 3

// source is the daemon, from which an install is fetched. Its URLs hold a token, so no error
// shows more than the host.
type source struct {
	document *url.URL
	client   *http.Client
	log      *slog.Logger
}

func newSource(address string, log *slog.Logger) (*source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL of the install cannot be used") // err would show it
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	transport.ResponseHeaderTimeout = stalled
	return &source{document: u, log: log, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// at is the URL of something that a document names, which is on the same server.
func (s *source) at(reference string) (*url.URL, error) {
	u, err := s.document.Parse(reference)
	if err != nil || u.Host != s.document.Host || u.Scheme != s.document.Scheme {
		return nil, errors.New("the install document names another server, or no URL")
	}
	return u, nil
}

type refusal struct {
	host, status string
	after        time.Duration // that the server asks to wait for; 0 = it does not
}

func (r *refusal) Error() string { return fmt.Sprintf("%s answers %s", r.host, r.status) }

// open asks for the bytes from an offset on. Its body fails when nothing arrives for a while.
func (s *source) open(ctx context.Context, u *url.URL, from uint64) (*body, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, errors.New("the URL of the install cannot be used")
	}
	if from > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	response, err := s.client.Do(request)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("fetch from %s: %w", u.Host, WithoutURL(err))
	}
	partial := strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from))
	if from == 0 && response.StatusCode == http.StatusOK || response.StatusCode == http.StatusPartialContent && partial {
		timer := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("nothing arrived for %v", stalled)) })
		return &body{response.Body, ctx, cancel, timer}, nil
	}
	response.Body.Close()
	cancel(nil)
	return nil, &refusal{u.Host, response.Status, retryAfter(response)}
}

// retryAfter is how long a server that is not ready asks to wait.
func retryAfter(r *http.Response) time.Duration {
	if r.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxAsked)
}

// WithoutURL unwraps the error of net/http that shows the whole URL, in which there is a token.
func WithoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

type body struct {
	io.ReadCloser
	ctx    context.Context // of the request, whose cause says why it was ended
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(stalled)
	}
	if cause := context.Cause(b.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// persist repeats try until it succeeds, until nothing has come of it for as long as patience
// goes, or until its error is a Failure. try reports whether it got on. A server that says when
// it is ready is waited for.
func (s *source) persist(ctx context.Context, what string, try func() (progress bool, err error)) error {
	since, wait := time.Now(), firstPause
	for {
		progress, err := try()
		if err == nil {
			return nil
		}
		if _, final := errors.AsType[*Failure](err); final {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		refused, _ := errors.AsType[*refusal](err)
		ready := refused != nil && refused.after > 0
		if progress || ready {
			since, wait = time.Now(), firstPause
		}
		if ready {
			wait = refused.after
		}
		if time.Since(since) >= patience {
			return failure(model.ReasonInstallFailed, "%s cannot be fetched, tried for %v: %v", what, patience, err)
		}
		s.log.Warn("retrying a fetch", "what", what, "retryIn", wait, "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, maxPause)
	}
}

func (s *source) fetch(ctx context.Context, what string, u *url.URL, most int64) (content []byte, err error) {
	err = s.persist(ctx, what, func() (bool, error) {
		r, err := s.open(ctx, u, 0)
		if err != nil {
			return false, err
		}
		defer func() { _ = r.Close() }() // was only read
		content, err = io.ReadAll(io.LimitReader(r, most+1))
		if err == nil && int64(len(content)) > most {
			err = failure(model.ReasonInstallFailed, "%s has more than %d bytes", what, most)
		}
		return false, err
	})
	return content, err
}

func (s *source) install(ctx context.Context) (model.InstallDocument, error) {
	var doc model.InstallDocument
	content, err := s.fetch(ctx, "the install document", s.document, maxDocument)
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(content, &doc); err != nil {
		return doc, errors.New("the install document is not valid JSON, or its fields have other types") // err may quote secrets
	}
	switch {
	case doc.Version != model.InstallVersion:
		return doc, fmt.Errorf("the install document has version %d, this probe knows %d: build the probe image anew", doc.Version, model.InstallVersion)
	case doc.Install == "":
		return doc, errors.New("the install document does not name its install")
	}
	return doc, nil
}

func (s *source) table(ctx context.Context, doc model.InstallDocument) (model.ChunkTable, error) {
	u, err := s.at(doc.Table)
	if err != nil {
		return model.ChunkTable{}, err
	}
	if doc.Image.Bytes > maxImage {
		return model.ChunkTable{}, fmt.Errorf("the image is of a disk of %d bytes: at most %d are possible", doc.Image.Bytes, int64(maxImage))
	}
	raw, err := s.fetch(ctx, "the table of chunks", u, min(maxTable, int64(model.MaxChunkTable(doc.Image.Bytes))))
	if err != nil {
		return model.ChunkTable{}, err
	}
	if sum := sha256.Sum256(raw); "sha256:"+hex.EncodeToString(sum[:]) != doc.TableDigest {
		return model.ChunkTable{}, failure(model.ReasonDigestMismatch, "the table of chunks has digest sha256:%x, the install document says %.80s", sum, doc.TableDigest)
	}
	table, err := model.ParseChunkTable(raw, doc.Image.Bytes)
	if err == nil && table.Bytes != doc.Image.Bytes {
		err = fmt.Errorf("the table of chunks is of a disk of %d bytes, the image of %d", table.Bytes, doc.Image.Bytes)
	}
	return table, err
}

type stored struct {
	number int
	bytes  []byte
}

// download is the fetching of a part of an image's chunks.
type download struct {
	url   *url.URL
	table model.ChunkTable
	end   int         // the chunk before which it ends
	free  chan []byte // memory for chunks: taken from here, and given back by who uses them up
	out   chan<- stored

	next  int // the chunk that comes next
	wrong int // how often it came and was wrong
}

// chunks hands over the chunks from d.next on that are not zeros, each once its sum was checked.
// When a connection breaks it goes on where it was.
func (s *source) chunks(ctx context.Context, d *download) error {
	d.next = nextData(d.table, d.next)
	return s.persist(ctx, "the image", func() (progress bool, err error) {
		if d.next >= d.end {
			return true, nil
		}
		r, err := s.open(ctx, d.url, d.table.Chunks[d.next].Offset)
		if err != nil {
			return false, err
		}
		defer func() { _ = r.Close() }() // was only read
		for d.next < d.end {
			if err := d.one(ctx, r); err != nil {
				return progress, err
			}
			d.next, d.wrong, progress = nextData(d.table, d.next+1), 0, true
		}
		return true, nil
	})
}

// one reads, checks and hands over the next chunk.
func (d *download) one(ctx context.Context, r *body) error {
	chunk := d.table.Chunks[d.next]
	r.timer.Stop() // the disk may be what is waited for
	var buffer []byte
	select {
	case buffer = <-d.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.timer.Reset(stalled)
	buffer = buffer[:chunk.Length]
	if err := d.read(r, buffer); err != nil {
		d.free <- buffer
		return err
	}
	select {
	case d.out <- stored{d.next, buffer}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *download) read(r io.Reader, buffer []byte) error {
	if _, err := io.ReadFull(r, buffer); err != nil {
		return fmt.Errorf("chunk %d of %d: %w", d.next, len(d.table.Chunks), noEOF(err))
	}
	sum, want := sha256.Sum256(buffer), d.table.Chunks[d.next].Sum
	if sum == want {
		return nil
	}
	if d.wrong++; d.wrong >= wrongChunks {
		return failure(model.ReasonDigestMismatch, "chunk %d of the image has SHA-256 %x, its table says %x, %d times", d.next, sum, want, d.wrong)
	}
	return fmt.Errorf("chunk %d of %d is not what its table says", d.next, len(d.table.Chunks))
}

// noEOF is an error that says what an early end is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// nextData is the first chunk from number on that is not zeros.
func nextData(table model.ChunkTable, number int) int {
	for number < len(table.Chunks) && table.Chunks[number].Length == 0 {
		number++
	}
	return number
}
