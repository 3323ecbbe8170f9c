package bootsvc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"text/template"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// blank is a ResponseWriter that costs nothing.
type blank struct{ header http.Header }

func (b *blank) Header() http.Header               { return b.header }
func (b *blank) Write(p []byte) (int, error)       { return len(p), nil }
func (b *blank) WriteString(s string) (int, error) { return len(s), nil }
func (b *blank) WriteHeader(int)                   {}

// benchRequests measures h with requests for paths in turn, over no network.
func benchRequests(b *testing.B, h http.Handler, paths []string) {
	b.Helper()
	var requests []*http.Request
	for _, p := range paths {
		r := httptest.NewRequest(http.MethodGet, p, nil)
		r.RemoteAddr = "10.1.2.3:4567"
		requests = append(requests, r)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		h.ServeHTTP(&blank{http.Header{}}, requests[n%len(requests)])
	}
}

// bareScript is the yardstick: what a handler of nothing but net/http and
// text/template does.
var bareScript = template.Must(template.New("ipxe").Parse(`#!ipxe
set ipxe-svc {{.Base}}
set kernel-url {{.Base}}/image?imageName={{.Name}}&layerDigest={{.Kernel}}&version={{.Version}}
set initrd-url {{.Base}}/image?imageName={{.Name}}&layerDigest={{.Initrd}}&version={{.Version}}
set squashfs-url {{.Base}}/image?imageName={{.Name}}&layerDigest={{.Squashfs}}&version={{.Version}}
echo Loading kernel...
kernel ${kernel-url} initrd=initrd gl.ovl=/:tmpfs gl.url=${squashfs-url} gl.live=1 ip=any ignition.firstboot=1 ignition.config.url={{.Base}}/ignition/{{.UUID}} ignition.platform.id=metal console=ttyS0,115200 console=tty0 console=ttyAMA0 earlyprintk=ttyS0,115200 consoleblank=0
echo Loading initrd...
initrd ${initrd-url}
echo Booting...
boot
`))

func BenchmarkScript(b *testing.B) {
	for _, fleet := range []int{10, 1000} {
		d := newDesk()
		bare := make(map[string]map[string]string)
		var paths []string
		for n := range fleet {
			t := *scriptTicket()
			t.UUID, t.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", n), fmt.Sprint(n)
			d.arm(&t, "{}")
			paths = append(paths, "/ipxe/"+t.UUID)
			bare[t.UUID] = map[string]string{
				"Base": "http://boot.example:8082", "UUID": t.UUID, "Name": t.Image.Repository, "Version": t.Image.Digest,
				"Kernel": t.Image.Kernel.Digest, "Initrd": t.Image.Initrd.Digest, "Squashfs": t.Image.Squashfs.Digest,
			}
		}
		b.Run(fmt.Sprintf("bare/%d", fleet), func(b *testing.B) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /ipxe/{uuid}", func(w http.ResponseWriter, r *http.Request) {
				_ = bareScript.Execute(w, bare[r.PathValue("uuid")])
			})
			benchRequests(b, mux, paths)
		})
		b.Run(fmt.Sprintf("ingot/%d", fleet), func(b *testing.B) {
			s := newServer(b, quiet{d}, func(o *Options) { o.Registerer = prometheus.NewRegistry() })
			benchRequests(b, s.Handler(), paths)
		})
	}
}

func BenchmarkIgnition(b *testing.B) {
	payload, err := newIgnition(b, IgnitionOptions{}).Claim(claimBoot("", ""))
	if err != nil {
		b.Fatal(err)
	}
	d := newDesk()
	t := scriptTicket()
	d.arm(t, payload.Reveal())
	path := "/ignition/" + t.UUID + "/" + key.Token(t).Reveal()
	b.Run("bare", func(b *testing.B) {
		mux := http.NewServeMux()
		page := template.Must(template.New("ignition").Parse(payload.Reveal() + "{{.UUID}}{{.URL}}"))
		mux.HandleFunc("GET /ignition/{uuid}/{token}", func(w http.ResponseWriter, r *http.Request) {
			_ = page.Execute(w, map[string]string{"UUID": r.PathValue("uuid"), "URL": bootState})
		})
		benchRequests(b, mux, []string{path})
	})
	b.Run("ingot", func(b *testing.B) {
		s := newServer(b, quiet{d}, func(o *Options) { o.Registerer = prometheus.NewRegistry() })
		benchRequests(b, s.Handler(), []string{path})
	})
}

func BenchmarkProbe(b *testing.B) {
	g := newIgnition(b, IgnitionOptions{})
	boot := probeBoot()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Probe(boot); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClaimOfAKnownSource(b *testing.B) {
	g := newIgnition(b, IgnitionOptions{})
	boot := claimBoot("variant: fcos\nversion: 1.4.0\n", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Claim(boot); err != nil {
			b.Fatal(err)
		}
	}
}

// quiet is a desk that keeps no notes, so that they are not measured, and whose
// machines have fetched their kernels, so that none goes round in circles.
type quiet struct{ *desk }

// Offer implements Tickets.
func (q quiet) Offer(id string) (model.Offer, bool) {
	o, ok := q.desk.Offer(id)
	if ok {
		o.Progress = &model.Progress{Ticket: o.Ticket.ID, ScriptAt: armed, KernelAt: armed}
	}
	return o, ok
}

// Note implements Tickets.
func (quiet) Note(context.Context, *model.Ticket, model.BootStage, netip.Addr) error { return nil }

// BenchmarkScriptOverSockets is what a machine meets: a kept connection, one
// request after another.
func BenchmarkScriptOverSockets(b *testing.B) {
	d := newDesk()
	bare := make(map[string]map[string]string)
	var requests []string
	for n := range 1000 {
		t := *scriptTicket()
		t.UUID, t.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", n), fmt.Sprint(n)
		d.arm(&t, "{}")
		requests = append(requests, "GET /ipxe/"+t.UUID+" HTTP/1.1\r\nHost: x\r\n\r\n")
		bare[t.UUID] = map[string]string{
			"Base": "http://boot.example:8082", "UUID": t.UUID, "Name": t.Image.Repository, "Version": t.Image.Digest,
			"Kernel": t.Image.Kernel.Digest, "Initrd": t.Image.Initrd.Digest, "Squashfs": t.Image.Squashfs.Digest,
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ipxe/{uuid}", func(w http.ResponseWriter, r *http.Request) {
		_ = bareScript.Execute(w, bare[r.PathValue("uuid")])
	})
	ingot := newServer(b, quiet{d}, func(o *Options) { o.Registerer = prometheus.NewRegistry() }).Handler()
	for _, h := range []struct {
		name string
		http.Handler
	}{{"bare", mux}, {"ingot", ingot}} {
		b.Run(h.name, func(b *testing.B) {
			srv := httptest.NewUnstartedServer(nil)
			srv.Config = NewHTTPServer(h.Handler)
			srv.Start()
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for n := 0; b.Loop(); n++ {
				if _, err := io.WriteString(conn, requests[n%len(requests)]); err != nil {
					b.Fatal(err)
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
