package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report/query"
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
		return fmt.Errorf("--mac %q is no MAC address: write it as 02:00:00:00:00:0a", l.MAC)
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
	c.printTable([]string{"ADDRESS", "STATE", "NETWORK", "MAC", "SERVER", "SINCE", "LEFT", "RELAY", "WHY"}, leaseRows(leases, time.Now()))
	return nil
}

// leases returns the leases of a network and a MAC address, "" being any.
func (a *adminClient) leases(ctx context.Context, network, mac string) ([]query.Lease, error) {
	q := url.Values{"limit": {strconv.Itoa(query.MaxLimit)}}
	for key, value := range map[string]string{"network": network, "mac": mac} {
		if value != "" {
			q.Set(key, value)
		}
	}
	all := []query.Lease{}
	for page := 1; ; page++ {
		q.Set("page", strconv.Itoa(page))
		var r query.Result[query.Lease]
		if err := a.get(ctx, "/api/v1/leases?"+q.Encode(), &r); err != nil {
			return nil, err
		}
		all = append(all, r.Items...)
		if page >= r.Pages || len(r.Items) == 0 {
			return all, nil
		}
	}
}

// seenBy is the relay that a device was last heard through, with the port there.
func seenBy(l query.Lease) string {
	return strings.Join(slices.DeleteFunc([]string{l.Relay, l.RemoteID, l.CircuitID}, func(s string) bool { return s == "" }), " ")
}

// leaseRows are the rows of a table of leases.
func leaseRows(leases []query.Lease, now time.Time) [][]cell {
	rows := make([][]cell, len(leases))
	for i, l := range leases {
		until := "over"
		if l.Expires.After(now) {
			until = age(now, l.Expires)
		}
		rows[i] = []cell{
			textCell(l.Name), stateCell(l.State), textCell(l.Network), textCell(orDash(l.MAC)), textCell(orDash(l.Server)),
			textCell(age(l.Since, now)), textCell(until), textCell(orDash(seenBy(l))), textCell(l.Why),
		}
	}
	return rows
}
