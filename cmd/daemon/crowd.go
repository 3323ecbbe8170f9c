package daemon

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// crowdShare is how many connections a client may have when others are kept out.
const crowdShare = 64

// crowd is a listener that bounds its connections. When all are taken, the client that
// has the most loses its oldest, so that nobody who opens many keeps everybody else
// out; while no client has more than its share, who comes waits in the kernel's queue.
// Its connections are TCP's own in all but their end: that is how the kernel sends them
// files.
type crowd struct {
	net.Listener
	most int

	mu      sync.Mutex // guards what is below
	freed   sync.Cond
	closed  bool
	total   int
	members map[netip.Addr]*list.List // of *member, oldest first, by client
}

func newCrowd(ln net.Listener, most int) *crowd {
	c := &crowd{Listener: ln, most: most, members: make(map[netip.Addr]*list.List)}
	c.freed.L = &c.mu
	return c
}

// member is one connection.
type member struct {
	*net.TCPConn
	crowd  *crowd
	client netip.Addr
	place  *list.Element // nil once it has left
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil // no other kind is listened for
	}
	m := &member{TCPConn: tcp, crowd: c, client: clientAddr(tcp.RemoteAddr())}
	if !c.admit(m) {
		_ = tcp.Close()
		return nil, net.ErrClosed
	}
	return m, nil
}

// clientAddr is by which address a client is told from others. All that a machine makes
// itself of an IPv6 network are one.
func clientAddr(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	if p, err := addr.WithZone("").Prefix(64); err == nil && addr.Is6() && !addr.IsLoopback() {
		return p.Addr()
	}
	return addr
}

// admit takes in a connection once there is room; false when the crowd was closed.
func (c *crowd) admit(m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.total >= c.most && !c.closed {
		out := c.excess()
		if out == nil {
			c.freed.Wait()
			continue
		}
		c.leave(out)
		_ = out.TCPConn.Close()
	}
	if c.closed {
		return false
	}
	of := c.members[m.client]
	if of == nil {
		of = list.New()
		c.members[m.client] = of
	}
	m.place = of.PushBack(m)
	c.total++
	return true
}

// excess returns the oldest connection of the client that has the most, nil while none
// has more than its share. Proxies on this machine speak for many, and lose none. mu is
// held.
func (c *crowd) excess() *member {
	var greatest *list.List
	for client, of := range c.members {
		if of.Len() > crowdShare && !client.IsLoopback() && (greatest == nil || of.Len() > greatest.Len()) {
			greatest = of
		}
	}
	if greatest == nil {
		return nil
	}
	return greatest.Front().Value.(*member)
}

// leave takes a connection out; mu is held.
func (c *crowd) leave(m *member) {
	if m.place == nil {
		return
	}
	of := c.members[m.client]
	of.Remove(m.place)
	if m.place = nil; of.Len() == 0 {
		delete(c.members, m.client)
	}
	c.total--
	c.freed.Signal()
}

// Close implements net.Conn.
func (m *member) Close() error {
	m.crowd.mu.Lock()
	m.crowd.leave(m)
	m.crowd.mu.Unlock()
	return m.TCPConn.Close()
}

// Close implements net.Listener.
func (c *crowd) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.freed.Broadcast()
	return c.Listener.Close()
}
