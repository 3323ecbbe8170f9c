package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"ingot/cmd/metalprobe/modules"
)

// certificates is where Go looks for trusted certificate authorities.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// initramfs returns the archive that a kernel unpacks into memory. Metalprobe is its only
// program, under all names that the kernel calls.
func initramfs(probe []byte, picked map[string]module, index modules.Index) archive {
	a := make(archive)
	for _, folder := range []string{"dev", "proc", "sys", "run", "tmp", "etc"} {
		a.folder(folder)
	}
	a.add("dev/console", entry{mode: modeDevice | 0o600, major: 5, minor: 1})
	a.add("dev/null", entry{mode: modeDevice | 0o666, major: 1, minor: 3})
	a.file("init", 0o755, probe)
	for _, name := range []string{"poweroff", "reboot", "modprobe"} {
		a.link("sbin/"+name, "/init")
	}
	a.link("usr/bin/metalprobe", "/init")
	for name, m := range picked {
		a.file(modules.Folder+"/"+name+".ko", 0o644, m.content)
	}
	a.file(modules.IndexFile, 0o644, index.Encode())
	return a
}

// addFirmware adds the files that picked modules name, from a folder like /lib/firmware.
func addFirmware(a archive, folder string, picked map[string]module) (files int, err error) {
	for _, name := range slices.Sorted(maps.Keys(picked)) {
		for _, file := range picked[name].firmware {
			if !filepath.IsLocal(file) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, file))
			if os.IsNotExist(err) {
				continue // modules also name firmware of rare hardware
			}
			if err != nil {
				return files, err
			}
			a.file(path.Join("lib/firmware", file), 0o644, content)
			files++
		}
	}
	return files, nil
}

// compressed returns the archive as zstd, which every kernel since 5.9 reads.
func (a archive) compressed() ([]byte, error) {
	var b bytes.Buffer
	// One thread, because several would split the stream differently on other machines.
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	if err := a.write(z); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func readModuleFile(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, compression := moduleName(file)
	switch compression {
	case "":
		return content, nil
	case "gz":
		z, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		return io.ReadAll(z)
	case "zst":
		z, err := zstd.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		defer z.Close()
		return io.ReadAll(z)
	case "xz":
		out, err := exec.Command("xz", "--decompress", "--stdout", file).Output()
		if err != nil {
			return nil, fmt.Errorf("read %s: xz: %w", file, err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("read %s: its compression is not known: use .ko, .ko.gz, .ko.zst or .ko.xz", file)
}
