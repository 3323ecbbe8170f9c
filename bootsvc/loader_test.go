package bootsvc

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

// asking is the address that ask asks from, leased to mac1.
const (
	asking = "10.1.2.3"
	mac1   = "52:54:00:aa:bb:cc"
)

func leases(o *Options) { leaseTable{asking: mac1}.bind(o) }

func loaders(t testing.TB, names ...string) *netboot.Loaders {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("this is "+name), 0o600))
	}
	return netboot.OpenLoaders([]string{dir})
}

func TestLoadersOverHTTP(t *testing.T) {
	for title, tc := range map[string]struct {
		method, target string
		header         []string
		code           int
		body           string
		want           http.Header
		noted          []string
	}{
		"T08: firmware asks how long it is": {
			method: "HEAD", target: "/loader/ipxe.efi", code: 200,
			want: http.Header{"Content-Length": {"16"}, "Content-Type": {"application/efi"}},
		},
		"T08: firmware fetches it": {
			method: "GET", target: "/loader/ipxe.efi", code: 200, body: "this is ipxe.efi",
			want:  http.Header{"Content-Length": {"16"}, "Content-Type": {"application/efi"}, "Accept-Ranges": {"bytes"}},
			noted: []string{"s1 HTTP boot " + asking},
		},
		"BIOS fetches its own": {
			method: "GET", target: "/loader/undionly.kpxe", code: 200, body: "this is undionly.kpxe",
			want: http.Header{"Content-Type": {"application/octet-stream"}}, noted: []string{"s1 HTTP boot " + asking},
		},
		"T09: firmware fetches the rest": {
			method: "GET", target: "/loader/ipxe.efi", header: []string{"Range", "bytes=8-"}, code: 206, body: "ipxe.efi",
			want:  http.Header{"Content-Length": {"8"}, "Content-Range": {"bytes 8-15/16"}, "Content-Type": {"application/efi"}},
			noted: []string{"s1 HTTP boot " + asking},
		},
		"T09: firmware fetches a piece": {
			method: "GET", target: "/loader/ipxe.efi", header: []string{"Range", "bytes=0-3"}, code: 206, body: "this",
			want: http.Header{"Content-Range": {"bytes 0-3/16"}}, noted: []string{"s1 HTTP boot " + asking},
		},
		"T09: there is nothing behind it": {
			method: "GET", target: "/loader/ipxe.efi", header: []string{"Range", "bytes=16-"}, code: 416,
			want: http.Header{"Content-Range": {"bytes */16"}}, noted: []string{"s1 HTTP boot " + asking},
		},
		"a loader that is not there":      {"GET", "/loader/snponly.efi", nil, 404, "no boot loader of this name", nil, nil},
		"T04: what firmware asks besides": {"GET", "/loader/grubx64.efi", nil, 404, "no boot loader", nil, nil},
		"T04: what new iPXE asks besides": {"GET", "/loader/autoexec.ipxe", nil, 404, "no boot loader", nil, nil},
		"T04: so it does at the root":     {"GET", "/autoexec.ipxe", nil, 404, "nothing here", nil, nil},
		"T03: a path that climbs":         {"GET", "/loader/../loader/ipxe.efi", nil, 404, "", nil, nil},
		"T03: a path that climbs out":     {"GET", "/loader/..", nil, 404, "", nil, nil},
		"the folder itself":               {"GET", "/loader/", nil, 404, "", nil, nil},
	} {
		t.Run(title, func(t *testing.T) {
			d := newDesk()
			d.arm(scriptTicket(), "{}")
			d.holders[mac1] = d.holders[uuid1]
			h := newServer(t, d, func(o *Options) { leases(o); o.Loaders = loaders(t, "ipxe.efi", "undionly.kpxe") }).Handler()
			w := ask(h, tc.method, tc.target, tc.header...)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) || tc.method == "HEAD" && w.Body.Len() > 0 {
				t.Errorf("%d %q", w.Code, w.Body)
			}
			for name, want := range tc.want {
				if diff := cmp.Diff(want, w.Header()[name]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if diff := cmp.Diff(tc.noted, d.notes()); diff != "" {
				t.Errorf("noted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALoaderIsServedToWhoIsNotKnown(t *testing.T) {
	d := newDesk()
	d.arm(scriptTicket(), "{}")
	d.holders[mac1] = &model.TicketHolder{Server: "s1"}
	for title, change := range map[string]func(*Options){
		"no leases are known":       nil,
		"its holder has no ticket":  leases,
		"nobody holds that address": leaseTable{}.bind,
	} {
		s := newServer(t, d, change)
		s.loaders = loaders(t, "ipxe.efi")
		if w := ask(s.Handler(), "GET", "/loader/ipxe.efi"); w.Code != 200 || d.notes() != nil {
			t.Errorf("%s: %d, noted %v", title, w.Code, d.notes())
		}
	}
	if w := ask(newServer(t, d, nil).Handler(), "GET", "/loader/ipxe.efi"); w.Code != 404 {
		t.Errorf("without loaders: %d", w.Code)
	}
}

func TestAUKIShowsHowItWasFetched(t *testing.T) {
	uki := pattern(1000, 9)
	r := newRack(t, nil, leases)
	ref, _, err := r.registry.Push("os/uki", "1", ociserver.Image{UKI: uki})
	if err != nil {
		t.Fatal(err)
	}
	ticket := *r.ticket
	ticket.Image = must.Get(r.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	for n := range 9 { // others boot the same
		other := ticket
		other.ID, other.Server, other.UUID = fmt.Sprint("o", n), "other", fmt.Sprintf("00000000-0000-4000-8000-00000000010%d", n)
		r.desk.arm(&other, "{}")
	}
	r.desk.arm(&ticket, "{}")
	r.desk.holders[mac1] = r.desk.holders[uuid1]
	h := r.service.Handler()
	full := netboot.UKIPath(&ticket)
	bare, _, _ := strings.Cut(full, "?")
	step := func(method, target string, want ...string) {
		t.Helper()
		r.desk.unnote()
		w := ask(h, method, target)
		if w.Code != 200 || w.Header().Get("Content-Length") != "1000" || w.Header().Get("Content-Type") != "application/efi" {
			t.Errorf("%s %s: %d %v", method, target, w.Code, w.Header())
		}
		if diff := cmp.Diff(want, r.desk.notes()); diff != "" {
			t.Errorf("%s %s notes (-want +got):\n%s", method, target, diff)
		}
	}
	step("HEAD", full)
	step("GET", full, "s1 HTTP boot "+asking, "s1 kernel "+asking)
	step("GET", bare, "s1 HTTP boot "+asking, "s1 kernel "+asking)
	_ = ask(h, "GET", "/ipxe/"+uuid1)
	step("GET", full, "s1 kernel "+asking)
}

func TestHTTPBootDocument(t *testing.T) {
	uki := scriptTicket()
	uki.Image.UKI = &model.Layer{Digest: sumA, Size: 1}
	ukiURL := "http://boot.example:8082/httpboot/registry.example:5000/os/garden_linux/" + strings.Replace(sumA, ":", "-", 1) +
		".efi?uuid=" + uuid1
	found := func(who, url string) string {
		return `{"ClientIPs":"` + who + `","UKIURL":"` + url + `","SystemUUID":"` + uuid1 + `"}`
	}
	for title, tc := range map[string]struct {
		ticket *model.Ticket
		from   string
		header []string
		code   int
		body   string
	}{
		"a machine is known by its lease": {ticket: uki, from: asking, code: 200, body: found(asking, ukiURL)},
		"without a UKI it goes by way of iPXE": {
			ticket: scriptTicket(), from: asking, code: 200, body: found(asking, "http://boot.example:8082/loader/ipxe.efi"),
		},
		"a machine without a lease is not known": {
			ticket: uki, from: "10.1.2.4", code: 404, body: `{"error":"no server with an open boot ticket is known to be at 10.1.2.4"}`,
		},
		"a machine without a ticket has nothing": {
			from: asking, code: 404, body: `{"error":"no server with an open boot ticket is known to be at 10.1.2.3"}`,
		},
		"Y01: nobody asks for another": {
			ticket: uki, from: "10.1.2.4", header: []string{"X-Forwarded-For", asking}, code: 404,
			body: `{"error":"no server with an open boot ticket is known to be at 10.1.2.4"}`,
		},
		"a DHCP server on this machine does": {
			ticket: uki, from: "127.0.0.1", header: []string{"X-Forwarded-For", asking},
			code: 200, body: found("127.0.0.1,"+asking, ukiURL),
		},
		"it does by MAC address": {
			ticket: uki, from: "::1", header: []string{"X-Forwarded-For", "10.9.9.9, 52-54-00-AA-BB-CC"}, code: 200,
			body: found("::1,10.9.9.9,"+mac1, ukiURL),
		},
		"what is no address is passed over": {
			ticket: uki, from: "127.0.0.1", header: []string{"X-Forwarded-For", `",evil<script>,` + uuid1}, code: 404,
			body: `{"error":"no server with an open boot ticket is known to be at 127.0.0.1"}`,
		},
		"of very many addresses the first are looked at": {
			ticket: uki, from: "127.0.0.1", header: []string{"X-Forwarded-For", strings.Repeat("10.9.9.9,", 15) + asking}, code: 404,
			body: `{"error":"no server with an open boot ticket is known to be at 127.0.0.1` + strings.Repeat(", 10.9.9.9", 15) + `"}`,
		},
	} {
		t.Run(title, func(t *testing.T) {
			d := newDesk()
			d.holders[mac1] = &model.TicketHolder{Server: "s1", Ticket: tc.ticket}
			h := newServer(t, d, func(o *Options) { leases(o); o.Loaders = loaders(t, "ipxe.efi") }).Handler()
			for _, target := range []string{"/httpboot", "/httpboot/"} {
				w := askFrom(h, tc.from, "boot.example", target, tc.header...)
				if w.Code != tc.code || w.Body.String() != tc.body+"\n" || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%d %s %s\nwant %d %s", w.Code, w.Header().Get("Content-Type"), w.Body, tc.code, tc.body)
				}
			}
			if d.notes() != nil {
				t.Errorf("noted %v", d.notes())
			}
		})
	}
}

// tenants makes the ticket a claim's, of an image with a UKI or without.
func tenants(uki bool) func(*desk) {
	return func(d *desk) {
		t := *d.holders[uuid1].Ticket
		t.Purpose = model.PurposeClaim
		if uki {
			t.Image.UKI = &model.Layer{Digest: t.Image.Kernel.Digest, Size: 1}
		}
		d.holders[uuid1] = &model.TicketHolder{Server: t.Server, Ticket: &t}
	}
}

func TestIgnitionWithoutAToken(t *testing.T) {
	for title, tc := range map[string]struct {
		world  func(*desk)
		from   string
		target string
		code   int
	}{
		"a machine fetches its own": {nil, asking, uuid1, 200},
		"T14: it does so again": {
			world: func(d *desk) { with(d, "", false, &model.Progress{IgnitionAt: armed}) }, from: asking, target: uuid1, code: 200,
		},
		"T07: in whatever spelling":                  {nil, asking, strings.ToUpper(uuid1), 200},
		"a tenant's that boots a UKI":                {tenants(true), asking, uuid1, 200},
		"Y01: not a tenant's that has its token":     {tenants(false), asking, uuid1, 403},
		"Y01: not from an address that nobody holds": {nil, "10.1.2.4", uuid1, 403},
		"Y01: not another's": {
			world: func(d *desk) { o := *scriptTicket(); o.ID, o.Server, o.UUID = "s2-1", "s2", uuid2; d.arm(&o, "x") }, from: asking,
			target: uuid2, code: 403,
		},
		"Y01: not of a server that is not known": {nil, asking, uuid2, 403},
		"Y01: not of what is no UUID":            {nil, asking, "x", 403},
		"Y01: not once the ticket ended":         {func(d *desk) { with(d, model.TicketBooted, false, nil) }, asking, uuid1, 403},
		"Y01: not without a ticket": {
			world: func(d *desk) { d.holders[uuid1] = &model.TicketHolder{Server: "s1"} }, from: asking, target: uuid1, code: 403,
		},
		"Y01: not from a MAC address that is nobody's": {func(d *desk) { d.holders["nobody"] = nil }, asking, uuid1, 403},
	} {
		t.Run(title, func(t *testing.T) {
			d := newDesk()
			discovery := scriptTicket()
			discovery.Purpose = model.PurposeDiscovery
			d.arm(discovery, `{"ignition":{"version":"3.3.0"}}`)
			if tc.world != nil {
				tc.world(d)
			}
			if _, nobody := d.holders["nobody"]; !nobody {
				d.holders[mac1] = d.holders[uuid1]
			}
			h := newServer(t, d, leases).Handler()
			w := askFrom(h, tc.from, "boot.example", "/ignition/"+tc.target, "X-Forwarded-For", asking)
			if w.Code != tc.code || (w.Code == 200) != strings.Contains(w.Body.String(), "3.3.0") || w.Code != 200 && d.notes() != nil {
				t.Errorf("%d %s, noted %v", w.Code, w.Body, d.notes())
			}
		})
	}
}

func TestLinksPointToWhereTheRequestCameIn(t *testing.T) {
	const set = "http://boot.example:8082"
	for host, want := range map[string]string{
		"192.0.2.1:8082":             "http://192.0.2.1:8082",
		"192.0.2.1":                  "http://192.0.2.1",
		"[fd00::1]:8082":             "http://[fd00::1]:8082",
		"[FD00:0::1]":                "http://[fd00::1]",
		"fd00::1":                    set,
		"[fe80::1%25eth0]:8082":      set,
		"0.0.0.0:8082":               set,
		"boot:8082":                  set,
		"evil.example":               set,
		"192.0.2.1:0":                set,
		"192.0.2.1:99999":            set,
		"192.0.2.1:8082/x":           set,
		"192.0.2.1:8082\nexit":       set,
		"192.0.2.1 && chain http://": set,
		"":                           set,
	} {
		d := newDesk()
		d.arm(scriptTicket(), "{}")
		d.holders[mac1] = d.holders[uuid1]
		for fromHost, want := range map[bool]string{true: want, false: set} {
			h := newServer(t, d, func(o *Options) { leases(o); o.URLFromHost, o.Loaders = fromHost, loaders(t, "ipxe.efi") }).Handler()
			for target, text := range map[string]string{
				"/ipxe":          "set ipxe-svc " + want + "\n",
				"/ipxe/" + uuid1: " ignition.config.url=" + want + "/ignition/",
				"/httpboot":      `"UKIURL":"` + want + `/loader/`,
			} {
				if w := askFrom(h, asking, host, target); !strings.Contains(w.Body.String(), text) {
					t.Errorf("T10: Host %q, from it %v: %s answers %s", host, fromHost, target, w.Body)
				}
			}
		}
	}
}

func TestAMachineThatGoesRoundInCircles(t *testing.T) {
	d := newDesk()
	d.arm(scriptTicket(), "{}")
	now := armed
	h := newServer(t, d, func(o *Options) { o.Clock = func() time.Time { return now } }).Handler()
	script := func(method string) string { return ask(h, method, "/ipxe/"+uuid1).Body.String() }
	for range 3 {
		_ = script("HEAD")
		if got := script("GET"); !strings.Contains(got, "kernel ${kernel-url}") {
			t.Fatalf("one of the first three scripts is\n%s", got)
		}
		now = now.Add(20 * time.Second)
	}
	if got := script("GET"); got != loopScript(uuid1) {
		t.Errorf("T05: the fourth script is\n%s", got)
	}
	if n := len(d.used()); n != 3 || len(d.notes()) != 1 {
		t.Errorf("%d scripts are told, noted is %v", n, d.notes())
	}
	now = armed.Add(3 * time.Minute)
	if got := script("GET"); !strings.Contains(got, "kernel ${kernel-url}") {
		t.Errorf("T05: after 3 minutes the script is\n%s", got)
	}
	with(d, "", false, &model.Progress{ScriptAt: armed, KernelAt: armed})
	for range 9 {
		if got := script("GET"); !strings.Contains(got, "kernel ${kernel-url}") {
			t.Fatalf("once the kernel was fetched the script is\n%s", got)
		}
	}
}
