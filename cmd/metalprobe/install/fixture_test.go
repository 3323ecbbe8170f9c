package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
	"ingot/model/gpt"
	"ingot/model/must"
)

const (
	rootGUID = "aaaaaaaa-0000-4000-8000-000000000001"
	diskGUID = "aaaaaaaa-0000-4000-8000-000000000000"
)

// imageOf is a disk image of so many MiB with a GUID partition table, some of it zeros, and what
// else is laid over it.
func imageOf(t testing.TB, mebibytes, sector int, over ...span2) []byte {
	t.Helper()
	image := make([]byte, mebibytes*mebibyte)
	random := rand.NewChaCha8([32]byte{1})
	for at := mebibyte; at < len(image); at += 3 * model.ChunkBytes { // two of three chunks stay zeros
		random.Read(image[at:min(at+model.ChunkBytes, len(image))])
	}
	table := gpt.New(sector, uint64(len(image)), diskGUID)
	per := uint64(mebibyte / sector)
	table.Partitions = []gpt.Partition{{
		Number: 1, Type: gpt.TypeLinuxData, GUID: rootGUID, First: per, Last: uint64(mebibytes-1)*per - 1, Name: "root",
	}}
	copy(table.MBR[:], "boot code")
	head, tail, err := table.Encode()
	if err != nil {
		t.Fatal(err)
	}
	copy(image, head)
	copy(image[len(image)-len(tail):], tail)
	for _, o := range over {
		copy(image[o.at:], o.what)
	}
	return image
}

// span2 is what lies at an offset.
type span2 struct {
	at   int
	what string
}

func chunked(t testing.TB, image []byte) (model.ChunkTable, []byte) {
	t.Helper()
	type served struct {
		table  model.ChunkTable
		chunks []byte
	}
	key := sha256.Sum256(image)
	if known, ok := chunkedBefore.Load(key); ok {
		return known.(served).table, known.(served).chunks
	}
	z := must.Get(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)))(t)
	defer z.Close()
	table := model.ChunkTable{Bytes: uint64(len(image))}
	all := make([]byte, 0, len(image))
	zeros := make([]byte, model.ChunkBytes)
	for chunk := range slices.Chunk(image, model.ChunkBytes) {
		if bytes.Equal(chunk, zeros[:len(chunk)]) {
			table.Chunks = append(table.Chunks, model.Chunk{})
			continue
		}
		frame := z.EncodeAll(chunk, nil)
		table.Chunks = append(table.Chunks, model.Chunk{Offset: uint64(len(all)), Length: uint64(len(frame)), Sum: sha256.Sum256(frame)})
		all = append(all, frame...)
	}
	chunkedBefore.Store(key, served{table, all})
	return table, all
}

var chunkedBefore sync.Map

// daemon serves an install and takes its reports.
type daemon struct {
	*httptest.Server
	doc    model.InstallDocument
	table  []byte
	chunks []byte
	// fault may answer a request in the daemon's place.
	fault  func(w http.ResponseWriter, r *http.Request, asked int) bool
	refuse func(model.ProbeInstall) error

	mu      sync.Mutex
	asked   int // requests for chunks
	reports []model.ProbeInstall
}

const token = "s3cr3t-token"

func serve(t testing.TB, image []byte) *daemon {
	t.Helper()
	table, chunks := chunked(t, image)
	d := &daemon{table: table.Encode(), chunks: chunks}
	d.doc = model.InstallDocument{
		Version: model.InstallVersion, Install: "install-1", Table: "table", Chunks: "chunks",
		TableDigest: fmt.Sprintf("sha256:%x", sha256.Sum256(d.table)),
		Image:       model.DiskImage{Ref: "img", Bytes: table.Bytes, Data: table.Data(), SectorSize: 512},
		Seed: &model.InstallSeed{Kind: model.SeedNoCloud, Label: "cidata", Files: map[string]string{
			"user-data": "#cloud-config\n", "meta-data": "instance-id: install-1\n",
		}},
	}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *daemon) url() string { return d.URL + "/install/uuid/" + token + "/document" }

func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/install/uuid/"+token+"/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	d.mu.Lock()
	if name == "chunks" {
		d.asked++
	}
	asked := d.asked
	d.mu.Unlock()
	if d.fault != nil && d.fault(w, r, asked) {
		return
	}
	switch name {
	case "document":
		_ = json.NewEncoder(w).Encode(d.doc)
	case "table":
		_, _ = w.Write(d.table)
	case "chunks":
		http.ServeContent(w, r, "chunks", time.Time{}, bytes.NewReader(d.chunks))
	}
}

func (d *daemon) post(_ context.Context, p model.ProbeInstall) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		if err := d.refuse(p); err != nil {
			return err
		}
	}
	d.reports = append(d.reports, p)
	return nil
}

func (d *daemon) outcome() (model.ProbeInstall, []model.DiskInstallStage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var stages []model.DiskInstallStage
	for _, r := range d.reports {
		stages = append(stages, r.Stage)
	}
	if len(d.reports) == 0 {
		return model.ProbeInstall{}, nil
	}
	return d.reports[len(d.reports)-1], slices.Compact(stages)
}

// errPower is what a write meets once the power is cut.
var errPower = errors.New("the power is cut")

type memoryDisk struct {
	mu     sync.Mutex
	b      []byte
	sector int
	lies   bool // it keeps what it had, where the image is
	// cutAfter is how many writes succeed before the power is cut; negative = all.
	cutAfter int
	writes   int
	broken   error // what is answered to each write
}

func newMemoryDisk(bytes int) *memoryDisk {
	return &memoryDisk{b: make([]byte, bytes), sector: 512, cutAfter: -1}
}

func (m *memoryDisk) ReadAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.NewReader(m.b).ReadAt(p, at)
}

func (m *memoryDisk) WriteAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return 0, m.broken
	}
	if m.cutAfter >= 0 && m.writes >= m.cutAfter {
		return 0, errPower
	}
	m.writes++
	if at%int64(m.sector) != 0 || len(p)%m.sector != 0 || at+int64(len(p)) > int64(len(m.b)) {
		return 0, fmt.Errorf("%d bytes at %d cannot be written", len(p), at)
	}
	if m.lies && at >= 2*mebibyte && at < 16*mebibyte {
		return len(p), nil
	}
	return copy(m.b[at:], p), nil
}

func (m *memoryDisk) Close() error               { return nil }
func (m *memoryDisk) Size() int64                { return int64(len(m.b)) }
func (m *memoryDisk) SectorSize() int            { return m.sector }
func (m *memoryDisk) Zero(offset, n int64) error { return errors.ErrUnsupported }
func (m *memoryDisk) Flush() error               { return m.broken }
func (m *memoryDisk) Reread() error              { return nil }

func machineOf(d *daemon, disks map[string]*memoryDisk) Installer {
	open := func(path string) (*memoryDisk, error) {
		m := disks[strings.TrimPrefix(path, "/dev/")]
		if m == nil {
			return nil, errors.New("no such disk")
		}
		return m, nil
	}
	return Installer{
		Disks: func() (list []inventory.Disk) {
			for _, name := range slices.Sorted(mapsKeys(disks)) {
				m := disks[name]
				list = append(list, inventory.Disk{ProbeDisk: model.ProbeDisk{
					Name: name, Path: "/dev/" + name, Serial: "S-" + name, SizeBytes: uint64(len(m.b)), LogicalBlockSize: uint64(m.sector),
				}})
			}
			return list
		},
		Use:      func() map[string]string { return nil },
		Takedown: func(inventory.Node) error { return nil },
		Open:     func(path string) (Disk, error) { return open(path) },
		Look:     func(path string) (Reader, error) { return open(path) },
		Product:  func() string { return "" },
		Post:     d.post,
		Log:      slog.New(slog.DiscardHandler),
	}
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

var _ io.ReaderAt = (*memoryDisk)(nil)
