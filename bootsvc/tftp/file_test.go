package tftp

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"
)

// disk is Files that are read as the test says.
type disk struct {
	folder
	open func(name string)
	read func(name string, at int) error
}

func (d disk) Open(name string) (io.ReadSeekCloser, int64, error) {
	if d.open != nil {
		d.open(name)
	}
	file, size, err := d.folder.Open(name)
	return diskFile{file, d, name}, size, err
}

type diskFile struct {
	io.ReadSeekCloser
	disk disk
	name string
}

func (f diskFile) Read(p []byte) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err == nil && f.disk.read != nil {
		err = f.disk.read(f.name, int(at))
	}
	if err != nil {
		return 0, err
	}
	return f.ReadSeekCloser.Read(p)
}

// A file that cannot be read holds up nobody but those that ask for it.
func TestADiskThatHangs(t *testing.T) {
	for title, at := range map[string]int{"when it is opened": -1, "when it is read": 0, "in the middle": chunkSize} {
		t.Run(title, func(t *testing.T) {
			file := pattern(3 * chunkSize)
			spins := make(chan struct{})
			goOn := sync.OnceFunc(func() { close(spins) })
			d := disk{folder: folder{"slow": file, "ipxe.efi": file}}
			d.open = func(name string) {
				if name == "slow" && at < 0 {
					<-spins
				}
			}
			d.read = func(name string, n int) error {
				if name == "slow" && n == at {
					<-spins
				}
				return nil
			}
			l := newLab(t, nil, func(s *Server) { s.files, s.answer = d, 20*time.Millisecond })
			t.Cleanup(goOn) // before the server is stopped
			slow := newClient(t, l, "127.0.0.1")
			slow.ask("slow", "octet")
			body := []byte{}
			for n := 1; n <= max(at, 0)/512; n++ {
				body = append(body, slow.block(uint16(n))...)
				slow.acknowledge(uint16(n))
			}
			for slow.receive(100*time.Millisecond) != nil { // what is on its way
			}
			if got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet"); !bytes.Equal(got.Body, file) {
				t.Errorf("meanwhile %d bytes of another came, %s", len(got.Body), got.Error)
			}
			slow.nothing("while the file cannot be read")
			goOn()
			for n := len(body)/512 + 1; len(body) < len(file); n++ {
				body = append(body, slow.block(uint16(n))...)
				slow.acknowledge(uint16(n))
			}
			if !bytes.Equal(body, file) {
				t.Error("the file is another")
			}
			slow.block(uint16(len(file)/512 + 1))
			slow.acknowledge(uint16(len(file)/512 + 1))
			l.counted(t, resultOK, 2)
			l.idle(t)
		})
	}
}

// A transfer that is over keeps its place for as long as its file is being opened: else
// requests for a disk that hangs would have goroutines without number.
func TestADiskThatHangsTakesPlaces(t *testing.T) {
	spins := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(spins) })
	d := disk{folder: folder{"ipxe.efi": pattern(10)}, open: func(string) { <-spins }}
	l := newLab(t, nil, func(s *Server) { s.files = d })
	t.Cleanup(goOn)
	c := newClient(t, l, "127.0.0.1")
	for n := range maxPerAddress + 3 {
		c.ask("ipxe.efi", "octet", "tsize", string(rune('A'+n))) // each is another request
	}
	l.counted(t, resultLimited, 3)
	goOn()
	l.counted(t, resultAborted, maxPerAddress)
	l.idle(t)
}

func TestAFileWhoseReadingGoesWrong(t *testing.T) {
	for title, tc := range map[string]struct {
		err  error
		want string
	}{
		"an error":                         {errors.New("bad sector"), "1 the file cannot be read"},
		"an end that the reader calls bad": {io.ErrUnexpectedEOF, "1 the file cannot be read"},
		"a panic":                          {nil, "1 internal error"},
	} {
		t.Run(title, func(t *testing.T) {
			file := pattern(2*chunkSize + 100)
			d := disk{folder: folder{"ipxe.efi": file}, read: func(_ string, at int) error {
				switch {
				case at < 2*chunkSize:
					return nil
				case tc.err == nil:
					panic("in Read")
				}
				return tc.err
			}}
			l := newLab(t, nil, func(s *Server) { s.files = d })
			got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet")
			if !bytes.Equal(got.Body, file[:2*chunkSize]) || got.Error != tc.want {
				t.Errorf("%d bytes and the error %q", len(got.Body), got.Error)
			}
			l.counted(t, resultFailed, 1)
			l.idle(t)
		})
	}
}

// What a client says once it has the file is no matter.
func TestATransferThatIsDone(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(600)}, nil)
	c := newClient(t, l, "127.0.0.1")
	c.begin("ipxe.efi")
	c.acknowledge(1)
	c.block(2)
	c.acknowledge(2)
	c.acknowledge(2)
	c.send(errorPacket(codeOther, "bye"))
	c.ask("ipxe.efi", "octet")
	c.block(1)
	c.send(errorPacket(codeOther, "bye"))
	l.counted(t, resultDeclined, 1)
	l.counted(t, resultOK, 1)
	l.counted(t, resultAborted, 0)
	l.idle(t)
}

// inMemory is Files that can be had whole, and cannot be read otherwise.
type inMemory struct{ folder }

func (m inMemory) Open(name string) (io.ReadSeekCloser, int64, error) {
	contents := m.folder[name]
	return heldWhole{held{bytes.NewReader(contents)}, contents}, int64(len(contents)), nil
}

type heldWhole struct {
	held
	contents []byte
}

func (h heldWhole) Contents() []byte { return h.contents }

func TestAFileInMemoryIsSentFromThere(t *testing.T) {
	file := append(pattern(3*chunkSize+5), '\n')
	was := bytes.Clone(file)
	l := newLab(t, folder{}, func(s *Server) { s.answer, s.files = time.Second, inMemory{folder{"ipxe.efi": file}} })
	for _, options := range [][]string{nil, {"blksize", "1468", "tsize", "0"}, {"windowsize", "8"}} {
		if got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet", options...); !bytes.Equal(got.Body, was) {
			t.Errorf("with %q came %d bytes, %s", options, len(got.Body), got.Error)
		}
	}
	if got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "netascii"); !bytes.Equal(got.Body, netascii(was)) {
		t.Errorf("as netascii came %d bytes, %s", len(got.Body), got.Error)
	}
	if !bytes.Equal(file, was) {
		t.Error("the file in memory was changed")
	}
	l.counted(t, resultOK, 4)
	l.idle(t)
}

// growing is Files that someone writes to once they are open.
type growing struct{ folder }

func (g growing) Open(name string) (io.ReadSeekCloser, int64, error) {
	contents := g.folder[name]
	return held{bytes.NewReader(append(bytes.Clone(contents), "a line of log"...))}, int64(len(contents)), nil
}

func TestAFileThatGrowsIsSentAsLongAsItsClientWasTold(t *testing.T) {
	for _, size := range []int{0, 600, chunkSize, 2*chunkSize + 5} {
		file := pattern(size)
		l := newLab(t, folder{}, func(s *Server) { s.files = growing{folder{"boot.cfg": file}} })
		if got := newClient(t, l, "127.0.0.1").fetch("boot.cfg", "octet", "tsize", "0"); !bytes.Equal(got.Body, file) {
			t.Errorf("of %d bytes came %d, %s", size, len(got.Body), got.Error)
		}
		l.counted(t, resultOK, 1)
	}
}
