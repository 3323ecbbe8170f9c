package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// debian fetches packages with apt, which knows where they are and verifies them.
type debian struct {
	arch  string
	cache string // folder of packages fetched before
}

// keepPackages is how long an unused package stays in the cache.
const keepPackages = 30 * 24 * time.Hour

// errNoApt says what to do on a system that is not Debian.
var errNoApt = errors.New("apt-get and dpkg-deb are needed to get Debian's kernel: " +
	"give files of your own with --kernel, --modules and --stub")

// kernelPackage returns the name of the package that holds the newest kernel of a
// flavour, which changes with each release.
func (d debian) kernelPackage(ctx context.Context, flavour string) (string, error) {
	meta := "linux-image-" + d.arch
	if flavour == FlavourCloud {
		meta = "linux-image-cloud-" + d.arch
	}
	out, err := d.run(ctx, "", "apt-cache", "show", "--no-all-versions", meta+":"+d.arch)
	if err != nil {
		return "", err
	}
	name := kernelOf(string(out))
	if name == "" {
		return "", fmt.Errorf("package %s names no kernel: is this Debian?", meta)
	}
	return name, nil
}

// kernelOf returns the kernel that a package depends on, as apt-cache shows it.
func kernelOf(shown string) string {
	for line := range strings.Lines(shown) {
		depends, ok := strings.CutPrefix(line, "Depends:")
		if !ok {
			continue
		}
		for d := range strings.SplitSeq(depends, ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(d), " "); strings.HasPrefix(name, "linux-image-") {
				return name
			}
		}
	}
	return ""
}

// offer is a package as apt would fetch it.
type offer struct{ file, sum string }

// parseOffer reads the line of apt-get --print-uris: 'address' file size SHA256:sum.
func parseOffer(printed string) (offer, error) {
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0][0] != '\'' {
			continue
		}
		sum, ok := strings.CutPrefix(words[3], "SHA256:")
		if ok && filepath.IsLocal(words[1]) && !strings.Contains(words[1], "/") {
			return offer{words[1], sum}, nil
		}
	}
	return offer{}, errors.New("apt-get does not say which file it would fetch")
}

// fetch returns the path of a package's file, from the cache if it is there.
func (d debian) fetch(ctx context.Context, name string) (string, error) {
	if err := os.MkdirAll(d.cache, 0o755); err != nil {
		return "", err
	}
	// Files are fetched beside the cache and moved into it, so that the cache holds whole
	// files only, even if others fetch at the same time. apt does not print files that
	// exist.
	temp, err := os.MkdirTemp(d.cache, "fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	printed, err := d.run(ctx, temp, "apt-get", "download", "--print-uris", name+":"+d.arch)
	if err != nil {
		return "", err
	}
	o, err := parseOffer(string(printed))
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w", name, err)
	}
	file := filepath.Join(d.cache, o.file)
	if sumOf(file) == o.sum {
		now := time.Now()
		_ = os.Chtimes(file, now, now) // it was used
		return file, nil
	}
	if _, err := d.run(ctx, temp, "apt-get", "download", name+":"+d.arch); err != nil {
		return "", err
	}
	fetched := filepath.Join(temp, o.file)
	if sumOf(fetched) != o.sum {
		return "", fmt.Errorf("fetch %s: apt-get left no %s with the right checksum", name, o.file)
	}
	d.prune(time.Now())
	return file, os.Rename(fetched, file)
}

// prune removes packages from the cache that have not been used for a long time.
func (d debian) prune(now time.Time) {
	files, _ := filepath.Glob(filepath.Join(d.cache, "*.deb"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && now.Sub(info.ModTime()) > keepPackages {
			_ = os.Remove(file) // or the next run does
		}
	}
}

// sumOf returns a file's SHA-256, "" when it cannot be read.
func sumOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (d debian) unpack(ctx context.Context, file, folder string) error {
	_, err := d.run(ctx, "", "dpkg-deb", "--extract", file, folder)
	return err
}

func (d debian) run(ctx context.Context, folder, program string, args ...string) ([]byte, error) {
	if program != "dpkg-deb" {
		// apt would fetch as another user, who has no access to root's folders.
		args = append([]string{"-o", "APT::Sandbox::User=root"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errNoApt
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s%s", program, err, lastLine(stderr.String()), d.hint(program))
	}
	return out, nil
}

func (d debian) hint(program string) string {
	if program == "dpkg-deb" {
		return ""
	}
	return fmt.Sprintf("; if apt's lists are old or have no packages for %s, run: dpkg --add-architecture %[1]s && "+
		"apt-get update; or give files of your own with --kernel, --modules and --stub", d.arch)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
