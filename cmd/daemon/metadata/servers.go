// Package metadata tells the metadata service about bound servers: which one has an address,
// what its labels and annotations say to it, and what its claim hands to it.
package metadata

import (
	"maps"
	"net/netip"
	"strings"
	"sync"

	"ingot/bootsvc/metadata"
	"ingot/model"
)

const (
	// keyPrefix begins the labels and annotations that a server may read.
	keyPrefix = "metadata.metal.ironcore.dev/"
	// userDataType is the type of a Secret that a claim may hand to its server.
	userDataType = "metal.ironcore.dev/user-data"
)

// Servers are the bound servers by their addresses.
type Servers struct {
	Desired  func() *model.Desired
	Observed func() *model.Observed
	// Holder returns the server that is known to have an address.
	Holder func(netip.Addr) (model.TicketHolder, bool)
	// TrustProbes takes the addresses of servers from the reports of their probes, where
	// nothing better is known.
	TrustProbes bool

	mu       sync.Mutex // guards what is below
	of       *model.Observed
	reported map[netip.Addr]model.ServerName // as probes reported; "" for an address that several have
}

// At implements metadata.Machines.
func (s *Servers) At(a netip.Addr) (metadata.Machine, bool) {
	d, o := s.Desired(), s.Observed()
	if d == nil {
		return metadata.Machine{}, false
	}
	rec := o.Servers[s.nameAt(o, a)]
	if rec == nil || rec.Life.State != model.StateReserved || rec.Claim.Name == "" {
		return metadata.Machine{}, false
	}
	m := metadata.Machine{Name: string(rec.Name), UUID: rec.UUID, Metadata: metadataOf(d, rec)}
	m.UserData, m.UserDataWrong = userData(d, rec)
	return m, true
}

// nameAt returns the server that has an address, "" if none has it for certain.
func (s *Servers) nameAt(o *model.Observed, a netip.Addr) model.ServerName {
	if holder, ok := s.Holder(a); ok || !s.TrustProbes {
		return holder.Server
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != o {
		s.of, s.reported = o, reportedAddresses(o)
	}
	return s.reported[a]
}

// reportedAddresses returns which server reported each address, "" for one that several
// servers reported.
func reportedAddresses(o *model.Observed) map[netip.Addr]model.ServerName {
	reported := make(map[netip.Addr]model.ServerName)
	for name, probe := range o.Probes {
		for _, n := range probe.Data.NetworkInterfaces {
			for _, text := range n.IPAddresses {
				prefix, _, _ := strings.Cut(text, "/")
				a, err := netip.ParseAddr(prefix)
				if err != nil || !a.IsGlobalUnicast() {
					continue
				}
				owner := name
				if other, taken := reported[a.Unmap()]; taken && other != name {
					owner = ""
				}
				reported[a.Unmap()] = owner
			}
		}
	}
	return reported
}

// metadataOf returns what labels and annotations say to a server. Its own labels override
// its own annotations, and these the labels of its BMC.
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
			if field, ok := strings.CutPrefix(key, keyPrefix); ok {
				all[field] = value
			}
		}
	}
	return all
}

// userData returns what a claim hands to its server, or why that cannot be used.
func userData(d *model.Desired, rec *model.ServerRecord) (map[string]model.Sensitive, string) {
	claim := d.Claims[rec.Claim.Name]
	if claim == nil || claim.Spec.UserDataRef == nil || rec.Claim.Tenant != "" && rec.Claim.Tenant != claim.Tenant {
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
