package imagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"ingot/bootsvc/cachedir"
)

var (
	// ErrBusy is returned when too many blobs are being fetched, or too many clients
	// wait for that already: come again later.
	ErrBusy = errors.New("too many image blobs are being fetched at present")
	// ErrClosed is returned by a Cache that was closed.
	ErrClosed = errors.New("image cache: it is closed")
	// ErrNoRoom is returned by Prefetch for a blob that will have to be streamed, for
	// the disk has no room for it.
	ErrNoRoom = errors.New("the image cache has no room for the blob")
)

var errLeft = errors.New("the client left")

// Options are the options of Open.
type Options struct {
	// Dir is where blobs are kept.
	Dir *cachedir.Dir
	// MaxFetches bounds the blobs that are fetched from registries at the same time;
	// zero means 16. Fetches that are slow do not count.
	MaxFetches int
	// MaxWaiting bounds the clients that wait for a blob's first byte, and the fetches
	// that wait for their turn; zero means 4096.
	MaxWaiting int
	// QueueTimeout is how long a client waits for its fetch's turn; zero means 25 seconds.
	QueueTimeout time.Duration
	// Stall is how long a registry may send nothing; zero means 30 seconds.
	Stall time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Cache keeps blobs on disk. It is safe for concurrent use.
type Cache struct {
	dir          *cachedir.Dir
	kind         *cachedir.Kind
	disk         disk
	queueTimeout time.Duration
	stall        time.Duration
	backoff      time.Duration
	slowAfter    time.Duration
	log          *slog.Logger
	metrics      metrics
	clock        func() time.Time

	slots        chan struct{} // one for each fetch and stream under way, but slow fetches
	slow         chan struct{} // one for each of these
	proofs       chan struct{} // one for each file being hashed
	waiting      chan struct{} // one for each client that waits for a first byte
	maxDownloads int           // how many downloads there may be
	full         atomic.Bool   // the disk failed, and it was said
	creating     sync.Mutex    // held while free disk space is taken

	mu        sync.Mutex
	closed    bool
	files     map[string]*file // by digest
	downloads map[identity]*download
	group     sync.WaitGroup // of downloads
}

// file is a complete blob on disk.
type file struct {
	entry  *cachedir.Entry
	size   int64
	proven bool // it was hashed since the process began
	mark   mark // at that time
}

// Open opens the cache, with the blobs that are in its folder.
func Open(o Options) (*Cache, error) {
	c := &Cache{
		dir:          o.Dir,
		disk:         disk{allocate, (*os.File).Sync},
		queueTimeout: orElse(o.QueueTimeout, 25*time.Second),
		stall:        orElse(o.Stall, 30*time.Second),
		backoff:      200 * time.Millisecond,
		slowAfter:    slowAfter,
		log:          o.Log,
		metrics:      newMetrics(),
		clock:        o.Clock,
		slots:        make(chan struct{}, orElse(o.MaxFetches, 16)),
		slow:         make(chan struct{}, slowFetches*orElse(o.MaxFetches, 16)),
		proofs:       make(chan struct{}, 2),
		waiting:      make(chan struct{}, orElse(o.MaxWaiting, 4096)),
		maxDownloads: orElse(o.MaxFetches, 16) + orElse(o.MaxWaiting, 4096),
		files:        make(map[string]*file),
		downloads:    make(map[identity]*download),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	c.kind = &cachedir.Kind{Measure: measure, Evicted: c.evicted}
	entries, err := c.dir.Load(c.kind)
	if err != nil {
		return nil, fmt.Errorf("open image cache: %w", err)
	}
	for _, e := range entries {
		c.insert(&file{entry: e, size: e.Size()})
	}
	c.metrics.register(o.Registerer)
	return c, nil
}

// orElse returns v, or what stands for it when it was not given.
func orElse[T int | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}

// Close ends all fetches and waits for them. Blobs that are open stay readable as far
// as they have come.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, f := range c.downloads {
		f.cancel(ErrClosed)
	}
	c.mu.Unlock()
	c.group.Wait()
}

// Get returns a blob: from disk when it is complete there, else from the fetch that
// is under way or begins now, and past the cache when there is no room for it. It
// returns when the first bytes are to be had. ctx bounds the Blob as well; what is
// being fetched goes on when ctx ends.
func (c *Cache) Get(ctx context.Context, key Key, fetch Fetch) (*Blob, error) {
	if err := key.check(); err != nil {
		return nil, err
	}
	b, err := c.get(ctx, key, fetch)
	if errors.Is(err, ErrBusy) {
		c.metrics.busy.Inc()
	}
	if err != nil {
		return nil, fmt.Errorf("image blob %s: %w", key, err)
	}
	return b, nil
}

func (c *Cache) get(ctx context.Context, key Key, fetch Fetch) (*Blob, error) {
	b := &Blob{cache: c, key: key, canceled: ctx.Done()}
	b.bypass = func(head io.Reader, at int64) (*stream, error) { return c.bypass(ctx, key, fetch, head, at) }
	if !c.dir.Fits(key.Size) {
		return b, b.divert(ErrNoRoom)
	}
	for followed := false; ; {
		at, err := c.find(ctx, key, fetch)
		switch {
		case err != nil:
			return nil, err
		case at.file != nil:
			if !followed {
				c.metrics.hits.Inc()
			}
			b.take(at)
			return b, nil
		}
		b.download, b.refs = at.download, at.refs
		complete, err := c.wait(ctx, at.download)
		followed = followed || c.joined(at)
		switch {
		case isDisk(err):
			return b, b.divert(err)
		case err != nil:
			b.release()
			return nil, err
		case !complete:
			return b, nil
		}
		b.release() // and take the file, which the kernel can send
	}
}

// joined counts a client that follows a fetch, and reports whether it does.
func (c *Cache) joined(at source) bool {
	if !at.download.fetching() {
		return false
	}
	if !at.began {
		c.metrics.joins.Inc()
	}
	return true
}

// source is where a blob is to be had: an open file, or a download. Whoever is given one
// counts in its refs, and has to release them.
type source struct {
	file     *os.File
	kept     *file // that file is
	download *download
	began    bool // the download began with this request
	refs     *refs
}

// find returns where a blob is to be had, and sends for it if need be.
func (c *Cache) find(ctx context.Context, key Key, fetch Fetch) (source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return source{}, ErrClosed
	}
	if at, err := c.use(key); err != nil || at.file != nil {
		return at, err
	}
	f, under := c.downloads[key.identity()]
	if !under {
		if len(c.downloads) >= c.maxDownloads {
			return source{}, ErrBusy
		}
		f = newDownload(key, c.dir.New(c.kind, key.Digest))
		c.start(ctx, f, fetch)
	}
	f.refs.entry.Users.Add(1)
	f.refs.n++
	return source{download: f, began: !under, refs: f.refs}, nil
}

// use opens the file of a blob if there is one that is known to be right; mu is held.
func (c *Cache) use(key Key) (source, error) {
	have := c.files[key.Digest]
	if have == nil || !have.proven {
		return source{}, nil
	}
	if have.size != key.Size {
		return source{}, sizeError(key, have.size)
	}
	f, m, err := open(have.entry.Path())
	switch {
	case err != nil:
		c.forget(have)
		return source{}, nil
	case m != have.mark:
		f.Close()
		have.proven = false
		return source{}, nil
	}
	if have.entry.Touch(c.clock()) {
		if m, err := markOf(f); err == nil {
			have.mark = m
		}
	}
	have.entry.Users.Add(1)
	return source{file: f, kept: have, refs: &refs{entry: have.entry, n: 1}}, nil
}

// reopen is use for somebody who does not hold mu.
func (c *Cache) reopen(key Key) (source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.use(key)
}

var errChanged = errors.New("its file was changed while it was read")

// intact returns an error when a file that was opened as that of a blob is no longer what
// was proven. Who opens it next has it proven anew.
func (c *Cache) intact(have *file, f *os.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := markOf(f)
	if err == nil && m == have.mark {
		return nil
	}
	return errors.Join(errChanged, err)
}

func sizeError(key Key, size int64) error {
	return fmt.Errorf("its manifest says that it has %d bytes, and it has %d", key.Size, size)
}

// insert adds a file to those that can be served; mu is held, or c is not known yet.
func (c *Cache) insert(f *file) {
	c.files[f.entry.Digest] = f
	c.metrics.blobs.Set(float64(len(c.files)))
}

// forget takes out a file that is gone; mu is held.
func (c *Cache) forget(f *file) {
	if c.files[f.entry.Digest] == f {
		delete(c.files, f.entry.Digest)
		c.metrics.blobs.Set(float64(len(c.files)))
	}
}

// evicted takes out the file of an entry that was evicted.
func (c *Cache) evicted(e *cachedir.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[e.Digest]; f != nil && f.entry == e {
		c.forget(f)
	}
}

// release takes a user off a blob. The last one closes the file that its download wrote.
func (c *Cache) release(h *refs) {
	h.entry.Users.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.n--; h.n == 0 && h.part != nil {
		h.part.Close()
		h.part = nil
	}
}

// wait waits for the first bytes of a download. It reports whether the blob is complete
// on disk then.
func (c *Cache) wait(ctx context.Context, f *download) (complete bool, err error) {
	if !f.isReady() {
		if err := c.queue(ctx, f); err != nil {
			return false, err
		}
	}
	select {
	case <-f.ended:
		_, _, err := f.state()
		return err == nil, err
	default:
		return false, nil
	}
}

// queue waits until f is open, but not for ever for its turn.
func (c *Cache) queue(ctx context.Context, f *download) error {
	select {
	case c.waiting <- struct{}{}:
		defer func() { <-c.waiting }()
	default:
		return ErrBusy
	}
	timer := time.NewTimer(c.queueTimeout)
	defer timer.Stop()
	select {
	case <-f.started:
	case <-f.ready:
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-f.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Prefetch brings blobs into the cache, and verifies those that are there since
// before the process began. It returns once all are there, with an error that wraps
// ErrNoRoom for those that will have to be streamed. fetch returns how each is
// fetched.
func (c *Cache) Prefetch(ctx context.Context, keys []Key, fetch func(Key) Fetch) error {
	errs := make([]error, len(keys))
	var group errgroup.Group
	group.SetLimit(4)
	for n, key := range keys {
		group.Go(func() error {
			if err := c.prefetch(ctx, key, fetch(key)); err != nil {
				errs[n] = fmt.Errorf("image blob %s: %w", key, err)
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in errs
	return errors.Join(errs...)
}

func (c *Cache) prefetch(ctx context.Context, key Key, fetch Fetch) error {
	if err := key.check(); err != nil {
		return err
	}
	if !c.dir.Fits(key.Size) {
		return ErrNoRoom
	}
	at, err := c.find(ctx, key, fetch)
	if err != nil {
		return err
	}
	defer c.release(at.refs)
	if at.file != nil {
		return at.file.Close()
	}
	select {
	case <-at.download.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, _, err = at.download.state(); isDisk(err) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}
