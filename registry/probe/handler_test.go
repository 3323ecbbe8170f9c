package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

func TestEndpointWithToken(t *testing.T) {
	// at is a path with the token of a server; got is which report was stored.
	at := func(i int, path string) func(rig) string {
		return func(r rig) string { return "/r/" + r.token(i) + path }
	}
	plain := func(path string) func(rig) string { return func(rig) string { return path } }
	config := func(i int, path string) func(rig) string {
		return func(r rig) string {
			return "/r/" + r.TokenKey.Config(serverRecord(i, model.PurposeClaim).Boot.Ticket, 0).Reveal() + path
		}
	}
	cases := map[string]struct {
		method string // POST if empty
		path   func(rig) string
		body   string
		code   int
		stored string
		says   string
	}{
		"a probe's report is stored, even with a wrong clock (R03, R09)": {
			path: at(discovered, "/register"), body: uuidBody(discovered, probed), code: 201, stored: "probe"},
		"a report before Redfish sees power is stored (R13)": {
			path: at(discovered, "/register"), body: uuidBody(discovered, ""), code: 201, stored: "probe"},
		"upper case is the same UUID (R07)": {
			path: at(discovered, "/register"), body: strings.ToUpper(uuidBody(discovered, "")), code: 201, stored: "probe"},
		"a probe that goes on after discovery is answered and ignored (R04)": {
			path: at(finished, "/register"), body: uuidBody(finished, probed), code: 201},
		"a cleanup probe's inventory is answered and ignored": {
			path: at(cleaned, "/register"), body: uuidBody(cleaned, probed), code: 201},
		"a claimed server does not register": {
			path: at(claimed, "/register"), body: uuidBody(claimed, probed), code: 403},
		"a spent token is refused (R05)": {
			path: at(revoked, "/register"), body: uuidBody(revoked, probed), code: 403},
		"a report for another server is refused (Y02)": {
			path: at(claimed, "/register"), body: uuidBody(discovered, probed), code: 403},
		"a server without a ticket is refused": {
			path: at(noTicket, "/register"), body: uuidBody(noTicket, probed), code: 403},
		"an unknown server is refused with a token (R01)": {
			path: at(discovered, "/register"), body: uuidBody(99, probed), code: 403},
		"a made-up token is refused": {
			path: plain("/r/aaaaaaaaaaaaaaaaaaaaaaaaaa/register"), body: uuidBody(discovered, probed), code: 403},
		"a path without a token is refused and says how (Y02)": {
			path: plain("/register"), body: uuidBody(discovered, probed), code: 403, says: "/r/<token>/register"},
		"bootstate without a token is refused": {
			path: plain("/bootstate"), body: uuidBody(claimed, `,"booted":true`), code: 403, says: "/r/<token>"},
		"systems without a token is refused":  {method: "GET", path: plain("/systems/" + uuidOf(0)), code: 403},
		"deleting is refused":                 {method: "DELETE", path: plain("/delete/" + uuidOf(0)), code: 403},
		"there is no deleting with a token":   {method: "DELETE", path: at(discovered, "/delete/"+uuidOf(0)), code: 404},
		"GET /register is refused (R02)":      {method: "GET", path: at(discovered, "/register"), code: 405},
		"GET bare /register is refused (R02)": {method: "GET", path: plain("/register"), code: 405},
		"PUT /wipe is refused":                {method: "PUT", path: at(cleaned, "/wipe"), code: 405},
		"broken JSON is refused (R02)": {
			path: at(discovered, "/register"), body: `{"systemUUID":`, code: 400, says: "unexpected end of JSON"},
		"a wrong type is refused with its name": {
			path: at(discovered, "/register"), body: uuidBody(discovered, `,"data":{"cpu":[{"capabilities":"x"}]}`), code: 400, says: "data.cpu.capabilities"},
		"two documents are refused": {path: at(discovered, "/register"), body: uuidBody(discovered, "") + "{}", code: 400},
		"no UUID is refused":        {path: at(discovered, "/register"), body: `{}`, code: 400, says: "systemUUID"},
		"an all-zero UUID is refused": {
			path: at(discovered, "/register"), body: `{"systemUUID":"00000000-0000-0000-0000-000000000000"}`, code: 400},
		"more than 4 MiB is refused (R02, Y10)": {
			path: at(discovered, "/register"), body: uuidBody(discovered, `,"x":"`+strings.Repeat("x", 4<<20)+`"`), code: 413},
		"a list of too many is refused": {
			path: at(discovered, "/register"), body: uuidBody(discovered, `,"data":{"nics":[{}`+strings.Repeat(",{}", 4096)+`]}`),
			code: 400, says: "data.nics has 4097 entries"},
		"a string that is too long is refused": {
			path: at(discovered, "/register"),
			body: uuidBody(discovered, `,"data":{"storage":[{"serial":"`+strings.Repeat("x", 4097)+`"}]}`),
			code: 400, says: "data.storage.serial has 4097 bytes"},

		"a booted server says so": {
			path: at(claimed, "/bootstate"), body: uuidBody(claimed, `,"booted":true`), code: 200, stored: "boot"},
		"booted=false has no effect (R11)": {
			path: at(claimed, "/bootstate"), body: uuidBody(claimed, `,"booted":false`), code: 200},
		"a server that says it again after its ticket ended is answered": {
			path: at(rebooted, "/bootstate"), body: uuidBody(rebooted, `,"booted":true`), code: 200},
		"a server without boot configuration is not found (R11)": {
			path: at(discovered, "/bootstate"), body: uuidBody(discovered, `,"booted":true`), code: 404},
		"an unknown server's bootstate is refused with a token, as a known one's is": {
			path: at(claimed, "/bootstate"), body: uuidBody(99, `,"booted":true`), code: 403, says: "this token is not of"},
		"two servers with one UUID are not found (R12)": {
			path: at(twinA, "/bootstate"), body: uuidBody(twinA, `,"booted":true`), code: 404, says: "2 servers have the system UUID"},
		"two servers with one UUID do not register (R12)": {
			path: at(twinB, "/register"), body: uuidBody(twinA, probed), code: 404, says: "2 servers have the system UUID"},
		"a stranger is not told of two servers with one UUID": {
			path: at(claimed, "/bootstate"), body: uuidBody(twinA, `,"booted":true`), code: 403, says: "this token is not of"},
		"another server's bootstate is refused (Y02)": {
			path: at(discovered, "/bootstate"), body: uuidBody(claimed, `,"booted":true`), code: 403},

		"a wipe is reported": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"quick","disks":[{"name":"sda","result":"wiped"}]`),
			code: 201, stored: "wipe"},
		"a machine without disks is wiped": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"quick"`), code: 201, stored: "wipe"},
		"a stronger wipe than was asked for counts": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"secure"`), code: 201, stored: "wipe"},
		"a weaker wipe than was asked for does not count": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"none"`), code: 400, says: "quick was asked for"},
		"an unknown mode is refused": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"fast"`), code: 400, says: "none, quick and secure"},
		"an unknown result is refused": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"quick","disks":[{"name":"sda","result":"maybe"}]`),
			code: 400, says: "disks[0]"},
		"too many disks are refused": {
			path: at(cleaned, "/wipe"), body: uuidBody(cleaned, `,"mode":"quick","disks":[{}`+strings.Repeat(",{}", 1024)+`]`),
			code: 400, says: "1025 disks"},
		"a wipe with a discovery token is refused": {
			path: at(discovered, "/wipe"), body: uuidBody(discovered, `,"mode":"quick"`), code: 403},
		"a wipe of another server is refused (Y02)": {
			path: at(claimed, "/wipe"), body: uuidBody(cleaned, `,"mode":"quick"`), code: 403},
		"there is no wipe without a token": {path: plain("/wipe"), body: "{}", code: 404},

		"how far a wipe is is reported": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","method":"overwrite","percent":40}`),
			code: 201, stored: "wiping"},
		"a disk that does not say how far its wipe is": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","percent":-1},{"name":"sdb","percent":100,"result":"failed"}`),
			code: 201, stored: "wiping"},
		"progress of as many disks as are allowed": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda"}` + strings.Repeat(`,{"name":"sdb"}`, 255)),
			code: 201, stored: "wiping"},
		"progress of one more is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda"}` + strings.Repeat(`,{"name":"sdb"}`, 256)),
			code: 400, says: "257 disks"},
		"progress of an unknown mode is refused": {
			path: at(cleaned, "/wipe-progress"), body: uuidBody(cleaned, `,"mode":""`), code: 400, says: "none, quick and secure"},
		"progress of a weaker wipe is refused": {
			path: at(cleaned, "/wipe-progress"), body: uuidBody(cleaned, `,"mode":"none"`), code: 400, says: "quick was asked for"},
		"progress of a disk without a name is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda"},{"percent":3}`), code: 400, says: "disks[1]: it has no name"},
		"more than all of a disk is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","percent":101}`), code: 400, says: "percent 101"},
		"less than nothing of a disk is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","percent":-2}`), code: 400, says: "percent -2"},
		"a name that is too long is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"` + strings.Repeat("x", 257) + `"}`),
			code: 400, says: "name has 257 bytes"},
		"a serial number that a terminal would obey is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","serial":"\u001b[2J"}`), code: 400, says: "cannot be shown"},
		"a method of two lines is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","method":"a\nb"}`), code: 400, says: "method"},
		"an unknown result of a disk is refused": {
			path: at(cleaned, "/wipe-progress"), body: wiping(`{"name":"sda","result":"soon"}`), code: 400, says: "result"},
		"progress with a discovery token is refused": {
			path: at(discovered, "/wipe-progress"), body: uuidBody(discovered, `,"mode":"quick"`),
			code: 403, says: "not of a boot ticket for cleanup"},
		"progress of another server is refused (Y02)": {
			path: at(claimed, "/wipe-progress"), body: wiping(`{"name":"sda"}`), code: 403},
		"there is no progress without a token": {path: plain("/wipe-progress"), body: "{}", code: 404},
		"GET /wipe-progress is refused":        {method: "GET", path: at(cleaned, "/wipe-progress"), code: 405},

		"a system that did not report is not found": {method: "GET", path: at(discovered, "/systems/"+uuidOf(discovered)), code: 404},
		"a report with the token of the configuration is refused": {
			path: config(discovered, "/register"), body: uuidBody(discovered, probed), code: 403},
		"nor does that say that a server has booted": {
			path: config(claimed, "/bootstate"), body: uuidBody(claimed, `,"booted":true`), code: 403},
		"nor that a disk was wiped": {
			path: config(cleaned, "/wipe"), body: wiping(`{"name":"sda"}`), code: 403},
		"nor is it told of a system":  {method: "GET", path: config(discovered, "/systems/"+uuidOf(discovered)), code: 403},
		"another system is not shown": {method: "GET", path: at(claimed, "/systems/"+uuidOf(discovered)), code: 403},
		"nor whether there is one":    {method: "GET", path: at(claimed, "/systems/"+uuidOf(99)), code: 403},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			method := c.method
			if method == "" {
				method = "POST"
			}
			w := r.do(method, c.path(r), c.body)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, c.code, c.says)
			}
			if w.Code < 300 && w.Body.Len() > 0 {
				t.Errorf("body %q", w.Body)
			}
			if w.Code == 405 && w.Header().Get("Allow") == "" {
				t.Error("no Allow header")
			}
			wantStored(t, r.Observed(), c.stored)
		})
	}
}

func wantStored(t *testing.T, o *model.Observed, want string) {
	t.Helper()
	got := ""
	for name, n := range map[string]int{
		"probe": len(o.Probes), "boot": len(o.BootStates), "wipe": len(o.Wipes), "wiping": len(o.WipeProgress),
	} {
		if n > 0 {
			got += name
		}
	}
	if got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
}

func TestDisksAreToldToNobody(t *testing.T) {
	r := newRig(t, Options{})
	body := uuidBody(discovered, `,"data":{"lldp":[{"name":"eth0"}],"storage":[{"name":"sda","serial":"S-1"}]}`)
	if w := r.do(http.MethodPost, "/r/"+r.token(discovered)+"/register", body); w.Code != http.StatusCreated {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	w := r.do(http.MethodGet, "/r/"+r.token(discovered)+"/systems/"+uuidOf(discovered), "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"eth0"`) || strings.Contains(w.Body.String(), "S-1") {
		t.Errorf("GET /systems: %d %s", w.Code, w.Body)
	}
	if disks := r.Observed().Probes["server-0"]; disks == nil || len(disks.Data.Storage) != 1 {
		t.Errorf("of the report is kept %+v", disks)
	}
}

func TestReportIsStoredAsReceived(t *testing.T) {
	r := newRig(t, Options{})
	wiped := `,"mode":"secure","disks":[{"name":"sda","serial":"S\ufffd","result":"failed","error":"locked"}]`
	r.do("POST", "/r/"+r.token(cleaned)+"/wipe", uuidBody(cleaned, wiped))
	want := map[model.ServerName]*model.WipeReport{"server-2": {
		Ticket: "server-2-1", ReceivedAt: now, Mode: "secure",
		Disks: []model.DiskWipe{{Name: "sda", Serial: "S\ufffd", Result: "failed", Error: "locked"}},
	}}
	if diff := cmp.Diff(want, r.Observed().Wipes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, `,"data":{"memory":[{}],"lldp":[{"name":"`+"\xff"+`"}]}`))
	probe := r.Observed().Probes["server-0"]
	if probe == nil || probe.Ticket != "server-0-1" || !probe.ReceivedAt.Equal(now) || probe.Data.LLDP[0].Name != "\ufffd" {
		t.Errorf("got %+v", probe)
	}
	w := r.do("GET", "/r/"+r.token(discovered)+"/systems/"+uuidOf(discovered), "")
	var data model.ProbeData
	err := json.Unmarshal(w.Body.Bytes(), &data)
	if err != nil || !cmp.Equal(data, probe.Data) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("shown: %v %s", err, w.Body)
	}
}

// What is no use is left out when it is shown, not when it is stored (R09).
func TestInterfacesOfAllKindsAreStored(t *testing.T) {
	interfaces := []model.ProbeNetworkInterface{
		{Name: "eth0", MACAddress: "02:00:00:00:00:01", CarrierStatus: "down"},
		{Name: "eth1", MACAddress: "02:00:00:00:00:02", IPAddresses: []string{"192.0.2.1", "2001:db8::1", "192.0.2.2"}},
		{Name: "eth2", MACAddress: "02:00:00:00:00:03", IPAddresses: []string{"fe80::1"}},
		{Name: "bond0", MACAddress: "02:00:00:00:00:01"}, {Name: "bond0.100", MACAddress: "02:00:00:00:00:01"},
		{Name: "tun0"}, {Name: "docker0"},
	}
	body := must.Get(json.Marshal(model.ProbeRegistration{SystemUUID: uuidOf(discovered), Data: model.ProbeData{NetworkInterfaces: interfaces}}))(t)
	r := newRig(t, Options{})
	if w := r.do("POST", "/r/"+r.token(discovered)+"/register", string(body)); w.Code != 201 {
		t.Fatalf("got %d %q", w.Code, w.Body)
	}
	if diff := cmp.Diff(interfaces, r.Observed().Probes["server-0"].Data.NetworkInterfaces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A probe repeats itself for ever (R04).
func TestRepeatedReportsAreNotWritten(t *testing.T) {
	ticks := 0
	r := newRig(t, Options{Clock: func() time.Time {
		ticks++
		return now.Add(time.Duration(ticks) * 3 * time.Second)
	}})
	const other = 50 // is wiped still
	save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{serverRecord(other, model.PurposeCleanup)}})
	for path, body := range map[string]string{
		fmt.Sprintf("/r/%s/register", r.token(discovered)): uuidBody(discovered, probed),
		fmt.Sprintf("/r/%s/bootstate", r.token(claimed)):   uuidBody(claimed, `,"booted":true`),
		fmt.Sprintf("/r/%s/wipe", r.token(cleaned)):        uuidBody(cleaned, `,"mode":"quick"`),
		fmt.Sprintf("/r/%s/wipe-progress", r.token(other)): fmt.Sprintf(`{"systemUUID":%q,"mode":"quick"}`, uuidOf(other)),
	} {
		for range 3 {
			if w := r.do("POST", path, body); w.Code >= 300 {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
	}
	for _, b := range []string{"probe", "bootstate", "wipe", "wipeprogress"} {
		if got := r.writes(t, b); got != 1 {
			t.Errorf("%s: %v writes", b, got)
		}
	}
	r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, ""))
	if got := r.writes(t, "probe"); got != 2 {
		t.Errorf("a changed report: %v writes", got)
	}
}

// The answer comes after the commit, so nothing that was answered is lost (R06).
func TestReportsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	r := newRigIn(t, dir, Options{})
	if w := r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, probed)); w.Code != 201 {
		t.Fatal(w.Code)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ingot.db")) // as kill -9 leaves it
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(copied, "ingot.db"), raw, 0o600))
	again := openRegistry(t, registry.Options{Dir: copied})
	if diff := cmp.Diff(r.Observed().Probes, again.Observed().Probes); diff != "" || len(again.Observed().Probes) != 1 {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestReportsAreRefusedWhenTheyCannotBeStored(t *testing.T) {
	r := newRig(t, Options{})
	_ = r.Close()
	w := r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, probed))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}

// The report of a boot that ends while the report is on its way is not stored.
func TestReportOfATicketThatEndsMeanwhileIsRefused(t *testing.T) {
	r := newRig(t, Options{})
	old := fleet()[discovered].Boot.Ticket
	rec := fleet()[discovered]
	rec.Boot.Ticket.ID = "server-0-2"
	save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{rec}})
	q := &request{Request: httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), endpoint: r.endpoint}
	if err := q.save(old, &model.ProbeReport{Ticket: old.ID}); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("got error %v", err)
	}
	if w := r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, probed)); w.Code != 403 {
		t.Errorf("the token of the previous boot: %d", w.Code)
	}
}

func TestTokenIsNeverLogged(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r.do("POST", "/r/"+r.token(discovered)+"/register", uuidBody(discovered, probed))
	r.do("POST", "/r/"+r.token(discovered)+"/register", "{")
	_ = r.Close()
	r.do("POST", "/r/"+r.token(cleaned)+"/wipe", uuidBody(cleaned, `,"mode":"quick"`))
	text := log.String()
	if strings.Contains(text, r.token(discovered)) || strings.Contains(text, r.token(cleaned)) || !strings.Contains(text, "path=wipe") {
		t.Error(text)
	}
}

func TestRequestsAreCountedWithBoundedLabels(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 50 {
		r.do("POST", fmt.Sprintf("/r/guess%d/register", i), uuidBody(discovered, ""))
		r.do("GET", fmt.Sprintf("/%d", i), "")
	}
	if got := testutil.CollectAndCount(r.endpoint.metrics.requests); got != 2 {
		t.Errorf("%d series", got)
	}
	if got := testutil.ToFloat64(r.endpoint.metrics.requests.WithLabelValues("register", "403")); got != 50 {
		t.Errorf("%v refused", got)
	}
}

// A length that is too much is refused before a byte is read.
func TestAnnouncedLargeBodyIsRefused(t *testing.T) {
	r := newRig(t, Options{})
	req := httptest.NewRequest("POST", "/r/x/register", zeros{})
	req.ContentLength = 1 << 40
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d", w.Code)
	}
}

// A body without a length that never ends is cut off, over a real connection.
func TestEndlessBodyIsRefused(t *testing.T) {
	r := newRig(t, Options{MaxBody: 1 << 10})
	server := httptest.NewServer(r.handler)
	defer server.Close()
	body := io.MultiReader(strings.NewReader(`{"systemUUID":"`), io.LimitReader(zeros{}, 1<<20))
	req := must.Get(http.NewRequestWithContext(context.Background(), "POST", server.URL+"/r/x/register", body))(t)
	res, err := server.Client().Do(req)
	if err != nil {
		t.Skipf("the server hung up before the answer was read: %v", err) // allowed to
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %s", res.Status)
	}
}

// Room is taken by what a client says that it will send: one that sends nothing, as often
// as it may, leaves others theirs.
func TestWhoSendsNothingKeepsNobodyOut(t *testing.T) {
	r := newRig(t, Options{})
	post := func(from, body string, length int64, reader io.Reader) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, "/r/"+r.token(discovered)+"/register", reader)
		if req.RemoteAddr = from; reader == nil {
			req.Body = io.NopCloser(strings.NewReader(body))
		}
		req.ContentLength = length
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		return w
	}
	for title, tc := range map[string]struct{ idle, other string }{
		"IPv4": {"10.0.0.%d:99", "10.0.0.100:1"},
		"IPv6": {"[fd00::%d]:99", "[fd00:0:0:1::1]:1"},
	} {
		t.Run(title, func(t *testing.T) {
			var waiting sync.WaitGroup
			end, idle := io.Pipe()
			var busy atomic.Int32
			for n := range 16 {
				from := fmt.Sprintf(tc.idle, 1)
				if title == "IPv6" {
					from = fmt.Sprintf(tc.idle, n+1)
				}
				waiting.Go(func() {
					busy.Add(1)
					if w := post(from, "", 4<<20, end); w.Code == http.StatusTooManyRequests {
						busy.Add(100)
					}
				})
			}
			for deadline := time.Now().Add(10 * time.Second); busy.Load() != 16+12*100; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("not within 10 s: its share is taken")
				}
			}
			report := uuidBody(discovered, probed)
			if w := post(tc.other, report, int64(len(report)), nil); w.Code != http.StatusCreated {
				t.Errorf("another client is answered %d %s", w.Code, w.Body)
			}
			_ = idle.Close()
			waiting.Wait()
			if w := post(fmt.Sprintf(tc.idle, 1), report, int64(len(report)), nil); w.Code != http.StatusCreated {
				t.Errorf("once it has ended, the client is answered %d %s", w.Code, w.Body)
			}
		})
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func FuzzRegister(f *testing.F) {
	f.Add(uuidBody(discovered, probed))
	f.Add(uuidBody(discovered, ""))
	f.Add(`{"systemUUID":null,"data":null}`)
	f.Add(`[[[[`)
	f.Add("{\"systemUUID\":\"\xff\"}")
	r := newRig(f, Options{})
	path := "/r/" + r.token(discovered) + "/register"
	f.Fuzz(func(t *testing.T, body string) {
		w := r.do("POST", path, body)
		switch w.Code {
		case 201, 400, 403, 413:
		default:
			t.Errorf("answered %d %q", w.Code, w.Body)
		}
		if w.Code != 201 {
			return
		}
		raw, err := json.Marshal(r.Observed().Probes["server-0"])
		if err == nil {
			err = json.Unmarshal(raw, new(model.ProbeReport))
		}
		if err != nil {
			t.Errorf("what is stored cannot be read: %v", err)
		}
	})
}
