package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

type leasesCommand struct {
	daemonSource `embed:""`

	Network string `placeholder:"NAME" help:"Show only leases of this network."`
	MAC     string `name:"mac" placeholder:"MAC" help:"Show only the leases of this MAC address."`
}

// Help implements kong.HelpProvider.
func (leasesCommand) Help() string {
	return `Asks a running daemon; the status branch has no leases. RELAY is the relay through which the device was last heard, with the names that the relay reports for itself and the port (option 82), which are not verified.

Examples:

  ingot leases
  ingot leases --network rack1
  ingot leases --mac 02:00:00:00:00:0a
  ingot leases -o json | jq -r '.[] | select(.state == "Live") | .name'`
}

// Validate implements kong's validation of flags.
func (l *leasesCommand) Validate() error {
	if l.MAC == "" {
		return nil
	}
	mac, ok := model.ParseMAC(l.MAC)
	if !ok {
		return fmt.Errorf("--mac %q is not a MAC address: write it as 02:00:00:00:00:0a", l.MAC)
	}
	l.MAC = mac.String()
	return nil
}

// Run prints the leases.
func (l leasesCommand) Run(ctx context.Context, c *console) error {
	daemon, err := l.client(c)
	if err != nil {
		return err
	}
	leases, err := daemon.leases(ctx, l.Network, l.MAC)
	switch {
	case err != nil:
		return err
	case c.json():
		return c.printJSON(leases)
	case len(leases) == 0:
		c.printf("No leases.\n")
		return nil
	}
	c.printTable([]string{"ADDRESS", "STATE", "NETWORK", "MAC", "SERVER", "SINCE", "LEFT", "RELAY", "NOTE"}, leaseRows(leases, time.Now()))
	return nil
}

// leases returns the leases of a network and a MAC address, "" being any.
func (a *adminClient) leases(ctx context.Context, network, mac string) ([]report.LeaseRow, error) {
	var list struct {
		Items []report.LeaseRow `json:"items"`
	}
	if err := a.get(ctx, "/api/v1/leases", &list); err != nil {
		return nil, err
	}
	other := func(l report.LeaseRow) bool {
		return network != "" && l.Network != network || mac != "" && l.MAC != mac
	}
	return slices.DeleteFunc(list.Items, other), nil
}

// seenBy is the relay that a device was last heard through, with the port there.
func seenBy(l report.LeaseRow) string {
	return strings.Join(slices.DeleteFunc([]string{l.Relay, l.RemoteID, l.CircuitID}, func(s string) bool { return s == "" }), " ")
}

func leaseRows(leases []report.LeaseRow, now time.Time) [][]cell {
	rows := make([][]cell, len(leases))
	for i, l := range leases {
		until := "over"
		if l.Expires.After(now) {
			until = age(now, l.Expires)
		}
		rows[i] = []cell{
			textCell(l.Name), stateCell(l.State), textCell(l.Network), textCell(orDash(l.MAC)), textCell(orDash(string(l.Server))),
			textCell(age(l.Since, now)), textCell(until), textCell(orDash(seenBy(l))), textCell(l.Message),
		}
	}
	return rows
}
