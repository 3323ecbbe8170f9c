package query

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestLeasesAsOfNow(t *testing.T) {
	address := netip.MustParseAddr
	leases := []model.Lease{
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:02", Address: address("192.0.2.10"), Since: at(1), Renewed: at(2), Expires: at(5),
			Relay: model.LeaseRelay{Address: address("192.0.2.1"), CircuitID: "Eth1/7", RemoteID: "leaf1"}},
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:01", Address: address("192.0.2.9"), Since: at(1), Expires: at(3)},
		{Network: "hosts", Role: model.RoleHost, Address: address("192.0.2.8"), Since: at(2), Expires: at(9), Declined: true},
		{Network: "hosts", Role: model.RoleHost, MAC: "02:00:00:00:00:01", Address: address("fd00::"), Bits: 64, Since: at(1), Expires: at(9)},
	}
	owner := func(mac string) string { return map[string]string{"02:00:00:00:00:01": "s1"}[mac] }
	why := "somebody else was found to use the address: it is set aside until the lease ends"
	want := []*Lease{
		{Common: Common{Name: "192.0.2.8", State: LeaseDeclined, Since: at(2), Why: why, WhySince: at(2)}, Network: "hosts", Role: "host", Expires: at(9)},
		{Common: Common{Name: "192.0.2.9", State: LeaseEnded, Since: at(1)}, Network: "hosts", Role: "host", MAC: "02:00:00:00:00:01", Server: "s1", Expires: at(3)},
		{Common: Common{Name: "192.0.2.10", State: LeaseLive, Since: at(1)}, Network: "hosts", Role: "host", MAC: "02:00:00:00:00:02", Renewed: at(2), Expires: at(5),
			Relay: "192.0.2.1", CircuitID: "Eth1/7", RemoteID: "leaf1"},
		{Common: Common{Name: "fd00::/64", State: LeaseLive, Since: at(1)}, Network: "hosts", Role: "host", MAC: "02:00:00:00:00:01", Server: "s1", Expires: at(9)},
	}
	if diff := cmp.Diff(want, LeaseRows(leases, owner, at(3)), shown); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func TestAPoolWithoutAddressesSaysWhoHasToAct(t *testing.T) {
	pools := []model.PoolFacts{
		{Network: "hosts", Subnet: "198.51.100.0/24", Size: 10, Used: 10, Exhausted: at(4), Refused: 3},
		{Network: "bmcs", Subnet: "192.0.2.0/24", Size: 20, Used: 7},
	}
	why := "no address of its range is left, and devices get none: widen the range, or shorten leaseTime"
	want := []*Pool{
		{Common: Common{Name: "192.0.2.0/24", State: PoolHasRoom}, Network: "bmcs", Size: 20, Used: 7},
		{
			Common:  Common{Name: "198.51.100.0/24", State: PoolExhausted, Since: at(4), Why: why, WhySince: at(4), Actor: "rack operator"},
			Network: "hosts", Size: 10, Used: 10, Refused: 3,
		},
	}
	if diff := cmp.Diff(want, PoolRows(pools), shown); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
}
