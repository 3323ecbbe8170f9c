package bmc

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"ingot/model/must"
)

const (
	fine    = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	closing = "(close)" // ends an answer after which the connection is closed
)

// serveConnections answers the requests of each connection with these texts, and returns the URL.
func serveConnections(t *testing.T, connections [][]string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	serve := func(conn net.Conn, answers []string) {
		in := bufio.NewReader(conn)
		for _, answer := range answers {
			if req, err := http.ReadRequest(in); err != nil {
				return
			} else if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			text, last := strings.CutSuffix(answer, closing)
			_, _ = io.WriteString(conn, text) // the client notices
			if last {
				conn.Close()
			}
		}
	}
	go func() {
		for _, answers := range connections {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, answers)
		}
	}()
	return "http://" + l.Addr().String()
}

func TestWire(t *testing.T) {
	tests := map[string]struct {
		connections [][]string
		method      string // of the second request
		opened      int
		fails       bool // the second request
	}{
		"a connection is kept":                                {[][]string{{fine, fine}}, http.MethodGet, 1, false},
		"one that was closed when idle is not used":           {[][]string{{fine + closing}, {fine}}, http.MethodPost, 2, false},
		"one with an answer to no request is not used":        {[][]string{{fine + fine}, {fine}}, http.MethodPost, 2, false},
		"one with an answer of HTTP/1.0 is not kept":          {[][]string{{strings.Replace(fine, "/1.1", "/1.0", 1)}, {fine}}, http.MethodPost, 2, false},
		"interim answers are skipped":                         {[][]string{{"HTTP/1.1 103 Early Hints\r\n\r\n" + fine, fine}}, http.MethodGet, 1, false},
		"a read is repeated on a new connection":              {[][]string{{fine, closing}, {fine}}, http.MethodGet, 2, false},
		"a write is not repeated":                             {[][]string{{fine, closing}, {fine}}, http.MethodPost, 1, true},
		"a read is not repeated after the start of an answer": {[][]string{{fine, "HTTP/1.1 200" + closing}, {fine}}, http.MethodGet, 1, true},
		"a read is not repeated twice":                        {[][]string{{fine, closing}, {closing}, {fine}}, http.MethodGet, 2, true},
		"a header has a limit":                                {[][]string{{fine, "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", maxHeader) + "\r\n\r\n"}}, http.MethodGet, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url := serveConnections(t, tt.connections)
			opened := 0
			w := &wire{plain: func(ctx context.Context, network, address string) (net.Conn, error) {
				opened++
				return new(net.Dialer).DialContext(ctx, network, address)
			}}
			defer w.closeIdle()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			must.Get(w.send(must.Get(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))(t)))(t)
			resp, err := w.send(must.Get(http.NewRequestWithContext(ctx, tt.method, url, strings.NewReader("")))(t))
			if (err != nil) != tt.fails || opened != tt.opened {
				t.Errorf("got %v and %d connections, want %d", err, opened, tt.opened)
			}
			if err == nil && string(bodyOf(resp)) != "{}" {
				t.Errorf("got %q", bodyOf(resp))
			}
		})
	}
}

// A connection that was in use when the others were closed is closed after its request.
func TestWireCloseIdle(t *testing.T) {
	w := &wire{plain: new(net.Dialer).DialContext}
	url := serveConnections(t, [][]string{{fine, fine}})
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	conn := must.Get(w.take(req, 0))(t)
	w.closeIdle()
	must.Get(w.exchange(conn, req))(t)
	if w.pop() != nil {
		t.Error("the connection is kept")
	}
}
