package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/progress"
)

// Fact is one thing that is known of an object. Of names the folder of its document, if it has one.
type Fact struct {
	Name, Value string
	Of          Folder
}

// facts gathers those with a value.
type facts []Fact

func (f *facts) add(name, value string) { f.of("", name, value) }

func (f *facts) of(folder Folder, name, value string) {
	if value != "" {
		*f = append(*f, Fact{name, value, folder})
	}
}

// AddressText is the addresses with where they come from, for people.
func (s Summary) AddressText() string {
	all := strings.Join(s.Addresses, ", ")
	if s.AddressFrom != "" {
		all += " (by its " + s.AddressFrom + ")"
	}
	return all
}

// Facts are the most important facts of an object, in an order fit for reading.
func (d *Documents) Facts(o *Document) []Fact {
	f := &facts{}
	sum := o.Overview().Summary
	switch status := o.Status.(type) {
	case ServerStatus:
		o.serverFacts(f, sum, status)
	case ClaimStatus:
		f.add("image", sum.Image)
		if status.Image != nil {
			f.add("resolved image", status.Image.Image)
		}
		f.add("addresses", sum.AddressText())
		f.add("log in", sum.Login)
		f.add("git.tenants", d.tenant(status.Tenant))
		f.add("in force as it was", d.lastGood(o.Name()))
	case BootConfigurationStatus:
		f.add("image", sum.Image)
		f.add("addresses", sum.AddressText())
		f.add("log in", sum.Login)
	case BMCStatus:
		f.add("address", status.IP)
		f.add("hardware", strings.TrimSpace(status.Manufacturer+" "+status.Model))
		f.add("serial number", status.SerialNumber)
		f.add("firmware", status.FirmwareVersion)
		f.add("other systems", strings.Join(status.OtherSystems, "; "))
	case EndpointStatus:
		spec, _ := o.Spec.(EndpointSpec)
		f.add("MAC address", spec.MACAddress)
		address := "address"
		if spec.MACAddress == "" {
			address = "reserved address"
		}
		f.add(address, spec.IP)
		f.add("network", status.Network)
		f.of(BMCs, "BMC", string(status.BMC))
		f.add("entry of the MAC prefix database", strings.TrimSpace(status.Prefix+" "+status.Manufacturer))
		if rec, _ := o.Decided.(*model.EndpointRecord); rec != nil && len(rec.Tried) > 0 {
			f.add("credentials refused", fmt.Sprint(len(rec.Tried)))
		}
	}
	return *f
}

func (d *Document) serverFacts(f *facts, sum Summary, status ServerStatus) {
	spec, _ := d.Spec.(ServerSpec)
	f.add("install stage", string(status.InstallStage))
	f.add("power", string(status.PowerState))
	if ref := spec.ServerClaimRef; ref != nil {
		f.of(Claims, "claim", ref.Namespace+"/"+ref.Name)
	}
	if ref := spec.BootConfigurationRef; ref != nil {
		f.of(BootConfigurations, "boot configuration", ref.Namespace+"/"+ref.Name)
	}
	f.add("addresses", sum.AddressText())
	f.add("uuid", spec.SystemUUID)
	f.add("hardware", strings.TrimSpace(status.Manufacturer+" "+status.Model))
	f.add("serial number", status.SerialNumber)
	if rec, _ := d.Decided.(*model.ServerRecord); rec != nil {
		f.add("MAC addresses", MACsText(rec.MACs))
		f.installFacts(status.Install, rec)
	}
	if spec.Unclaimable {
		f.add("cordoned", "yes: unclaimable is set")
	}
	for _, t := range spec.Taints {
		f.add("taint", strings.TrimSuffix(t.Key+"="+t.Value, "="))
	}
	for _, t := range status.Taints {
		f.add("taint", fmt.Sprintf("%s, by ServerReadinessRule %s: %s", strings.TrimSuffix(t.Key+"="+t.Value, "="), t.Rule, t.Message))
	}
	f.add("place", sum.Rack)
}

// DependsOn returns the object that this one depends on: the server of a claim, the BMC of a
// server, the Endpoint of a BMC. The name is empty if there is none.
func (d *Document) DependsOn() (Folder, string) {
	switch spec := d.Spec.(type) {
	case ServerSpec:
		return BMCs, string(d.Overview().Summary.BMC)
	case BMCSpec:
		if spec.EndpointRef != nil {
			return Endpoints, spec.EndpointRef.Name
		}
		return "", ""
	case EndpointSpec:
		return "", ""
	}
	return Servers, string(d.Overview().Summary.Server)
}

// MAC is the MAC address of an Endpoint, or the first one of a server; empty if it is unknown.
func (d *Document) MAC() string {
	if spec, ok := d.Spec.(EndpointSpec); ok {
		return spec.MACAddress
	}
	if rec, _ := d.Decided.(*model.ServerRecord); rec != nil && len(rec.MACs) > 0 {
		return rec.MACs[0].Address
	}
	return ""
}

// BootHint says where to look if the boot of a server does not continue; empty if it is over.
func (d *Document) BootHint() string {
	st, _ := d.Status.(ServerStatus)
	if c := conditions(st.Conditions).of(typeBootProgress); c.Status == metav1.ConditionFalse && len(st.BootTimeline) > 0 {
		return progress.Hint(st.BootTimeline[len(st.BootTimeline)-1].Stage)
	}
	return ""
}

// Conditions are those of the object's status.
func (d *Document) Conditions() []metav1.Condition {
	switch st := d.Status.(type) {
	case ServerStatus:
		return st.Conditions
	case ClaimStatus:
		return st.Conditions
	case BootConfigurationStatus:
		return st.Conditions
	case BMCStatus:
		return st.Conditions
	case EndpointStatus:
		return st.Conditions
	}
	return nil
}

// lastGood says why a claim is in force as it was, and not as Git has it, "" if it is not.
func (d *Documents) lastGood(claim string) string {
	if d.Fleet == nil {
		return ""
	}
	for _, o := range d.Fleet.LastGood {
		if o.Identity.Kind == model.KindServerClaim && o.Identity.Namespace+"/"+o.Identity.Name == claim {
			return fmt.Sprintf("as %s had it at revision %s, because a file with errors may have it now: %s", o.Path, o.Since.Short(), filesBehind(o))
		}
	}
	return ""
}

// filesBehind names the files that may have an object that is in force as it was.
func filesBehind(o model.LastGood) string {
	switch {
	case len(o.Behind) == 0:
		return o.Path
	case o.Behind[0] == "*":
		return "any of them"
	}
	return strings.Join(o.Behind, " or ")
}

// tenant says what the files of a tenant may define, "" for none.
func (d *Documents) tenant(path string) string {
	if path != "" && d.Fleet != nil {
		if t := d.Fleet.Tenants.At(path); t != nil {
			return t.String()
		}
	}
	return path
}

// RemovedClaim returns the server that has a claim which Git lacks, nil if there is none. The
// claim may be named without its namespace.
func (d *Documents) RemovedClaim(name string) *Document {
	for _, s := range d.List(Servers) {
		spec, _ := s.Spec.(ServerSpec)
		if ref := spec.ServerClaimRef; ref != nil && (name == ref.Namespace+"/"+ref.Name || name == ref.Name) {
			return s
		}
	}
	return nil
}
