package daemon

import (
	"cmp"
	"sync"

	"ingot/bootsvc/netboot"
	"ingot/cmd/daemon/config"
	"ingot/model"
)

// rescueOf says which machines are led to the rescue script, nil for none.
func rescueOf(d *daemon) *netboot.Rescue {
	o := d.opts.Boot.Rescue
	if o.Script == "" {
		return nil
	}
	inGit := &namedServers{desired: d.desired}
	r := &netboot.Rescue{
		Known: d.serversKnown, Named: func(id string) bool { return d.registry.Boots.Named(id) || inGit.has(id) },
	}
	if o.For == config.RescueAvailable {
		r.Available = d.available
	}
	return r
}

// serversKnown reports whether all servers that there are are known: before, each would be
// taken for a stranger.
func (d *daemon) serversKnown() bool {
	select {
	case <-d.leased:
		s := d.leader.present()
		return d.manifestsKnown() && cmp.Or(s.ObserveOnly, s.HealOnly) == ""
	default:
		return false
	}
}

// available reports whether a server is Available, and nothing is under way with it.
func (d *daemon) available(name model.ServerName) bool {
	rec := d.registry.Observed().Servers[name]
	return rec != nil && rec.Life.State == model.StateAvailable && rec.Claim.Name == "" && !rec.Boot.Ticket.Open()
}

// namedServers are the servers in Git by what tells them apart: it may name one before its
// BMC was read.
type namedServers struct {
	desired func() *model.Desired // nil while Git was not read

	mu  sync.Mutex // guards what is below
	of  *model.Desired
	ids map[string]bool // system UUIDs and MAC addresses
}

// has reports whether a server in Git has a UUID or a MAC address, each canonical.
func (n *namedServers) has(id string) bool {
	d := n.desired()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of != d {
		n.of, n.ids = d, serverIDs(d)
	}
	return n.ids[id]
}

func serverIDs(d *model.Desired) map[string]bool {
	ids := make(map[string]bool)
	if d == nil {
		return ids
	}
	for _, s := range d.Servers {
		for _, uuid := range model.UUIDVariants(s.Spec.SystemUUID) {
			ids[uuid] = true
		}
		for _, mac := range s.MACAddresses() {
			ids[mac] = true
		}
	}
	return ids
}
