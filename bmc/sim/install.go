package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// Bounds on what a probe that installs fetches, in bytes.
const (
	maxInstallDocument = 64 << 20
	maxImage           = 1 << 40 // of the disk that an image is of
)

// progressEvery is how often a probe tells how much it has written.
const progressEvery = 5 * time.Second

// installing is a probe at work that writes a disk image to a disk.
type installing struct {
	*booting
	run      probeRun
	document model.InstallDocument
	disk     model.RootDisk // once it is chosen
	told     time.Time      // when it was told last how much is written
}

// installDisk is what metalprobe does that is to write a disk image: it chooses the disk, writes
// the chunks, each of which it has checked, tells how far it is, and powers the machine off.
func (b *booting) installDisk(ctx context.Context, p probeRun) {
	in := &installing{booting: b, run: p}
	raw, err := again(ctx, b, func() ([]byte, error) { return b.fetch(ctx, p.install, "metalprobe", maxInstallDocument) })
	if err == nil {
		err = json.Unmarshal(raw, &in.document)
	}
	if err != nil {
		b.posted("nothing, for the install document cannot be read", withoutURL(err))
		return
	}
	in.tell(ctx, model.ProbeInstall{Stage: model.DiskProbeBooted})
	failed := in.write(ctx)
	switch {
	case ctx.Err() != nil:
	case failed != nil:
		b.during(b.life, func() { b.log(Event{Kind: EventNote, What: "the install has failed: " + failed.Error()}) })
		in.insist(ctx, model.ProbeInstall{Stage: in.stage(), Reason: failed.reason, Message: failed.message})
		if delay.Wait(ctx, failureShown) {
			in.powerOff()
		}
	default:
		in.finish(ctx)
	}
}

// failureShown is how long a machine stays on after a failed install. Real ones take longer than a poll of their power.
const failureShown = 1500 * time.Millisecond

// installFailure is why nothing more is written.
type installFailure struct {
	reason  model.Reason
	message string
}

func (f *installFailure) Error() string { return string(f.reason) + ": " + f.message }

func failInstall(reason model.Reason, format string, args ...any) *installFailure {
	return &installFailure{reason, fmt.Sprintf(format, args...)}
}

// stage is the last that was reached before an install failed.
func (in *installing) stage() model.DiskInstallStage {
	switch {
	case !in.told.IsZero():
		return model.DiskWriting
	case in.disk != (model.RootDisk{}):
		return model.DiskChosen
	}
	return model.DiskProbeBooted
}

// write brings the image onto the disk, unless the same install has done so before.
func (in *installing) write(ctx context.Context) *installFailure {
	drive, failed := in.choose()
	if failed != nil {
		return failed
	}
	in.tell(ctx, model.ProbeInstall{Stage: model.DiskChosen})
	if in.isDone(drive) {
		in.during(in.life, func() { in.note("finds what it had written before, and leaves it") })
		return nil
	}
	table, failed := in.table(ctx)
	if failed != nil {
		return failed
	}
	return in.fill(ctx, drive, table)
}

func (in *installing) choose() (drive int, failed *installFailure) {
	need, problem := model.NeedOf(in.document.Image, in.document.Hints, in.document.Previous)
	if problem != nil {
		return 0, failInstall(problem.Reason, "%s", problem.Message)
	}
	var candidates []model.CandidateDisk
	for _, d := range in.probeDisks() {
		candidates = append(candidates, model.CandidateDisk{ProbeDisk: d})
	}
	chosen, problem := model.ChooseRootDisk(candidates, need)
	if problem != nil {
		return 0, failInstall(problem.Reason, "%s", problem.Message)
	}
	in.disk = model.RootDiskOf(chosen.ProbeDisk)
	for i := range in.build.Hardware.Drives {
		if in.diskSerial(i) == chosen.Serial {
			drive = i
		}
	}
	return drive, in.guard(drive)
}

// guard refuses a disk that holds something nobody gave up, and a machine in which another disk
// could be taken for the one that is written: no other disk is ever written to.
func (in *installing) guard(drive int) (failed *installFailure) {
	own := in.document.Previous != nil && in.document.Previous.Is(in.probeDisk(drive))
	in.during(in.life, func() {
		holds := in.holds(drive)
		mine := in.contents[in.diskSerial(drive)].Install == in.document.Install
		if holds != "" && !mine && !own && !in.document.MayOverwrite {
			failed = failInstall(model.ReasonRootDeviceNotBlank, "disk %s (serial %s) holds %s", in.disk.Name, in.disk.Serial, holds)
			return
		}
		for i, d := range in.build.Hardware.Drives {
			shared := in.shares(i, in.document.Identities)
			if i != drive && shared != "" && !in.hidden(i) {
				failed = failInstall(model.ReasonDuplicateIdentity, "disk %s (serial %s) has the %s as well as the image", d.Name, in.diskSerial(i), shared)
				return
			}
		}
	})
	return failed
}

// isDone reports whether this install has written the drive before.
func (in *installing) isDone(drive int) (done bool) {
	in.during(in.life, func() {
		c := in.contents[in.diskSerial(drive)]
		done = c.Whole && c.Install == in.document.Install
	})
	return done
}

// at is the URL of something that the document names relative to itself.
func (in *installing) at(name string) string {
	return in.run.install[:strings.LastIndexByte(in.run.install, '/')+1] + name
}

func (in *installing) table(ctx context.Context) (model.ChunkTable, *installFailure) {
	limit := int64(model.MaxChunkTable(in.document.Image.Bytes))
	raw, err := again(ctx, in.booting, func() ([]byte, error) {
		return in.fetch(ctx, in.at(in.document.Table), "metalprobe", limit)
	})
	if err != nil {
		return model.ChunkTable{}, failInstall(model.ReasonInstallFailed, "the chunk table cannot be fetched: %v", withoutURL(err))
	}
	if sum := "sha256:" + sha256Of(raw); sum != in.document.TableDigest {
		return model.ChunkTable{}, failInstall(model.ReasonInstallFailed, "the chunk table has the digest %s, want %s", sum, in.document.TableDigest)
	}
	table, err := model.ParseChunkTable(raw, min(in.document.Image.Bytes, maxImage))
	if err != nil {
		return model.ChunkTable{}, failInstall(model.ReasonInstallFailed, "%v", err)
	}
	return table, nil
}

// fill writes all chunks to a drive. Nothing that was on it boots any more once that begins.
func (in *installing) fill(ctx context.Context, drive int, table model.ChunkTable) *installFailure {
	serial := in.diskSerial(drive)
	in.during(in.life, func() {
		in.clearDisk(serial)
		in.contents[serial] = Content{Image: in.document.Image.Digest, Install: in.document.Install, Identities: in.document.Identities}
		in.keep()
	})
	in.told = time.Now()
	in.tell(ctx, model.ProbeInstall{Stage: model.DiskWriting})
	w := newDiskWriter(in, table)
	defer w.close()
	for n := range table.Chunks {
		if 2*n >= len(table.Chunks) && !w.halfWay {
			w.halfWay = true
			if failed := in.atHalf(ctx, drive, w.done); failed != nil || ctx.Err() != nil {
				return failed
			}
		}
		if err := w.chunk(ctx, n); err != nil {
			return failInstall(model.ReasonInstallFailed, "chunk %d: %v", n, withoutURL(err))
		}
		in.noteWritten(ctx, serial, w.done)
		if !delay.Wait(ctx, in.delays().Write/time.Duration(len(table.Chunks))) {
			return nil
		}
	}
	in.during(in.life, func() {
		c := in.contents[serial]
		c.Whole, c.SHA256 = true, hex.EncodeToString(w.sum.Sum(nil))
		in.contents[serial] = c
		in.boots(serial)
		in.keep()
	})
	return nil
}

// boots makes the machine boot what was written; the caller holds mu.
func (in *installing) boots(serial string) {
	now, image := time.Now(), in.document.Image.Digest
	s := in.Server
	s.disk, s.seed, s.said = &Disk{Image: image, InstalledAt: now, Serial: serial}, in.document.Seed, false
	s.installs.add(Install{Image: image, Serial: serial, At: now})
	s.logDisk(EventWritten, "wrote "+image+" to disk "+serial, "")
}

// atHalf is where faults befall whoever writes.
func (in *installing) atHalf(ctx context.Context, drive int, done uint64) *installFailure {
	in.told = time.Now()
	in.tell(ctx, model.ProbeInstall{Stage: model.DiskWriting, Done: done})
	if _, cut := in.faults.use(FaultInstallCut); cut {
		in.PowerCut()
		return nil
	}
	for freed := in.faults.until(FaultInstallHangs); freed != nil; freed = in.faults.until(FaultInstallHangs) {
		select {
		case <-ctx.Done():
			return nil
		case <-freed:
		}
	}
	if args, fails := in.faults.get(FaultWriteFails); fails && args.Disk == drive {
		return failInstall(model.ReasonDiskWriteFailed, "disk %s (serial %s) at byte %d: input/output error", in.disk.Name, in.disk.Serial, done)
	}
	return nil
}

// noteWritten keeps how much is written, and tells it now and then.
func (in *installing) noteWritten(ctx context.Context, serial string, done uint64) {
	in.during(in.life, func() {
		c := in.contents[serial]
		c.Written = done
		in.contents[serial] = c
	})
	if time.Since(in.told) >= progressEvery {
		in.told = time.Now()
		in.tell(ctx, model.ProbeInstall{Stage: model.DiskWriting, Done: done})
	}
}

// finish tells that all is written, and powers the machine off once that is heard.
func (in *installing) finish(ctx context.Context) {
	if _, cut := in.faults.use(FaultVerifiedCut); cut {
		in.PowerCut()
		return
	}
	done := in.document.Image.Data
	in.insist(ctx, model.ProbeInstall{Stage: model.DiskVerified, Done: done})
	if in.document.BootEntry != "" {
		in.tell(ctx, model.ProbeInstall{Stage: model.DiskBootEntry, Done: done})
	}
	in.insist(ctx, model.ProbeInstall{Stage: model.DiskRebooting, Done: done})
	in.powerOff()
}

// powerOff ends the machine's work, as the probe does once its outcome is known.
func (in *installing) powerOff() {
	in.during(in.life, func() { in.darken("powered off by the probe") })
}

// tell posts a report once: what follows says as much.
func (in *installing) tell(ctx context.Context, r model.ProbeInstall) {
	in.posted("install "+string(r.Stage), in.report(ctx, r))
}

// insist posts a report until it is taken.
func (in *installing) insist(ctx context.Context, r model.ProbeInstall) {
	in.until(ctx, "install "+string(r.Stage), func() error { return in.report(ctx, r) })
}

func (in *installing) report(ctx context.Context, r model.ProbeInstall) error {
	r.SystemUUID, r.Install = in.reportedUUID(in.run), in.document.Install
	if in.disk != (model.RootDisk{}) {
		r.Disk = &in.disk
	}
	return in.post(ctx, in.run.registryURL+"/install", r)
}

// diskWriter fetches chunks in the order of the disk, and writes them.
type diskWriter struct {
	*installing
	chunks  model.ChunkTable
	body    io.ReadCloser // of the chunks from the next one on; nil = they have to be asked for
	zstd    *zstd.Decoder
	stored  []byte
	plain   []byte
	sum     hash.Hash // of the disk so far
	done    uint64    // bytes of data
	halfWay bool
}

func newDiskWriter(in *installing, table model.ChunkTable) *diskWriter {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(16<<20))
	if err != nil {
		panic(err) // the options are right
	}
	return &diskWriter{installing: in, chunks: table, zstd: d, sum: sha256.New()}
}

func (w *diskWriter) close() {
	w.zstd.Close()
	w.hangUp()
}

func (w *diskWriter) hangUp() {
	if w.body != nil {
		_ = w.body.Close()
		w.body = nil
	}
}

// zeros are the content of a chunk of which nothing is stored.
var zeros [model.ChunkBytes]byte

func (w *diskWriter) chunk(ctx context.Context, n int) error {
	c, size := w.chunks.Chunks[n], w.chunks.Size(n)
	if c.Length == 0 {
		w.sum.Write(zeros[:size])
		return nil
	}
	stored, err := again(ctx, w.booting, func() ([]byte, error) { return w.next(ctx, c) })
	if err != nil {
		return err
	}
	if w.plain, err = w.zstd.DecodeAll(stored, w.plain[:0]); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if uint64(len(w.plain)) != size {
		return fmt.Errorf("it has %d bytes, want %d", len(w.plain), size)
	}
	w.sum.Write(w.plain)
	w.done += size
	return nil
}

func (w *diskWriter) next(ctx context.Context, c model.Chunk) (raw []byte, err error) {
	defer func() {
		if err != nil {
			w.hangUp()
		}
	}()
	if w.body == nil {
		if w.body, err = w.from(ctx, c.Offset); err != nil {
			return nil, err
		}
	}
	w.stored = append(w.stored[:0], make([]byte, c.Length)...)
	if _, err := io.ReadFull(w.body, w.stored); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	if sha256.Sum256(w.stored) != c.Sum {
		return nil, errors.New("its digest is another than the table's")
	}
	return w.stored, nil
}

func (w *diskWriter) from(ctx context.Context, offset uint64) (io.ReadCloser, error) {
	address := w.at(w.document.Chunks)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the URL cannot be used")
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	resp, err := w.web().Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", withoutURL(err))
	}
	if resp.StatusCode != http.StatusPartialContent {
		drain(resp.Body)
		return nil, statusError{what: "fetch chunks", code: resp.StatusCode}
	}
	return resp.Body, nil
}

// again tries to fetch something, more and more rarely, for as long as the answer is none or
// one that may change.
func again[T any](ctx context.Context, b *booting, try func() (T, error)) (T, error) {
	wait := ignitionFirstWait
	for attempt := 1; ; attempt++ {
		v, err := try()
		status, answered := errors.AsType[statusError](err)
		refused := answered && status.code < http.StatusInternalServerError
		if err == nil || refused || attempt == ignitionAttempts || !delay.Wait(ctx, wait) {
			return v, err
		}
		b.during(b.life, func() { b.note("fetch again: " + withoutURL(err).Error()) })
		wait = min(2*wait, ignitionLastWait)
	}
}
