package diskimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"ingot/model"
)

// checkedFor is how long an image that was found as it should be is not read again.
const checkedFor = time.Minute

// Check reads what is kept of an image, and forgets the image if that is not what its table says,
// so that it is prepared anew: a machine that installs can only say that it was sent something
// else. An image that is not here is no error. The images of several callers are read one after
// the other, for one of some GiB takes seconds.
func (s *Store) Check(ctx context.Context, digest string) error {
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	k := s.images[digest]
	isChecked := k != nil && s.clock().Sub(k.checked) < checkedFor
	s.mu.Unlock()
	if k == nil || isChecked {
		return nil
	}
	o, err := openFiles(k.entry.Path())
	if err == nil {
		err = o.check(ctx, k.image.TableDigest, k.image.Disk.Bytes)
		o.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errDamaged), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EIO):
		s.log.Error("stored disk image is damaged, and prepared again", "digest", digest, "err", err)
		s.forget(k)
		return nil
	case err != nil:
		return err // the image may be as it was
	}
	s.mu.Lock()
	k.checked = s.clock()
	s.mu.Unlock()
	return nil
}

var errDamaged = errors.New("damaged")

// check compares the table of an image with its digest, and the chunks with the table.
func (o Opened) check(ctx context.Context, tableDigest string, size uint64) error {
	raw, err := io.ReadAll(io.LimitReader(o.Table, int64(model.MaxChunkTable(size))+1))
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(raw); "sha256:"+hex.EncodeToString(sum[:]) != tableDigest {
		return fmt.Errorf("%w: its table of chunks is another", errDamaged)
	}
	table, err := model.ParseChunkTable(raw, size)
	if err != nil {
		return err
	}
	for n, c := range table.Chunks {
		if c.Length == 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(o.Chunks, int64(c.Offset), int64(c.Length))); err != nil {
			return fmt.Errorf("read chunk %d of %d: %w", n, len(table.Chunks), err)
		}
		if !bytes.Equal(sum.Sum(nil), c.Sum[:]) {
			return fmt.Errorf("%w: chunk %d of %d is not what its table says", errDamaged, n, len(table.Chunks))
		}
	}
	return nil
}
