package diskimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/cachedir"
	"ingot/model"
)

var (
	// ErrNotHere is returned for an image that is not kept: prepare it.
	ErrNotHere = errors.New("the disk image is not here")
	// ErrClosed is returned by a Store that was closed.
	ErrClosed = errors.New("disk images: the store is closed")
)

// maxImageBytes is the maximum size of the disk in an image.
const maxImageBytes = 256 << 30

// Options are the options of Open.
type Options struct {
	// Dir is where images are kept.
	Dir *cachedir.Dir
	// Patience is how long Prepare waits for an image that is being prepared; zero means a
	// second, less means not at all.
	Patience time.Duration
	// Fetches bounds the images that are fetched at the same time; zero means 4. One is
	// converted at a time. One that takes long does not count.
	Fetches int
	// Stall is how long a server may send nothing; zero means a minute.
	Stall time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Image is what is known of an image that is prepared.
type Image struct {
	Disk       model.DiskImage      `json:"disk"`
	Identities model.DiskIdentities `json:"identities"`
	// TableDigest is of the chunk table: sha256:….
	TableDigest string `json:"tableDigest"`
	// File and Stored are how many bytes the file as published and its chunks take.
	File   int64  `json:"file"`
	Stored uint64 `json:"stored"`
	// PartitionTable is gpt or mbr.
	PartitionTable string      `json:"partitionTable"`
	Partitions     []Partition `json:"partitions"`
}

// Store keeps disk images as chunks. It is safe for concurrent use.
type Store struct {
	dir      *cachedir.Dir
	kind     *cachedir.Kind
	maxImage uint64
	patience time.Duration
	stall    time.Duration
	turn     time.Duration
	pause    func(idle int) time.Duration // before a fetch goes on
	log      *slog.Logger
	metrics  metrics
	clock    func() time.Time

	life       context.Context // ends with Close
	end        context.CancelFunc
	group      sync.WaitGroup
	fetches    chan struct{} // one for each fetch under way
	converting chan struct{}
	checking   chan struct{} // one while what is kept of an image is read

	mu     sync.Mutex
	closed bool
	images map[string]*kept // by digest
	jobs   map[string]*job  // by digest
	failed map[string]failure
}

type kept struct {
	image   Image
	entry   *cachedir.Entry
	checked time.Time // when its chunks were last found as its table says
}

// Open opens the store, with the complete images in its folder.
func Open(o Options) (*Store, error) {
	s := &Store{
		dir: o.Dir, maxImage: maxImageBytes, log: o.Log, clock: o.Clock,
		patience: cmp.Or(o.Patience, time.Second), stall: cmp.Or(o.Stall, time.Minute), turn: longestTurn, pause: waitBefore,
		metrics: newMetrics(), fetches: make(chan struct{}, cmp.Or(o.Fetches, 4)), converting: make(chan struct{}, 1), checking: make(chan struct{}, 1),
		images: make(map[string]*kept), jobs: make(map[string]*job), failed: make(map[string]failure),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open the disk images: %w", err)
	}
	s.count()
	s.metrics.register(o.Registerer)
	return s, nil
}

// Close ends what is being prepared and waits for it.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.group.Wait()
}

// Prepare returns an image that can be served. One that is not here is fetched, checked and
// converted, which goes on when ctx ends: until it is done the error is *Preparing. Callers that
// want the same share it. An image that cannot be used is an *Error; that of Source.Fetch is
// wrapped. Both are answered from memory for a while, and what is wrong with the image itself
// for as long as the process runs.
func (s *Store) Prepare(ctx context.Context, src Source) (Image, error) {
	if !model.IsImageDigest(src.Digest) {
		return Image{}, refuse(model.ReasonDigestMissing, "digest %.200q is not sha256: or sha512: with hexadecimal digits in lower case", src.Digest)
	}
	img, j, err := s.find(src)
	if j == nil {
		return img, err
	}
	wait := time.NewTimer(max(0, s.patience))
	defer wait.Stop()
	select {
	case <-j.done:
	case <-wait.C:
	case <-ctx.Done():
	}
	select {
	case <-j.done:
		if j.err != nil {
			return Image{}, j.err
		}
		return j.image.as(src), nil
	default:
		return Image{}, j.state()
	}
}

// as returns the image as it is called by whoever asks.
func (i Image) as(src Source) Image {
	i.Disk.Ref, i.Disk.Note = src.Ref, ""
	is := i.Disk.Format
	if i.Disk.Compression != "" {
		is += "+" + i.Disk.Compression
	}
	if src.Kind != "" && src.Kind != is {
		i.Disk.Note = fmt.Sprintf("it is called %s and is %s: its first bytes count, not what it is called", src.Kind, is)
	}
	return i
}

// find returns an image that is here, the job that prepares it, or why it cannot be had.
func (s *Store) find(src Source) (Image, *job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Image{}, nil, ErrClosed
	}
	if k := s.images[src.Digest]; k != nil {
		k.entry.Touch(s.clock())
		return k.image.as(src), nil, nil
	}
	switch j := s.jobs[src.Digest]; {
	case j == nil:
	case j.src.Container != src.Container: // that one is read in another way
		return Image{}, nil, &Preparing{Stage: StageQueued}
	default:
		return Image{}, j, nil
	}
	if err := s.remembered(src); err != nil {
		return Image{}, nil, err
	}
	j := newJob(s, src)
	s.jobs[src.Digest] = j
	s.metrics.preparing.Set(float64(len(s.jobs)))
	s.group.Go(j.run)
	return Image{}, j, nil
}

// Opened is an image that is served. It is to be closed.
type Opened struct {
	Image         Image
	Table, Chunks *os.File
}

// Close closes the files.
func (o Opened) Close() {
	o.Table.Close()
	o.Chunks.Close()
}

// Open opens an image that is here, for reading. It stays readable until it is closed, also when
// it is evicted meanwhile. The error is ErrNotHere for one that has to be prepared.
func (s *Store) Open(digest string) (Opened, error) {
	s.mu.Lock()
	k := s.images[digest]
	if k != nil {
		k.entry.Touch(s.clock())
	}
	s.mu.Unlock()
	if k == nil {
		return Opened{}, ErrNotHere
	}
	o, err := openFiles(k.entry.Path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Opened{}, err
	}
	if err != nil {
		s.log.Warn("disk image cannot be opened: it is prepared again when it is needed", "digest", digest, "err", err)
		s.forget(k)
		return Opened{}, ErrNotHere
	}
	o.Image = k.image
	return o, nil
}

func (s *Store) forget(k *kept) {
	s.evicted(k.entry)
	k.entry.Drop()
}

// evicted takes out the image of an entry that is gone.
func (s *Store) evicted(e *cachedir.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.images[e.Digest]; k != nil && k.entry == e {
		delete(s.images, e.Digest)
		s.count()
	}
}

// failure is why an image cannot be had.
type failure struct {
	err   error
	until time.Time // zero = for good
}

// How long failures are remembered, and how many.
const (
	rememberMismatch = time.Minute
	rememberOther    = 30 * time.Second
	rememberSlow     = time.Hour
	maxFailures      = 1000
)

// file names what is read in one way: what is wrong with a layer is not with the bare file.
func (s Source) file() string {
	if s.Container {
		return s.Digest + " in a container"
	}
	return s.Digest
}

// remembered returns why an image could not be had lately; mu is held.
func (s *Store) remembered(src Source) error {
	for _, key := range []string{src.file(), src.file() + " " + src.Ref} {
		f, known := s.failed[key]
		switch {
		case known && (f.until.IsZero() || s.clock().Before(f.until)):
			return f.err
		case known:
			delete(s.failed, key)
		}
	}
	return nil
}

// remember keeps why an image cannot be had. What is wrong with the file of a digest is wrong
// for good; what is wrong with a place is so for a while, and of that place alone. mu is held.
func (s *Store) remember(src Source, err error) {
	if len(s.failed) >= maxFailures {
		clear(s.failed)
	}
	key, f := src.file()+" "+src.Ref, failure{err, s.clock().Add(rememberOther)}
	if own, ok := errors.AsType[*Error](err); ok {
		switch own.Reason {
		case model.ReasonDigestMismatch:
			f.until = s.clock().Add(rememberMismatch)
		case model.ReasonImageUnsafe, model.ReasonImageFormat, model.ReasonImageNoPartitions:
			key, f.until = src.file(), time.Time{}
			if errors.Is(own, context.DeadlineExceeded) { // it may be this machine that is slow
				f.until = s.clock().Add(rememberSlow)
			}
		}
	}
	s.failed[key] = f
}

func (s *Store) finish(j *job) {
	defer j.entry.Users.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.src.Digest)
	s.metrics.preparing.Set(float64(len(s.jobs)))
	if j.err != nil {
		if !errors.Is(j.err, ErrClosed) {
			s.remember(j.src, j.err)
		}
	} else {
		s.images[j.src.Digest] = &kept{image: j.image, entry: j.entry}
	}
	s.count()
}

// count shows how many images there are; mu is held, or s is not known yet.
func (s *Store) count() { s.metrics.images.Set(float64(len(s.images))) }
