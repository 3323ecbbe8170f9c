package install

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ingot/model"
	"ingot/model/filesystem"
)

// seedFiles reports whether a seed goes into a filesystem of the image.
func seedFiles(s *model.InstallSeed) bool {
	return s != nil && (s.Kind == model.SeedFCOS || s.Kind == model.SeedFlatcar)
}

// target is the partition of the image that a seed's files go into: the only one whose
// filesystem has the seed's label.
func (w *writer) target(a arrangement, seed *model.InstallSeed) (partition, error) {
	var found []partition
	for _, p := range a.partitions {
		if id, ok := filesystem.Identify(within{w, p.span}, p.to-p.from); ok && id.Label == seed.Label {
			p.id = id
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return partition{}, failure(model.ReasonSeedTargetMissing, "the image has %d filesystems with label %q, and seed %s goes into one: "+
			"is it an image of that system?", len(found), seed.Label, seed.Kind)
	}
	return found[0], nil
}

// files puts the seed's files into the image on the disk, and returns what it changed. The
// kernel mounts a partition only while nobody has the disk to himself.
func (t *task) files(w *writer, a arrangement) (span, error) {
	seed := t.doc.Seed
	p, err := w.target(a, seed)
	if err != nil {
		return span{}, err
	}
	if err := w.flush(); err != nil {
		return span{}, err
	}
	if err := t.disk.Close(); err != nil {
		return span{}, err
	}
	err = t.Mount(t.chosen.Path, p, p.id.Type, false, func(root *os.Root) error { return writeFiles(root, seed) })
	disk, opened := t.Open(t.chosen.Path)
	if opened != nil {
		return span{}, errors.Join(err, failure(model.ReasonDiskBusy, "disk %s cannot be opened again: %v", t.chosen.Name, opened))
	}
	t.disk, w.disk = disk, disk
	if errors.Is(err, unix.ENODEV) {
		err = failure(model.ReasonSeedFilesystem, "the kernel of the probe image has no %s, which filesystem %q of the image is", p.id.Type, seed.Label)
	}
	return p.span, err
}

// firstBoot is the file by which Fedora CoreOS knows that it was not started before; GRUB reads
// commands from it.
const firstBoot = "ignition.firstboot"

// writeFiles writes a seed's files into a filesystem, whose links lead nowhere else.
func writeFiles(root *os.Root, seed *model.InstallSeed) error {
	if seed.Kind == model.SeedFCOS {
		info, err := root.Lstat(firstBoot)
		if err != nil || !info.Mode().IsRegular() {
			return failure(model.ReasonSeedTargetMissing, "filesystem %q of the image has no %s: its system would not read a configuration", seed.Label, firstBoot)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seed.Files)) {
		if err := writeFile(root, name, seed.Files[name]); err != nil {
			return fmt.Errorf("write file %.80q of the seed: %w", name, err)
		}
	}
	if seed.Kind != model.SeedFCOS || seed.KernelArguments == "" {
		return nil
	}
	if strings.ContainsAny(seed.KernelArguments, "\"'\\$`\r\n") {
		return errors.New("kernel arguments of the first boot have quotes, dollars or line ends, which GRUB would take for its own")
	}
	f, err := root.OpenFile(firstBoot, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "set ignition_network_kcmdline=\"%s\"\n", seed.KernelArguments)
	return errors.Join(err, f.Sync(), f.Close())
}

// writeFile writes a file that only root can read, in place of what was there.
func writeFile(root *os.Root, name, content string) error {
	if folder := path.Dir(name); folder != "." {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Sync(), f.Close())
}
