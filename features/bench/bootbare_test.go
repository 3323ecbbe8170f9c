package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"text/template"
	"time"

	"ingot/model/must"
)

const bareVariable = "BOOT_BENCH_BARE"

// bareOrder is what the bare handler is to serve: by page, the text of the first machine.
type bareOrder struct {
	Pages    map[string]string
	Headers  map[string]http.Header // by page; none = what net/http sends by itself
	Machines []map[string]string
}

func bootHeaders() map[string]http.Header {
	with := func(contentType string) http.Header {
		return http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-store"}}
	}
	return map[string]http.Header{
		bootScript:   with("text/plain; charset=utf-8"),
		bootIgnition: with("application/vnd.coreos.ignition+json"),
	}
}

func bareFields(m bootMachine) map[string]string {
	return map[string]string{"UUID": m.UUID, "Token": m.Token}
}

// runBare serves what a program of nothing but net/http, a map and text/template does,
// until it is killed. It returns its exit code.
func runBare(in io.Reader, log io.Writer) int {
	var order bareOrder
	err := json.NewDecoder(in).Decode(&order)
	if err == nil {
		err = order.serve(log)
	}
	fmt.Fprintln(log, "bare handler:", err)
	return 1
}

func (o bareOrder) serve(log io.Writer) error {
	machines := make(map[string]map[string]string, len(o.Machines))
	for _, m := range o.Machines {
		machines[m["UUID"]] = m
	}
	mux := http.NewServeMux()
	for what, pattern := range map[string]string{bootScript: "GET /ipxe/{uuid}", bootIgnition: "GET /ignition/{uuid}/{token}"} {
		page, err := o.page(what)
		if err != nil {
			return err
		}
		headers := o.Headers[what]
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if headers != nil { // even to look at a response's headers costs something
				maps.Copy(w.Header(), headers)
			}
			_ = page.Execute(w, machines[r.PathValue("uuid")])
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "msg=listening boot=%s registry=none admin=none\n", l.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.Serve(l)
}

func (o bareOrder) page(what string) (*template.Template, error) {
	text := o.Pages[what]
	for name, value := range o.Machines[0] {
		text = strings.ReplaceAll(text, value, "{{."+name+"}}")
	}
	return template.New(what).Parse(text)
}

// bootConnection is a machine's connection to a server.
type bootConnection struct {
	net.Conn
	in      *bufio.Reader
	machine bootMachine
}

func connectBoot(b *testing.B, address string, m bootMachine) *bootConnection {
	b.Helper()
	conn := must.Get(net.Dial("tcp", address))(b)
	b.Cleanup(func() { conn.Close() })
	return &bootConnection{conn, bufio.NewReader(conn), m}
}

func (c *bootConnection) ask(what string) (string, error) {
	if _, err := io.WriteString(c, "GET "+c.machine.path(what)+" HTTP/1.1\r\nHost: boot.example\r\n\r\n"); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", resp.Status, body)
	}
	return string(body), err
}
