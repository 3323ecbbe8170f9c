package diskimage

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"

	"ingot/model"
)

// What unpacking may take of memory, by what the file itself asks for: zstd's own tool takes no
// more without being told, and xz makes no larger dictionary at its highest level.
const (
	maxZstdWindow   = 128 << 20
	maxXZDictionary = 64 << 20
)

// unpacker unpacks a file. It reads all members that follow one another, and takes nothing else
// behind them: what is cut off or has a tail is an error, never an end.
type unpacker struct {
	io.Reader
	close func()
}

// newUnpacker returns what unpacks r, which is packed with compression ("" = it is not).
func newUnpacker(r io.Reader, compression string) (*unpacker, error) {
	u := &unpacker{close: func() {}}
	var err error
	switch compression {
	case packedGzip:
		u.Reader, err = gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
	case packedXZ:
		u.Reader, err = xz.NewReader(r, maxXZDictionary)
	case packedBzip2:
		u.Reader = bzip2.NewReader(bufio.NewReaderSize(r, 64<<10))
	case packedZstd:
		var d *zstd.Decoder
		d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err == nil {
			u.Reader, u.close = d, d.Close
		}
	default:
		u.Reader = r
		return u, nil
	}
	if err != nil {
		return nil, unpackError(compression, err)
	}
	u.Reader = &unpackErrors{u.Reader, compression}
	return u, nil
}

type unpackErrors struct {
	io.Reader
	compression string
}

// Read implements io.Reader.
func (u *unpackErrors) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // an end is said bare (io.Reader)
		err = unpackError(u.compression, err)
	}
	return n, err
}

// sourceError is an error of reading the file that is unpacked, of which its content is not to
// blame.
type sourceError struct{ error }

// Unwrap returns the error itself.
func (e *sourceError) Unwrap() error { return e.error }

// unpackError says for people why a file cannot be unpacked.
func unpackError(compression string, err error) error {
	var source *sourceError
	switch {
	case errors.As(err, &source):
		return err
	case errors.Is(err, xz.ErrMemlimit), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return &Error{Reason: model.ReasonImageFormat, Err: err, Message: fmt.Sprintf(
			"it is packed with %s so that unpacking takes more memory than is given to it (%s): pack it again at an ordinary level, without --long", compression, memoryOf(compression))}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf):
		return &Error{Reason: model.ReasonImageFormat, Err: err, Message: fmt.Sprintf("it is packed with %s, and its end is missing: publish it again", compression)}
	}
	return &Error{Reason: model.ReasonImageFormat, Err: err, Message: fmt.Sprintf(
		"it is packed with %s and cannot be unpacked, or something else follows (%v): publish it again", compression, err)}
}

func memoryOf(compression string) string {
	if compression == packedXZ {
		return sizeText(maxXZDictionary)
	}
	return sizeText(maxZstdWindow)
}
