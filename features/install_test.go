package features

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ingot/bmc/sim"
	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/features/internal/rig"
)

func limitInstalls(ctx context.Context, n int) error {
	siteOf(ctx).maxInstalls = n
	return nil
}

// diskContent is the disk that a disk image called name is of: a tiny one, as a rule.
func diskContent(name string) []byte {
	o := diskimagetest.Options{BootCode: true, ESP: diskimagetest.Bootable()}
	data := 2 << 20
	if name == "large" { // so that it takes a while to be prepared
		o.Bytes, data = 64<<20, 56<<20
	}
	o.Data = diskimagetest.Noise(data, byte(len(name)))
	return diskimagetest.Disk(o)
}

func diskImageIs(ctx context.Context, name, how string) error {
	w, raw := siteOf(ctx), diskContent(name)
	media := "application/vnd.ingot.disk.raw"
	switch how {
	case "is in the registry":
	case "is raw and called a qcow2":
		media = "application/vnd.ingot.disk.qcow2"
	case "has no partition table":
		raw = diskimagetest.Noise(5<<20, 7)
	case "starts nowhere":
		raw = diskimagetest.Disk(diskimagetest.Options{})
	case "has a backing file":
		raw, media = qcow2Header(1<<30, 512), "application/vnd.ingot.disk.qcow2"
	case "says that it is of 8 TiB":
		raw, media = qcow2Header(8<<40, 0), "application/vnd.ingot.disk.qcow2"
	case "is not what its digest says":
		raw = append(raw, "as it should be"...)
	case "has no digest at its URL":
		w.image[name] = "https://images.example.com/os.raw"
		return nil
	default:
		return fmt.Errorf("no disk image is known that %s", how)
	}
	if err := w.pushDisk(name, media, raw); err != nil {
		return err
	}
	if how == "is not what its digest says" {
		w.images.Corrupt("images/"+name, raw, append(diskContent(name), "as it should BE"...))
	}
	return nil
}

func (w *site) pushDisk(name, media string, raw []byte) error {
	reference, err := w.images.PushDisk("images/"+name, "1", media, raw)
	w.image[name] = strings.Replace(reference, w.images.Host(), w.imagesSeen.host(), 1)
	return err
}

// qcow2Header is a qcow2 file of version 2 (docs/interop/qcow2.txt) that has nothing but its
// header.
func qcow2Header(size, backing uint64) []byte {
	h := make([]byte, 1<<17)
	copy(h, "QFI\xfb")
	binary.BigEndian.PutUint32(h[4:], 2)
	binary.BigEndian.PutUint64(h[8:], backing)
	if backing > 0 {
		binary.BigEndian.PutUint32(h[16:], uint32(copy(h[backing:], "/etc/hostname")))
	}
	binary.BigEndian.PutUint32(h[20:], 16)
	binary.BigEndian.PutUint64(h[24:], size)
	binary.BigEndian.PutUint32(h[36:], 1)
	binary.BigEndian.PutUint64(h[40:], 1<<16)
	return h
}

func killPreparing(ctx context.Context, what string) error {
	w := siteOf(ctx)
	file := map[string]string{"fetches": "source", "converts": "chunks"}[what]
	err := <-w.killWhen(func() bool {
		found, err := filepath.Glob(filepath.Join(w.stateDir(), "images", "*.part", file))
		return err == nil && len(found) > 0
	})
	if err != nil {
		return fmt.Errorf("wait until Ingot %s the disk image: %w", what, err)
	}
	return w.start()
}

// killWriting kills Ingot once a machine has half of its disk image.
func killWriting(ctx context.Context, m *machine) error {
	w := siteOf(ctx)
	killed := make(chan error, 1)
	var once sync.Once
	w.boot.cutWhen(func(e exchange) (cut bool) {
		if e.uuid == m.UUID() && strings.HasSuffix(e.path, "/chunks") {
			once.Do(func() { cut = true; killed <- w.kill() })
		}
		return cut
	})
	defer w.boot.cutWhen(nil)
	select {
	case err := <-killed:
		if err != nil {
			return err
		}
		return w.start()
	case <-time.After(patience):
		return fmt.Errorf("%s does not ask for its disk image", m.name)
	}
}

func askedForRest(ctx context.Context, m *machine) error {
	asked := siteOf(ctx).boot.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && strings.HasSuffix(e.path, "/chunks") })
	if len(asked) < 2 {
		return fmt.Errorf("%s asked for chunks %d times", m.name, len(asked))
	}
	for _, e := range asked[1:] {
		if e.code != http.StatusPartialContent || e.part == "bytes=0-" {
			return fmt.Errorf("%s asked for %s of the chunks, and was answered %d", m.name, e.part, e.code)
		}
	}
	return nil
}

func diskHolds(_ context.Context, which string, m *machine, image string) error {
	sum := sha256.Sum256(diskContent(image))
	return rig.Within(patience, func() error {
		if c := diskOf(m, which); !c.Whole || c.SHA256 != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("the %s disk of %s holds %+v", which, m.name, c)
		}
		return nil
	})
}

func diskHoldsNothing(_ context.Context, which string, m *machine) error {
	return rig.Within(patience, func() error {
		if c := diskOf(m, which); c.Image != "" {
			return fmt.Errorf("the %s disk of %s holds %+v", which, m.name, c)
		}
		return nil
	})
}

func diskOf(m *machine, which string) sim.Content {
	if which == "second" {
		return m.Contents()[1]
	}
	return m.Contents()[0]
}

func (w *site) rootDevice(server, value string) (string, error) {
	m, err := w.machine(server)
	if err != nil {
		return "", err
	}
	switch value {
	case "the first disk":
		return "serial=" + m.DiskSerial(0), nil
	case "the second disk":
		return "serial=" + m.DiskSerial(1), nil
	case "any serial number":
		return "serial=*", nil
	case "a disk that is not there":
		return "serial=NOT-HERE", nil
	}
	return "", fmt.Errorf("no disk is known as %q", value)
}
