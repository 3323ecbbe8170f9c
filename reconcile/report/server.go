package report

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/install"
)

// ServerSpec is a server as Git and its BMC have it.
type ServerSpec struct {
	SystemUUID           string              `json:"systemUUID,omitempty"`
	SystemURI            string              `json:"systemURI,omitempty"`
	BMCRef               *model.LocalRef     `json:"bmcRef,omitempty"`
	ServerClaimRef       *model.ObjectRef    `json:"serverClaimRef,omitempty"`
	BootConfigurationRef *model.ObjectRef    `json:"bootConfigurationRef,omitempty"`
	IndicatorLED         string              `json:"indicatorLED,omitempty"`
	ReclaimPolicy        model.ReclaimPolicy `json:"reclaimPolicy,omitempty"`
	Taints               []model.Taint       `json:"taints,omitempty"`
	Unclaimable          bool                `json:"unclaimable,omitempty"`
}

// ServerStatus is what is so of a server.
type ServerStatus struct {
	Overview
	State model.ServerState `json:"state"`
	// InstallStage is how far what the claim asks for is; empty = nothing is to be installed.
	InstallStage      install.Stage            `json:"installStage,omitempty"`
	PowerState        model.Power              `json:"powerState,omitempty"`
	Manufacturer      string                   `json:"manufacturer,omitempty"`
	Model             string                   `json:"model,omitempty"`
	SKU               string                   `json:"sku,omitempty"`
	SerialNumber      string                   `json:"serialNumber,omitempty"`
	BIOSVersion       string                   `json:"biosVersion,omitempty"`
	IndicatorLED      string                   `json:"indicatorLED,omitempty"`
	TotalSystemMemory string                   `json:"totalSystemMemory,omitempty"`
	BootOrder         []string                 `json:"bootOrder,omitempty"`
	Processors        []model.Processor        `json:"processors,omitempty"`
	Storages          []StorageStatus          `json:"storages,omitempty"`
	NetworkInterfaces []model.NetworkInterface `json:"networkInterfaces,omitempty"`
	Conditions        []metav1.Condition       `json:"conditions,omitempty"`
	BootTimeline      []model.BootStep         `json:"bootTimeline,omitempty"`
	Cleanup           *CleanupStatus           `json:"cleanup,omitempty"`
	Install           *InstallStatus           `json:"install,omitempty"`
	// Taints are those that ServerReadinessRules keep on it, beside those of its spec.
	Taints []TaintStatus `json:"taints,omitempty"`
	// LeftOut says what of these lists is too long to be shown.
	LeftOut []string `json:"leftOut,omitempty"`
}

// StorageStatus is one controller with its disks.
type StorageStatus struct {
	Name    string         `json:"name"`
	State   string         `json:"state,omitempty"`
	Volumes []VolumeStatus `json:"volumes,omitempty"`
	Drives  []DriveStatus  `json:"drives,omitempty"`
}

// VolumeStatus is one volume of a controller.
type VolumeStatus struct {
	Name        string `json:"name"`
	Capacity    string `json:"capacity,omitempty"`
	State       string `json:"state,omitempty"`
	RAIDType    string `json:"raidType,omitempty"`
	VolumeUsage string `json:"volumeUsage,omitempty"`
}

// DriveStatus is one disk of a controller.
type DriveStatus struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType,omitempty"`
	Type      string `json:"type,omitempty"`
	Capacity  string `json:"capacity,omitempty"`
	Vendor    string `json:"vendor,omitempty"`
	Model     string `json:"model,omitempty"`
	State     string `json:"state,omitempty"`
}

func (v *view) serverDocument(s serverView) *Document {
	d := newDocument(model.KindServer, string(s.Name))
	var b *model.BMC
	if of := v.bmcs[s.Record.BMC]; of != nil {
		b = of.Manifest
	}
	d.Metadata.Labels = model.ServerLabels(b, s.Manifest)
	d.Metadata.Annotations = bootstrapMarks(s.Record)
	d.at = placeOf(d.Metadata.Labels, s.Manifest)
	d.Spec = s.spec()
	d.Status = v.serverStatus(s, d.at)
	rec := Decided(s.Record)
	rec.Disks.Wiped = shownWipes(rec.Disks.Wiped)
	d.Decided = rec
	return d
}

func (s serverView) spec() ServerSpec {
	spec := ServerSpec{
		SystemUUID: s.Record.UUID, SystemURI: s.Record.SystemURI,
		BMCRef: &model.LocalRef{Name: string(s.Record.BMC)}, ReclaimPolicy: model.ReclaimRecycle,
	}
	if s.Manifest != nil {
		spec.IndicatorLED = s.Manifest.Spec.IndicatorLED
		spec.Taints, spec.Unclaimable = s.Manifest.Spec.Taints, s.Manifest.Spec.Unclaimable
		if s.Manifest.Spec.ReclaimPolicy != "" {
			spec.ReclaimPolicy = s.Manifest.Spec.ReclaimPolicy
		}
	}
	ns, name := model.SplitName(s.Record.Claim.Name)
	switch of := (model.ObjectRef{Namespace: ns, Name: name}); {
	case s.Record.Claim.Name.IsBootConfiguration():
		spec.BootConfigurationRef = &of
	case s.Record.Claim.Name != "":
		spec.ServerClaimRef = &of
	}
	if s.Record.Boot.Ticket.Open() {
		ns, name := model.SplitName(s.bootConfigurationName())
		spec.BootConfigurationRef = &model.ObjectRef{Namespace: ns, Name: name}
	}
	return spec
}

func (v *view) serverOverview(s serverView, at place) Overview {
	o := Overview{Summary: Summary{
		State: string(s.Record.Life.State), Since: s.Record.Life.Since.UTC().Truncate(time.Second), Claim: s.Record.Claim.Name,
		BMC: s.Record.BMC, Power: s.facts().Power, Rack: at.text(),
	}}
	o.Summary.Addresses, o.Summary.AddressFrom = v.addressesOf(s)
	o.wait(s.Why, v.waysOf(s.Why, s.Name, s.Record.Claim.Name))
	if s.Approval != nil {
		o.wait(*s.Approval, ways{})
	}
	return o
}

// Where the addresses of a server come from if Ingot does not lease them, the most certain first.
const (
	fromBootReport = "boot report"  // the installed system sent it from there
	fromProbe      = "discovery"    // the probe reported it, and another DHCP server may still lease it to the machine
	fromBoot       = "network boot" // the last request of the boot came from there
)

// addressesOf returns the IP addresses of a server with a claim, and where they come from if Ingot does not lease them.
func (v *view) addressesOf(s serverView) (all []string, from string) {
	if s.Record.Claim.Name == "" {
		return nil, ""
	}
	for _, a := range v.in.Addresses[s.Name] {
		all = append(all, a.String())
	}
	if len(all) == 0 {
		all, from = v.unleased(s)
	}
	slices.SortFunc(all, text.CompareNatural)
	all = slices.Compact(all)
	return all[:min(len(all), maxAddresses)], from
}

// unleased returns the addresses of a server that has no lease of Ingot, and where they come from.
func (v *view) unleased(s serverView) ([]string, string) {
	report, boot := s.clients()
	for _, c := range []struct {
		from string
		ips  []string
	}{{fromBootReport, v.ownClient(report)}, {fromProbe, slices.Collect(maps.Keys(s.reportedAddresses()))}, {fromBoot, v.ownClient(boot)}} {
		isOther := func(ip string) bool {
			a, err := netip.ParseAddr(ip)
			return err != nil || !a.IsGlobalUnicast()
		}
		if all := slices.DeleteFunc(c.ips, isOther); len(all) > 0 {
			return all, c.from
		}
	}
	return nil, ""
}

// clients are the addresses that the report of the server's newest boot and the last request of that boot came from.
func (s serverView) clients() (report, boot string) {
	if b, t := s.in.Observed.BootStates[s.Name], s.Record.Boot.Ticket; b != nil && t != nil && b.Ticket == t.ID {
		report = b.Client
	}
	if p := s.progress(); p != nil {
		boot = p.Client
	}
	return report, boot
}

// ownClient returns an address that requests of one server alone came from. One that several share is a proxy's.
func (v *view) ownClient(ip string) []string {
	if v.clients == nil {
		v.clients = make(map[string]int)
		for _, s := range v.servers {
			report, boot := v.server(s).clients()
			v.clients[report]++
			if boot != report {
				v.clients[boot]++
			}
		}
	}
	if ip == "" || v.clients[ip] > 1 {
		return nil
	}
	return []string{ip}
}

// maxAddresses is how many addresses of a machine are shown.
const maxAddresses = 8

func (v *view) serverStatus(s serverView, at place) ServerStatus {
	st := ServerStatus{
		Overview: v.serverOverview(s, at), State: s.Record.Life.State, InstallStage: s.Stage, PowerState: s.facts().Power,
		Conditions: v.serverConditions(s), BootTimeline: s.trace().Steps(),
	}
	var b bounds
	var nics []model.NetworkInterface
	if inv := s.facts().Inventory; inv != nil {
		st.Manufacturer, st.Model, st.SKU = shownText(inv.Manufacturer), shownText(inv.Model), shownText(inv.SKU)
		st.SerialNumber, st.BIOSVersion, st.IndicatorLED = shownText(inv.SerialNumber), shownText(inv.BIOSVersion), shownText(inv.IndicatorLED)
		st.TotalSystemMemory = bytesText(inv.MemoryBytes)
		st.Processors, st.Storages = shownList(&b, inv.Processors, "processors"), b.storages(storageStatuses(inv.Storages))
		st.BootOrder, nics = shownList(&b, inv.BootOrder, "boot options"), inv.NetworkInterfaces
	}
	if s.Record.Life.State == model.StateCleanup {
		if st.Cleanup = cleanupOf(s.trace().Wiping()); st.Cleanup != nil {
			st.Cleanup.Disks = shownList(&b, st.Cleanup.Disks, "disks")
		}
	}
	st.Install = s.installOf()
	if p := v.in.Observed.Probes[s.Name]; p != nil && len(p.Data.NetworkInterfaces) > 0 {
		nics = probedInterfaces(&p.Data)
	}
	for _, t := range s.Taints {
		st.Taints = append(st.Taints, TaintStatus{t.Taint, t.Rule, t.Unmet})
	}
	st.Taints = shownList(&b, st.Taints, "taints")
	st.NetworkInterfaces, st.LeftOut = b.interfaces(nics), b.leftOut
	return st
}

func storageStatuses(all []model.Storage) []StorageStatus {
	var out []StorageStatus
	for _, s := range all {
		st := StorageStatus{Name: s.Name, State: s.State}
		for _, v := range s.Volumes {
			st.Volumes = append(st.Volumes, VolumeStatus{v.Name, bytesText(v.Bytes), v.State, v.RAIDType, v.VolumeUsage})
		}
		for _, d := range s.Drives {
			st.Drives = append(st.Drives, DriveStatus{d.Name, d.MediaType, d.Type, bytesText(d.Bytes), d.Vendor, d.Model, d.State})
		}
		out = append(out, st)
	}
	return out
}

// bytesText writes an amount of bytes as Kubernetes does, "512Gi".
func bytesText(n int64) string {
	if n == 0 {
		return ""
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}

func probedInterfaces(d *model.ProbeData) []model.NetworkInterface {
	neighbors := make(map[string][]model.Neighbor)
	for _, l := range d.LLDP {
		for _, n := range l.Neighbors {
			neighbors[l.Name] = append(neighbors[l.Name], model.Neighbor{
				MACAddress: n.ChassisID, PortID: n.PortID, PortDescription: n.PortDescription,
				SystemName: n.SystemName, SystemDescription: n.SystemDescription,
			})
		}
	}
	var out []model.NetworkInterface
	for _, n := range d.NetworkInterfaces {
		out = append(out, model.NetworkInterface{
			Name: n.Name, IPs: n.IPAddresses, MACAddress: n.MACAddress, CarrierStatus: n.CarrierStatus, Neighbors: neighbors[n.Name],
		})
	}
	return out
}
