package features

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"ingot/bmc/sim"
	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
)

// diskContent is the tiny disk that a disk image called name is of.
func diskContent(name string) []byte {
	return diskimagetest.Disk(diskimagetest.Options{
		BootCode: true, ESP: diskimagetest.Bootable(), Data: diskimagetest.Noise(2<<20, byte(len(name))),
	})
}

// diskImageIs pushes a disk image, which is wrong in some way or in none.
func diskImageIs(ctx context.Context, name, how string) error {
	w, raw := siteOf(ctx), diskContent(name)
	media := "application/vnd.ingot.disk.raw"
	switch how {
	case "is in the registry":
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

// pushDisk pushes a disk image as an artifact of one layer.
func (w *site) pushDisk(name, media string, raw []byte) error {
	repository := "images/" + name
	manifest, err := w.images.PushManifest(repository, ociserver.MediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ociserver.MediaManifest,
		"config": w.images.PushBlob(repository, "application/vnd.oci.empty.v1+json", []byte("{}")),
		"layers": []ociserver.Descriptor{w.images.PushBlob(repository, media, raw)},
	})
	w.images.Tag(repository, "1", manifest.Digest)
	w.image[name] = w.imagesSeen.host() + "/" + repository + ":1"
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

// diskHolds waits until a disk of a machine is what an image is of, byte by byte.
func diskHolds(ctx context.Context, which, name, image string) error {
	m, err := siteOf(ctx).machine(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(diskContent(image))
	return rig.Within(patience, func() error {
		if c := diskOf(m, which); !c.Whole || c.SHA256 != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("the %s disk of %s holds %+v", which, name, c)
		}
		return nil
	})
}

// diskHoldsNothing waits until there is nothing on a disk that boots.
func diskHoldsNothing(ctx context.Context, which, name string) error {
	m, err := siteOf(ctx).machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if c := diskOf(m, which); c.Image != "" {
			return fmt.Errorf("the %s disk of %s holds %+v", which, name, c)
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

// rootDevice is what a claim says of its disk.
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
