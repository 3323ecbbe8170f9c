package imagecache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Blob is a blob that can be read: at once as far as it is there, and as it arrives
// from then on. It is for one reader, who has to Close it.
//
// It fits http.ServeContent, which sends it without copying (sendfile) when it is
// complete. Tell ServeContent the content's type, so that it does not read to find
// out, and look at Err afterwards, for ServeContent says nothing of what went wrong.
type Blob struct {
	cache    *Cache
	key      Key
	canceled <-chan struct{} // closed when the reader's context ended
	bypass   func(head io.Reader, at int64) (*stream, error)

	// One of them is where bytes come from.
	file     *os.File // its own, whose offset is the position
	kept     *file    // that the cache knows it as
	download *download
	stream   *stream

	refs   *refs // of file or download
	pos    int64 // but for file
	err    error
	closed bool
}

// Size returns the blob's size in bytes.
func (b *Blob) Size() int64 { return b.key.Size }

// Source is where the blob's bytes come from.
type Source string

// The sources of blobs.
const (
	FromDisk     Source = "disk"     // it was complete in the cache
	FromRegistry Source = "registry" // it is being fetched, or streamed past the cache
)

// Source returns where the next bytes come from.
func (b *Blob) Source() Source {
	if b.file != nil {
		return FromDisk
	}
	return FromRegistry
}

// Err returns what was the matter when Read failed, or nil.
func (b *Blob) Err() error { return b.err }

// Read implements io.Reader. It waits for bytes that have not arrived yet.
func (b *Blob) Read(p []byte) (int, error) {
	if b.closed {
		return 0, fs.ErrClosed
	}
	if b.file != nil {
		if err := b.intact(); err != nil {
			return 0, err
		}
		return b.file.Read(p)
	}
	if b.pos >= b.key.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.next(p)
	b.pos += int64(n)
	if err != nil {
		b.err = fmt.Errorf("image blob %s: %w", b.key, err)
		return n, b.err
	}
	return n, nil
}

// next reads what comes next. When the disk failed the download, it goes on from the
// registry with what was read so far hashed again, for that is what the reader has.
func (b *Blob) next(p []byte) (int, error) {
	if b.download != nil {
		n, err := b.download.readAt(p, b.pos, b.canceled)
		if !isDisk(err) {
			return n, err
		}
		if err := b.divert(err); err != nil {
			return 0, err
		}
	}
	return b.stream.readAt(p, b.pos)
}

// divert leaves the disk, for the reason why, and streams from now on.
func (b *Blob) divert(why error) error {
	b.cache.logDiverted(b.key, why)
	var head io.Reader
	var at int64
	if b.download != nil {
		at = min(b.pos, b.download.progress())
		head = io.NewSectionReader(b.download.part, 0, at)
	}
	s, err := b.bypass(head, at)
	b.release()
	b.download, b.stream = nil, s
	return err
}

var errSeek = errors.New("seek to before the blob's beginning")

// Seek implements io.Seeker. It waits for nothing.
func (b *Blob) Seek(offset int64, whence int) (int64, error) {
	if b.file != nil {
		return b.file.Seek(offset, whence)
	}
	switch whence {
	case io.SeekCurrent:
		offset += b.pos
	case io.SeekEnd:
		offset += b.key.Size
	}
	if offset < 0 {
		return 0, errSeek
	}
	b.pos = offset
	return offset, nil
}

// intact returns an error, and keeps it, when the file is no longer what was verified.
func (b *Blob) intact() error {
	if b.err != nil {
		return b.err
	}
	if err := b.cache.intact(b.kept, b.file); err != nil {
		b.err = fmt.Errorf("image blob %s: %w", b.key, err)
	}
	return b.err
}

// SyscallConn implements syscall.Conn, by which package net finds out that the kernel
// can send the blob. A blob that is still on its way has to be read. Who asks before
// each piece that the kernel sends sends nothing of a file that has been damaged since.
func (b *Blob) SyscallConn() (syscall.RawConn, error) {
	b.settle()
	if b.file == nil || b.closed {
		return nil, errors.ErrUnsupported
	}
	if err := b.intact(); err != nil {
		return nil, err
	}
	return b.file.SyscallConn()
}

// settle turns to the file of a blob that has arrived since it was asked for.
func (b *Blob) settle() {
	if b.download == nil || b.closed {
		return
	}
	select {
	case <-b.download.ended:
	default:
		return
	}
	if _, _, err := b.download.state(); err != nil {
		return
	}
	at, err := b.cache.reopen(b.key)
	if err != nil || at.file == nil {
		return
	}
	b.release()
	_, _ = at.file.Seek(b.pos, io.SeekStart) // of a regular file, to a position it has
	b.take(at)
}

func (b *Blob) take(at source) {
	b.file, b.kept, b.download, b.refs = at.file, at.kept, nil, at.refs
}

// Close implements io.Closer.
func (b *Blob) Close() error {
	if b.closed {
		return fs.ErrClosed
	}
	b.closed = true
	if b.file != nil {
		b.file.Close() // it was only read
	}
	if b.stream != nil {
		b.stream.close()
	}
	b.release()
	return nil
}

func (b *Blob) release() {
	if b.refs != nil {
		b.cache.release(b.refs)
		b.refs = nil
	}
}
