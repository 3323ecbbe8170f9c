package netboot

import (
	"bytes"
	"cmp"
	"debug/pe"
	"io"

	"ingot/model"
)

// Unsigned returns the boot loader that the UEFI firmware of a server is told, if that is known to
// have no signature, so that Secure Boot refuses it; "" = it has one, or there is none, or it is a
// shim. By whom it is signed is firmware's to say.
func (l *Loaders) Unsigned(architecture string, server model.ServerName) string {
	for _, p := range platforms {
		if p.machine != architecture || p.platform == &bios {
			continue
		}
		kind := l.byDefault(p.platform)
		if l != nil && l.choice.Of != nil {
			kind = cmp.Or(l.choice.Of(server, ""), kind)
		}
		name := l.first(p.platform, kind)
		if name == "" || kind == LoaderShim {
			return ""
		}
		path, info, err := l.find(name)
		if err != nil {
			return ""
		}
		contents, err := l.read(path, info)
		if err != nil || !KnownUnsigned(bytes.NewReader(contents)) {
			return ""
		}
		return name
	}
	return ""
}

// KnownUnsigned reports whether a file is a UEFI program without a signature: its certificate table
// is empty (Microsoft PE and COFF Specification, "The Attribute Certificate Table").
func KnownUnsigned(r io.ReaderAt) bool {
	f, err := pe.NewFile(r)
	if err != nil {
		return false
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	return ok && h.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY].Size == 0
}
