package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/reconcile/report"
)

func TestLeasesTable(t *testing.T) {
	now := time.Now()
	d := newFakeDaemon(t)
	d.leases = []report.LeaseRow{
		{
			Row: report.Row{Name: "192.0.2.10", State: report.LeaseLive, Since: now.Add(-3 * time.Minute)}, Network: "rack1", MAC: "02:00:00:00:00:0a",
			Server: "s1", Expires: now.Add(30*time.Minute + 30*time.Second), Relay: "192.0.2.1", CircuitID: "Eth1/7", RemoteID: "leaf1",
		},
		{
			Row:     report.Row{Name: "192.0.2.11", State: report.LeaseDeclined, Since: now.Add(-3 * time.Minute), Message: "set aside"},
			Network: "rack2", Expires: now.Add(-time.Second),
		},
	}
	const titles = "ADDRESS     STATE     NETWORK  MAC                SERVER  SINCE  LEFT  RELAY                   NOTE\n"
	const first = "192.0.2.10  Live      rack1    02:00:00:00:00:0a  s1      3m     30m   192.0.2.1 leaf1 Eth1/7\n"
	const second = "192.0.2.11  Declined  rack2    -                  -       3m     over  -                       set aside\n"
	narrow := strings.NewReplacer("STATE     ", "STATE  ", "Live      ", "Live   ")
	for args, want := range map[string]string{
		"": titles + first + second,
		"--network rack1 --mac 02-00-00-00-00-0A": narrow.Replace(titles + first),
		"--network nope": "No leases.\n",
	} {
		out, errs, code := command(t, append([]string{"leases", "--address", d.server.URL}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, out); diff != "" || errs != "" || code != 0 {
			t.Errorf("%s: exit code %d, stderr %q, stdout (-want +got):\n%s", args, code, errs, diff)
		}
	}
	out, _, _ := command(t, "leases", "--address", d.server.URL, "-o", "json")
	var got []report.LeaseRow
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 || got[0].Name != "192.0.2.10" {
		t.Errorf("in JSON: %v, %s", err, out)
	}
	if _, errs, code := command(t, "leases", "--mac", "x"); code != exitUsage || errs == "" {
		t.Errorf("an invalid MAC address: exit code %d, %q", code, errs)
	}
}

func TestLeasesWithoutDaemon(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, errs, code := command(t, "leases", "--address", closed.URL)
	if want := "ingot: no daemon listens at " + closed.URL + "; name another with --address\n"; errs != want || code != exitFailed {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
