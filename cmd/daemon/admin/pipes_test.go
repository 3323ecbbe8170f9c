package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc"
	"ingot/model/must"
)

// pipes is a listener in memory, so that connections live in virtual time. A pipe holds
// nothing: who does not read has the writer wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func served(t *testing.T, fleet Fleet) (p *pipes, shutDown func()) {
	closing, shut := context.WithCancel(t.Context())
	p = &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := bootsvc.NewHTTPServer(NewHandler(Options{Fleet: fleet, Index: NewIndex(fleet), Metrics: noMetrics, Log: discard, Closing: closing.Done()}))
	done := make(chan error, 1)
	go func() { done <- srv.Serve(p) }()
	shutDown = func() {
		shut()
		close(p.closed)
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := srv.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	return p, shutDown
}

// stream is what a viewer reads.
type stream struct {
	t    *testing.T
	conn net.Conn
	resp *http.Response
	body *bufio.Reader
}

// view connects a viewer who was told of an event last, "" for none.
func view(t *testing.T, p *pipes, last string) *stream {
	t.Helper()
	conn := p.dial()
	head := "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
	if last != "" {
		head += "Last-Event-ID: " + last + "\r\n"
	}
	must.Get(fmt.Fprint(conn, head+"\r\n"))(t)
	resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	return &stream{t, conn, resp, bufio.NewReader(resp.Body)}
}

type event struct{ id, kind, data string }

func (s *stream) next() (e event, err error) {
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if value == "" && e.kind != "" {
				return e, nil
			}
		}
	}
}

func (s *stream) want(kind, data string) (id string) {
	s.t.Helper()
	begun := time.Now()
	e, err := s.next()
	if err != nil || e.kind != kind || e.data != data {
		s.t.Fatalf("got %+v, %v\nwant %s %s", e, err, kind, data)
	}
	if took := time.Since(begun); took > time.Second {
		s.t.Errorf("%s came after %s", kind, took)
	}
	return e.id
}
