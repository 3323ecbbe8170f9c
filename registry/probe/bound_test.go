package probe

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/registry"
)

const (
	wrongPlace   = "192.0.2.99 is leased to another machine"
	reportersMAC = "02:00:00:00:00:09"
)

// boundTo lets servers report from one address only.
func boundTo(client string) func(model.TicketHolder, netip.Addr) (model.Asker, model.TicketRefusal, string) {
	return func(_ model.TicketHolder, from netip.Addr) (model.Asker, model.TicketRefusal, string) {
		by := model.Asker{Client: from, MAC: reportersMAC}
		if from == netip.MustParseAddr(client) {
			by.Own = true
			return by, "", ""
		}
		return by, model.RefusedAddress, wrongPlace
	}
}

func (r rig) from(client, method, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.RemoteAddr = client
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

func (r rig) refusals() map[string]float64 {
	got := make(map[string]float64)
	for _, what := range []model.TicketThing{model.ThingReport, model.ThingBootState, model.ThingWipe} {
		for _, why := range []model.TicketRefusal{model.RefusedAddress, model.RefusedToken, model.RefusedSpent, model.RefusedReplay} {
			if n := testutil.ToFloat64(r.endpoint.metrics.refusals.WithLabelValues(string(what), string(why))); n > 0 {
				got[fmt.Sprint(what, " ", why)] = n
			}
		}
	}
	return got
}

func TestReportsAreTakenFromTheServersAddressAlone(t *testing.T) {
	const right, wrong = "192.0.2.7:1234", "192.0.2.99:1234"
	withToken := func(i int) func(rig) string { return func(r rig) string { return "/r/" + r.token(i) } }
	use := func(what model.TicketThing, client string, refusal model.TicketRefusal) []model.TicketUse {
		return []model.TicketUse{{What: what, Client: client, Refusal: refusal, First: now, Last: now, Count: 1}}
	}
	cases := map[string]struct {
		prefix             func(rig) string
		from, method, path string
		server             int
		body               string
		code               int
		says               string
		refused            string // counted
		uses               []model.TicketUse
		stored             string
	}{
		"a report from the server's address": {
			prefix: withToken(discovered), from: right,
			method: "POST", path: "/register", server: discovered, body: probed,
			code: 201, stored: "probe",
			uses: use(model.ThingReport, "192.0.2.7", ""),
		},
		"an IPv4 address in IPv6 is that address": {
			prefix: withToken(discovered), from: "[::ffff:192.0.2.7]:1234",
			method: "POST", path: "/register", server: discovered, body: probed,
			code: 201, stored: "probe",
			uses: use(model.ThingReport, "192.0.2.7", ""),
		},
		"a report from another's": {
			prefix: withToken(discovered), from: wrong,
			method: "POST", path: "/register", server: discovered, body: probed,
			code: 403, says: wrongPlace, refused: "report WrongAddress",
			uses: use(model.ThingReport, "192.0.2.99", model.RefusedAddress),
		},
		"a boot state from another's": {
			prefix: withToken(claimed), from: wrong,
			method: "POST", path: "/bootstate", server: claimed, body: `,"booted":true`,
			code: 403, says: wrongPlace, refused: "boot state WrongAddress",
			uses: use(model.ThingBootState, "192.0.2.99", model.RefusedAddress),
		},
		"a wipe from another's": {
			prefix: withToken(cleaned), from: wrong,
			method: "POST", path: "/wipe", server: cleaned, body: `,"mode":"quick"`,
			code: 403, says: wrongPlace, refused: "wipe result WrongAddress",
			uses: use(model.ThingWipe, "192.0.2.99", model.RefusedAddress),
		},
		"progress of a wipe from another's": {
			prefix: withToken(cleaned), from: wrong,
			method: "POST", path: "/wipe-progress", server: cleaned, body: `,"mode":"quick"`,
			code: 403, says: wrongPlace, refused: "report WrongAddress",
			uses: use(model.ThingReport, "192.0.2.99", model.RefusedAddress),
		},
		"progress of a wipe is a report, and no result yet": {
			prefix: withToken(cleaned), from: right,
			method: "POST", path: "/wipe-progress", server: cleaned, body: `,"mode":"quick"`,
			code: 201, stored: "wiping",
			uses: use(model.ThingReport, "192.0.2.7", ""),
		},
		"asking for a report from another's": {
			prefix: withToken(discovered), from: wrong,
			method: "GET", path: "/systems/" + uuidOf(discovered), server: discovered,
			code: 403, says: wrongPlace, refused: "report WrongAddress",
			uses: use(model.ThingReport, "192.0.2.99", model.RefusedAddress),
		},
		"from nobody knows where": {
			prefix: withToken(discovered), from: "@",
			method: "POST", path: "/register", server: discovered, body: probed,
			code: 403, says: wrongPlace, refused: "report WrongAddress",
			uses: use(model.ThingReport, "", model.RefusedAddress),
		},
		"what the token is not of is not told, wherever it comes from": {
			prefix: withToken(claimed), from: wrong,
			method: "POST", path: "/register", server: discovered, body: probed,
			code: 403, says: "this token is not of", refused: "report WrongToken",
			uses: use(model.ThingReport, "192.0.2.99", model.RefusedToken),
		},
		"a spent token": {
			prefix: withToken(revoked), from: wrong,
			method: "POST", path: "/register", server: revoked, body: probed,
			code: 403, says: "this token is not of", refused: "report Spent",
			uses: use(model.ThingReport, "192.0.2.99", model.RefusedSpent),
		},
		"an unknown server has no ticket to note it with": {
			prefix: withToken(claimed), from: wrong,
			method: "POST", path: "/register", server: 99, body: probed,
			code: 403, says: "this token is not of", refused: "report WrongToken",
		},
		"a server without a ticket has none either": {
			prefix: withToken(noTicket), from: right,
			method: "POST", path: "/register", server: noTicket, body: probed,
			code: 403, says: "this token is not of", refused: "report WrongToken",
		},
		"what comes after the ticket has ended is no use of it (R04)": {
			prefix: withToken(finished), from: right,
			method: "POST", path: "/register", server: finished, body: probed,
			code: 201,
		},
		"what cannot be read is no use": {
			prefix: withToken(discovered), from: right,
			method: "POST", path: "/register", server: discovered, body: `,"data":3`,
			code: 400,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Bound: boundTo("192.0.2.7")})
			w := r.from(c.from, c.method, c.prefix(r)+c.path, uuidBody(c.server, c.body))
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, c.code, c.says)
			}
			want := make(map[string]float64)
			if c.refused != "" {
				want[c.refused] = 1
			}
			if diff := cmp.Diff(want, r.refusals()); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
			wantStored(t, r.Observed(), c.stored)
			r.saveUses(t)
			for i := range c.uses {
				u := &c.uses[i]
				u.MAC, u.Own = reportersMAC, c.from != wrong && c.from != "@"
				u.Token = u.Refusal != model.RefusedToken && u.Refusal != model.RefusedSpent
			}
			wantUses(t, r, model.ServerName(fmt.Sprint("server-", c.server)), c.uses...)
		})
	}
}

// The decision is made for the server that the UUID names, with its ticket.
func TestBoundIsAskedForTheServer(t *testing.T) {
	var got []model.TicketHolder
	r := newRig(t, Options{Bound: func(o model.TicketHolder, _ netip.Addr) (model.Asker, model.TicketRefusal, string) {
		got = append(got, o)
		return model.Asker{}, "", ""
	}})
	r.do("POST", "/r/"+r.token(claimed)+"/bootstate", uuidBody(claimed, ""))
	want := []model.TicketHolder{{Server: "server-1", Ticket: fleet()[claimed].Boot.Ticket}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A path without a token where one is needed is counted, but nothing of it is read.
func TestMissingTokenIsCounted(t *testing.T) {
	r := newRig(t, Options{})
	r.do("POST", "/bootstate", uuidBody(claimed, ""))
	if diff := cmp.Diff(map[string]float64{"boot state WrongToken": 1}, r.refusals()); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

// Whether there is a server, and what is wrong with a token for it, is told to nobody
// who has none of its tokens: all answers are the same.
func TestStrangersLearnNothing(t *testing.T) {
	r := newRig(t, Options{Bound: boundTo("192.0.2.7")})
	stranger := "/r/" + r.token(rebooted)
	first := make(map[string]string)
	for _, server := range []int{discovered, claimed, cleaned, finished, revoked, noTicket, twinA, 99} {
		for path, body := range map[string]string{
			"register": probed, "bootstate": `,"booted":true`,
			"wipe": `,"mode":"quick"`, "wipe-progress": `,"mode":"quick"`,
			"systems": "",
		} {
			method, target := "POST", stranger+"/"+path
			if path == "systems" {
				method, target = "GET", target+"/"+uuidOf(server)
			}
			w := r.do(method, target, uuidBody(server, body))
			got := fmt.Sprint(w.Code, w.Header(), w.Body)
			if first[path] == "" {
				first[path] = got
			}
			if got != first[path] || w.Code != 403 {
				t.Errorf("%s of server %d: %s, of another: %s", path, server, got, first[path])
			}
		}
	}
}

// How far a wipe is is kept until it is known how it went, or nobody asks any more.
func TestWipeProgressLastsAsLongAsTheWipe(t *testing.T) {
	sda := func(percent int) string {
		return wiping(fmt.Sprintf(`{"name":"sda","serial":"S1","sizeBytes":7,"method":"overwrite","percent":%d}`, percent))
	}
	next := fleet()[cleaned]
	next.Boot.Ticket.ID = "server-2-2"
	ended := fleet()[cleaned]
	ended.Boot.Ticket.Ended = model.TicketBooted
	other := fleet()[cleaned]
	other.Life.State, other.Life.Failures = model.StateCleanup, 3
	cases := map[string]struct {
		then func(t *testing.T, r rig)
		want *model.WipeProgress
	}{
		"nothing happens": {
			then: func(*testing.T, rig) {},
			want: progressAt(40),
		},
		"it goes on": {
			then: func(_ *testing.T, r rig) { r.do("POST", "/r/"+r.token(cleaned)+"/wipe-progress", sda(50)) },
			want: progressAt(50),
		},
		"its outcome is reported": {
			then: func(_ *testing.T, r rig) {
				r.do("POST", "/r/"+r.token(cleaned)+"/wipe", uuidBody(cleaned, `,"mode":"quick"`))
			},
		},
		"what comes late does not bring it back": {
			then: func(t *testing.T, r rig) {
				r.do("POST", "/r/"+r.token(cleaned)+"/wipe", uuidBody(cleaned, `,"mode":"quick"`))
				if w := r.do("POST", "/r/"+r.token(cleaned)+"/wipe-progress", sda(50)); w.Code != 201 {
					t.Errorf("got %d", w.Code)
				}
			},
		},
		"the ticket is another": {
			then: func(t *testing.T, r rig) { save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{next}}) },
		},
		"the ticket has ended": {
			then: func(t *testing.T, r rig) {
				save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{ended}})
			},
		},
		"there is no ticket": {
			then: func(t *testing.T, r rig) {
				save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{{RecordIdentity: model.RecordIdentity{Name: "server-2", UUID: uuidOf(cleaned)}}}})
			},
		},
		"something else is decided of it": {
			then: func(t *testing.T, r rig) {
				save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{other}})
			},
			want: progressAt(40),
		},
		"something is decided of another": {
			then: func(t *testing.T, r rig) {
				save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{fleet()[claimed]}})
			},
			want: progressAt(40),
		},
		"its records are restored as were": {
			then: func(t *testing.T, r rig) { save(t, r.Registry, registry.Changes{Servers: fleet()}) },
			want: progressAt(40),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRigIn(t, dir, Options{})
			if w := r.do("POST", "/r/"+r.token(cleaned)+"/wipe-progress", sda(40)); w.Code != 201 {
				t.Fatalf("got %d %q", w.Code, w.Body)
			}
			c.then(t, r)
			if diff := cmp.Diff(c.want, r.Observed().WipeProgress["server-2"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			_ = r.Close()
			if diff := cmp.Diff(c.want, openRegistry(t, registry.Options{Dir: dir}).Observed().WipeProgress["server-2"]); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
		})
	}
}

func progressAt(percent int) *model.WipeProgress {
	return &model.WipeProgress{
		Ticket: "server-2-1", ReceivedAt: now, Mode: "quick",
		Disks: []model.DiskProgress{{Name: "sda", Serial: "S1", SizeBytes: 7, Method: "overwrite", Percent: percent}},
	}
}

// A wipe that takes a day, reported every 10 s, is written when something changed, and now and then
// otherwise: one that is silent for 5 minutes is taken to hang.
func TestProgressThatIsNoneIsSeldomWritten(t *testing.T) {
	at := now
	r := newRig(t, Options{Clock: func() time.Time { return at }})
	for i := range 100 {
		r.do("POST", "/r/"+r.token(cleaned)+"/wipe-progress", wiping(fmt.Sprintf(`{"name":"sda","percent":%d}`, i/50)))
		if silent := at.Sub(r.Observed().WipeProgress["server-2"].ReceivedAt); silent >= 2*time.Minute {
			t.Fatalf("report %d: nothing is heard of the wipe for %v", i, silent)
		}
		at = at.Add(10 * time.Second)
	}
	if got := r.writes(t, "wipeprogress"); got != 10 { // one of each percent, and every 2 minutes
		t.Errorf("%v writes", got)
	}
}

// A probe that goes on after its ticket has ended is answered, whatever it says (R04).
func TestWeakWipeAfterTheTicketIsAnswered(t *testing.T) {
	r := newRig(t, Options{})
	rec := fleet()[cleaned]
	rec.Boot.Ticket.Ended = model.TicketBooted
	save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{rec}})
	for _, path := range []string{"/wipe", "/wipe-progress"} {
		if w := r.do("POST", "/r/"+r.token(cleaned)+path, uuidBody(cleaned, `,"mode":"none"`)); w.Code != 201 {
			t.Errorf("%s: got %d %q", path, w.Code, w.Body)
		}
	}
	wantStored(t, r.Observed(), "")
}

func TestStrengthOfWipes(t *testing.T) {
	const ok, weak = 201, 400
	cases := []struct {
		asked string
		codes map[string]int
	}{
		{"", map[string]int{"none": ok, "quick": ok, "secure": ok}}, // of a record from before it was noted
		{"none", map[string]int{"none": ok, "quick": ok, "secure": ok}},
		{"quick", map[string]int{"none": weak, "quick": ok, "secure": ok}},
		{"secure", map[string]int{"none": weak, "quick": weak, "secure": ok}},
	}
	for _, c := range cases {
		for mode, code := range c.codes {
			t.Run(fmt.Sprint(mode, " where ", c.asked, " was asked for"), func(t *testing.T) {
				r := newRig(t, Options{})
				rec := serverRecord(cleaned, model.PurposeCleanup)
				rec.Boot.Ticket.CleanupMode = c.asked
				save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{rec}})
				for _, path := range []string{"/wipe-progress", "/wipe"} {
					w := r.do("POST", "/r/"+r.token(cleaned)+path, uuidBody(cleaned, fmt.Sprintf(`,"mode":%q`, mode)))
					if w.Code != code || code == weak && !strings.Contains(w.Body.String(), c.asked+" was asked for") {
						t.Errorf("%s: got %d %q, want %d", path, w.Code, w.Body, code)
					}
				}
				if got := r.Observed().Wipes["server-2"] != nil; got != (code == ok) {
					t.Errorf("it counts: %v", got)
				}
			})
		}
	}
}
