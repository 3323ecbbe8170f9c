package tftp

import (
	"io"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// counted are files in memory, of which it is counted how often they were opened.
type counted struct {
	inMemory
	opened *atomic.Int64
}

func (c counted) Open(name string) (io.ReadSeekCloser, int64, error) {
	c.opened.Add(1)
	return c.inMemory.Open(name)
}

func TestWhatIsFetchedAgainAtOnce(t *testing.T) {
	var opened atomic.Int64
	var told []int
	files := folder{"ipxe.efi": pattern(3000), "undionly.kpxe": pattern(10)}
	l := newLab(t, folder{}, func(s *Server) {
		s.answer = time.Hour // no tick comes by itself
		s.files = counted{inMemory{files}, &opened}
		s.told = func(_ netip.Addr, events []model.CardEvent) { told = append(told, len(events)) }
	})
	fetch := func(host, name, mode string) {
		t.Helper()
		want := files[name]
		if mode == "netascii" {
			want = netascii(want)
		}
		if got := newClient(t, l, host).fetch(name, mode, "tsize", "0"); !slices.Equal(got.Body, want) {
			t.Errorf("%s came with %d bytes, %s", name, len(got.Body), got.Error)
		}
	}
	for range 3 {
		fetch("127.0.0.1", "ipxe.efi", "octet")
	}
	fetch("127.0.0.1", "undionly.kpxe", "octet")
	fetch("::1", "ipxe.efi", "octet")
	l.counted(t, resultOK, 5)
	if got := opened.Load(); got != 2 {
		t.Errorf("two files were opened %d times", got)
	}
	if diff := cmp.Diff([]string{"127.0.0.1 ipxe.efi", "127.0.0.1 undionly.kpxe", "::1 ipxe.efi"}, l.seen(t, 3)); diff != "" {
		t.Errorf("what was seen, -want +got:\n%s", diff)
	}
	l.tell()
	if slices.Sort(told); !slices.Equal(told, []int{1, 4}) {
		t.Errorf("two clients are told of %v transfers", told)
	}
	fetch("127.0.0.1", "ipxe.efi", "octet")
	fetch("127.0.0.1", "ipxe.efi", "netascii")
	l.counted(t, resultOK, 7)
	if got := opened.Load(); got != 4 {
		t.Errorf("after a tick, and as text, a file is opened again, in all %d times, not 4", got)
	}
	if got := len(l.seen(t, 4)); got != 4 {
		t.Errorf("after a tick a client is seen again, in all %d times, not 4", got)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var s sinceTick
	for n := range maxEvents + 10 {
		client := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
		s.note(client, model.CardEvent{})
		s.sees(client, "ipxe.efi")
		s.hold(client.String(), nil)
	}
	if len(s.events) != maxEvents || len(s.seen) != maxSeen || len(s.held) != maxHeld {
		t.Errorf("%d events, %d files that were seen and %d that are held are remembered", len(s.events), len(s.seen), len(s.held))
	}
}
