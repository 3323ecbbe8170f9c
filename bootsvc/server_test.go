package bootsvc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

var armed = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// scriptTicket is a ticket whose image no registry has: for scripts.
func scriptTicket() *model.Ticket {
	return &model.Ticket{
		ID: "s1-1", Server: "s1", UUID: uuid1, Purpose: model.PurposeClaim, ArmedAt: armed,
		Image: model.PinnedImage{
			Repository: "registry.example:5000/os/garden_linux", Digest: sumA, Architecture: "amd64",
			Kernel:   &model.Layer{Digest: "sha256:" + strings.Repeat("1", 64), Size: 1},
			Initrd:   &model.Layer{Digest: "sha256:" + strings.Repeat("2", 64), Size: 2},
			Squashfs: &model.Layer{Digest: "sha256:" + strings.Repeat("3", 64), Size: 3},
		},
	}
}

// newServer makes a server that serves everybody, unless the test is about that.
func newServer(t testing.TB, d Tickets, change func(*Options)) *Server {
	t.Helper()
	o := Options{URL: "http://boot.example:8082/", Tickets: d, Token: key.Config, Clock: func() time.Time { return armed.Add(time.Second) }}
	if change != nil {
		change(&o)
	}
	if o.AddressRules.Servers == nil {
		o.AddressRules.Rule = netboot.BindNothing
	}
	if o.Images != nil && o.Cache == nil {
		withCache(t)(&o)
	}
	return must.Get(NewServer(o))(t)
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return send(h, method, "10.1.2.3", "example.com", target, header...)
}

func askFrom(h http.Handler, from, host, target string, header ...string) *httptest.ResponseRecorder {
	return send(h, http.MethodGet, from, host, target, header...)
}

func send(h http.Handler, method, from, host, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawQuery = path, query
	r.RemoteAddr, r.Host = net.JoinHostPort(from, "4567"), host
	for n := 0; n < len(header); n += 2 {
		r.Header.Add(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestScripts(t *testing.T) {
	token := model.NewSensitive(testToken)
	live := scriptTicket()
	live.Image.Squashfs = nil
	uki := scriptTicket()
	uki.Image.Kernel, uki.Image.Initrd, uki.Image.Squashfs = nil, nil, nil
	uki.Image.UKI = &model.Layer{Digest: sumA, Size: 1}
	base := "http://boot.example:8082"
	for name, ticket := range map[string]*model.Ticket{"ticket.ipxe": scriptTicket(), "live.ipxe": live, "uki.ipxe": uki} {
		script := must.Get(ticketScript(base, newBoot(ticket, token), scriptOptions{}))(t)
		golden(t, name, script)
	}
	golden(t, "chain.ipxe", chainScript(base))
	golden(t, "disk.ipxe", diskScript(uuid1, DiskExit))
	golden(t, "loop.ipxe", loopScript(uuid1))
}

func TestNothingBreaksOutOfScripts(t *testing.T) {
	for title, spoil := range map[string]func(*model.Ticket){
		"a UUID with a line":          func(t *model.Ticket) { t.UUID = uuid1[:35] + "\n" },
		"a repository with a line":    func(t *model.Ticket) { t.Image.Repository = "a/b\nchain http://evil" },
		"a repository with a command": func(t *model.Ticket) { t.Image.Repository = "a/b && reboot" },
		"a repository with a setting": func(t *model.Ticket) { t.Image.Repository = "a/${uuid}" },
		"a repository that climbs":    func(t *model.Ticket) { t.Image.Repository = "a/../b" },
		"a digest that is none":       func(t *model.Ticket) { t.Image.Digest = "latest" },
		"a layer without digest":      func(t *model.Ticket) { t.Image.Kernel = &model.Layer{Size: 1} },
		"a layer without size":        func(t *model.Ticket) { t.Image.Squashfs = &model.Layer{Digest: sumA} },
		"an image without layers":     func(t *model.Ticket) { t.Image.Kernel = nil },
	} {
		ticket := scriptTicket()
		spoil(ticket)
		if script, err := ticketScript("http://b", newBoot(ticket, model.NewSensitive(testToken)), scriptOptions{}); err == nil {
			t.Errorf("Y07: %s makes\n%s", title, script)
		}
	}
	for _, token := range []string{"", "a b", strings.Repeat("a", 25) + "\n"} {
		if _, err := ticketScript("http://b", newBoot(scriptTicket(), model.NewSensitive(token)), scriptOptions{}); err == nil {
			t.Errorf("Y07: token %q is taken", token)
		}
	}
	for _, base := range []string{"", "boot:8082", "http://a b", "http://a\nboot", "http://${x}", "http://a/?b", "http://a/%0a"} {
		if _, err := NewServer(Options{URL: base}); err == nil {
			t.Errorf("Y07: URL %q is taken", base)
		}
	}
	if s := newServer(t, newDesk(), func(o *Options) { o.URL = "http://[fd00::1]:8082" }); !strings.Contains(
		ask(s.Handler(), http.MethodGet, "/ipxe").Body.String(), "set ipxe-svc http://[fd00::1]:8082\n",
	) {
		t.Errorf("T10: the URL is not in the script of /ipxe")
	}
}

func with(d *desk, ended model.TicketState, always bool, p *model.Progress) {
	t := *d.holders[uuid1].Ticket
	t.Ended, t.Always = ended, always
	if p != nil {
		p.Ticket = t.ID
	}
	d.holders[uuid1] = &model.TicketHolder{Server: t.Server, Ticket: &t, Progress: p}
}

func TestWhoIsGivenWhat(t *testing.T) {
	token := tokenOf(scriptTicket()).Reveal()
	foreign := tokenOf(&model.Ticket{ID: "other", UUID: uuid1}).Reveal()
	script := func(d *desk) { with(d, "", false, &model.Progress{ScriptAt: armed}) }
	ignition := func(d *desk) { with(d, "", false, &model.Progress{ScriptAt: armed, IgnitionAt: armed}) }
	const (
		scriptNote   = "s1 iPXE script 10.1.2.3"
		ignitionNote = "s1 Ignition 10.1.2.3"
	)
	for title, tc := range map[string]struct {
		world  func(*desk)
		target string
		header []string
		code   int
		body   string
		noted  []string
	}{
		"a machine is sent to its script": {
			target: "/ipxe",
			code:   200, body: "chain --replace --autofree ${base-url}/${uuid}",
		},
		"so it is with a slash":                 {target: "/ipxe/", code: 200, body: "goto mac"},
		"so it is with two, without a redirect": {target: "//ipxe//", code: 200, body: "goto mac"},
		"a ticket makes a server boot": {
			target: "/ipxe/" + uuid1,
			code:   200, body: "kernel ${kernel-url}", noted: []string{scriptNote},
		},
		"a server may ask for its script again": {
			world: script, target: "/ipxe/" + uuid1,
			code: 200, body: "kernel ${kernel-url}",
		},
		"T07: the case of the UUID does not matter": {
			target: "/ipxe/" + strings.ToUpper(uuid1), code: 200, body: "kernel ${kernel-url}", noted: []string{scriptNote},
		},
		"law 1: once Ignition was served it boots disk": {
			world: ignition, target: "/ipxe/" + uuid1, code: 200,
			body: "echo Ingot: no boot ticket for " + uuid1 + ", booting from disk\nexit\n",
		},
		"law 1: a ticket that did its work boots disk": {
			world: func(d *desk) { with(d, model.TicketBooted, false, nil) }, target: "/ipxe/" + uuid1,
			code: 200, body: "booting from disk",
		},
		"law 1: a ticket that is spent boots disk": {
			world: func(d *desk) { with(d, model.TicketSpent, true, nil) }, target: "/ipxe/" + uuid1, code: 200, body: "booting from disk",
		},
		"a ticket for always boots on every boot": {
			world: func(d *desk) { with(d, model.TicketBooted, true, nil) }, target: "/ipxe/" + uuid1, code: 200,
			body: "kernel ${kernel-url}", noted: []string{scriptNote},
		},
		"a server without a ticket boots disk": {
			world: func(d *desk) { d.holders[uuid1] = &model.TicketHolder{Server: "s1"} }, target: "/ipxe/" + uuid1, code: 200,
			body: "booting from disk",
		},
		"a server that is not known is told so": {target: "/ipxe/" + uuid2, code: 404, body: "no server with this UUID"},
		"T06: firmware without UUID is known by its MAC": {
			world: func(d *desk) { d.holders["52:54:00:aa:bb:cc"] = d.holders[uuid1] }, target: "/ipxe/52:54:00:AA:bb:cc", code: 200,
			body: "/ignition/" + uuid1 + "/", noted: []string{scriptNote},
		},
		"T06: so it is in the other spelling": {
			world: func(d *desk) { d.holders["52:54:00:aa:bb:cc"] = d.holders[uuid1] }, target: "/ipxe/52-54-00-aa-bb-cc", code: 200,
			body: "kernel", noted: []string{scriptNote},
		},
		"what is no UUID is told so": {target: "/ipxe/autoexec.ipxe", code: 404, body: "neither a system UUID nor a MAC"},
		"a UUID that climbs is none": {target: "/ipxe/../ignition/" + uuid1, code: 404},
		"a boot that cannot be remembered is not served": {
			world: func(d *desk) { d.fail(errors.New("store is gone")) }, target: "/ipxe/" + uuid1, code: 503, body: "cannot be recorded",
		},
		"a ticket that is not safe to serve is not": {
			world: func(d *desk) { d.holders[uuid1].Ticket.Image.Repository = "a/b\nx" }, target: "/ipxe/" + uuid1, code: 500,
			body: "log says why",
		},
		"the token opens the Ignition": {
			target: "/ignition/" + uuid1 + "/" + token, code: 200, body: "PAYLOAD", noted: []string{ignitionNote},
		},
		"T14: it does so again": {world: ignition, target: "/ignition/" + uuid1 + "/" + token, code: 200, body: "PAYLOAD"},
		"T07: the case of the UUID is the machine's": {
			target: "/ignition/" + strings.ToUpper(uuid1) + "/" + token, code: 200, body: "PAYLOAD", noted: []string{ignitionNote},
		},
		"T13: an Ignition too old to read it is told": {
			target: "/ignition/" + uuid1 + "/" + token,
			header: []string{"Accept", "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1"}, code: 406,
			body: "has version 3.3.0 and this machine reads at most 3.2.0",
		},
		"T13: an Ignition new enough reads it": {
			target: "/ignition/" + uuid1 + "/" + token,
			header: []string{"Accept", "application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1"}, code: 200, body: "PAYLOAD",
			noted: []string{ignitionNote},
		},
		"Y01: without a token there is none": {target: "/ignition/" + uuid1, code: 403, body: "the token is missing"},
		"Y01: nor with another ticket's": {
			target: "/ignition/" + uuid1 + "/" + foreign, code: 403, body: "not that of this server's boot ticket",
		},
		"Y01: nor with a token's beginning": {
			target: "/ignition/" + uuid1 + "/" + token[:10],
			code:   403, body: "not that of",
		},
		"Y01: nor for another server": {
			world:  func(d *desk) { other := *scriptTicket(); other.UUID = uuid2; d.arm(&other, "x") },
			target: "/ignition/" + uuid2 + "/" + token, code: 403, body: "not that of",
		},
		"Y01: nor once the ticket ended": {
			world: func(d *desk) { with(d, model.TicketBooted, false, nil) }, target: "/ignition/" + uuid1 + "/" + token, code: 403,
			body: "has ended",
		},
		"Y01: nor once a ticket for always was revoked": {
			world: func(d *desk) { with(d, model.TicketSpent, true, nil) }, target: "/ignition/" + uuid1 + "/" + token, code: 403,
			body: "has ended",
		},
		"a ticket for always has its Ignition always": {
			world: func(d *desk) { with(d, model.TicketBooted, true, nil) }, target: "/ignition/" + uuid1 + "/" + token, code: 200,
			body: "PAYLOAD", noted: []string{ignitionNote},
		},
		"a server without a ticket has no Ignition": {
			world: func(d *desk) { d.holders[uuid1] = &model.TicketHolder{Server: "s1"} }, target: "/ignition/" + uuid1 + "/" + token,
			code: 403, body: "not that of",
		},
		"a server that is not known has no Ignition": {
			target: "/ignition/" + uuid2 + "/" + token,
			code:   404, body: "no server",
		},
		"what is no UUID has no Ignition": {target: "/ignition/x/" + token, code: 404, body: "not a system UUID"},
		"an Ignition that is gone is not a 404": {
			world: func(d *desk) { clear(d.payloads) }, target: "/ignition/" + uuid1 + "/" + token, code: 503,
			body: "not available at present",
		},
		"an Ignition that cannot be remembered stays here": {
			world: func(d *desk) { d.fail(errors.New("store is gone")) }, target: "/ignition/" + uuid1 + "/" + token, code: 503,
			body: "cannot be recorded",
		},
		"a layer that no ticket pins is not served": {
			target: "/image",
			code:   404, body: "no open boot ticket pins this layer",
		},
		"nor one of another repository": {
			target: "/image?imageName=evil.example/x&version=1&layerDigest=" + scriptTicket().Image.Kernel.Digest, code: 404,
			body: "no open boot ticket",
		},
		"the root is nothing":                        {target: "/", code: 404, body: "/ipxe is where"},
		"T04: what firmware asks besides is nothing": {target: "/grubx64.efi", code: 404, body: "nothing here"},
		"a huge path is nothing":                     {target: "/ipxe/" + strings.Repeat("a", 5000), code: 404, body: "nothing here"},
		"a path of many slashes is nothing":          {target: strings.Repeat("/", 3000), code: 404, body: "nothing here"},
		"a path with a zero byte is nothing":         {target: "/ipxe/\x00", code: 404, body: "neither a system UUID"},
	} {
		t.Run(title, func(t *testing.T) {
			d := newDesk()
			d.arm(scriptTicket(), `{"ignition":{"version":"3.3.0"},"x":"PAYLOAD"}`)
			if tc.world != nil {
				tc.world(d)
			}
			var logs bytes.Buffer
			h := newServer(t, d, func(o *Options) {
				o.Images = newImages(t)
				o.Log = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
			}).Handler()
			w := ask(h, http.MethodGet, tc.target, append([]string{"X-Forwarded-For", "6.6.6.6"}, tc.header...)...)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) {
				t.Errorf("%d %s; want %d %s", w.Code, w.Body, tc.code, tc.body)
			}
			if diff := cmp.Diff(tc.noted, d.notes()); diff != "" {
				t.Errorf("noted (-want +got):\n%s", diff)
			}
			if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
				t.Errorf("T08: Content-Length %s for %d bytes", got, w.Body.Len())
			}
			if got := w.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control is %q", got)
			}
			if (w.Code == http.StatusServiceUnavailable) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("Retry-After is %q for %d", w.Header().Get("Retry-After"), w.Code)
			}
			text := logs.String()
			if strings.Contains(text, token) || strings.Contains(text, foreign) || strings.Contains(text, "PAYLOAD") {
				t.Errorf("Y06: the log shows a secret:\n%s", text)
			}
			if !strings.Contains(text, "route=") || !strings.Contains(text, "client=10.1.2.3") {
				t.Errorf("Y03: the log lacks the request:\n%s", text)
			}

			d.unnote()
			head := ask(h, http.MethodHead, tc.target, tc.header...)
			if head.Body.Len() > 0 || head.Code != w.Code && w.Code != http.StatusServiceUnavailable {
				t.Errorf("HEAD: %d with %d bytes", head.Code, head.Body.Len())
			}
			if notes := d.notes(); notes != nil {
				t.Errorf("HEAD serves nothing, but %v was noted", notes)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	d := newDesk()
	d.arm(scriptTicket(), "{}")
	h := newServer(t, d, nil).Handler()
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "PRI", "GETX"} {
		w := ask(h, method, "/ipxe/"+uuid1)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	if d.notes() != nil {
		t.Error("a refused method was noted")
	}
}

func TestContentTypes(t *testing.T) {
	d := newDesk()
	d.arm(scriptTicket(), `{"ignition":{"version":"3.3.0"}}`)
	h := newServer(t, d, nil).Handler()
	for target, want := range map[string]string{
		"/ipxe":          "text/plain; charset=utf-8",
		"/ipxe/" + uuid1: "text/plain; charset=utf-8",
		"/ignition/" + uuid1 + "/" + tokenOf(scriptTicket()).Reveal(): "application/vnd.coreos.ignition+json",
	} {
		if got := ask(h, http.MethodGet, target).Header().Get("Content-Type"); got != want {
			t.Errorf("%s is %s, want %s", target, got, want)
		}
	}
}

// rack is a boot service on a socket, with a registry behind it and one server
// whose ticket is armed.
type rack struct {
	*httptest.Server
	desk     *desk
	registry *ociserver.Registry
	service  *Server
	ticket   *model.Ticket
	reg      *prometheus.Registry
	parts    map[string][]byte
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func newRack(t *testing.T, wrap func(http.Handler) http.Handler, change func(*Options)) *rack {
	t.Helper()
	reg, err := ociserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	r := &rack{desk: newDesk(), registry: reg, parts: map[string][]byte{
		"kernel": pattern(300_000, 1), "initrd": pattern(128<<10, 2), "squashfs": pattern(1_000_001, 3),
	}}
	_, _, err = reg.PushBootImage("os/live", "1", r.parts["kernel"], r.parts["initrd"], r.parts["squashfs"])
	if err != nil {
		t.Fatal(err)
	}
	host := reg.Host()
	if wrap != nil {
		front := httptest.NewServer(wrap(reg.Handler()))
		t.Cleanup(front.Close)
		host = strings.TrimPrefix(front.URL, "http://")
	}
	images := newImages(t, reg.Host(), host)
	img := must.Get(newImages(t, reg.Host()).Resolve(t.Context(), reg.Host()+"/os/live:1", "amd64"))(t)
	img.Repository = host + "/os/live"
	r.ticket = &model.Ticket{ID: "s1-1", Server: "s1", UUID: uuid1, Purpose: model.PurposeClaim, ArmedAt: armed, Image: img}
	r.desk.arm(r.ticket, compile(t, cloudBoot()).Reveal())
	r.Server = httptest.NewUnstartedServer(nil)
	r.reg = prometheus.NewRegistry()
	r.service = newServer(t, r.desk, func(o *Options) {
		o.URL, o.Images, o.Registerer = "http://"+r.Listener.Addr().String(), images, r.reg
		if change != nil {
			change(o)
		}
	})
	r.Config = NewHTTPServer(r.service.Handler())
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func get(t *testing.T, target string, header ...string) (*http.Response, []byte, error) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))(t)
	for n := 0; n < len(header); n += 2 {
		req.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // no redirects
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func setting(t *testing.T, script []byte, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^set ` + name + ` (\S+)$`).FindSubmatch(script)
	if m == nil {
		t.Fatalf("the script sets no %s:\n%s", name, script)
	}
	return string(m[1])
}

func TestABootFromEndToEnd(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r := newRack(t, nil, nil)
	_, chain, _ := get(t, r.URL+"/ipxe")
	next := strings.ReplaceAll(setting(t, chain, "base-url"), "${ipxe-svc}", setting(t, chain, "ipxe-svc")) + "/" + strings.ToUpper(uuid1)
	_, script, _ := get(t, next)
	if got, want := setting(t, script, "initrd-url"), r.layerURL(r.ticket.Image.Initrd); got != want {
		t.Errorf("the initrd is at %s, want %s", got, want)
	}
	for _, part := range []string{"kernel", "initrd", "squashfs"} {
		resp, body, err := get(t, setting(t, script, part+"-url"))
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, r.parts[part]) {
			t.Errorf("%s: %s, %d bytes, %v", part, resp.Status, len(body), err)
		}
		if resp.ContentLength != int64(len(r.parts[part])) || resp.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("T08: %s has length %d and type %s", part, resp.ContentLength, resp.Header.Get("Content-Type"))
		}
	}
	m := regexp.MustCompile(`ignition\.config\.url=(\S+)`).FindSubmatch(script)
	resp, body, err := get(t, string(m[1]), "Accept", "application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	if _, r, err := v3_6.ParseCompatibleVersion(body); err != nil || len(r.Entries) > 0 {
		t.Errorf("Ignition does not accept it: %v\n%s", err, r.String())
	}
	_, again, _ := get(t, next)
	if !strings.Contains(string(again), "booting from disk") {
		t.Errorf("law 1: after its Ignition the server boots\n%s", again)
	}
	want := []string{"s1 iPXE script 127.0.0.1", "s1 kernel 127.0.0.1", "s1 initrd 127.0.0.1", "s1 Ignition 127.0.0.1"}
	if diff := cmp.Diff(want, r.desk.notes()); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
	total := len(r.parts["kernel"]) + len(r.parts["initrd"]) + len(r.parts["squashfs"])
	metrics := `# HELP ingot_boot_requests_total Requests from booting machines, by route and status code; ` +
		`code aborted is a response cut off before its end.
# TYPE ingot_boot_requests_total counter
ingot_boot_requests_total{code="200",route="/ignition/{uuid}/{token}"} 1
ingot_boot_requests_total{code="200",route="/files/{path}"} 0
ingot_boot_requests_total{code="200",route="/httpboot"} 0
ingot_boot_requests_total{code="200",route="/httpboot/{image}"} 0
ingot_boot_requests_total{code="200",route="/ignition/{uuid}"} 0
ingot_boot_requests_total{code="200",route="/image"} 3
ingot_boot_requests_total{code="200",route="/install/{uuid}/{token}/{part}"} 0
ingot_boot_requests_total{code="200",route="/ipxe/"} 1
ingot_boot_requests_total{code="200",route="/ipxe/{uuid}"} 2
ingot_boot_requests_total{code="200",route="/loader/{name}"} 0
ingot_boot_requests_total{code="200",route="/nocloud/{uuid}/{token}/{file}"} 0
ingot_boot_requests_total{code="200",route="other"} 0
`
	r.Close()
	if err := testutil.GatherAndCompare(r.reg, strings.NewReader(metrics), "ingot_boot_requests_total"); err != nil {
		t.Error(err)
	}
	if sent := imageBytes(r.service); sent != float64(total) {
		t.Errorf("%v bytes of images were counted, want %d", sent, total)
	}
}

func imageBytes(s *Server) float64 {
	from := func(source imagecache.Source) float64 {
		return testutil.ToFloat64(s.metrics.imageBytes.WithLabelValues(string(source)))
	}
	return from(imagecache.FromDisk) + from(imagecache.FromRegistry)
}

func TestAKernelIsNotedForWhoAsks(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r := newRack(t, nil, nil)
	for n := range 9 {
		other := *r.ticket
		other.ID, other.Server = fmt.Sprint("o", n), model.ServerName(fmt.Sprint("o", n))
		other.UUID = fmt.Sprintf("00000000-0000-4000-8000-00000000010%d", n)
		r.desk.arm(&other, "{}")
	}
	_, script, _ := get(t, r.URL+"/ipxe/"+uuid1)
	_, _, _ = get(t, setting(t, script, "kernel-url"))
	if notes := r.desk.notes(); !slices.Contains(notes, "s1 kernel 127.0.0.1") || len(notes) != 2 {
		t.Errorf("noted %v", notes)
	}
}

// layerPath is where a layer is, by the contract that metal-operator keeps too.
func layerPath(t *model.Ticket, l *model.Layer) string {
	q := url.Values{"imageName": {t.Image.Repository}, "layerDigest": {l.Digest}, "uuid": {t.UUID}, "version": {t.Image.Digest}}
	return "/image?" + q.Encode()
}

func (r *rack) layerURL(l *model.Layer) string { return r.URL + layerPath(r.ticket, l) }

func TestUKIOverHTTPBoot(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	uki := pattern(200_000, 9)
	r := newRack(t, nil, nil)
	ref, _, _ := r.registry.Push("os/uki", "1", ociserver.Image{UKI: uki})
	img := must.Get(r.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	ticket := *r.ticket
	ticket.Image = img
	r.desk.arm(&ticket, "{}")
	_, script, _ := get(t, r.URL+"/ipxe/"+uuid1)
	full := setting(t, script, "uki-url")
	path, _, _ := strings.Cut(full, "?")
	if !strings.HasSuffix(path, ".efi") {
		t.Errorf("T08: %s does not end in .efi", path)
	}
	for _, u := range []string{full, path, strings.TrimSuffix(path, ".efi"), r.URL + layerPath(&ticket, img.UKI)} {
		resp, body, err := get(t, u)
		if err != nil || !bytes.Equal(body, uki) || resp.Header.Get("Content-Type") != "application/efi" {
			t.Errorf("T08: %s: %s, %s, %d bytes, %v", u, resp.Status, resp.Header.Get("Content-Type"), len(body), err)
		}
	}
	w := ask(r.service.Handler(), http.MethodHead, strings.TrimPrefix(path, r.URL))
	if w.Code != 200 || w.Header().Get("Content-Length") != "200000" {
		t.Errorf("T08: HEAD: %d, length %s", w.Code, w.Header().Get("Content-Length"))
	}
}
