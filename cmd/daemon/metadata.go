package daemon

import (
	"maps"
	"net/netip"
	"strings"
	"sync"

	"ingot/bootsvc/metadata"
	"ingot/model"
)

const (
	// metadataPrefix begins the labels and annotations that a server is told.
	metadataPrefix = "metadata.metal.ironcore.dev/"
	// userDataType is the type of a Secret that a claim may hand to its server.
	userDataType = "metal.ironcore.dev/user-data"
)

// tenants are the bound servers by their addresses, as the metadata service asks
// for them.
type tenants struct {
	desired  func() *model.Desired
	observed func() *model.Observed
	// holder is the server that is at an address beyond doubt. Where believes is set,
	// probes are believed what addresses their servers have, for want of anything better.
	holder   func(netip.Addr) (model.TicketHolder, bool)
	believes bool

	mu    sync.Mutex // guards what is below
	of    *model.Observed
	known map[netip.Addr]model.ServerName // by the addresses that probes saw; "" for one that several have
}

// At implements metadata.Machines.
func (t *tenants) At(a netip.Addr) (metadata.Machine, bool) {
	d, o := t.desired(), t.observed()
	if d == nil {
		return metadata.Machine{}, false
	}
	rec := o.Servers[t.nameAt(o, a)]
	if rec == nil || rec.State != model.StateReserved || rec.Claim == "" {
		return metadata.Machine{}, false
	}
	m := metadata.Machine{Name: string(rec.Name), UUID: rec.UUID, Metadata: metadataOf(d, rec)}
	m.UserData, m.UserDataWrong = userData(d, rec)
	return m, true
}

// nameAt is the server that has an address, "" when nobody or nobody for certain has.
func (t *tenants) nameAt(o *model.Observed, a netip.Addr) model.ServerName {
	if offer, ok := t.holder(a); ok || !t.believes {
		return offer.Server
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != o {
		t.of, t.known = o, reportedAddresses(o)
	}
	return t.known[a]
}

// reportedAddresses are the addresses that probes reported. One that two servers
// reported is nobody's.
func reportedAddresses(o *model.Observed) map[netip.Addr]model.ServerName {
	known := make(map[netip.Addr]model.ServerName)
	for name, report := range o.Probes {
		for _, n := range report.Data.NetworkInterfaces {
			for _, text := range n.IPAddresses {
				prefix, _, _ := strings.Cut(text, "/")
				a, err := netip.ParseAddr(prefix)
				if err != nil || !a.IsGlobalUnicast() {
					continue
				}
				owner := name
				if other, taken := known[a.Unmap()]; taken && other != name {
					owner = ""
				}
				known[a.Unmap()] = owner
			}
		}
	}
	return known
}

// metadataOf is what labels and annotations say to a server: those of its BMC,
// over them its own annotations, over them its own labels.
func metadataOf(d *model.Desired, rec *model.ServerRecord) map[string]string {
	all := make(map[string]string)
	var layers []map[string]string
	if b := d.BMCs[rec.BMC]; b != nil {
		layers = append(layers, b.Labels)
	}
	if s := d.Servers[rec.Name]; s != nil {
		layers = append(layers, s.Annotations, s.Labels)
	}
	for _, layer := range layers {
		for key, value := range layer {
			if field, ok := strings.CutPrefix(key, metadataPrefix); ok {
				all[field] = value
			}
		}
	}
	return all
}

// userData is what a claim hands to its server, and why it cannot be used, if so.
func userData(d *model.Desired, rec *model.ServerRecord) (map[string]model.Sensitive, string) {
	claim := d.Claims[rec.Claim]
	if claim == nil || claim.Spec.UserDataRef == nil || rec.Tenant != "" && rec.Tenant != claim.Tenant {
		return nil, ""
	}
	ref := model.Named[model.ObjectName](claim.Namespace, claim.Spec.UserDataRef.Name)
	switch secret := d.Secrets[ref]; {
	case secret == nil:
		return nil, "Secret " + string(ref) + " is not in Git"
	case secret.Tenant != claim.Tenant:
		return nil, "Secret " + string(ref) + " is not the claim's own: it stands below another path of git.tenants"
	case secret.Type != userDataType:
		return nil, "Secret " + string(ref) + " is of type " + secret.Type + ", not " + userDataType
	default:
		return maps.Clone(secret.Values), ""
	}
}
