package query

import (
	"strconv"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

// Common is what every row has. Rows are shared: nobody changes them.
type Common struct {
	Name     string            `json:"name"`
	State    string            `json:"state"`
	Since    time.Time         `json:"since,omitzero"`    // when State was entered
	Why      string            `json:"why,omitempty"`     // what it waits for; empty when it is where it should be
	Actor    string            `json:"actor,omitempty"`   // who has to act; empty = nobody
	WhySince time.Time         `json:"whySince,omitzero"` // since when it waits
	Labels   map[string]string `json:"labels,omitempty"`
	// Manifest is where it stands in Git, "path:line"; empty for what does not stand there.
	Manifest string `json:"manifest,omitempty"`

	text string           // all that a search looks at, in lower case
	doc  *report.Document // that it was made of
}

// Document is the object as the status branch shows it, nil for what does not stand there.
func (c *Common) Document() *report.Document { return c.doc }

// Position is Manifest taken apart; line is 0 if it is not known.
func (c *Common) Position() (file string, line int) {
	return (&model.Meta{Source: c.Manifest}).Position()
}

// Server is the row of one server.
type Server struct {
	Common
	Power        string `json:"power,omitempty"`
	BMC          string `json:"bmc,omitempty"`
	Claim        string `json:"claim,omitempty"`
	InstallStage string `json:"installStage,omitempty"`
	Location     string `json:"location,omitempty"`
	Rack         string `json:"rack,omitempty"`
	Unit         int    `json:"unit,omitempty"`   // the lowest that it takes, from 1 at the bottom
	Height       int    `json:"height,omitempty"` // in units
	UUID         string `json:"uuid,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	Serial       string `json:"serial,omitempty"`
}

// Claim is the row of one claim, or of a ServerBootConfiguration in Git.
type Claim struct {
	Common
	Kind      string `json:"kind"` // claim or boot-configuration, as ingot explain has it
	Namespace string `json:"namespace"`
	Server    string `json:"server,omitempty"`
	Image     string `json:"image,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
}

// BMC is the row of one BMC.
type BMC struct {
	Common
	Address      string `json:"address,omitempty"`
	MAC          string `json:"mac,omitempty"`
	Endpoint     string `json:"endpoint,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	Firmware     string `json:"firmware,omitempty"`
	Servers      int    `json:"servers"`
}

// Endpoint is the row of one device that may be a BMC.
type Endpoint struct {
	Common
	MAC          string `json:"mac"`
	Address      string `json:"address,omitempty"`
	Network      string `json:"network,omitempty"`
	BMC          string `json:"bmc,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
}

// Problem is the row of one problem in the manifests. Its name is where it is, its state the
// severity.
type Problem struct {
	Common
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
}

// The states of a DHCP lease.
const (
	LeaseLive     = "Live"
	LeaseEnded    = "Ended"    // its address is remembered for the device
	LeaseDeclined = "Declined" // somebody else was found to use the address
)

// Lease is the row of one DHCP lease. Its name is the address, or the prefix.
type Lease struct {
	Common
	Network string    `json:"network"`
	Role    string    `json:"role"` // bmc or host
	MAC     string    `json:"mac,omitempty"`
	Server  string    `json:"server,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Relay is the relay that the device was last heard through, CircuitID and RemoteID what it
	// calls the port and itself.
	Relay     string `json:"relay,omitempty"`
	CircuitID string `json:"circuitID,omitempty"`
	RemoteID  string `json:"remoteID,omitempty"`
}

// The states of a pool.
const (
	PoolHasRoom   = "HasRoom"
	PoolExhausted = "Exhausted" // the last device that asked got no address
)

// Pool is the row of one DHCP pool. Its name is its subnet.
type Pool struct {
	Common
	Network string `json:"network"`
	Size    uint64 `json:"size"`
	Used    uint64 `json:"used"`
	Refused uint64 `json:"refused"` // devices that got no address since it ran out
}

// The states of an image's blob.
const (
	ImageComplete = "Complete"
	ImageFetching = "Fetching"
)

// Image is the row of one blob of an image in the cache. Its name is its digest.
type Image struct {
	Common
	Image   string    `json:"image,omitempty"` // that boot tickets pinned it for
	Part    string    `json:"part,omitempty"`  // kernel, initrd, squashfs or uki
	Size    int64     `json:"size"`            // in bytes
	Fetched int64     `json:"fetched"`         // how many of them are there
	Used    time.Time `json:"used,omitzero"`   // when somebody last read it
	Pinned  bool      `json:"pinned"`          // a boot ticket in use needs it: it is kept
}

// server makes the row of a server's document; manifest may be nil.
func server(d *report.Document, c Common, manifest *model.Server) *Server {
	st, _ := d.Status.(report.ServerStatus)
	spec, _ := d.Spec.(report.ServerSpec)
	mounted := report.PlaceOf(d.Metadata.Labels, manifest)
	s := &Server{
		Common: c, Power: string(st.PowerState), InstallStage: string(st.InstallStage),
		Location: mounted.Location, Rack: mounted.Rack, Unit: mounted.Unit, Height: mounted.Height,
		UUID: spec.SystemUUID, Manufacturer: st.Manufacturer, Model: st.Model, Serial: st.SerialNumber,
	}
	if spec.BMCRef != nil {
		s.BMC = spec.BMCRef.Name
	}
	if rec, _ := d.Decided.(*model.ServerRecord); rec != nil {
		s.Claim = string(rec.Claim.Name)
	}
	return s
}

// The kinds of claims' rows.
const (
	kindClaim             = "claim"
	kindBootConfiguration = "boot-configuration"
)

// claim makes the row of a claim's document, or a ServerBootConfiguration's.
func claim(d *report.Document, c Common) *Claim {
	row := &Claim{Common: c, Kind: kindClaim, Namespace: d.Metadata.Namespace}
	switch st := d.Status.(type) {
	case report.ClaimStatus:
		spec, _ := d.Spec.(model.ServerClaimSpec)
		row.Server, row.Tenant, row.Image = string(st.Server), st.Tenant, spec.Image
	case report.BootConfigurationStatus:
		spec, _ := d.Spec.(report.BootConfigurationSpec)
		row.Kind, row.Server, row.Image = kindBootConfiguration, string(st.Server), spec.Image
	}
	return row
}

// bmc makes the row of a BMC's document.
func bmc(d *report.Document, c Common) *BMC {
	st, _ := d.Status.(report.BMCStatus)
	spec, _ := d.Spec.(report.BMCSpec)
	b := &BMC{
		Common: c, Address: report.BMCAddress(d, st), MAC: st.MACAddress, Manufacturer: st.Manufacturer, Model: st.Model,
		Firmware: st.FirmwareVersion, Servers: len(st.Servers),
	}
	if spec.EndpointRef != nil {
		b.Endpoint = spec.EndpointRef.Name
	}
	return b
}

// endpoint makes the row of a device's document.
func endpoint(d *report.Document, c Common) *Endpoint {
	st, _ := d.Status.(report.EndpointStatus)
	spec, _ := d.Spec.(report.EndpointSpec)
	return &Endpoint{
		Common: c, MAC: spec.MACAddress, Address: spec.IP, Network: st.Network, BMC: string(st.BMC), Manufacturer: st.Manufacturer,
	}
}

// problem makes the row of a problem.
func problem(p model.Problem) *Problem {
	c := Common{Name: place(p.File, p.Line, p.Column), State: string(p.Severity), Why: p.Message, Manifest: place(p.File, p.Line)}
	return &Problem{Common: c, File: p.File, Line: p.Line, Column: p.Column, Object: p.Object, Field: p.Field}
}

// place is a place in a file as compilers write it, as far as it is known.
func place(file string, numbers ...int) string {
	parts := []string{file}
	for _, n := range numbers {
		if n == 0 {
			break
		}
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ":")
}
