package tftp

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

// windowed asks for a file in windows of so many blocks of 512 bytes, and acknowledges
// the options.
func (c *client) windowed(name, window string) {
	c.t.Helper()
	c.ask(name, "octet", "windowsize", window)
	if p := c.receive(patience); len(p) < 2 || p[1] != opOptions {
		c.t.Fatalf("answer %q", p)
	}
	c.acknowledge(0)
}

func (c *client) blocks(first, last int) []byte {
	c.t.Helper()
	var body []byte
	for n := first; n <= last; n++ {
		p := c.receive(patience)
		if len(p) < 4 || p[1] != opData || binary.BigEndian.Uint16(p[2:]) != uint16(n) {
			c.t.Fatalf("instead of block %d of %d to %d came %.4q", n, first, last, p)
		}
		body = append(body, p[4:]...)
	}
	return body
}

func (c *client) nothing(when string) {
	c.t.Helper()
	if p := c.receive(50 * time.Millisecond); p != nil {
		c.t.Errorf("%s came %.4q", when, p)
	}
}

// windowLab is a server with one file that sends nothing again by itself.
func windowLab(t *testing.T, file []byte) (*lab, *client) {
	t.Helper()
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = patience })
	return l, newClient(t, l, "127.0.0.1")
}

func TestTheWindowThatIsGranted(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(600)}, nil)
	for title, tc := range map[string]struct{ asked, granted string }{
		"as it is asked for":                  {"4", "4"},
		"the largest":                         {"8", "8"},
		"one that is too large is cut":        {"65535", "8"},
		"none is no number":                   {"0", ""},
		"what is no number is passed over":    {"many", ""},
		"what is less than none is, too":      {"-1", ""},
		"a number beyond all numbers is, too": {"99999999999", ""},
	} {
		t.Run(title, func(t *testing.T) {
			got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet", "windowsize", tc.asked, "blksize", "1024")
			if got.Options["windowsize"] != tc.granted || len(got.Body) != 600 {
				t.Errorf("asked for %s it grants %q, and %d bytes came, %s", tc.asked, got.Options["windowsize"], len(got.Body), got.Error)
			}
		})
	}
	l.idle(t)
}

func TestATransferInWindows(t *testing.T) {
	for title, size := range map[string]int{
		"whole windows":         3 * 8 * 512,
		"a window that is less": 3*8*512 + 3*512 + 7,
		"several chunks":        5*chunkSize + 100,
		"less than a window":    700,
		"an empty file":         0,
	} {
		t.Run(title, func(t *testing.T) {
			file := pattern(size)
			l, c := windowLab(t, file)
			c.windowed("ipxe.efi", "8")
			last := size/512 + 1
			var body []byte
			for first := 1; first <= last; first += 8 {
				end := min(first+7, last)
				body = append(body, c.blocks(first, end)...)
				if first <= 9 {
					c.nothing("before the window is acknowledged")
				}
				c.acknowledge(uint16(end))
			}
			c.nothing("after the last block")
			l.counted(t, resultOK, 1)
			if !bytes.Equal(body, file) {
				t.Error("the file is another")
			}
			l.idle(t)
		})
	}
}

// RFC 7440 §4: a client that misses a block acknowledges the one before.
func TestABlockIsLostInTheMiddleOfAWindow(t *testing.T) {
	file := pattern(20*512 + 10)
	l, c := windowLab(t, file)
	c.windowed("ipxe.efi", "8")
	body := c.blocks(1, 8)[:3*512] // block 4 is lost
	c.acknowledge(3)
	body = append(body, c.blocks(4, 11)...)
	for range 4 { // as it says of each of those that came after block 4
		c.acknowledge(3)
	}
	c.nothing("for an acknowledgement of what is acknowledged")
	c.acknowledge(9) // 10 is lost
	body = append(body[:9*512], c.blocks(10, 17)...)
	c.acknowledge(17)
	body = append(body, c.blocks(18, 21)...)
	c.acknowledge(21)
	l.counted(t, resultOK, 1)
	if !bytes.Equal(body, file) {
		t.Error("the file is another")
	}
	l.idle(t)
}

// A client that misses the first block of a window acknowledges the window before
// again, for each block that it did not expect. Were all of these answered, each
// window from there on would be sent twice (RFC 1123 §4.2.3.1).
func TestTheFirstBlockOfAWindowIsLost(t *testing.T) {
	l, c := windowLab(t, pattern(100*512))
	c.windowed("ipxe.efi", "4")
	c.blocks(1, 4)
	c.acknowledge(4)
	c.blocks(5, 8)
	for range 3 {
		c.acknowledge(4)
	}
	c.blocks(5, 8)
	c.nothing("for the second and the third that say the same")
	c.acknowledge(8)
	c.blocks(9, 12)
	for range 4 { // of what came twice before
		c.acknowledge(8)
	}
	c.nothing("for acknowledgements of blocks that were sent twice")
	c.acknowledge(12)
	c.blocks(13, 16)
	c.acknowledge(12)
	c.blocks(13, 16) // after a window without loss it is believed again
	for _, stale := range []uint16{0, 4, 11, 17, 65535} {
		c.acknowledge(stale)
	}
	c.nothing("for acknowledgements of other windows")
	c.send(errorPacket(codeOther, "bye"))
	l.counted(t, resultAborted, 1)
	l.idle(t)
}

func TestAWindowThatIsNotAcknowledgedIsSentAgain(t *testing.T) {
	file := pattern(6*512 + 1)
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = 200 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	c.windowed("ipxe.efi", "4")
	lost := c.blocks(1, 4)
	if again := c.blocks(1, 4); !bytes.Equal(lost, again) {
		t.Error("it is another when it is sent again")
	}
	c.acknowledge(4)
	c.blocks(5, 7)
	c.blocks(5, 7)
	l.counted(t, resultOK, 0)
	c.acknowledge(7)
	l.counted(t, resultOK, 1)
	l.idle(t)
}

// A forged address is sent the answer to its options, and no window.
func TestASilentClientIsSentNoWindow(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(5000)}, func(s *Server) { s.answer = 20 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet", "windowsize", "8")
	if p := c.receive(patience); len(p) < 2 || p[1] != opOptions {
		t.Fatalf("answer %q", p)
	}
	c.nothing("without an acknowledgement")
	l.counted(t, resultTimeout, 1)
	c.nothing("at the end")
	l.idle(t)
}

// T01: after block 65535 comes block 0, also in the middle of a window that is lost.
func TestWindowsWhereBlocksAreCountedAnew(t *testing.T) {
	file := pattern(512*65_560 + 7)
	l, c := windowLab(t, file)
	c.windowed("ipxe.efi", "7")
	body := make([]byte, 0, len(file))
	next := 1
	window := func(keep int) {
		end := min(next+6, 65_561)
		keep = min(keep, end-next+1)
		got := c.blocks(next, end)
		body = append(body, got[:min(keep*512, len(got))]...)
		next += keep
		c.acknowledge(uint16(next - 1))
	}
	for next < 65_530 {
		window(7)
	}
	for _, keep := range []int{5, 1, 2, 6, 3} { // the ends are about 65534, 65535 and 65537
		window(keep)
	}
	for next <= 65_561 {
		window(7)
	}
	l.counted(t, resultOK, 1)
	if !bytes.Equal(body, file) {
		t.Errorf("%d bytes of %d arrived, or others", len(body), len(file))
	}
	l.idle(t)
}
