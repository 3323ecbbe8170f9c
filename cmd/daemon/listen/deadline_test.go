package listen

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// onePipe is a listener with one connection, in memory: it holds nothing, so a server waits
// until its client reads.
type onePipe struct {
	conns chan net.Conn
}

func (p onePipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p onePipe) Close() error   { return nil }
func (p onePipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback} }

func connectTo(t *testing.T, h http.Handler) net.Conn {
	ln := onePipe{make(chan net.Conn, 1)}
	client, server := net.Pipe()
	ln.conns <- server
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() {
		_ = client.Close()
		close(ln.conns)
		_ = srv.Close()
	})
	return client
}

func TestAnAnswerThatIsNotReadEnds(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, write := range map[string]func(w http.ResponseWriter){
		"written as bytes":    func(w http.ResponseWriter) { _, _ = w.Write([]byte(long)) },
		"written as a string": func(w http.ResponseWriter) { _, _ = io.WriteString(w, long) },
		"with a header": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(long))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took time.Duration // virtual, to write the answer
				client := connectTo(t, EndUnreadAnswers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(time.Minute) // to make the answer
					began := time.Now()
					write(w)
					took = time.Since(began)
				})))
				_, _ = fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				time.Sleep(time.Hour)
				synctest.Wait()
				if took != answerTimeout {
					t.Errorf("the answer ended %s after it began, want %s", took, answerTimeout)
				}
			})
		})
	}
}

func TestTheTimeOfAnAnswerEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connectTo(t, EndUnreadAnswers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // has the server ask for it
			time.Sleep(2 * answerTimeout)
		})))
		from := bufio.NewReader(client)
		for n := range 3 {
			_, _ = fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
			if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
				t.Fatalf("request %d: got %q, %v, want to be asked for the body", n, line, err)
			}
			_, _ = from.ReadString('\n')
			_, _ = fmt.Fprint(client, "x")
			resp, err := http.ReadResponse(from, nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("request %d: got %v, %v", n, resp, err)
			}
			time.Sleep(2 * answerTimeout)
		}
	})
}
