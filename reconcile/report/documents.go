package report

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// Document is one object as the status branch shows it: upstream's schema, and
// beside it the record that only Ingot knows (law 3 reads it back).
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`
	Status     any      `json:"status,omitempty"`
	Record     any      `json:"record,omitempty"`
}

// Metadata names an object.
type Metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

func newDocument(kind model.Kind, name string) *Document {
	return &Document{APIVersion: model.APIVersion, Kind: string(kind), Metadata: Metadata{Name: name}}
}

// ServerSpec is a server as Git and its BMC have it.
type ServerSpec struct {
	SystemUUID           string              `json:"systemUUID,omitempty"`
	SystemURI            string              `json:"systemURI,omitempty"`
	BMCRef               *model.LocalRef     `json:"bmcRef,omitempty"`
	ServerClaimRef       *model.ObjectRef    `json:"serverClaimRef,omitempty"`
	BootConfigurationRef *model.ObjectRef    `json:"bootConfigurationRef,omitempty"`
	ReclaimPolicy        model.ReclaimPolicy `json:"reclaimPolicy,omitempty"`
	Taints               []model.Taint       `json:"taints,omitempty"`
	Unclaimable          bool                `json:"unclaimable,omitempty"`
}

// ServerStatus is what is so of a server.
type ServerStatus struct {
	State             model.ServerState        `json:"state"`
	PowerState        model.Power              `json:"powerState,omitempty"`
	Manufacturer      string                   `json:"manufacturer,omitempty"`
	Model             string                   `json:"model,omitempty"`
	SKU               string                   `json:"sku,omitempty"`
	SerialNumber      string                   `json:"serialNumber,omitempty"`
	BIOSVersion       string                   `json:"biosVersion,omitempty"`
	IndicatorLED      string                   `json:"indicatorLED,omitempty"`
	TotalSystemMemory string                   `json:"totalSystemMemory,omitempty"`
	Processors        []model.Processor        `json:"processors,omitempty"`
	Storages          []StorageStatus          `json:"storages,omitempty"`
	NetworkInterfaces []model.NetworkInterface `json:"networkInterfaces,omitempty"`
	Conditions        []metav1.Condition       `json:"conditions,omitempty"`
	BootTimeline      []model.BootStep         `json:"bootTimeline,omitempty"`
	Cleanup           *CleanupStatus           `json:"cleanup,omitempty"`
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

// BMCSpec is a BMC as Git has it, or would.
type BMCSpec struct {
	EndpointRef  *model.LocalRef       `json:"endpointRef,omitempty"`
	Access       *model.InlineEndpoint `json:"access,omitempty"`
	BMCSecretRef model.LocalRef        `json:"bmcSecretRef"`
	Protocol     model.Protocol        `json:"protocol"`
}

// BMCStatus is what is so of a BMC.
type BMCStatus struct {
	State           string             `json:"state"` // Enabled, Error, Pending
	MACAddress      string             `json:"macAddress,omitempty"`
	IP              string             `json:"ip,omitempty"`
	Manufacturer    string             `json:"manufacturer,omitempty"`
	Model           string             `json:"model,omitempty"`
	SKU             string             `json:"sku,omitempty"`
	SerialNumber    string             `json:"serialNumber,omitempty"`
	FirmwareVersion string             `json:"firmwareVersion,omitempty"`
	PowerState      model.Power        `json:"powerState,omitempty"`
	Servers         []model.ServerName `json:"servers,omitempty"`
	Conditions      []metav1.Condition `json:"conditions,omitempty"`
}

// EndpointSpec is a device and where it is.
type EndpointSpec struct {
	MACAddress string `json:"macAddress"`
	IP         string `json:"ip,omitempty"` // empty while nobody knows
}

// EndpointStatus is what is so of a device.
type EndpointStatus struct {
	Network      string             `json:"network,omitempty"`
	Since        time.Time          `json:"since,omitzero"` // when it got its address
	BMC          model.BMCName      `json:"bmc,omitempty"`
	Prefix       string             `json:"macPrefix,omitempty"` // the entry that it was recognised by
	Manufacturer string             `json:"manufacturer,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
}

// ClaimStatus is what is so of a claim.
type ClaimStatus struct {
	Phase      string             `json:"phase"` // Bound, Unbound
	Server     model.ServerName   `json:"server,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaintenanceStatus is what is so of a ServerMaintenance.
type MaintenanceStatus struct {
	State   string `json:"state"`             // Pending, InMaintenance
	Message string `json:"message,omitempty"` // what it is pending for
}

// version is that of the document's record, nil if it has none. The record is the
// document's own.
func (d *Document) version() *model.Version {
	switch r := d.Record.(type) {
	case *model.ServerRecord:
		return &r.Version
	case *model.BMCRecord:
		return &r.Version
	case *model.ClaimRecord:
		return &r.Version
	case *model.EndpointRecord:
		return &r.Version
	}
	return nil
}

// Revision is revision.yaml: what is applied, what waits, and who wrote the branch.
type Revision struct {
	Observed model.Revision `json:"observedRevision,omitempty"`
	Applied  model.Revision `json:"lastAppliedRevision,omitempty"`
	Source   *Source        `json:"source,omitempty"`
	Guard    []Guard        `json:"guard,omitempty"`
	Absent   *Absent        `json:"absentWithoutCommit,omitempty"`
	Pools    []Pool         `json:"exhaustedPools,omitempty"`
	// Tenants are git.tenants, for those who check manifests before they are merged.
	Tenants model.Tenants `json:"tenants,omitempty"`
	// Fence and Holder say who wrote the branch, beside the trailers of its commits:
	// those a person's commit does not have. MirrorFirst says whether decisions
	// are written before they are acted upon.
	Fence       uint64            `json:"fence"`
	Holder      model.Holder      `json:"holder,omitzero"`
	MirrorFirst bool              `json:"mirrorFirst"`
	Record      model.FleetRecord `json:"record"`
}

// version is that of the fleet's record.
func (d *Revision) version() *model.Version { return &d.Record.Version }

// Absent is what is in force though Git lacks it.
type Absent struct {
	Message string `json:"message"`
	Approve string `json:"approve"` // the line of the commit message that lets all of it go
	Count   int    `json:"count"`
}

// Source says what is wrong with the watched branch as a whole.
type Source struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Guard is one list of steps that the guard holds back.
type Guard struct {
	Message string             `json:"message"`
	Approve string             `json:"approve"` // the line of the commit message that lets it happen
	Limit   int                `json:"limit"`
	Since   time.Time          `json:"since"`
	Until   time.Time          `json:"until,omitzero"` // when there is room for it without approval
	Steps   []model.Disruption `json:"steps"`
	LeftOut string             `json:"leftOut,omitempty"`
}

// Problems is problems.yaml: every manifest that was refused.
type Problems struct {
	Problems []model.Problem `json:"problems"`
	LeftOut  string          `json:"leftOut,omitempty"`
}

// bytesText writes an amount of bytes as Kubernetes does, "512Gi".
func bytesText(n int64) string {
	if n == 0 {
		return ""
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
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

// condition makes one condition. Its time is that of the transition, to the second;
// its message is bounded.
func condition(kind string, holds bool, reason, message string, since time.Time) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: shownText(message),
		LastTransitionTime: metav1.NewTime(since.UTC().Truncate(time.Second)),
	}
}
