package listen

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"ingot/model"
)

// fairShare is how many connections a client keeps even when all are taken.
const fairShare = 64

// fairListener is a listener that bounds its connections. When all are taken, the client
// that has the most loses its oldest, so that no client shuts out the others by opening
// many. While no client has more than its share, new connections wait in the kernel's
// queue. Its connections are *net.TCPConn in everything but Close, so that the kernel can
// send files to them (sendfile(2)).
type fairListener struct {
	net.Listener
	limit int

	mu     sync.Mutex // guards what is below
	freed  sync.Cond
	closed bool
	total  int
	conns  map[netip.Addr]*list.List // of *trackedConn, oldest first, by client
}

func newFairListener(ln net.Listener, limit int) *fairListener {
	l := &fairListener{Listener: ln, limit: limit, conns: make(map[netip.Addr]*list.List)}
	l.freed.L = &l.mu
	return l
}

// trackedConn is a connection that its listener counts.
type trackedConn struct {
	*net.TCPConn
	listener *fairListener
	client   netip.Addr
	elem     *list.Element // in listener.conns; nil once it is removed
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil // cannot be: Open listens on TCP alone
	}
	t := &trackedConn{TCPConn: tcp, listener: l, client: clientAddr(tcp.RemoteAddr())}
	if !l.admit(t) {
		_ = tcp.Close()
		return nil, net.ErrClosed
	}
	return t, nil
}

// clientAddr returns the address by which clients are told apart.
func clientAddr(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return model.OneClient(at.Addr())
}

// admit counts a connection once there is room for it. It returns false when the listener
// was closed.
func (l *fairListener) admit(t *trackedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.total >= l.limit && !l.closed {
		evicted := l.evictCandidate()
		if evicted == nil {
			l.freed.Wait()
			continue
		}
		l.remove(evicted)
		_ = evicted.TCPConn.Close()
	}
	if l.closed {
		return false
	}
	conns := l.conns[t.client]
	if conns == nil {
		conns = list.New()
		l.conns[t.client] = conns
	}
	t.elem = conns.PushBack(t)
	l.total++
	return true
}

// evictCandidate returns the oldest connection of the client that has the most, nil while
// none has more than its share. Proxies on this machine act for many clients, so they lose
// none. The caller holds mu.
func (l *fairListener) evictCandidate() *trackedConn {
	var most *list.List
	for client, conns := range l.conns {
		if conns.Len() > fairShare && !client.IsLoopback() && (most == nil || conns.Len() > most.Len()) {
			most = conns
		}
	}
	if most == nil {
		return nil
	}
	return most.Front().Value.(*trackedConn)
}

// remove no longer counts a connection. The caller holds mu.
func (l *fairListener) remove(t *trackedConn) {
	if t.elem == nil {
		return
	}
	conns := l.conns[t.client]
	conns.Remove(t.elem)
	if t.elem = nil; conns.Len() == 0 {
		delete(l.conns, t.client)
	}
	l.total--
	l.freed.Signal()
}

// Close implements net.Conn.
func (t *trackedConn) Close() error {
	t.listener.mu.Lock()
	t.listener.remove(t)
	t.listener.mu.Unlock()
	return t.TCPConn.Close()
}

// Close implements net.Listener.
func (l *fairListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.freed.Broadcast()
	return l.Listener.Close()
}
