package daemon

import (
	"io"

	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/netboot"
)

// useFiles serves the folder of boot.files, and says whom the rescue script is for. Both are for
// what is no server of Ingot's: while they cannot be read, all else goes on.
func (d *daemon) useFiles() {
	d.rescue = rescueOf(d)
	if d.opts.Boot.Files == "" {
		return
	}
	d.files = bootfiles.New(d.opts.Boot.Files, d.log)
	if err := d.files.Check(); err != nil {
		d.log.Warn("boot.files cannot be read: none of its files is served until it can", "err", err)
	}
}

// tftpFiles are what is served by TFTP: the boot loaders, and the files of boot.files that
// have none of their names.
type tftpFiles struct {
	loaders *netboot.Loaders
	folder  *bootfiles.Folder
}

// Open implements tftp.Files.
func (f tftpFiles) Open(name string) (io.ReadSeekCloser, int64, error) {
	if f.folder == nil || f.loaders.Reserves(name) {
		return f.loaders.Open(name)
	}
	return f.folder.Open(name)
}
