package diskimage

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/model"
)

const (
	maxAttempts = 5  // that bring no byte, one after the other
	maxFetches  = 50 // of all attempts
)

// fetched is a file whose digest is right.
type fetched struct {
	file *os.File
	size int64
}

// fetch brings the whole file to disk, with its digest running along, and goes on where it was
// cut off. What it returns has the right digest.
func (j *job) fetch(ctx context.Context) (fetched, error) {
	file, err := j.create("source")
	if err != nil {
		return fetched{}, err
	}
	f := &fetching{job: j, file: file, hash: newHash(j.src.Digest), total: j.src.Bytes}
	if err := f.all(ctx); err != nil {
		file.Close()
		return fetched{}, err
	}
	if digestOf(j.src.Digest, f.hash) != j.src.Digest {
		err := f.mismatch(ctx)
		file.Close()
		return fetched{}, err
	}
	j.store.metrics.fetched.Add(float64(f.size))
	return fetched{file, f.size}, nil
}

type fetching struct {
	job   *job
	file  *os.File
	hash  hash.Hash
	size  int64 // bytes that have arrived
	total int64 // bytes of the whole; 0 = not known
	// private is set when the progress is not shown, because it would be the size of an answer.
	private bool
}

func (f *fetching) all(ctx context.Context) error {
	idle := 0
	for attempt := 1; ; attempt++ {
		before := f.size
		err := f.rest(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		idle++
		if f.size > before {
			idle = 0
		}
		if errors.Is(err, imagecache.ErrNoOffset) && f.size > 0 {
			if err := f.restart(); err != nil {
				return err
			}
			continue
		}
		if !passing(err) || idle == maxAttempts || attempt >= maxFetches {
			return err
		}
		f.job.store.metrics.resumes.Inc()
		f.job.store.log.Debug("disk image is fetched on", "image", f.job.src.Ref, "digest", f.job.src.Digest, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.job.store.pause(idle)):
		}
	}
}

// restart begins anew, for parts cannot be had.
func (f *fetching) restart() error {
	f.job.entry.Give(f.size)
	f.size = 0
	f.hash.Reset()
	if err := f.file.Truncate(0); err != nil {
		return &diskError{err}
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return &diskError{err}
	}
	return nil
}

// leastPace is how many bytes have to come within the time that a server may be silent: one that
// gives drop by drop would keep a place that others wait for.
const leastPace = 1 << 20

var errStalled = errors.New("next to nothing came for too long")

func (f *fetching) rest(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := f.job.store.stall
	watch := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watch.Stop()
	body, err := f.job.src.Fetch(ctx, f.size)
	if err != nil {
		return stalledOr(ctx, err)
	}
	defer body.Close()
	if s, ok := body.(sized); ok && f.total == 0 {
		f.total, f.private = s.Size()
	}
	if err := tooFull(f.job.store.dir.CanTake(f.total - f.size)); err != nil {
		return err // before others are evicted for a part of it
	}
	watch.Reset(stall)
	buf := make([]byte, 256<<10)
	for mark := f.size; ; {
		n, err := body.Read(buf)
		if f.size+int64(n)-mark >= leastPace {
			watch.Reset(stall)
			mark = f.size + int64(n)
		}
		if n > 0 {
			if err := f.add(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && f.size < f.total: //nolint:errorlint // an end is said bare (io.Reader)
			return io.ErrUnexpectedEOF
		case err == io.EOF: //nolint:errorlint // an end is said bare (io.Reader)
			return nil
		case err != nil:
			return stalledOr(ctx, err)
		}
	}
}

// stalledOr returns why a fetch was ended, or err.
func stalledOr(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

func (f *fetching) add(p []byte) error {
	f.size += int64(len(p))
	if f.total > 0 && f.size > f.total {
		return refuse(model.ReasonDigestMismatch, "the server sends more than the size that it names")
	}
	if uint64(f.size) > f.job.store.maxImage {
		return tooLarge(0, f.job.store.maxImage)
	}
	if err := f.job.take(int64(len(p))); err != nil {
		f.size -= int64(len(p))
		return err
	}
	_, _ = f.hash.Write(p) // takes everything
	if _, err := f.file.Write(p); err != nil {
		return &diskError{err}
	}
	if !f.private {
		f.job.progress(f.size, f.total)
	}
	return nil
}

func newHash(digest string) hash.Hash {
	if strings.HasPrefix(digest, "sha512:") {
		return sha512.New()
	}
	return sha256.New()
}

func digestOf(like string, h hash.Hash) string {
	algorithm, _, _ := strings.Cut(like, ":")
	return algorithm + ":" + hex.EncodeToString(h.Sum(nil))
}

// What is unpacked of a file with a wrong digest, to say what went wrong.
const (
	maxUnpackedForDigest = 32 << 30
	unpackedForDigest    = 2 * time.Minute
)

// mismatch is the error for a file with another digest. Size and digest of the file are not in it, because the URL
// may lead to an internal answer that the author of the claim must not learn.
func (f *fetching) mismatch(ctx context.Context) error {
	if f.unpackedFits(ctx) {
		return refuse(model.ReasonDigestMismatch, "%s is the digest of the unpacked image: write the digest of the file as it is published", f.job.src.Digest)
	}
	return refuse(model.ReasonDigestMismatch, "the file does not have the digest %s that is wanted: it was replaced, or cut off on its way; compare with the publisher's list of checksums", f.job.src.Digest)
}

// unpackedFits reports whether the digest is that of what is in a packed file. Nothing but the
// packing is read of it.
func (f *fetching) unpackedFits(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, unpackedForDigest)
	defer cancel()
	head, err := headOf(f.file, f.size)
	if err != nil || compressionOf(head) == "" {
		return false
	}
	source := &countedReader{ctx: ctx, r: io.NewSectionReader(f.file, 0, f.size), progress: func(int64, int64) {}}
	u, err := newUnpacker(source, compressionOf(head))
	if err != nil {
		return false
	}
	defer u.close()
	h := newHash(f.job.src.Digest)
	if _, err := io.Copy(h, io.LimitReader(u, maxUnpackedForDigest)); err != nil {
		return false
	}
	return digestOf(f.job.src.Digest, h) == f.job.src.Digest
}

// diskError is a failure of this machine's disk, for which no image is to blame.
type diskError struct{ err error }

// Error implements error.
func (e *diskError) Error() string { return fmt.Sprintf("keep the disk image: %v", e.err) }

// Unwrap returns the error itself.
func (e *diskError) Unwrap() error { return e.err }
