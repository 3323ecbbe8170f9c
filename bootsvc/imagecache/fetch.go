package imagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// chunk is what blobs are written and hashed by: as much as stays in a core's own cache
// from the registry's bytes to their hash, for memory is what a fetch waits for.
type chunk [512 << 10]byte

// chunks are the buffers that blobs are copied and hashed through.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// start starts a download; mu is held. It goes on when the client that it began for
// leaves, for others may follow, and the client itself may come again.
func (c *Cache) start(ctx context.Context, f *download, fetch Fetch) {
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.downloads[f.key.identity()] = f
	c.group.Go(func() {
		defer f.cancel(nil)
		c.finish(f, c.run(ctx, f, fetch))
	})
}

// finish ends a download. Whoever comes from now on finds the file, or begins another.
func (c *Cache) finish(f *download, err error) {
	c.mu.Lock()
	delete(c.downloads, f.key.identity())
	c.mu.Unlock()
	f.end(err)
	c.release(f.refs)
	if errors.Is(err, ErrCorrupt) {
		c.metrics.failures.WithLabelValues(sourceRegistry).Inc()
	}
	if err != nil && !isDisk(err) {
		c.log.Warn("image blob cannot be cached", "image", f.key.String(), "err", err)
	}
}

// run proves the file that is there, or else fetches the blob.
func (c *Cache) run(ctx context.Context, f *download, fetch Fetch) error {
	if proven, err := c.prove(ctx, f.key); proven || err != nil {
		return err
	}
	c.metrics.misses.Inc()
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer c.take(f.key.Size, f.progress).leave()
	close(f.started)
	c.metrics.begin(f.key.Size)
	defer func() { c.metrics.end(f.key.Size, f.progress()) }()
	start := c.clock()
	err := c.fetchBlob(ctx, f, fetch)
	c.metrics.observe(c.clock().Sub(start), err)
	return err
}

// prove hashes the file of a blob, if there is one. A wrong file is removed.
func (c *Cache) prove(ctx context.Context, key Key) (proven bool, err error) {
	have := c.unproven(key.Digest)
	if have == nil {
		return false, nil
	}
	defer have.entry.Users.Add(-1)
	select {
	case c.proofs <- struct{}{}:
		defer func() { <-c.proofs }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	m, err := hashFile(ctx, have.entry.Path(), key.Digest)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		c.metrics.failures.WithLabelValues(sourceDisk).Inc()
		c.log.Warn("cached image blob is damaged and will be fetched again", "image", key.String(), "err", err)
		c.mu.Lock()
		c.forget(have)
		c.mu.Unlock()
		have.entry.Drop()
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have.proven, have.mark = true, m
	if have.size != key.Size {
		return false, sizeError(key, have.size)
	}
	return true, nil
}

func (c *Cache) unproven(digest string) *file {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.files[digest]
	if have != nil {
		have.entry.Users.Add(1)
	}
	return have
}

var errDamaged = errors.New("the file is not what its digest says")

// hashFile hashes the file of a blob, and returns the mark that it had from begin to end.
func hashFile(ctx context.Context, path, digest string) (mark, error) {
	f, before, err := open(path)
	if err != nil {
		return mark{}, err
	}
	defer f.Close()
	sum := newSum(digest)
	buffer := chunks.Get().(*chunk)
	defer chunks.Put(buffer)
	for ctx.Err() == nil {
		n, err := f.Read(buffer[:])
		sum.add(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return mark{}, err
		}
	}
	after, err := markOf(f)
	if err != nil {
		return mark{}, err
	}
	if after != before || !sum.right() {
		return mark{}, errDamaged
	}
	return after, nil
}

// fetchBlob fetches a blob into a file of its own, and makes that its file.
func (c *Cache) fetchBlob(ctx context.Context, f *download, fetch Fetch) error {
	part, err := c.create(f)
	if err != nil {
		f.refs.entry.Drop()
		return &diskError{err}
	}
	c.mu.Lock()
	f.refs.part = part // the last reader closes it
	c.mu.Unlock()
	f.begin(part)
	if err = c.receive(ctx, f, part, fetch); err == nil {
		err = c.commit(f, part)
	}
	if err != nil {
		f.refs.entry.Drop()
	}
	return err
}

// create takes the room of a blob, and makes the file that it is fetched into.
func (c *Cache) create(f *download) (*os.File, error) {
	c.creating.Lock()
	defer c.creating.Unlock()
	if err := f.refs.entry.Take(f.key.Size); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return c.disk.create(f.refs.entry, f.key.Size)
}

// receive writes a blob to part as it comes, and verifies it.
func (c *Cache) receive(ctx context.Context, f *download, part *os.File, fetch Fetch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, longest(f.key.Size), errSlow)
	defer cancel()
	up := c.upstream(f.key, fetch)
	defer up.close()
	if err := up.open(ctx); err != nil {
		return err
	}
	f.markReady()
	sum := newSum(f.key.Digest)
	buffer := chunks.Get().(*chunk)
	defer chunks.Put(buffer)
	for at := int64(0); at < f.key.Size; at = up.offset {
		n, err := gather(ctx, up, buffer[:])
		if err != nil {
			return err
		}
		if _, err := part.WriteAt(buffer[:n], at); err != nil {
			return &diskError{err}
		}
		f.advance(n)
		c.metrics.arrived(n)
		sum.add(buffer[:n])
	}
	if _, err := up.read(ctx, buffer[:]); !errors.Is(err, io.EOF) {
		return err
	}
	if !sum.right() {
		return ErrCorrupt
	}
	f.verify()
	return nil
}

// prompt is how much of a blob is passed on just as it comes, so that no client waits
// for a blob to begin.
const prompt = 1 << 20

// gather reads what comes next. Behind the first bytes it reads to the next multiple
// of the buffer, or the end: a file system takes whole large pieces for half of what
// small ones cost it.
func gather(ctx context.Context, up *upstream, buffer []byte) (n int, err error) {
	room := len(buffer) - int(up.offset%int64(len(buffer)))
	for n < room && up.offset < up.key.Size {
		got, err := up.read(ctx, buffer[n:room])
		n += got
		if err != nil {
			return n, err
		}
		if up.offset < prompt {
			break
		}
	}
	return n, nil
}

func (c *Cache) upstream(key Key, fetch Fetch) *upstream {
	return &upstream{key: key, fetch: fetch, stall: c.stall, backoff: c.backoff, resumed: c.metrics.resumes.Inc}
}

// commit makes part, which is complete and right, durable and then the blob's file.
func (c *Cache) commit(f *download, part *os.File) error {
	if err := c.disk.flush(part); err != nil {
		return &diskError{err}
	}
	if err := f.refs.entry.Keep(c.clock()); err != nil {
		return &diskError{err}
	}
	m, err := markOf(part)
	if err != nil {
		return &diskError{err}
	}
	c.mu.Lock()
	c.insert(&file{entry: f.refs.entry, size: f.key.Size, proven: true, mark: m})
	c.mu.Unlock()
	c.full.Store(false)
	c.log.Debug("image blob is cached", "image", f.key.String(), "bytes", f.key.Size)
	return nil
}

// bypass streams a blob past the cache for one client that has read head, up to at,
// already.
func (c *Cache) bypass(ctx context.Context, key Key, fetch Fetch, head io.Reader, at int64) (*stream, error) {
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	c.metrics.bypasses.Inc()
	s, err := newStream(ctx, c.upstream(key, fetch), head, at)
	if err != nil {
		<-c.slots
		return nil, err
	}
	s.done = c.take(key.Size-at, s.arrived.Load).leave
	return s, nil
}

// turn takes a slot, waiting for one for a while.
func (c *Cache) turn(ctx context.Context) error {
	select {
	case c.waiting <- struct{}{}:
		defer func() { <-c.waiting }()
	default:
		return ErrBusy
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.queueTimeout, ErrBusy)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// logDiverted says that the disk does not do, once until it does again.
func (c *Cache) logDiverted(key Key, err error) {
	if !c.full.Swap(true) {
		c.log.Warn("image cache cannot keep a blob, so it is streamed from its registry for each client; give the cache more room", "image", key.String(), "err", fmt.Sprint(err))
	}
}
