package bootsvc

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

// segment is two servers that boot different images of one registry, and machines
// beside them: s1 at 10.0.0.1, s2 at 10.0.0.2, what is no known server at 10.0.0.3, and
// whoever took 10.9.9.9.
type segment struct {
	*rack
	leases leaseTable
	paths  map[string]string // of what s1's ticket stands for, by name
	log    bytes.Buffer
	now    time.Time
}

func newSegment(t *testing.T) *segment {
	t.Helper()
	s := &segment{now: armed, leases: leaseTable{
		"10.0.0.1": "02:00:00:00:00:01", "fd00::1": "02:00:00:00:00:01", "10.0.0.2": "02:00:00:00:00:02", "10.0.0.3": "02:00:00:00:00:03",
	}}
	s.rack = newRack(t, nil, func(o *Options) {
		s.leases.bind(o)
		o.Log = slog.New(slog.NewTextHandler(&s.log, nil))
		o.Clock = func() time.Time { return s.now }
	})
	ref, _, err := s.registry.Push(
		"os/uki", "1", ociserver.Image{Kernel: pattern(2000, 4), Initrd: pattern(1000, 5), UKI: pattern(3000, 6)},
	)
	if err != nil {
		t.Fatal(err)
	}
	ticket := *s.ticket
	ticket.Image = must.Get(s.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	other := *s.ticket
	other.ID, other.Server, other.UUID = "s2-1", "s2", uuid2
	s.ticket = &ticket
	s.desk.arm(&other, `{"ignition":{"version":"3.3.0"}}`)
	s.desk.holders["02:00:00:00:00:02"] = s.desk.holders[uuid2]
	s.arm(s.ticket)
	token := tokenOf(&ticket).Reveal()
	uki := netboot.UKIPath(&ticket)
	bareUKI, _, _ := strings.Cut(uki, "?")
	bareKernel, _, _ := strings.Cut(layerPath(&ticket, ticket.Image.Kernel), "&uuid=")
	s.paths = map[string]string{
		"script":              "/ipxe/" + uuid1,
		"script by MAC":       "/ipxe/02-00-00-00-00-01",
		"Ignition":            "/ignition/" + uuid1 + "/" + token,
		"Ignition, tokenless": "/ignition/" + uuid1,
		"user-data":           "/nocloud/" + uuid1 + "/" + token + "/user-data",
		"meta-data":           "/nocloud/" + uuid1 + "/" + token + "/meta-data",
		"kernel":              layerPath(&ticket, ticket.Image.Kernel),
		"kernel, unnamed":     bareKernel + "&version=1",
		"UKI":                 uki,
		"UKI, unnamed":        bareUKI,
	}
	return s
}

// arm gives s1 a ticket that hands out everything that tickets can.
func (s *segment) arm(t *model.Ticket) {
	payload := ignition.Payload{
		Ignition: `{"ignition":{"version":"3.3.0"}}`,
		NoCloud:  map[string]string{"user-data": "#cloud-config", "meta-data": "{}"},
	}
	s.desk.arm(t, payload.Seal().Reveal())
	s.desk.holders["02:00:00:00:00:01"] = s.desk.holders[uuid1]
}

// fetch asks for what s1's ticket stands for, which was not used so far, and returns
// the status code and what was told of uses.
func (s *segment) fetch(from, what string) string {
	w := askFrom(s.service.Handler(), from, "boot.example", s.paths[what])
	return strings.Join(append([]string{fmt.Sprint(w.Code)}, s.desk.used()...), ", ")
}

func TestAServerIsServedItsOwnOnly(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	const own, own6, other, guest, stranger = "10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.3", "10.9.9.9"
	all := []string{"script", "script by MAC", "Ignition", "Ignition, tokenless", "user-data", "meta-data", "kernel", "UKI"}
	unnamed := []string{"kernel, unnamed", "UKI, unnamed"}
	every := append(append([]string{}, all...), unnamed...)
	discovery := func(s *segment) { s.ticket.Purpose = model.PurposeDiscovery }
	binding := func(b netboot.AddressRule) func(*segment) {
		return func(s *segment) { s.service.gate.rules.Rule = b }
	}
	for title, tc := range map[string]struct {
		world   func(*segment)
		from    []string
		what    []string
		refusal model.TicketRefusal
	}{
		"at its own addresses":                      {from: []string{own, own6}, what: every},
		"Y01: not at the address of another server": {from: []string{other}, what: all, refusal: model.RefusedOther},
		"nor what other tickets pin":                {from: []string{other}, what: unnamed, refusal: model.RefusedAddress},
		"at no interface that is not known":         {from: []string{guest}, what: all, refusal: model.RefusedUnknown},
		"nor for its discovery":                     {world: discovery, from: []string{guest}, what: all, refusal: model.RefusedUnknown},
		"not where nobody can be told apart": {
			from: []string{stranger, "fd00::9", "127.0.0.1", "fe80::ff:fe00:1"}, what: all, refusal: model.RefusedCannotTell,
		},
		"nor for its discovery there": {
			world: discovery, from: []string{stranger}, what: all,
			refusal: model.RefusedCannotTell,
		},
		"firmware that is not known is served images": {from: []string{guest, stranger, "127.0.0.1"}, what: unnamed},
		"not at another server's whatever is bound": {
			world: binding(netboot.BindNothing), from: []string{other}, what: all,
			refusal: model.RefusedOther,
		},
		"anywhere where nothing is bound": {
			world: binding(netboot.BindNothing), from: []string{guest, stranger}, what: []string{"script", "Ignition", "kernel"},
		},
		"not without a token there, where it is unknown": {
			world: binding(netboot.BindNothing), from: []string{guest}, what: []string{"Ignition, tokenless"},
			refusal: model.RefusedUnknown,
		},
		"nor where it cannot be told": {
			world: binding(netboot.BindFirst), from: []string{stranger}, what: []string{"Ignition, tokenless"},
			refusal: model.RefusedCannotTell,
		},
	} {
		t.Run(title, func(t *testing.T) {
			s := newSegment(t)
			if tc.world != nil {
				tc.world(s)
			}
			for _, from := range tc.from {
				for _, what := range tc.what {
					s.arm(s.ticket) // nothing was fetched yet
					s.service.scripts = netboot.NewScriptLimiter()
					s.desk.unnote()
					served := tc.refusal == ""
					want := "403, s1-1 " + thing(what) + " " + from + " " + string(tc.refusal)
					switch {
					case served && strings.HasSuffix(what, "unnamed") && from != own && from != own6:
						want = "200" // whose use that is, is not known
					case served:
						want = "200, s1-1 " + thing(what) + " " + from
					}
					if got := s.fetch(from, what); got != want {
						t.Errorf("%s at %s: got %q, want %q", what, from, got, want)
					}
					if !served && s.desk.notes() != nil {
						t.Errorf("%s at %s was refused, and noted: %v", what, from, s.desk.notes())
					}
				}
			}
		})
	}
}

func thing(what string) string {
	switch {
	case strings.HasPrefix(what, "script"):
		return "iPXE script"
	case strings.HasPrefix(what, "Ignition"):
		return "Ignition"
	case strings.HasSuffix(what, "data"):
		return "cloud-init data"
	}
	return "image"
}

// A board whose BMC shows no MAC address is known by the card that asked DHCP, which asks
// for more before that is written down.
func TestACardIsKnownByWhatDHCPHeardOfItAMomentAgo(t *testing.T) {
	const card, at = "02:00:00:00:00:03", "10.0.0.3"
	for title, tc := range map[string]struct {
		purpose model.TicketPurpose
		path    string
		want    int
	}{
		"its script, in discovery":            {model.PurposeDiscovery, "/ipxe/" + uuid1, http.StatusOK},
		"what UEFI boots by HTTP":             {model.PurposeDiscovery, "/httpboot", http.StatusOK},
		"but nobody is known by that in vain": {model.PurposeClaim, "/ipxe/" + uuid1, http.StatusForbidden},
	} {
		t.Run(title, func(t *testing.T) {
			s := newSegment(t)
			s.ticket.Purpose = tc.purpose
			s.arm(s.ticket)
			s.service.gate.settle = func(context.Context) { s.desk.holders[card] = s.desk.holders[uuid1] }
			if w := askFrom(s.service.Handler(), at, "boot.example", tc.path); w.Code != tc.want {
				t.Errorf("answered %d, want %d: %s", w.Code, tc.want, w.Body)
			}
		})
	}
}

func TestTheFirstClientIsTheOnlyOne(t *testing.T) {
	s := newSegment(t)
	delete(s.leases, "10.0.0.1")
	s.service.gate.rules.Rule = netboot.BindFirst
	for _, step := range []struct{ from, what, want string }{
		{"10.9.9.9", "script", "200, s1-1 iPXE script 10.9.9.9"},
		{"10.9.9.8", "Ignition", "403, s1-1 Ignition 10.9.9.8 WrongAddress"},
		{"10.9.9.9", "Ignition", "200, s1-1 Ignition 10.9.9.9"},
		{"10.0.0.2", "Ignition", "403, s1-1 Ignition 10.0.0.2 OtherServer"},
		{"fd00::1", "Ignition", "200, s1-1 Ignition fd00::1"},
	} {
		if got := s.fetch(step.from, step.what); got != step.want {
			t.Errorf("%s at %s: got %q, want %q", step.what, step.from, got, step.want)
		}
		p := s.desk.holders[uuid1].Progress
		if p != nil && p.Client == "" {
			p.Client = step.from // as whoever keeps it does, of the first
		}
	}
}

// A ticket is good from when it is armed until it has ended, and what it gives once it
// gives once.
func TestTheLifeOfATicket(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	everything := []string{"script", "Ignition", "Ignition, tokenless", "user-data", "kernel", "UKI", "kernel, unnamed"}
	const served = ""
	for title, tc := range map[string]struct {
		ended    model.TicketState
		always   bool
		progress *model.Progress
		want     map[string]string // refusals, of what is not served
	}{
		"armed":                 {},
		"its script was served": {progress: &model.Progress{ScriptAt: armed}},
		"T14: its Ignition was served": {
			progress: &model.Progress{ScriptAt: armed, IgnitionAt: armed},
			want:     map[string]string{"script": "Replay"},
		},
		"its Ignition was, for always": {always: true, progress: &model.Progress{ScriptAt: armed, IgnitionAt: armed}},
		"it did its work": {
			ended: model.TicketBooted, progress: &model.Progress{IgnitionAt: armed},
			want: map[string]string{"script": "Replay", "": "Spent"},
		},
		"it did its work, for always": {
			ended: model.TicketBooted, always: true, progress: &model.Progress{IgnitionAt: armed},
		},
		"it ran out": {ended: model.TicketSpent, want: map[string]string{"": "Spent"}},
		"it was revoked, though always": {
			ended: model.TicketSpent, always: true, progress: &model.Progress{IgnitionAt: armed},
			want: map[string]string{"": "Spent"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			for _, what := range everything {
				s := newSegment(t)
				with(s.desk, tc.ended, tc.always, tc.progress)
				refusal, ok := tc.want[what]
				if !ok {
					refusal = tc.want[""]
				}
				want := "200, s1-1 " + thing(what) + " 10.0.0.1"
				switch {
				case refusal != served && what == "script":
					want += " " + refusal // it is told to boot from disk
				case refusal != served:
					want = "403, s1-1 " + thing(what) + " 10.0.0.1 " + refusal
				}
				s.desk.holders["02:00:00:00:00:01"] = s.desk.holders[uuid1]
				if got := s.fetch("10.0.0.1", what); got != want {
					t.Errorf("%s: got %q, want %q", what, got, want)
				}
			}
		})
	}
}

func TestTheTokenOfAnOlderTicket(t *testing.T) {
	s := newSegment(t)
	next := *s.ticket
	next.ID = "s1-2"
	old := s.paths["Ignition"]
	// as long as nobody asked with it, no token of an older ticket is known here
	s.arm(&next)
	if got, want := s.fetch("10.0.0.1", "Ignition"), "403, s1-2 Ignition 10.0.0.1 WrongToken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.arm(s.ticket)
	_ = s.fetch("10.0.0.1", "script")
	for n := range maxPrevious {
		next := next
		next.ID = fmt.Sprint("s1-", n+2)
		s.arm(&next)
		want := fmt.Sprintf("403, %s Ignition 10.0.0.1 Spent", next.ID)
		if got := s.fetch("10.0.0.1", "Ignition"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	again := *s.desk.holders[uuid1].Ticket // its record is written anew
	s.arm(&again)
	w := askFrom(s.service.Handler(), "10.0.0.1", "x", old)
	if text := w.Body.String(); !strings.Contains(text, "has ended") || !strings.Contains(text, "ingot explain server") {
		t.Errorf("a person is told %q", text)
	}
	// nor is the layer served that only the older one pinned
	_ = s.desk.used()
	other := next
	other.ID, other.Image = "s1-9", s.desk.holders[uuid2].Ticket.Image
	s.arm(&other)
	if got, want := s.fetch("10.0.0.1", "kernel"), "403, s1-9 image 10.0.0.1 Spent"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAWrongTokenIsTold(t *testing.T) {
	s := newSegment(t)
	other := tokenOf(s.desk.holders[uuid2].Ticket).Reveal()
	for title, tc := range map[string]struct{ path, want string }{
		"another server's":      {"/ignition/" + uuid1 + "/" + other, "403, s1-1 Ignition 10.0.0.1 WrongToken"},
		"for cloud-init's data": {"/nocloud/" + uuid1 + "/" + other + "/user-data", "403, s1-1 cloud-init data 10.0.0.1 WrongToken"},
		"its first half":        {"/ignition/" + uuid1 + "/" + tokenOf(s.ticket).Reveal()[:13], "403, s1-1 Ignition 10.0.0.1 WrongToken"},
		"one letter too many":   {"/ignition/" + uuid1 + "/" + tokenOf(s.ticket).Reveal() + "a", "403, s1-1 Ignition 10.0.0.1 WrongToken"},
		"in capitals": {
			path: "/ignition/" + uuid1 + "/" + strings.ToUpper(tokenOf(s.ticket).Reveal()), want: "403, s1-1 Ignition 10.0.0.1 WrongToken",
		},
	} {
		s.paths[title] = tc.path
		if got := s.fetch("10.0.0.1", title); got != tc.want {
			t.Errorf("%s: got %q, want %q", title, got, tc.want)
		}
	}
	s.desk.holders[uuid1] = &model.TicketHolder{Server: "s1"}
	if got := s.fetch("10.0.0.1", "Ignition"); got != "403" {
		t.Errorf("a server without a ticket: %q", got)
	}
	if got := testutil.ToFloat64(s.service.metrics.refusals.WithLabelValues("Ignition", "WrongToken")); got != 5 {
		t.Errorf("%v refusals are counted", got)
	}
}

// Who asks from elsewhere must not tell a server that may boot from one that may not,
// nor a token that is right from one that is wrong.
func TestAStrangerLearnsNothing(t *testing.T) {
	s := newSegment(t)
	for _, what := range []string{"script", "Ignition", "Ignition, tokenless", "user-data", "kernel"} {
		answers := make(map[string]bool)
		for _, world := range []func(){
			func() { s.arm(s.ticket) },
			func() { with(s.desk, model.TicketBooted, false, nil) },
			func() { with(s.desk, "", true, &model.Progress{IgnitionAt: armed}) },
			func() { s.desk.holders[uuid1] = &model.TicketHolder{Server: "s1"} },
			func() {
				s.arm(s.ticket)
				s.paths[what] = strings.Replace(s.paths[what], tokenOf(s.ticket).Reveal(), testToken, 1)
			},
		} {
			world()
			w := askFrom(s.service.Handler(), "10.0.0.2", "x", s.paths[what])
			answers[fmt.Sprint(w.Code, w.Header(), w.Body)] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s: a stranger is answered in %d ways: %v", what, len(answers), answers)
		}
	}
}

func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	s := newSegment(t)
	lines := func() int { return strings.Count(s.log.String(), `level=WARN msg="boot request refused"`) }
	for range 50 {
		_ = s.fetch("10.0.0.2", "Ignition")
		_ = s.fetch("10.0.0.2", "kernel")
	}
	if lines() != 1 {
		t.Errorf("%d lines in the first minute:\n%s", lines(), s.log.String())
	}
	want := `server=s1 what=Ignition reason=OtherServer client=10.0.0.2 mac=02:00:00:00:00:02`
	if !strings.Contains(s.log.String(), want) {
		t.Errorf("no %s in\n%s", want, s.log.String())
	}
	with(s.desk, model.TicketSpent, false, nil)
	_ = s.fetch("10.0.0.1", "Ignition")
	if lines() != 2 {
		t.Errorf("another reason makes %d lines", lines())
	}
	with(s.desk, "", false, &model.Progress{IgnitionAt: armed})
	_ = s.fetch("10.0.0.1", "script")
	if lines() != 2 || !strings.Contains(
		s.log.String(), "level=INFO msg=\"boot request refused\" server=s1 what=\"iPXE script\" reason=Replay",
	) {
		t.Errorf("a server that boots from its disk again makes\n%s", s.log.String())
	}
	s.now = s.now.Add(logEvery)
	_ = s.fetch("10.0.0.2", "script")
	if lines() != 3 {
		t.Errorf("a minute later there are %d lines", lines())
	}
	if strings.Contains(s.log.String(), tokenOf(s.ticket).Reveal()) {
		t.Error("Y06: the log shows a token")
	}
	c := newLogLimiter()
	for n := range 3 * maxLogged {
		c.allow(loggedRefusal{model.ServerName(fmt.Sprint(n)), model.RefusedSpent}, s.now)
	}
	if n, _ := c.last.Size(); n != maxLogged {
		t.Errorf("%d refusals are remembered", n)
	}
}

func TestAskingByHEADUsesNothing(t *testing.T) {
	s := newSegment(t)
	for what, path := range s.paths {
		s.arm(s.ticket)
		w := send(s.service.Handler(), http.MethodHead, "10.0.0.1", "x", path)
		if uses := s.desk.used(); w.Code != http.StatusOK || uses != nil || s.desk.notes() != nil {
			t.Errorf("%s: %d, used %v, noted %v", what, w.Code, uses, s.desk.notes())
		}
	}
}

func TestWhatIsNotServedIsNoUse(t *testing.T) {
	s := newSegment(t)
	for title, tc := range map[string]struct {
		what   string
		header []string
		code   int
	}{
		"Ignition that the machine cannot read": {"Ignition", []string{"Accept", ignitionMedia + ";version=3.0.0"}, 406},
		"the rest behind a layer's end":         {"kernel", []string{"Range", "bytes=9999-"}, 416},
	} {
		w := askFrom(s.service.Handler(), "10.0.0.1", "x", s.paths[tc.what], tc.header...)
		if uses := s.desk.used(); w.Code != tc.code || uses != nil {
			t.Errorf("%s: %d, used %v", title, w.Code, uses)
		}
	}
}

func TestFirmwareThatIsNotKnownIsSaidToHaveReachedNothing(t *testing.T) {
	s := newSegment(t)
	for from, want := range map[string][]string{
		"10.9.9.9": nil,
		"10.0.0.1": {"s1 HTTP boot 10.0.0.1", "s1 kernel 10.0.0.1"},
	} {
		s.arm(s.ticket)
		s.desk.unnote()
		_ = s.fetch(from, "UKI, unnamed")
		if diff := cmp.Diff(want, s.desk.notes()); diff != "" {
			t.Errorf("%s: noted (-want +got):\n%s", from, diff)
		}
	}
}

// What a lost store had of the boot is lost with it, but not that the server was served.
func TestATokenIsWorthNothingAfterALostStore(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	const late, served = "403, s1-1 Ignition 10.0.0.1 Spent", "200, s1-1 Ignition 10.0.0.1"
	for title, tc := range map[string]struct {
		change func(*model.Ticket)
		want   string
	}{
		"of one boot": {func(*model.Ticket) {}, late},
		"of a server that boots with it each time":       {func(t *model.Ticket) { t.Always = true }, served},
		"of a server that was perhaps served its kernel": {func(t *model.Ticket) { t.BootedBy = model.BootedKernel }, served},
	} {
		t.Run(title, func(t *testing.T) {
			s := newSegment(t)
			ticket := *s.ticket
			ticket.IgnitionAt = s.now.Add(-configLife)
			tc.change(&ticket)
			s.arm(&ticket)
			for _, path := range []string{"Ignition", "Ignition, tokenless"} {
				if got := s.fetch("10.0.0.1", path); got != tc.want {
					t.Errorf("%s: %s, want %s", path, got, tc.want)
				}
			}
		})
	}
}

// TestATokenIsWorthNothingSoonAfterTheBoot: it stays on the kernel's command line, which
// every program of the machine may read.
func TestATokenIsWorthNothingSoonAfterTheBoot(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	const late = "403, s1-1 Ignition 10.0.0.1 Spent"
	const served = "200, s1-1 Ignition 10.0.0.1"
	for _, always := range []bool{false, true} {
		t.Run(fmt.Sprintf("for always: %t", always), func(t *testing.T) {
			s := newSegment(t)
			ticket := *s.ticket
			ticket.Always = always
			s.arm(&ticket)
			script := func() {
				t.Helper()
				w := askFrom(s.service.Handler(), "10.0.0.1", "boot.example", s.paths["script"])
				_, rest, _ := strings.Cut(w.Body.String(), "/nocloud/"+uuid1+"/")
				token, _, ok := strings.Cut(rest, "/ ")
				if !ok {
					t.Fatalf("the script has no token:\n%s", w.Body)
				}
				s.paths["Ignition"] = "/ignition/" + uuid1 + "/" + token
				s.desk.holders["02:00:00:00:00:01"] = s.desk.holders[uuid1]
				s.desk.used()
			}
			check := func(what, path, want string) {
				t.Helper()
				s.paths["asked"] = path
				if got := s.fetch("10.0.0.1", "asked"); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			script()
			first := s.paths["Ignition"]
			s.now = s.now.Add(time.Hour)
			check("before it is fetched", first, served)
			s.now = s.ticket.ArmedAt.Add(configLife) // the desk notes the second after arming
			check("soon after", first, served)
			s.now = s.now.Add(2 * time.Second)
			check("five minutes later", first, late)
			if !always {
				check("without a token", s.paths["Ignition, tokenless"], late)
				return
			}
			check("without a token", s.paths["Ignition, tokenless"], served)
			script()
			second := s.paths["Ignition"]
			check("in the next boot with the token of before", first, late)
			check("in the next boot", second, served)
			s.now = s.now.Add(configLife)
			check("five minutes later again", second, late)
		})
	}
}
