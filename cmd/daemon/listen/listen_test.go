package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"ingot/model/must"
)

func TestConnectionsAreBoundedAndSendFiles(t *testing.T) {
	tcp := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	l := newFairListener(tcp, 1)
	accepted, failed := make(chan net.Conn, 2), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		defer c.Close()
	}
	first := <-accepted
	if _, ok := first.(io.ReaderFrom); !ok {
		t.Error("the kernel cannot send files to it")
	}
	if len(accepted) != 0 {
		t.Errorf("%d more connections accepted", len(accepted))
	}
	first.Close()
	first.Close() // gives back no second slot
	<-accepted    // the one that waited
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed, though all slots are taken", err)
	}
}

func TestRequestsUnderWayAreFinished(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	arrived, finish := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		io.WriteString(w, "done")
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var log bytes.Buffer
	go func() { served <- Serve(ctx, ln, handler, slog.New(slog.NewTextHandler(&log, nil))) }()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-arrived
	stop()
	for refused := false; !refused; {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if refused = err != nil; !refused {
			conn.Close()
		}
	}
	close(finish)
	if got := <-answered; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve returned %v after it was stopped", err)
	}
	if log.Len() > 0 {
		t.Errorf("it logged %s", &log)
	}
}

func TestAListenerThatFailsIsAnError(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ln.Close()
	if err := Serve(t.Context(), ln, http.NotFoundHandler(), slog.New(slog.DiscardHandler)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
