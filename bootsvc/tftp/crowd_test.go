package tftp

import (
	"net/netip"
	"testing"
	"time"

	"ingot/bootsvc/internal/netnstest"
)

// TestClientsThatDoNotExistKeepNobodyWaiting: the kernel waits three seconds for each address on a link that nobody
// answers for, and with many of those every packet waits.
func TestClientsThatDoNotExistKeepNobodyWaiting(t *testing.T) {
	netnstest.Run(t, netnstest.Rack, func(func(...string)) {
		there := netip.MustParseAddr("10.9.0.2")
		s, err := New(Options{Loaders: folder{"ipxe.efi": pattern(1000)}, IsThere: func(a netip.Addr) bool { return a == there }})
		if err == nil {
			err = s.Listen(t.Context(), "10.9.0.1:0")
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer s.running.Wait()
		defer s.abandon()
		defer s.Close()
		s.since.hold("ipxe.efi", pattern(1000)) // so that it is sent at once
		began := time.Now()
		ask := func(from netip.Addr, packet []byte) netip.AddrPort {
			client := netip.AddrPortFrom(from, 2000)
			s.handle(packet, client, nil, began)
			s.handle([]byte{0, opAcknowledge, 0, 1}, client, nil, began) // it was there then
			return client
		}
		read, write := asked("ipxe.efi", "octet"), append([]byte{0, opWrite}, "x\x00octet\x00"...)
		for i, from := 0, netip.MustParseAddr("10.9.1.1"); i < 500; i, from = i+1, from.Next() {
			ask(from, read)
			ask(from, write)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d clients that do not exist took %s", i, took)
				return
			}
		}
		if s.tick(began.Add(2 * time.Second)); time.Since(began) > 5*time.Second {
			t.Errorf("what is sent again to clients that do not exist took %s", time.Since(began))
		}
		if !s.conn.Crowded() {
			t.Error("packets to nobody left")
		}
		if client := ask(there, read); s.current[client] == nil || s.current[client].acked != 1 {
			t.Error("a client that is there is sent nothing")
		}
	})
}
