package bootsvc

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/netboot"
	"ingot/model"
	"ingot/model/must"
)

const strangerUUID = "00000000-0000-4000-8000-0000000000aa"

func rescueFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rescue.ipxe")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func whom() *netboot.Rescue {
	return &netboot.Rescue{Known: func() bool { return true }, Named: func(id string) bool { return id == uuid2 }}
}

func TestTheRescueScriptIsForMachinesWithoutATicket(t *testing.T) {
	const menu = "menu Rescue\n"
	want := "#!ipxe\nset ipxe-svc http://boot.example:8082\n" + menu
	idle := model.TicketHolder{Server: "s2"}
	for title, tc := range map[string]struct {
		at     *model.TicketHolder // at the address that asks
		target string
		whom   *netboot.Rescue
		rescue bool
		body   string
	}{
		"a stranger":                          {target: "/ipxe/" + strangerUUID, whom: whom(), rescue: true},
		"a stranger by its MAC address":       {target: "/ipxe/02:00:00:00:00:77", whom: whom(), rescue: true},
		"nobody without a script":             {target: "/ipxe/" + strangerUUID, body: "no server with this UUID"},
		"a machine that Git names":            {target: "/ipxe/" + uuid2, whom: whom(), body: "no server with this UUID"},
		"one that has no UUID is told to ask": {target: "/ipxe/00000000-0000-0000-0000-000000000000", whom: whom(), body: "chain"},
		"a server with a ticket":              {target: "/ipxe/" + uuid1, whom: whom(), body: "Loading kernel"},
		"the same under another's UUID":       {at: &model.TicketHolder{Server: "s1", Ticket: scriptTicket()}, target: "/ipxe/" + strangerUUID, whom: whom(), body: "no server with this UUID"},
		"a server without a ticket":           {at: &idle, target: "/ipxe/" + mac1, whom: whom(), body: "booting from disk"},
	} {
		t.Run(title, func(t *testing.T) {
			d := newDesk()
			d.arm(scriptTicket(), "{}")
			d.holders[mac1] = d.holders[uuid1]
			if tc.at != nil {
				d.holders[mac1] = tc.at
			}
			h := newServer(t, d, func(o *Options) {
				leases(o)
				if tc.whom != nil {
					o.Rescue = RescueScript{rescueFile(t, "#!ipxe\n"+menu), tc.whom}
				}
				if strings.Contains(title, "stranger") && tc.rescue {
					o.AddressRules.Evidence = netboot.Evidence{} // nobody is known at its address
				}
			}).Handler()
			got := ask(h, "GET", tc.target).Body.String()
			if tc.rescue && got != want || !tc.rescue && (!strings.Contains(got, tc.body) || strings.Contains(got, menu)) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestARescueScriptHoldsNothingOfIngot(t *testing.T) {
	d := newDesk()
	d.arm(scriptTicket(), "{}")
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	file := rescueFile(t, "#!ipxe\necho one\n")
	h := newServer(t, d, func(o *Options) {
		o.Rescue, o.Registerer, o.Log = RescueScript{file, whom()}, reg, slog.New(slog.NewTextHandler(&log, nil))
	}).Handler()
	for range 3 {
		if got := ask(h, "GET", "/ipxe/"+strangerUUID).Body.String(); strings.Contains(got, testToken) || strings.Contains(got, uuid1) {
			t.Errorf("the script says %q", got)
		}
	}
	must.Do(t, os.WriteFile(file, []byte("#!ipxe\r\necho two\r\n"), 0o600))
	if got := ask(h, "GET", "/ipxe/"+strangerUUID).Body.String(); !strings.Contains(got, "echo two") {
		t.Errorf("after a change it says %q", got)
	}
	const counted = `# HELP ingot_boot_rescue_scripts_total Rescue scripts served to machines that are not servers of Ingot.
# TYPE ingot_boot_rescue_scripts_total counter
ingot_boot_rescue_scripts_total 4
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(counted), "ingot_boot_rescue_scripts_total"); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "is served the rescue script"); n != 1 || !strings.Contains(log.String(), "id="+strangerUUID) {
		t.Errorf("logged %d times: %s", n, &log)
	}
	must.Do(t, os.Remove(file))
	if w := ask(h, "GET", "/ipxe/"+strangerUUID); w.Code != 404 || !strings.Contains(log.String(), "the rescue script cannot be served") {
		t.Errorf("once it is gone: %d %q", w.Code, w.Body)
	}
}

func TestWhatIsNoRescueScriptIsToldAtTheStartAndKeepsNothingElseFromWorking(t *testing.T) {
	for title, file := range map[string]string{
		"a shell script":   rescueFile(t, "#!/bin/sh\n"),
		"nothing":          rescueFile(t, ""),
		"too much":         rescueFile(t, "#!ipxe\n"+strings.Repeat("#", maxRescueScript)),
		"no file":          filepath.Join(t.TempDir(), "missing"),
		"a file that none": "",
	} {
		var log strings.Builder
		_, err := NewServer(Options{URL: "http://boot.example", Rescue: RescueScript{file, whom()}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil || !strings.Contains(log.String(), "rescue script cannot be served") {
			t.Errorf("%s: %v, the log says %q", title, err, log.String())
		}
	}
}
