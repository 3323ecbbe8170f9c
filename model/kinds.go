package model

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group that Ingot shares with ironcore-dev's metal-operator,
// APIVersion what manifests of it carry.
const (
	Group      = "metal.ironcore.dev"
	APIVersion = Group + "/v1alpha1"
)

// Kind is the kind of a manifest.
type Kind string

// The kinds that Ingot reads from Git.
const (
	KindEndpoint                Kind = "Endpoint"
	KindBMC                     Kind = "BMC"
	KindBMCSecret               Kind = "BMCSecret"
	KindServer                  Kind = "Server"
	KindServerClaim             Kind = "ServerClaim"
	KindServerBootConfiguration Kind = "ServerBootConfiguration"
	KindServerMaintenance       Kind = "ServerMaintenance"
	KindServerReadinessRule     Kind = "ServerReadinessRule"
	KindImageCatalog            Kind = "ImageCatalog"
	KindSecret                  Kind = "Secret"
)

// Annotations that people steer Ingot with.
const (
	// AnnotationOperation asks for an operation. Each new value is done once; a
	// suffix after "#" makes a value new.
	AnnotationOperation = Group + "/operation"
	// AnnotationType, on a ServerBootConfiguration, is "Internal" for those that metal-operator
	// made for its discovery.
	AnnotationType = Group + "/type"
	// AnnotationReprovision lets a changed image or Ignition of a bound claim be
	// installed, once for each new value.
	AnnotationReprovision = "ingot/reprovision"
	// AnnotationPriority orders claims that wait: an integer, higher first.
	AnnotationPriority = "ingot/priority"
	// AnnotationDiscover, on a Server, lets a server that was found running be
	// powered off and discovered; once for each new value.
	AnnotationDiscover = "ingot/discover"
	// AnnotationBoot, on a ServerClaim, is "once" (boot the image once, then from
	// disk) or "always" (serve the same pinned image on each boot).
	AnnotationBoot = "ingot/boot"
	// AnnotationBooted, on a ServerClaim, is what it counts as Booted by where nothing on
	// its server reports: BootedServed or BootedKernel.
	AnnotationBooted = "ingot/booted"
	// AnnotationCleanup, on a Server, overrides cleanup.mode: none, quick or secure. On a
	// ServerClaim it asks for its disks to be wiped: of both the stricter counts.
	AnnotationCleanup = "ingot/cleanup"
	// AnnotationHandOverTo, on a ServerClaim, is the tenant that may take it over: the path of
	// git.tenants. It counts in the version that a commit removes.
	AnnotationHandOverTo = "ingot/hand-over-to"
	// AnnotationMaintenanceApproved, an annotation or a label of a ServerClaim, lets the
	// ServerMaintenance of this name begin that asks for approval, or any if it is "true". One that
	// was shown as one that leaves the server on may switch it off if "#Off" follows its name.
	AnnotationMaintenanceApproved = Group + "/maintenance-approved"
	// AnnotationMaintenanceReason, on a ServerMaintenance, is its reason unless spec.reason has one.
	AnnotationMaintenanceReason = Group + "/maintenance-reason"
	// AnnotationDisksAccepted, on a Server, names disks, by serial number or else by name,
	// that the next wipe need not account for: "S1, S2"; or DisksNone, or DisksAsReported.
	// Each new value counts once; a suffix after "#" makes a value new.
	AnnotationDisksAccepted = "ingot/disks-accepted"
	// AnnotationMACAddresses, on a Server, are MAC addresses of its network cards,
	// separated by commas, beside those that its BMC shows.
	AnnotationMACAddresses = "ingot/mac-addresses"
	// AnnotationTLSMinimum, on a BMC, is the lowest version of TLS that is spoken with it,
	// "1.0" to "1.3", in place of 1.2: for one that knows no better.
	AnnotationTLSMinimum = "ingot/tls-minimum"
	// AnnotationKernelArguments, on a ServerClaim, adds kernel arguments to those of
	// Ingot.
	AnnotationKernelArguments = "ingot/kernel-arguments"
	// AnnotationSSHKeys, on a ServerClaim, are the public SSH keys that may log in to its server, one a line. A change
	// takes effect at the next install, and requests none.
	AnnotationSSHKeys = "ingot/ssh-authorized-keys"
	// AnnotationBootFromDisk, on a Server, is how iPXE sends it on to its disk: exit,
	// sanboot or http-404.
	AnnotationBootFromDisk = "ingot/boot-from-disk"
	// AnnotationClientID, on an Endpoint, is the DHCP client identifier, or DUID, of its
	// device: 0x01a0b1, 01:a0:b1 or text. Who shows it gets the address, as does who has the MAC address.
	AnnotationClientID = "ingot/dhcp-client-id"
	// AnnotationCircuitID, on an Endpoint, is the port that the address is for: the circuit ID, or the
	// interface ID of DHCPv6, that a relay adds, as 0x000a1b, 00:0a:1b or text. The MAC address reserves nothing then.
	AnnotationCircuitID = "ingot/dhcp-circuit-id"
	// AnnotationRemoteID, on an Endpoint, is the relay that the address is for: the remote ID
	// that it adds, as 0x000a1b, 00:0a:1b or text. The MAC address reserves nothing then.
	AnnotationRemoteID = "ingot/dhcp-remote-id"
	// AnnotationBootLoader, on a Server, or on an Endpoint of a network card, is which boot
	// loader its firmware is told: ipxe, snponly, snp or shim.
	AnnotationBootLoader = "ingot/boot-loader"
	// AnnotationRootDevice, on a Server or a ServerClaim, says which disk a disk image goes to:
	// "serial=S1" or "rotational=false, size>=400GB".
	AnnotationRootDevice = "ingot/root-device"
	// AnnotationSeed, on a ServerClaim, is how its configuration reaches the system of a disk
	// image: a SeedKind.
	AnnotationSeed = "ingot/seed"
	// AnnotationOverwrite, on a ServerClaim, lets a disk image overwrite what is on the disk;
	// once for each new value.
	AnnotationOverwrite = "ingot/overwrite"
)

// typeInternal is the value of AnnotationType for what is no person's.
const typeInternal = "Internal"

// Values of AnnotationBooted: a server counts as booted once it is On and has asked for no
// network boot for a while since it was served.
const (
	BootedServed = "served" // its Ignition, or whatever configures it
	BootedKernel = "kernel" // its kernel, which is all that it fetches from Ingot
)

// seedKinds are the values of AnnotationSeed.
var seedKinds = []string{
	string(SeedAuto), string(SeedNoCloud), string(SeedOpenStack), string(SeedFCOS), string(SeedFlatcar), string(SeedNone),
}

// bootLoaders are the values of AnnotationBootLoader.
var bootLoaders = []string{"ipxe", "snponly", "snp", "shim"}

// BootLoaders returns the values that AnnotationBootLoader may have.
func BootLoaders() []string { return slices.Clone(bootLoaders) }

// Values of AnnotationDisksAccepted beside serial numbers.
const (
	DisksNone       = "none"        // it has no disk
	DisksAsReported = "as-reported" // all disks that the server's message names are accepted
)

// Operations, as values of AnnotationOperation.
const (
	OperationIgnore          = "ignore"
	OperationRetry           = "retry"
	OperationPark            = "park"
	OperationForget          = "forget"
	OperationUnpark          = "unpark"
	OperationGracefulRestart = "graceful-restart-server"
	OperationHardRestart     = "hard-restart-server"
	OperationPowerCycle      = "power-cycle-server"
	OperationForceOff        = "force-off-server"
	OperationForceOn         = "force-on-server"
)

// Object is any decoded manifest.
type Object interface {
	// Identity tells it from all others.
	Identity() Identity
	// Metadata is what all kinds have.
	Metadata() *Meta
}

// Meta is the metadata that Ingot reads. Other fields of Kubernetes' ObjectMeta
// are accepted in files and ignored, with a warning.
type Meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	// Source is where the object stands in Git, "path:line".
	Source string `json:"-"`
	// Tenant is the path of the tenant whose it is, "" where there are none; Refused is
	// why it does not count, "" if it does. See Tenants.
	Tenant  string `json:"-"`
	Refused string `json:"-"`
	// Encrypted is set for a Secret or BMCSecret of which no value stands in plain text.
	Encrypted bool `json:"-"`
	// DataKey is the same for those that SOPS encrypted with one key; "" where nothing is encrypted.
	DataKey string `json:"-"`
	// References are the other objects that it names, in the order of the kind's fields.
	References []Reference `json:"-"`
	// Sealed is set for a Secret or BMCSecret with encrypted values that were not decrypted.
	Sealed bool `json:"-"`
	// Places are the positions of the fields that checks of several objects may report.
	Places []Place `json:"-"`
	// Within is the Server that describes a BMC within itself, "" for what stands in Git by
	// itself.
	Within ServerName `json:"-"`
}

// Place is the position of a field in its file.
type Place struct {
	Field        string // its path
	Line, Column int
	// Indent is the number of spaces before each line of a block of text ("|"), which begins in the line after Line;
	// 0 for other values.
	Indent int
}

// Place returns the position of a field; false if it was not noted.
func (m *Meta) Place(field string) (Place, bool) {
	i := slices.IndexFunc(m.Places, func(p Place) bool { return p.Field == field })
	if i < 0 {
		return Place{}, false
	}
	return m.Places[i], true
}

// Position is Source taken apart; line is 0 if it is not known.
func (m *Meta) Position() (file string, line int) {
	if i := strings.LastIndexByte(m.Source, ':'); i >= 0 {
		if n, err := strconv.Atoi(m.Source[i+1:]); err == nil {
			return m.Source[:i], n
		}
	}
	return m.Source, 0
}

// Metadata implements Object for every kind that embeds Meta.
func (m *Meta) Metadata() *Meta { return m }

// LocalRef names an object of a known kind, in the same namespace if it has one.
type LocalRef struct {
	Name string `json:"name"`
}

// ObjectRef names an object of a known kind in a namespace.
type ObjectRef struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Endpoint is a device seen on the management network.
type Endpoint struct {
	Meta `json:"metadata"`
	Spec EndpointSpec `json:"spec"`
}

// EndpointSpec is a device's addresses.
type EndpointSpec struct {
	// MACAddress is canonical, see CanonicalMAC. It is empty for one that annotations alone tell.
	MACAddress string `json:"macAddress,omitempty"`
	IP         string `json:"ip"`
}

// BMC is a baseboard management controller.
type BMC struct {
	Meta `json:"metadata"`
	Spec BMCSpec `json:"spec"`
}

// BMCSpec says how a BMC is reached: exactly one of EndpointRef and Access.
type BMCSpec struct {
	BMCUUID         string           `json:"bmcUUID,omitempty"`
	EndpointRef     *LocalRef        `json:"endpointRef,omitempty"`
	Access          *InlineEndpoint  `json:"access,omitempty"`
	BMCSecretRef    LocalRef         `json:"bmcSecretRef"`
	Protocol        Protocol         `json:"protocol"`
	ConsoleProtocol *ConsoleProtocol `json:"consoleProtocol,omitempty"`
	Hostname        string           `json:"hostname,omitempty"`
}

// InlineEndpoint is an address written into the BMC itself.
type InlineEndpoint struct {
	MACAddress string `json:"macAddress,omitempty"` // canonical
	IP         string `json:"ip"`
}

// Protocol is how to speak with a BMC. Scheme is "https" when empty.
type Protocol struct {
	Name   string `json:"name"`
	Port   int32  `json:"port"`
	Scheme string `json:"scheme,omitempty"`
}

// Address is host and port of whom the protocol is spoken with.
func (p Protocol) Address(host string) string {
	return net.JoinHostPort(host, strconv.Itoa(int(p.Port)))
}

// ConsoleProtocol is how to reach a server's console.
type ConsoleProtocol struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

// BMCSecret holds the credentials of a BMC under the keys username and password.
// Data and StringData are merged by the decoder: Values is what counts.
type BMCSecret struct {
	Meta      `json:"metadata"`
	Immutable *bool                `json:"immutable,omitempty"`
	Type      string               `json:"type,omitempty"`
	Values    map[string]Sensitive `json:"-"`
}

// Secret holds what a claim hands to its server. Data and StringData are merged
// by the decoder: Values is what counts.
type Secret struct {
	Meta      `json:"metadata"`
	Immutable *bool                `json:"immutable,omitempty"`
	Type      string               `json:"type,omitempty"`
	Values    map[string]Sensitive `json:"-"`
	Sum       Sensitive            `json:"-"` // see BootSum; zero = not computed
}

// BootKeys are the keys of a claim's Secret that configure how its server boots.
var BootKeys = []string{"ignition", "format", "user-data", "meta-data", "vendor-data", "network-config", "ipxe-script"}

// BootSum identifies what the Secret has a server boot. A decoded Secret knows it: plans ask for it
// each time.
func (o *Secret) BootSum() string {
	if !o.Sum.IsZero() {
		return o.Sum.Reveal()
	}
	h := sha256.New()
	for _, key := range BootKeys {
		value := o.Values[key].Reveal()
		fmt.Fprintf(h, "%d ", len(value))
		io.WriteString(h, value)
	}
	return string(h.Sum(nil))
}

// BootSecret returns the Secret that configures the server of a claim, or why it cannot be used; nil and "" for a claim
// without one.
func (d *Desired) BootSecret(c *ServerClaim) (*Secret, string) {
	ref := c.Spec.IgnitionSecretRef
	if ref == nil {
		return nil, ""
	}
	name := Named[ObjectName](c.Namespace, ref.Name)
	secret := d.Secrets[name]
	switch {
	case secret == nil:
		return nil, d.SecretMissing(Identity{Kind: KindSecret, Namespace: cmp.Or(c.Namespace, DefaultNamespace), Name: ref.Name})
	case secret.Tenant != c.Tenant:
		return nil, fmt.Sprintf("Secret %s is not the claim's own: it is below another path of git.tenants", name)
	case !secret.Sealed && !secret.Boots():
		return nil, fmt.Sprintf("Secret %s has no key ignition, and neither user-data nor ipxe-script", name)
	}
	return secret, ""
}

// Boots reports whether the Secret has one of the keys that a server can boot with.
func (o *Secret) Boots() bool {
	return slices.ContainsFunc([]string{"ignition", "user-data", "ipxe-script"}, func(key string) bool { return !o.Values[key].IsZero() })
}

// ReclaimPolicy is what becomes of a server when its claim is gone.
type ReclaimPolicy string

// The reclaim policies.
const (
	ReclaimRecycle ReclaimPolicy = "Recycle" // wipe, then Available; the default
	ReclaimRetain  ReclaimPolicy = "Retain"  // Released, untouched until a person acts
)

// Server is a machine: what people say about one. Servers come to be by
// discovery; a Server in Git adds to what was discovered.
type Server struct {
	Meta `json:"metadata"`
	Spec ServerSpec `json:"spec"`
}

// ServerSpec is what people may say about a server.
type ServerSpec struct {
	SystemUUID           string        `json:"systemUUID,omitempty"` // canonical, see CanonicalUUID
	SystemURI            string        `json:"systemURI,omitempty"`
	Power                Power         `json:"power,omitempty"`
	IndicatorLED         string        `json:"indicatorLED,omitempty"`
	ReclaimPolicy        ReclaimPolicy `json:"reclaimPolicy,omitempty"`
	ServerClaimRef       *ObjectRef    `json:"serverClaimRef,omitempty"`
	BMCRef               *LocalRef     `json:"bmcRef,omitempty"`
	BMC                  *BMCAccess    `json:"bmc,omitempty"`
	BootConfigurationRef *ObjectRef    `json:"bootConfigurationRef,omitempty"`
	BootOrder            []BootOrder   `json:"bootOrder,omitempty"`
	Taints               []Taint       `json:"taints,omitempty"`
	Unclaimable          bool          `json:"unclaimable,omitempty"` // cordoned
}

// BMCAccess is a BMC described within a Server, which has its name, too.
type BMCAccess struct {
	Protocol     Protocol `json:"protocol"`
	Address      string   `json:"address"`
	BMCSecretRef LocalRef `json:"bmcSecretRef"`
}

// BootOrder is one entry of a persistent boot order.
type BootOrder struct {
	Name     string `json:"name"`
	Priority int    `json:"priority"`
	Device   string `json:"device"`
}

// TaintEffect is what a taint does.
type TaintEffect string

// The taint effects.
const (
	TaintNoBind TaintEffect = "NoBind" // no new claim is bound; the default
	TaintEvict  TaintEffect = "Evict"  // reserved, has no effect
)

// Taint keeps claims off a server that do not tolerate it.
type Taint struct {
	Key    string      `json:"key"`
	Value  string      `json:"value,omitempty"`
	Effect TaintEffect `json:"effect,omitempty"`
}

// Toleration lets a claim bind to a tainted server.
type Toleration struct {
	Key      string      `json:"key,omitempty"`
	Operator string      `json:"operator,omitempty"` // Equal (default) or Exists
	Value    string      `json:"value,omitempty"`
	Effect   TaintEffect `json:"effect,omitempty"`
}

// ServerClaim asks for a server that runs an image.
type ServerClaim struct {
	Meta `json:"metadata"`
	Spec ServerClaimSpec `json:"spec"`
	// BootConfiguration is set for what a ServerBootConfiguration asks for.
	BootConfiguration bool `json:"-"`
}

// ServerClaimSpec is what a tenant asks for.
type ServerClaimSpec struct {
	Power             Power                 `json:"power"`
	ServerRef         *LocalRef             `json:"serverRef,omitempty"`
	ServerSelector    *metav1.LabelSelector `json:"serverSelector,omitempty"`
	IgnitionSecretRef *LocalRef             `json:"ignitionSecretRef,omitempty"`
	UserDataRef       *LocalRef             `json:"userDataRef,omitempty"`
	Image             string                `json:"image"`
	Tolerations       []Toleration          `json:"tolerations,omitempty"`
}

// ServerBootConfiguration says what a server boots that no claim has: it boots that once.
// Those of claims, Ingot makes itself and shows them.
type ServerBootConfiguration struct {
	Meta `json:"metadata"`
	Spec ServerBootConfigurationSpec `json:"spec"`
}

// ServerBootConfigurationSpec is what a server boots.
type ServerBootConfigurationSpec struct {
	ServerRef         LocalRef  `json:"serverRef"`
	Image             string    `json:"image"`
	IgnitionSecretRef *LocalRef `json:"ignitionSecretRef,omitempty"`
}

// Claim is what the configuration asks for, as a claim. Taints keep it off no server, for it
// names one, unless it is a tenant's.
func (o *ServerBootConfiguration) Claim() *ServerClaim {
	c := &ServerClaim{Meta: o.Meta, BootConfiguration: true, Spec: ServerClaimSpec{
		Power: PowerOn, ServerRef: &o.Spec.ServerRef, Image: o.Spec.Image, IgnitionSecretRef: o.Spec.IgnitionSecretRef,
	}}
	if o.Tenant == "" {
		c.Spec.Tolerations = []Toleration{{Operator: tolerationExists}}
	}
	return c
}

// ofDiscovery reports whether metal-operator made the configuration, for its discovery.
func (o *ServerBootConfiguration) ofDiscovery() bool {
	return o.Annotations[AnnotationType] == typeInternal
}

// ServerMaintenance takes a server out of service for as long as it exists.
type ServerMaintenance struct {
	Meta `json:"metadata"`
	Spec ServerMaintenanceSpec `json:"spec"`
}

// MaintenancePolicy is whether a ServerMaintenance waits for the owner of the claim that has
// the server.
type MaintenancePolicy string

// The maintenance policies.
const (
	MaintenanceOwnerApproval MaintenancePolicy = "OwnerApproval" // see ServerClaim.Approves
	MaintenanceEnforced      MaintenancePolicy = "Enforced"      // it does not; the default
)

// ServerMaintenanceSpec names the server, and how it is treated. ServerPower is its power
// state when the maintenance begins; empty = Off.
type ServerMaintenanceSpec struct {
	ServerRef   LocalRef          `json:"serverRef"`
	Policy      MaintenancePolicy `json:"policy,omitempty"`
	ServerPower Power             `json:"serverPower,omitempty"`
	Reason      string            `json:"reason,omitempty"`
}

// ServerReadinessRule keeps a taint on servers until its conditions hold.
type ServerReadinessRule struct {
	Meta `json:"metadata"`
	Spec ServerReadinessRuleSpec `json:"spec"`
}

// ServerReadinessRuleSpec is a rule's conditions and taint.
type ServerReadinessRuleSpec struct {
	Conditions      []RequiredCondition   `json:"conditions"`
	EnforcementMode string                `json:"enforcementMode"` // BootstrapOnly or Continuous
	Taint           Taint                 `json:"taint"`
	ServerSelector  *metav1.LabelSelector `json:"serverSelector,omitempty"`
}

// ImageCatalog gives images names that claims use.
type ImageCatalog struct {
	Meta `json:"metadata"`
	Spec ImageCatalogSpec `json:"spec"`
}

// ImageCatalogSpec has at most one image for each name and architecture.
type ImageCatalogSpec struct {
	Images []CatalogImage `json:"images"`
}

// CatalogImage is an image with a name.
type CatalogImage struct {
	Name         string `json:"name"`
	Image        string `json:"image"`                  // a reference with a digest
	Architecture string `json:"architecture,omitempty"` // amd64, arm64; "" = any that the image has
	User         string `json:"user,omitempty"`         // the image's login user, "" = unknown
}

// Identity implements Object.
func (o *ImageCatalog) Identity() Identity { return Identity{Kind: KindImageCatalog, Name: o.Name} }

// RequiredCondition is a condition type, or the key of a label, and the status that it must
// have.
type RequiredCondition struct {
	Type           string `json:"type"`
	RequiredStatus string `json:"requiredStatus"`
}

// Identity implements Object.
func (o *Endpoint) Identity() Identity { return Identity{Kind: KindEndpoint, Name: o.Name} }

// Identity implements Object.
func (o *BMC) Identity() Identity { return Identity{Kind: KindBMC, Name: o.Name} }

// Identity implements Object.
func (o *BMCSecret) Identity() Identity { return Identity{Kind: KindBMCSecret, Name: o.Name} }

// Identity implements Object.
func (o *Server) Identity() Identity { return Identity{Kind: KindServer, Name: o.Name} }

// Identity implements Object.
func (o *ServerClaim) Identity() Identity {
	kind := KindServerClaim
	if o.BootConfiguration {
		kind = KindServerBootConfiguration
	}
	return Identity{Kind: kind, Namespace: o.Namespace, Name: o.Name}
}

// Identity implements Object.
func (o *ServerBootConfiguration) Identity() Identity {
	return Identity{Kind: KindServerBootConfiguration, Namespace: o.Namespace, Name: o.Name}
}

// Identity implements Object.
func (o *ServerMaintenance) Identity() Identity {
	return Identity{Kind: KindServerMaintenance, Name: o.Name}
}

// Identity implements Object.
func (o *ServerReadinessRule) Identity() Identity {
	return Identity{Kind: KindServerReadinessRule, Name: o.Name}
}

// Identity implements Object.
func (o *Secret) Identity() Identity {
	return Identity{Kind: KindSecret, Namespace: o.Namespace, Name: o.Name}
}

// ClaimName returns the claim's namespaced name.
func (o *ServerClaim) ClaimName() ClaimName { return o.Identity().ClaimName() }

// Approvals are the values by which the claim's owner approves ServerMaintenances of its server; ""
// is none.
func (o *ServerClaim) Approvals() [2]string {
	return [...]string{o.Annotations[AnnotationMaintenanceApproved], o.Labels[AnnotationMaintenanceApproved]}
}

// ApprovesOff after the name of a ServerMaintenance, approves that it switches the server off.
const ApprovesOff = "#Off"

// Approves reports whether the claim's owner lets a ServerMaintenance of its server begin: as it
// was shown to him, or whatever it does to the server's power.
func (o *ServerClaim) Approves(maintenance string) (asShown, anyPower bool) {
	for _, v := range o.Approvals() {
		asShown = asShown || v != "" && v == maintenance
		anyPower = anyPower || v == "true" || maintenance != "" && v == maintenance+ApprovesOff
	}
	return asShown || anyPower, anyPower
}
