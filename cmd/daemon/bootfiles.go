package daemon

import (
	"fmt"
	"io"

	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/netboot"
)

// openFiles opens the folder of boot.files, and says whom the rescue script is for.
func (d *daemon) openFiles() (err error) {
	d.rescue = rescueOf(d)
	if d.opts.Boot.Files == "" {
		return nil
	}
	if d.files, err = bootfiles.New(d.opts.Boot.Files, d.log); err != nil {
		return fmt.Errorf("boot.files: %w", err)
	}
	return nil
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
