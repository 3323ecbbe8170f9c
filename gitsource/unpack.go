package gitsource

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Limits of what a pack may inflate to. A pack of a few megabytes can hold gigabytes, so
// the size that an object's header claims is looked at before the object is.
const (
	maxBlob   = 1 << 20  // bytes of a file
	maxCommit = 1 << 20  // bytes of a commit or tag
	maxTree   = 16 << 20 // bytes of a folder's list
	// maxBase is how large an object is that others are made of. It is more than a file
	// may have: whoever splits a large file commits small ones that Git stores as changes
	// of it.
	maxBase = 16 << 20
	// maxPacked is how many objects a pack may have, maxSpool how many bytes of it are
	// kept, on disk, and maxInflated how many bytes are inflated for it in all.
	maxPacked   = 1 << 20
	maxSpool    = 1 << 30
	maxInflated = 16 << 30
	// maxChain is how many objects may be made of one another, as git-pack-objects(1) has
	// it. What is further from its base is stored whole.
	maxChain = 50
	// baseCache bounds the objects that are held in memory for what is made of them.
	baseCache = 32 * cache.MiByte
)

// errPackTooLarge is a pack that is within no limits even without its large objects.
var errPackTooLarge = errors.New("the repository has more than is read")

// unpack stores the objects of a pack that are within limits, and returns the sizes of
// those that are not. Those are neither held in memory nor kept on disk: what wants one
// has to do without. dir is for what is kept until the pack was read.
func unpack(ctx context.Context, dir string, to storer.PackfileWriter, in io.Reader) (map[plumbing.Hash]int64, error) {
	spool, err := os.CreateTemp(dir, "spool-*")
	if err != nil {
		return nil, fmt.Errorf("make file: %w", err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil { // so that nothing is left behind
		return nil, fmt.Errorf("make file: %w", err)
	}
	u := &unpacker{
		scanner: packfile.NewScanner(in), spool: spool, left: make(map[plumbing.Hash]int64),
		byHash: make(map[plumbing.Hash]int), contents: cache.NewBufferLRU(baseCache), kept: packHeader,
	}
	if err := u.read(ctx); err != nil {
		return nil, err
	}
	return u.left, u.store(to)
}

// unpacker reads a pack as a stream. What is within limits goes to the spool, as entries
// of another pack.
type unpacker struct {
	scanner  *packfile.Scanner
	spool    *os.File
	objects  []packed // in the order of the pack
	byHash   map[plumbing.Hash]int
	contents *cache.BufferLRU // by index
	left     map[plumbing.Hash]int64

	spooled  int64 // bytes of the spool
	kept     int64 // bytes of the new pack so far
	count    uint32
	inflated int64 // bytes that were inflated

	entry    packWriter // the object that is added
	inflater io.ReadCloser
}

type packed struct {
	at   int64 // its offset in the pack
	kind plumbing.ObjectType
	// start, body and end are its entry's, its content's and its end's offset in the spool.
	// An end of 0 is an object that is not there, and of which nothing can be made.
	start, body, end int64
	keptAt           int64 // its offset in the new pack, 0 = it is not to be kept
	base             int   // index of what it is made of, -1 = it is whole
	chain            int   // how many objects it is made of
}

func limitOf(kind plumbing.ObjectType) int64 {
	switch kind {
	case plumbing.BlobObject:
		return maxBlob
	case plumbing.TreeObject:
		return maxTree
	default:
		return maxCommit
	}
}

func (u *unpacker) read(ctx context.Context) error {
	_, count, err := u.scanner.Header()
	if err != nil {
		return err
	}
	if count > maxPacked {
		return fmt.Errorf("%w: %d objects, of at most %d", errPackTooLarge, count, maxPacked)
	}
	for range count {
		if err := u.next(ctx); err != nil {
			return fmt.Errorf("read pack: %w", err)
		}
	}
	_, err = u.scanner.Checksum()
	return err
}

func (u *unpacker) next(ctx context.Context) error {
	h, err := u.scanner.NextObjectHeader()
	switch {
	case err != nil:
		return err
	case h.Type.IsDelta():
		return u.delta(ctx, h)
	case h.Length > maxBase:
		hasher := plumbing.NewHasher(h.Type, h.Length)
		if err := u.inflate(ctx, h, hasher); err != nil {
			return err
		}
		u.left[hasher.Sum()] = h.Length
		u.absent(h)
		return nil
	}
	content, err := u.content(ctx, h)
	if err != nil {
		return err
	}
	return u.add(packed{at: h.Offset, kind: h.Type, base: -1}, content, nil)
}

// delta reads an object that is made of one before it.
func (u *unpacker) delta(ctx context.Context, h *packfile.ObjectHeader) error {
	base, known := u.byHash[h.Reference]
	if h.Type == plumbing.OFSDeltaObject {
		base, known = slices.BinarySearchFunc(u.objects, h.OffsetReference, func(o packed, at int64) int { return cmp.Compare(o.at, at) })
	}
	if !known {
		return fmt.Errorf("%w: an object is made of one that is not before it", packfile.ErrMalformedPackFile)
	}
	if u.objects[base].end == 0 || h.Length > maxBase {
		u.absent(h)
		return u.inflate(ctx, h, io.Discard)
	}
	delta, err := u.content(ctx, h)
	if err != nil {
		return err
	}
	if deltaTarget(delta) > maxBase {
		u.absent(h)
		return nil
	}
	source, err := u.resolve(ctx, base)
	if err != nil {
		return err
	}
	content, err := packfile.PatchDelta(source, delta)
	if err != nil {
		return err
	}
	if err := u.spend(ctx, len(content)); err != nil {
		return err
	}
	return u.add(packed{at: h.Offset, kind: u.objects[base].kind, base: base, chain: u.objects[base].chain + 1}, content, delta)
}

// deltaTarget is how large an object becomes that a delta makes, see gitformat-pack(5).
func deltaTarget(delta []byte) uint64 {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0 // PatchDelta says that it is damaged
	}
	target, _ := binary.Uvarint(delta[n:])
	return target
}

// absent notes an object that is too large to be looked at.
func (u *unpacker) absent(h *packfile.ObjectHeader) {
	u.objects = append(u.objects, packed{at: h.Offset, base: -1})
}

// content inflates an object whose size was looked at.
func (u *unpacker) content(ctx context.Context, h *packfile.ObjectHeader) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, h.Length))
	if err := u.inflate(ctx, h, buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (u *unpacker) inflate(ctx context.Context, h *packfile.ObjectHeader, w io.Writer) error {
	n, _, err := u.scanner.NextObject(writerFunc(func(p []byte) (int, error) {
		if err := u.spend(ctx, len(p)); err != nil {
			return 0, err
		}
		return w.Write(p)
	}))
	if err == nil && n != h.Length {
		err = fmt.Errorf("%w: an object has %d bytes and claims %d", packfile.ErrMalformedPackFile, n, h.Length)
	}
	return err
}

type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (u *unpacker) spend(ctx context.Context, n int) error {
	u.inflated += int64(n)
	if u.inflated > maxInflated {
		return fmt.Errorf("%w: it inflates to more than %d bytes", errPackTooLarge, int64(maxInflated))
	}
	return ctx.Err()
}

// add puts an object into the spool, and into the new pack if it is within its limit.
func (u *unpacker) add(o packed, content, delta []byte) error {
	hash := plumbing.ComputeHash(o.kind, content)
	keep := int64(len(content)) <= limitOf(o.kind)
	if !keep {
		u.left[hash] = int64(len(content))
	}
	// What is not kept is whole, and so is what cannot be made of what is.
	if o.base >= 0 && (!keep || u.objects[o.base].keptAt == 0 || o.chain > maxChain) {
		o.base, o.chain = -1, 0
	}
	entry, body := &u.entry, content
	entry.buf.Reset()
	if o.base >= 0 {
		body = delta
		entry.header(packOffsetDelta, len(body))
		entry.offset(u.kept - u.objects[o.base].keptAt)
	} else {
		entry.header(byte(o.kind), len(body))
	}
	o.start, o.body = u.spooled, u.spooled+int64(entry.buf.Len())
	entry.deflate(body)
	o.end = u.spooled + int64(entry.buf.Len())
	if o.end > maxSpool {
		return fmt.Errorf("%w: its files without the large ones have more than %d bytes", errPackTooLarge, int64(maxSpool))
	}
	if _, err := u.spool.Write(entry.buf.Bytes()); err != nil {
		return err
	}
	u.spooled = o.end
	if keep {
		o.keptAt = u.kept
		u.kept += o.end - o.start
		u.count++
	}
	u.byHash[hash] = len(u.objects)
	u.contents.Put(int64(len(u.objects)), content)
	u.objects = append(u.objects, o)
	return nil
}

// resolve returns the content of an object of the spool.
func (u *unpacker) resolve(ctx context.Context, i int) ([]byte, error) {
	var chain []int // what is made of one another, i first
	content, known := u.contents.Get(int64(i))
	for !known {
		chain = append(chain, i)
		if i = u.objects[i].base; i < 0 {
			break
		}
		content, known = u.contents.Get(int64(i))
	}
	for _, i := range slices.Backward(chain) {
		body, err := u.spoolBody(ctx, u.objects[i])
		if err != nil {
			return nil, err
		}
		if u.objects[i].base < 0 {
			content = body
		} else if content, err = packfile.PatchDelta(content, body); err != nil {
			return nil, err
		}
		if err := u.spend(ctx, len(content)); err != nil {
			return nil, err
		}
		u.contents.Put(int64(i), content)
	}
	return content, nil
}

func (u *unpacker) spoolBody(ctx context.Context, o packed) (body []byte, err error) {
	in := io.NewSectionReader(u.spool, o.body, o.end-o.body)
	if u.inflater == nil {
		u.inflater, err = zlib.NewReader(in)
	} else {
		err = u.inflater.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return nil, err
	}
	body, err = io.ReadAll(u.inflater)
	return body, errors.Join(err, u.spend(ctx, len(body)))
}

// store hands what is kept to the object store, as a pack.
func (u *unpacker) store(to storer.PackfileWriter) (err error) {
	if u.count == 0 {
		return nil
	}
	w, err := to.PackfileWriter()
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	sum := hash.New(hash.CryptoType)
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	_, _ = out.WriteString("PACK") // whether it can be written is seen when it is flushed
	_, _ = out.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), u.count))
	for _, o := range u.objects {
		if o.keptAt == 0 {
			continue
		}
		if _, err := io.Copy(out, io.NewSectionReader(u.spool, o.start, o.end-o.start)); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	return nil
}
