package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// root is the file system of a container for one architecture.
type root struct {
	architecture string
	dir          string // with what a package of it has, usr/bin/ingot and usr/bin/metalprobe
}

var programs = []string{"usr/bin/ingot", "usr/bin/metalprobe"}

// entry is a file or a folder of a root.
type entry struct {
	name    string
	mode    fs.FileMode
	owner   int
	content []byte // nil = a folder
}

func (r root) entries() ([]entry, error) {
	all := []entry{
		{name: "etc", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\ningot:x:%d:\n", user)},
		{name: "etc/ingot", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/nonexistent\ningot:x:%d:%[1]d:Ingot:%s:/nonexistent\n", user, stateDir)},
		{name: "etc/ssl", mode: 0o755},
		{name: "etc/ssl/certs", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "tmp", mode: 0o777 | fs.ModeSticky},
		{name: "usr", mode: 0o755},
		{name: "usr/bin", mode: 0o755},
	}
	for _, name := range programs {
		content, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if len(content) == 0 {
			return nil, fmt.Errorf("%s is empty", name)
		}
		all = append(all, entry{name: name, mode: 0o755, content: content})
	}
	return append(all,
		entry{name: "usr/share", mode: 0o755}, entry{name: "usr/share/ingot", mode: 0o755}, entry{name: "usr/share/ingot/images", mode: 0o755},
		entry{name: "var", mode: 0o755}, entry{name: "var/lib", mode: 0o755},
		entry{name: path.Clean(stateDir)[1:], mode: 0o700, owner: user},
	), nil
}

// authorities are the certificates of Mozilla's root program that are trusted for everything, as
// PEM: those of a system would make the image depend on where it is built.
func authorities() []byte {
	var all bytes.Buffer
	for certificate := range bundle.Roots() {
		if certificate.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate}) // a buffer takes everything
		}
	}
	return all.Bytes()
}

// layer packs the root, every file of the time made. It returns the digest of what is packed, too.
func (r root) layer(made time.Time) (packed []byte, plain digest.Digest, err error) {
	all, err := r.entries()
	if err != nil {
		return nil, "", err
	}
	var archive, out bytes.Buffer
	t := tar.NewWriter(&archive)
	for _, e := range all {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Uid: e.owner, Gid: e.owner, ModTime: made, Size: int64(len(e.content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if e.content == nil {
			h.Name, h.Typeflag = e.name+"/", tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := t.Write(e.content); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.name, err)
		}
	}
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	if err := t.Close(); err != nil {
		return nil, "", err
	}
	plain = digest.FromBytes(archive.Bytes())
	if _, err := archive.WriteTo(z); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), plain, nil
}
