package report_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestLeaseRows(t *testing.T) {
	address := netip.MustParseAddr
	at := func(minute int) time.Time { return time.Date(2026, 11, 26, 12, minute, 0, 0, time.UTC) }
	leases := []model.Lease{
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:02", Address: address("192.0.2.10"), Since: at(1), Renewed: at(2), Expires: at(5),
			Relay: model.LeaseRelay{Address: address("192.0.2.1"), CircuitID: "Eth1/7", RemoteID: "leaf1"}},
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:01", Address: address("192.0.2.9"), Since: at(1), Expires: at(3)},
		{Network: "hosts", Role: model.RoleHost, Address: address("192.0.2.8"), Since: at(2), Expires: at(9), Declined: true},
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:01", Address: address("fd00::"), Bits: 64, Since: at(1), Expires: at(9)},
	}
	owner := func(mac string) model.ServerName { return map[string]model.ServerName{"02:00:00:00:00:01": "s1"}[mac] }
	declined := "another device uses the address: it is not offered until the lease ends"
	want := []report.LeaseRow{
		{Row: row("192.0.2.8", report.LeaseDeclined, at(2), declined), Network: "hosts", Role: "host", Expires: at(9)},
		{Row: row("192.0.2.9", report.LeaseEnded, at(1), ""), Network: "hosts", Role: "host", MAC: "02:00:00:00:00:01", Server: "s1", Expires: at(3)},
		{Row: row("192.0.2.10", report.LeaseLive, at(1), ""), Network: "hosts", Role: "host", MAC: "02:00:00:00:00:02", Renewed: at(2), Expires: at(5),
			Relay: "192.0.2.1", CircuitID: "Eth1/7", RemoteID: "leaf1"},
		{Row: row("fd00::/64", report.LeaseLive, at(1), ""), Network: "hosts", Role: "host", MAC: "02:00:00:00:00:01", Server: "s1", Expires: at(9)},
	}
	if diff := cmp.Diff(want, report.LeaseRows(leases, owner, at(3))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPoolRows(t *testing.T) {
	exhausted := time.Date(2026, 11, 26, 12, 4, 0, 0, time.UTC)
	pools := []model.PoolFacts{
		{Network: "hosts", Subnet: "198.51.100.0/24", Size: 10, Used: 10, Exhausted: exhausted, Refused: 3},
		{Network: "bmcs", Subnet: "192.0.2.0/24", Size: 20, Used: 7},
	}
	want := []report.PoolRow{
		{Row: report.Row{Name: "192.0.2.0/24", State: report.PoolHasRoom}, Network: "bmcs", Size: 20, Used: 7},
		{
			Row:   row("198.51.100.0/24", report.PoolExhausted, exhausted, "no free address in the range: widen the range, or shorten leaseTime"),
			Actor: "rack operator", Network: "hosts", Size: 10, Used: 10, Refused: 3,
		},
	}
	if diff := cmp.Diff(want, report.PoolRows(pools)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func row(name, state string, since time.Time, message string) report.Row {
	return report.Row{Name: name, State: state, Since: since, Message: message}
}
