package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type kernel struct {
	image   []byte
	release string // as in uname -r
	library library
}

// loadKernel reads a kernel, and finds its modules below a folder.
func loadKernel(file, folder string) (*kernel, error) {
	image, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read kernel: %w", err)
	}
	k := &kernel{image: image, library: library{
		files: make(map[string]string), read: readModuleFile, known: make(map[string]module),
	}}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if name, _ := moduleName(path); err == nil && name != "" && d.Type().IsRegular() {
			k.library.files[name] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find modules: %w", err)
	}
	if len(k.library.files) == 0 {
		return nil, fmt.Errorf("there are no modules in %s: give the folder of the kernel's modules, "+
			"for example /lib/modules/$(uname -r)", folder)
	}
	return k, k.identify(file)
}

// identify finds the kernel's release, and checks that the modules are for it: a kernel
// refuses those of another release.
func (k *kernel) identify(file string) error {
	for name := range k.library.files {
		m, err := k.library.get(name)
		if err != nil {
			return err
		}
		k.release = m.release
		break
	}
	if own, err := bzImageRelease(k.image); err == nil && own != k.release {
		return fmt.Errorf("the modules are for Linux %s, but %s is Linux %s: take both from one package", k.release, file, own)
	}
	return nil
}

// bzImageRelease reads the release from an x86 kernel (Linux: Documentation/arch/
// x86/boot.rst, field kernel_version).
func bzImageRelease(image []byte) (string, error) {
	const magicAt, versionAt, base = 0x202, 0x20e, 0x200
	if len(image) < 0x1000 || string(image[magicAt:magicAt+4]) != "HdrS" {
		return "", errors.New("no x86 kernel")
	}
	at := int(binary.LittleEndian.Uint16(image[versionAt:])) + base
	if at >= len(image) {
		return "", errors.New("its version is not where its header says")
	}
	release, _, _ := bytes.Cut(image[at:min(at+256, len(image))], []byte{' '})
	return string(release), nil
}
