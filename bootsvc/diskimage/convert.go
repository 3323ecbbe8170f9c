package diskimage

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"ingot/model"
)

// conversion makes chunks of a file whose digest is known to be right.
type conversion struct {
	source *os.File
	size   int64
	// container reports that the file is the layer of a container image that has one disk
	// image below disk/.
	container bool
	max       uint64 // bytes that the disk may have
	chunks    io.Writer
	frame     framing // of the chunks; run finds out which
	// scratch makes a file for a qcow2 that is packed, which cannot be read in order.
	scratch func() (*os.File, error)
	// took is told before bytes are written to scratch files; its error ends the conversion.
	took     func(n int64) error
	progress func(done, total int64)
}

type convertedImage struct {
	format, compression string
	table               model.ChunkTable
}

// run converts. Errors that are the image's are *Error.
func (c *conversion) run(ctx context.Context) (convertedImage, error) {
	head, err := headOf(c.source, c.size)
	if err != nil {
		return convertedImage{}, err
	}
	img := convertedImage{compression: compressionOf(head)}
	if c.frame, err = framingOf(img.compression); err != nil {
		return convertedImage{}, err
	}
	if img.compression == "" && !c.container {
		if img.format, err = formatOf(head); err != nil {
			return convertedImage{}, err
		}
		if img.format == formatQcow2 {
			img.table, err = c.qcow2(ctx, c.source, c.size)
			return img, err
		}
	}
	source := &countedReader{ctx: ctx, r: io.NewSectionReader(c.source, 0, c.size), total: c.size, progress: c.progress}
	unpacked, err := newUnpacker(source, img.compression)
	if err != nil {
		return convertedImage{}, err
	}
	defer unpacked.close()
	if c.container {
		img.format, img.table, err = c.inContainer(ctx, unpacked)
		return img, err
	}
	img.format, img.table, err = c.stream(ctx, unpacked)
	return img, err
}

func headOf(r io.ReaderAt, size int64) ([]byte, error) {
	head := make([]byte, min(size, magicBytes))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, &sourceError{err}
	}
	return head, nil
}

// stream converts what is read in order.
func (c *conversion) stream(ctx context.Context, r io.Reader) (string, model.ChunkTable, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, err := buffered.Peek(magicBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", model.ChunkTable{}, err
	}
	if packed := compressionOf(head); packed != "" {
		return "", model.ChunkTable{}, refuse(model.ReasonImageFormat, "what is unpacked is packed again (%s): pack the disk image once", packed)
	}
	format, err := formatOf(head)
	if err != nil {
		return "", model.ChunkTable{}, err
	}
	if format == formatRaw {
		table, err := c.raw(buffered)
		return format, table, err
	}
	file, err := c.scratch()
	if err != nil {
		return "", model.ChunkTable{}, err
	}
	defer discard(file)
	size, err := c.unpackTo(file, buffered)
	if err != nil {
		return "", model.ChunkTable{}, err
	}
	table, err := c.qcow2(ctx, file, size)
	return format, table, err
}

// discard removes a file that nobody needs any more.
func discard(file *os.File) {
	_ = os.Remove(file.Name()) // its folder is cleared with the next start
	file.Close()
}

// unpackTo writes a packed qcow2 to a file.
func (c *conversion) unpackTo(file *os.File, r io.Reader) (int64, error) {
	buf := make([]byte, 1<<20)
	var size int64
	for {
		n, ended, err := fill(r, buf)
		if err != nil {
			return size, err
		}
		if n > 0 {
			if uint64(size)+uint64(n) > c.max {
				return size, tooLarge(0, c.max)
			}
			if err := c.took(int64(n)); err != nil {
				return size, err
			}
			if _, err := file.Write(buf[:n]); err != nil {
				return size, &diskError{err}
			}
			size += int64(n)
		}
		if ended {
			return size, nil
		}
	}
}

// fill reads until p is full, and reports whether what is read ended before. Unlike that of
// io.ReadFull its error is always that of r.
func fill(r io.Reader, p []byte) (n int, ended bool, err error) {
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		switch {
		case err == io.EOF: //nolint:errorlint // an end is said bare (io.Reader)
			return n, true, nil
		case err != nil:
			return n, false, err
		}
	}
	return n, false, nil
}

// raw converts a raw disk that is read in order.
func (c *conversion) raw(r io.Reader) (model.ChunkTable, error) {
	w := newChunkWriter(c.chunks, c.max, c.frame)
	var tail [sectorBytes]byte // the last sector
	for {
		n, ended, err := fill(r, w.buffer())
		if err != nil {
			return model.ChunkTable{}, err
		}
		if n > 0 {
			if err := w.add(n); err != nil {
				return model.ChunkTable{}, err
			}
			copy(tail[:], w.buffer()[(n-1)/sectorBytes*sectorBytes:][:sectorBytes])
		}
		if ended {
			break
		}
	}
	switch {
	case w.table.Bytes == 0:
		return model.ChunkTable{}, refuse(model.ReasonImageFormat, "it has no bytes")
	case at(0, "conectix")(tail[:]):
		return model.ChunkTable{}, refuse(model.ReasonImageFormat, "it is a Virtual PC disk (vhd) of fixed size. %s", converted("vhd"))
	}
	return w.table, nil
}

// qcow2 converts a qcow2.
func (c *conversion) qcow2(ctx context.Context, file io.ReaderAt, size int64) (model.ChunkTable, error) {
	disk, err := checkQcow2(file, size, c.max)
	if err != nil {
		return model.ChunkTable{}, err
	}
	img, err := readQcow2(file, size)
	if err != nil {
		return model.ChunkTable{}, err
	}
	w := newChunkWriter(c.chunks, c.max, c.frame)
	for off := uint64(0); off < disk; off += model.ChunkBytes {
		if ctx.Err() != nil {
			return model.ChunkTable{}, ctx.Err()
		}
		n := int64(min(model.ChunkBytes, disk-off))
		extent, err := img.Extent(int64(off), n)
		if err != nil {
			return model.ChunkTable{}, brokenQcow2(err)
		}
		if extent.Zero && extent.Length >= n {
			err = w.addZeros(int(n))
		} else if err = readFull(img, w.buffer()[:n], int64(off)); err == nil {
			err = w.add(int(n))
		} else {
			err = brokenQcow2(err)
		}
		if err != nil {
			return model.ChunkTable{}, err
		}
		c.progress(int64(off)+n, int64(disk))
	}
	return w.table, nil
}

// readFull reads len(p) bytes at an offset.
func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// inContainer converts the one disk image of a container image's layer.
func (c *conversion) inContainer(ctx context.Context, r io.Reader) (format string, table model.ChunkTable, err error) {
	archive := tar.NewReader(&boundedReader{r, int64(c.max) + maxContainerRest, c.max})
	found := ""
	for range maxContainerFiles {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && found == "":
			return "", table, refuse(model.ReasonImageFormat, "it is a container image without a disk image below disk/. What a container holds does not boot by itself: make a disk image of it, of a bootable container (bootc) with bootc-image-builder")
		case errors.Is(err, io.EOF):
			return format, table, nil
		case err != nil:
			return "", table, containerError(err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if h.Typeflag != tar.TypeReg || path.Dir(name) != "disk" || strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		if found != "" {
			return "", table, refuse(model.ReasonImageFormat, "the container image has two disk images, %q and %q; one is wanted below disk/", found, name)
		}
		found = name
		if format, table, err = c.stream(ctx, archive); err != nil {
			return "", table, containerError(err)
		}
	}
	return "", table, refuse(model.ReasonImageFormat, "the container image has more than %d files; one below disk/ is wanted", maxContainerFiles)
}

// maxContainerRest is how much a layer may hold beside its disk image, unpacked.
const maxContainerRest = 1 << 30

// boundedReader ends with an error what unpacks to more than left bytes.
type boundedReader struct {
	r    io.Reader
	left int64
	max  uint64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, tooLarge(0, b.max)
	}
	return n, err
}

// maxContainerFiles bounds the files of a layer that are passed over.
const maxContainerFiles = 100_000

func containerError(err error) error {
	var own *Error
	var disk *diskError
	var source *sourceError
	if errors.As(err, &own) || errors.As(err, &disk) || errors.As(err, &source) || errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{Reason: model.ReasonImageFormat, Err: err, Message: fmt.Sprintf("the layer of the container image cannot be read (%v)", err)}
}

// countedReader tells how far a file is read, and ends with its context.
type countedReader struct {
	ctx      context.Context
	r        io.Reader
	done     int64
	total    int64
	progress func(done, total int64)
}

// Read implements io.Reader.
func (c *countedReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, &sourceError{err}
	}
	n, err := c.r.Read(p)
	c.done += int64(n)
	c.progress(c.done, c.total)
	if err != nil && err != io.EOF { //nolint:errorlint // an end is said bare (io.Reader)
		err = &sourceError{err}
	}
	return n, err
}
