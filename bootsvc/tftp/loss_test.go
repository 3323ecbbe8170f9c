package tftp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// begin asks for a file without options and returns the first block.
func (c *client) begin(name string) []byte {
	c.t.Helper()
	c.ask(name, "octet")
	return c.block(1)
}

// block receives the block with this number; one before it may come again first, for
// on a busy machine a test is late at times.
func (c *client) block(n uint16) []byte {
	c.t.Helper()
	for {
		p := c.receive(patience)
		if len(p) < 4 || p[1] != opData || binary.BigEndian.Uint16(p[2:]) > n {
			c.t.Fatalf("instead of block %d came %.20q", n, p)
		}
		if binary.BigEndian.Uint16(p[2:]) == n {
			return p[4:]
		}
	}
}

// chunkBlocks is how many blocks of 512 bytes are read of a file at a time.
const chunkBlocks = chunkSize / defaultBlock

// Files are read in chunks of many blocks: their ends must not show.
func TestFilesThatEndWhereChunksDo(t *testing.T) {
	const chunk = chunkBlocks * 512
	files := folder{}
	for _, size := range []int{0, 1, 511, 512, 513, chunk - 1, chunk, chunk + 1, chunk + 512, 2*chunk - 1, 2 * chunk, 5*chunk + 7} {
		files[fmt.Sprint(size)] = pattern(size)
	}
	l := newLab(t, files, func(s *Server) { s.answer = time.Second })
	for name, file := range files {
		for _, options := range [][]string{nil, {"tsize", "0"}, {"blksize", "512"}} {
			if got := newClient(t, l, "127.0.0.1").fetch(name, "octet", options...); !bytes.Equal(got.Body, file) {
				t.Errorf("file of %s bytes with %q: %d came, %s", name, options, len(got.Body), got.Error)
			}
		}
	}
	l.counted(t, resultOK, float64(3*len(files)))
	l.idle(t)
}

// Each block is lost once, or the acknowledgement of it is: the server cannot tell.
func TestATransferOverALinkThatLosesPackets(t *testing.T) {
	file := pattern(2*chunkBlocks*512 + 100)
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = 10 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet", "tsize", "0")
	if p := c.receive(patience); len(p) < 2 || p[1] != opOptions {
		t.Fatalf("answer %q", p)
	}
	c.acknowledge(0)
	var body []byte
	for n := uint16(1); len(body) < len(file); n++ {
		lost := c.block(n)
		again := c.block(n)
		if !bytes.Equal(lost, again) {
			t.Fatalf("block %d is another when it is sent again", n)
		}
		c.acknowledge(n)
		body = append(body, again...)
	}
	if !bytes.Equal(body, file) {
		t.Error("the file is another")
	}
	l.counted(t, resultOK, 1)
	l.idle(t)
}

// RFC 1123 §4.2.3.1 calls it the Sorcerer's Apprentice: an acknowledgement that
// comes twice must not be answered twice.
func TestAcknowledgementsThatComeTwice(t *testing.T) {
	file := pattern(3*chunkBlocks*512 + 100)
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = patience })
	c := newClient(t, l, "127.0.0.1")
	body := c.begin("ipxe.efi")
	for n := uint16(1); len(body) < len(file); n++ {
		for range 3 {
			c.acknowledge(n)
		}
		p := c.receive(patience)
		if len(p) < 4 || binary.BigEndian.Uint16(p[2:]) != n+1 {
			t.Fatalf("instead of block %d came %.4q", n+1, p)
		}
		body = append(body, p[4:]...)
	}
	if p := c.receive(50 * time.Millisecond); p != nil {
		t.Errorf("after the last block came %.4q", p)
	}
	c.acknowledge(uint16(len(file)/512 + 1))
	l.counted(t, resultOK, 1)
	if !bytes.Equal(body, file) {
		t.Error("the file is another")
	}
	l.idle(t)
}

// A client whose block was lost says again what it has: the block comes in its time.
func TestAClientThatRepeatsItsAcknowledgement(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(5000)}, func(s *Server) { s.answer = 400 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	c.begin("ipxe.efi")
	c.acknowledge(1)
	lost := c.block(2)
	c.acknowledge(1)
	if p := c.receive(100 * time.Millisecond); p != nil {
		t.Errorf("it is answered at once: %.4q", p)
	}
	if again := c.block(2); !bytes.Equal(lost, again) {
		t.Error("another block is sent again")
	}
	c.acknowledge(2)
	c.block(3)
}

func TestTheLastBlockIsLost(t *testing.T) {
	for title, size := range map[string]int{"a short one": 1100, "an empty one": 1024, "in the second chunk": chunkBlocks*512 + 1} {
		t.Run(title, func(t *testing.T) {
			file := pattern(size)
			l := newLab(t, folder{"ipxe.efi": file}, nil)
			c := newClient(t, l, "127.0.0.1")
			body := c.begin("ipxe.efi")
			last := uint16(size/512 + 1)
			for n := uint16(2); n <= last; n++ {
				c.acknowledge(n - 1)
				body = append(body, c.block(n)...)
			}
			c.block(last)
			c.block(last) // it is sent again, and the transfer does not count as done
			l.counted(t, resultOK, 0)
			c.acknowledge(last)
			l.counted(t, resultOK, 1)
			if !bytes.Equal(body, file) {
				t.Error("the file is another")
			}
			l.idle(t)
		})
	}
}

func TestAClientThatVanishes(t *testing.T) {
	for _, at := range []uint16{1, chunkBlocks - 1, chunkBlocks, chunkBlocks + 1} {
		t.Run(fmt.Sprintf("after block %d", at), func(t *testing.T) {
			l := newLab(t, folder{"ipxe.efi": pattern(3 * chunkBlocks * 512)}, func(s *Server) { s.answer = 10 * time.Millisecond })
			c := newClient(t, l, "127.0.0.1")
			c.begin("ipxe.efi")
			for n := range at {
				c.acknowledge(n + 1)
				c.block(n + 2)
			}
			for range retries {
				c.block(at + 1)
			}
			if p := c.receive(patience); len(p) < 2 || p[1] != opError {
				t.Errorf("at the end it is sent %.4q", p)
			}
			l.counted(t, resultTimeout, 1)
			l.idle(t)
			if p := c.receive(50 * time.Millisecond); p != nil {
				t.Errorf("after the end it is sent %.4q", p)
			}
		})
	}
}

// The server's patience is with blocks, not with chunks.
func TestASlowClientIsNotGivenUp(t *testing.T) {
	file := pattern(chunkBlocks*512 + 10)
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = 10 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	body := c.begin("ipxe.efi")
	for n := uint16(1); len(body) < len(file); n++ {
		c.acknowledge(n)
		body = append(body, c.block(n+1)...)
		for range 3 { // of which each is a while
			c.block(n + 1)
		}
	}
	c.acknowledge(uint16(len(file)/512 + 1))
	l.counted(t, resultOK, 1)
	if !bytes.Equal(body, file) {
		t.Error("the file is another")
	}
}

// That the file is read ahead says nothing of what the client has.
func TestSeenIsTheFirstBlock(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(600)}, func(s *Server) { s.answer = patience })
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet", "tsize", "0")
	c.receive(patience)
	c.acknowledge(0)
	c.block(1)
	if saw := l.seen(t, 0); len(saw) > 0 {
		t.Errorf("before the first block was acknowledged %q was seen", saw)
	}
	c.acknowledge(1)
	c.block(2)
	if diff := cmp.Diff([]string{"127.0.0.1 ipxe.efi"}, l.seen(t, 1)); diff != "" {
		t.Errorf("before the last was, it was seen (-want +got):\n%s", diff)
	}
	c.send(errorPacket(3, "disk full"))
	l.counted(t, resultAborted, 1)
	l.idle(t)
}

// A machine that is reset in the middle of a transfer asks again from the same port,
// as its firmware does, or as another stage does with other options.
func TestAClientThatBeginsAnewWithBlocksReadForIt(t *testing.T) {
	file := pattern(4*1468*chunkBlocks + 5)
	l := newLab(t, folder{"ipxe.efi": file}, unhurried)
	c := newClient(t, l, "127.0.0.1")
	for _, options := range [][]string{{"blksize", "1468"}, {"blksize", "1024", "tsize", "0"}, {"blksize", "1468"}} {
		c.begin("ipxe.efi")
		for n := range uint16(chunkBlocks / 2) {
			c.acknowledge(n + 1)
			c.block(n + 2)
		}
		if got := c.fetch("ipxe.efi", "octet", options...); !bytes.Equal(got.Body, file) {
			t.Fatalf("%q: %d bytes came, %s", options, len(got.Body), got.Error)
		}
	}
	l.counted(t, resultOK, 3)
	l.counted(t, resultAborted, 3)
	l.idle(t)
}

// A file that cannot be read to its end ends with an error, not as if it were short.
func TestAFileThatBreaksInTheMiddle(t *testing.T) {
	l := newLab(t, folder{"halved": pattern(2*chunkBlocks*512 + 300)}, nil)
	c := newClient(t, l, "127.0.0.1")
	got := c.fetch("halved", "octet")
	if len(got.Body) > chunkBlocks*512 || got.Error == "" {
		t.Errorf("%d bytes and the error %q", len(got.Body), got.Error)
	}
	l.counted(t, resultFailed, 1)
	l.idle(t)
}
