package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/reconcile/report/query"
)

func leasesDaemon(t *testing.T, leases []query.Lease, asked *[]string) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.String())
		page, _ := strconv.Atoi(r.FormValue("page"))
		result := query.Result[query.Lease]{Total: len(leases), Page: page, Pages: max(1, len(leases)), Items: []query.Lease{}}
		if page <= len(leases) {
			result.Items = leases[page-1 : page]
		}
		_ = json.NewEncoder(w).Encode(result)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestLeasesAreATable(t *testing.T) {
	now := time.Now()
	leases := []query.Lease{
		{
			Common: query.Common{Name: "192.0.2.10", State: query.LeaseLive, Since: now.Add(-3 * time.Minute)}, Network: "rack1", MAC: "02:00:00:00:00:0a",
			Server: "s1", Expires: now.Add(30*time.Minute + 30*time.Second), Relay: "192.0.2.1", CircuitID: "Eth1/7", RemoteID: "leaf1",
		},
		{
			Common:  query.Common{Name: "192.0.2.11", State: query.LeaseDeclined, Since: now.Add(-3 * time.Minute), Why: "set aside"},
			Network: "rack1", Expires: now.Add(-time.Second),
		},
	}
	var asked []string
	address := leasesDaemon(t, leases, &asked)
	out, errs, code := command(t, "leases", "--address", address, "--network", "rack1", "--mac", "02-00-00-00-00-0A")
	want := `ADDRESS     STATE     NETWORK  MAC                SERVER  SINCE  LEFT  RELAY                   WHY
192.0.2.10  Live      rack1    02:00:00:00:00:0a  s1      3m     30m   192.0.2.1 leaf1 Eth1/7
192.0.2.11  Declined  rack1    -                  -       3m     over  -                       set aside
`
	if diff := cmp.Diff(want, out); diff != "" || errs != "" || code != 0 {
		t.Errorf("exit code %d, stderr %q, stdout (-want +got):\n%s", code, errs, diff)
	}
	pages := []string{
		"/api/v1/leases?limit=1000&mac=02%3A00%3A00%3A00%3A00%3A0a&network=rack1&page=1",
		"/api/v1/leases?limit=1000&mac=02%3A00%3A00%3A00%3A00%3A0a&network=rack1&page=2",
	}
	if !slices.Equal(asked, pages) {
		t.Errorf("asked %q, want %q", asked, pages)
	}
	out, _, _ = command(t, "leases", "--address", address, "-o", "json")
	var got []query.Lease
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 || got[0].Name != "192.0.2.10" {
		t.Errorf("in JSON: %v, %s", err, out)
	}
}

func TestNoLeases(t *testing.T) {
	var asked []string
	if out, _, code := command(t, "leases", "--address", leasesDaemon(t, nil, &asked)); out != "No leases.\n" || code != 0 {
		t.Errorf("exit code %d, %q", code, out)
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.Error(w, `network="nope": no network has that name; there are rack1`, http.StatusBadRequest)
	}))
	t.Cleanup(refuses.Close)
	out, errs, code := command(t, "leases", "--address", refuses.URL, "--network", "nope")
	if want := `network="nope": no network has that name; there are rack1`; !strings.Contains(errs, want) || strings.Contains(errs, "admin listener") || out != "" || code != 1 {
		t.Errorf("a network that is none: exit code %d, %q, %q", code, out, errs)
	}
	if _, errs, code := command(t, "leases", "--mac", "x"); code != 1 || errs == "" {
		t.Errorf("a MAC address that is none: exit code %d, %q", code, errs)
	}
}

func TestWithoutADaemonThereAreNoLeases(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	_, errs, code := command(t, "leases", "--address", nobody.URL)
	if want := "ingot: no daemon listens at " + nobody.URL + "; name another with --address\n"; errs != want || code != exitFailed {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
