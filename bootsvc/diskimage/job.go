package diskimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"ingot/bootsvc/cachedir"
	"ingot/model"
)

// job prepares one image, however many want it.
type job struct {
	store *Store
	src   Source
	entry *cachedir.Entry

	stage       atomic.Pointer[Stage]
	at, whole   atomic.Int64
	temporaries int

	done  chan struct{} // closed when it has ended
	image Image
	err   error
}

func newJob(s *Store, src Source) *job {
	j := &job{store: s, src: src, entry: s.dir.New(s.kind, src.Digest), done: make(chan struct{})}
	j.entry.Users.Add(1) // until its image can be found
	j.enter(StageQueued)
	return j
}

func (j *job) enter(stage Stage) {
	j.at.Store(0)
	j.whole.Store(0)
	j.stage.Store(&stage)
}

func (j *job) progress(done, total int64) {
	j.at.Store(done)
	j.whole.Store(total)
}

func (j *job) state() *Preparing {
	return &Preparing{Stage: *j.stage.Load(), Done: j.at.Load(), Total: j.whole.Load()}
}

// run prepares the image, and ends with the store.
func (j *job) run() {
	defer close(j.done)
	defer j.store.finish(j)
	began := j.store.clock()
	err := j.guarded(j.store.life)
	if err != nil {
		j.entry.Drop()
		if j.store.life.Err() != nil {
			err = ErrClosed
		}
		j.err = err
	}
	took := j.store.clock().Sub(began)
	j.store.metrics.observe(took, err)
	if err != nil {
		j.store.log.Warn("disk image cannot be prepared", "image", j.src.Ref, "digest", j.src.Digest, "took", took, "err", explained(err))
		return
	}
	j.store.log.Info("disk image is prepared", "image", j.src.Ref, "digest", j.src.Digest,
		"bytes", j.image.Disk.Bytes, "stored", j.image.Stored, "took", took)
}

// explained is an error with what lies beneath, for the log.
func explained(err error) error {
	var own *Error
	if errors.As(err, &own) && own.Err != nil {
		return fmt.Errorf("%w (%w)", err, own.Err)
	}
	return err
}

// guarded prepares the image. A library that cannot cope with a file ends that file's job alone.
func (j *job) guarded(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			j.store.log.Error("disk image: internal error", "image", j.src.Ref, "digest", j.src.Digest, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = refuse(model.ReasonImageFormat, "the disk image cannot be read (internal error, which Ingot's log has)")
		}
	}()
	return j.prepare(ctx)
}

func (j *job) prepare(ctx context.Context) error {
	source, err := j.fetchInSlot(ctx)
	if err != nil {
		return err
	}
	defer source.file.Close()
	j.enter(StageQueued)
	leave, err := j.store.enterSlot(ctx, j.store.converting)
	if err != nil {
		return err
	}
	defer leave()
	j.enter(StageConvert)
	img, err := j.convert(ctx, source)
	if err != nil {
		return err
	}
	j.enter(StageCheck)
	if j.image, err = j.inspect(ctx, img, source); err != nil {
		return err
	}
	return j.keep(img)
}

// longestTurn is for how long a job has its place among those that are fetched, or converted, at the same
// time. One that takes longer goes on beside others: who fetches from a slow server delays
// nobody else.
const longestTurn = 10 * time.Minute

// enterSlot waits for a place, which is free again once leave is called, or after a while.
func (s *Store) enterSlot(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case slots <- struct{}{}:
	}
	free := sync.OnceFunc(func() { <-slots })
	late := time.AfterFunc(s.turn, free)
	return func() {
		late.Stop()
		free()
	}, nil
}

func (j *job) fetchInSlot(ctx context.Context) (fetched, error) {
	leave, err := j.store.enterSlot(ctx, j.store.fetches)
	if err != nil {
		return fetched{}, err
	}
	defer leave()
	j.enter(StageFetch)
	if err := os.Mkdir(j.entry.Part(), 0o700); err != nil {
		return fetched{}, &diskError{err}
	}
	source, err := j.fetch(ctx)
	var own *Error
	var disk *diskError
	if err != nil && !errors.As(err, &own) && !errors.As(err, &disk) && ctx.Err() == nil {
		err = fmt.Errorf("fetch the disk image: %w", err)
	}
	return source, err
}

// inspectLimit is how long may be looked at what an image holds: no system has so much that says
// how it starts, and nothing else is converted meanwhile.
const inspectLimit = 2 * time.Minute

// chunked is an image in chunks that lie in the job's folder.
type chunked struct {
	convertedImage
	chunks *os.File
}

// convert makes chunks of the source, which takes no room afterwards.
func (j *job) convert(ctx context.Context, source fetched) (chunked, error) {
	chunks, err := j.create(chunksName)
	if err != nil {
		return chunked{}, err
	}
	c := conversion{
		source: source.file, size: source.size, container: j.src.Container, max: j.store.maxImage,
		chunks: takingFile{chunks, j}, scratch: j.scratch, took: j.take, progress: j.progress,
	}
	img, err := c.run(ctx)
	if err != nil {
		chunks.Close()
		return chunked{}, err
	}
	j.store.metrics.converted.Add(float64(img.table.Bytes))
	if err := os.Remove(source.file.Name()); err != nil {
		chunks.Close()
		return chunked{}, &diskError{err}
	}
	j.entry.Give(j.entry.Size() - int64(img.table.Stored()))
	return chunked{img, chunks}, nil
}

func (j *job) inspect(ctx context.Context, img chunked, source fetched) (Image, error) {
	disk, err := newChunkReader(img.table, img.chunks)
	if err != nil {
		return Image{}, err
	}
	defer disk.Close()
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	disk.ctx = ctx
	l, err := readLayout(disk, img.table.Bytes)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Image{}, &Error{
			Reason: model.ReasonImageFormat, Err: ctx.Err(),
			Message: fmt.Sprintf("its partitions are not read within %s: they are not those of a system, or this machine is too busy", inspectLimit),
		}
	case ctx.Err() != nil:
		return Image{}, ctx.Err()
	case err != nil:
		return Image{}, err
	}
	sum := sha256.Sum256(img.table.Encode())
	return Image{
		Disk: model.DiskImage{
			Ref: j.src.Ref, Digest: j.src.Digest, Format: img.format, Compression: img.compression,
			Bytes: img.table.Bytes, Data: img.table.Data(), SectorSize: l.sectorSize, Starts: l.starts,
		},
		Identities:  l.identities(),
		TableDigest: "sha256:" + hex.EncodeToString(sum[:]),
		File:        source.size, Stored: img.table.Stored(),
		PartitionTable: l.table, Partitions: l.partitions,
	}, nil
}

// keep makes what was made durable, and gives it its name.
func (j *job) keep(img chunked) error {
	defer img.chunks.Close()
	if err := img.chunks.Sync(); err != nil {
		return &diskError{err}
	}
	table := img.table.Encode()
	if err := j.take(int64(len(table))); err != nil {
		return err
	}
	if err := complete(j.entry.Part(), table, j.image); err != nil {
		return &diskError{err}
	}
	if err := j.entry.Keep(j.store.clock()); err != nil {
		return &diskError{err}
	}
	return nil
}

func (j *job) take(n int64) error { return tooFull(j.entry.Take(n)) }

// tooFull explains why there is no room for an image.
func tooFull(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Reason: model.ReasonImageTooLarge, Message: err.Error() + ", or take a smaller image", Err: err}
}

func (j *job) create(name string) (*os.File, error) {
	return createIn(j.entry.Part(), name)
}

func (j *job) scratch() (*os.File, error) {
	j.temporaries++
	return j.create(fmt.Sprintf("scratch-%d", j.temporaries))
}

// takingFile takes room for what is written.
type takingFile struct {
	file *os.File
	job  *job
}

// Write implements io.Writer.
func (t takingFile) Write(p []byte) (int, error) {
	if err := t.job.take(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := t.file.Write(p)
	if err != nil {
		err = &diskError{err}
	}
	return n, err
}
