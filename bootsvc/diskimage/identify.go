package diskimage

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// Identify returns the format (raw, qcow2) and the compression (zstd, gzip, xz, bzip2, or "") of
// a file, by its first bytes. The error is an *Error for one that is no disk image.
func Identify(file *os.File) (format, compression string, err error) {
	info, err := file.Stat()
	if err != nil {
		return "", "", err
	}
	head, err := headOf(file, info.Size())
	if err != nil {
		return "", "", err
	}
	if compression = compressionOf(head); compression != "" {
		u, err := newUnpacker(io.NewSectionReader(file, 0, info.Size()), compression)
		if err != nil {
			return "", "", err
		}
		defer u.close()
		if head, err = bufio.NewReaderSize(u, magicBytes).Peek(magicBytes); err != nil && !errors.Is(err, io.EOF) {
			return "", "", err
		}
	}
	format, err = formatOf(head)
	return format, compression, err
}
