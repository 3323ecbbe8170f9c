package model

import (
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kindInfo is what the decoder knows of a kind.
type kindInfo struct {
	new        func() Object
	namespaced bool
	core       bool // apiVersion is v1, not ours
}

var kindTable = map[Kind]kindInfo{
	KindEndpoint:                {new: func() Object { return new(Endpoint) }},
	KindBMC:                     {new: func() Object { return new(BMC) }},
	KindBMCSecret:               {new: func() Object { return new(BMCSecret) }},
	KindServer:                  {new: func() Object { return new(Server) }},
	KindServerClaim:             {new: func() Object { return new(ServerClaim) }, namespaced: true},
	KindServerBootConfiguration: {new: func() Object { return new(ServerBootConfiguration) }, namespaced: true},
	KindServerMaintenance:       {new: func() Object { return new(ServerMaintenance) }},
	KindServerReadinessRule:     {new: func() Object { return new(ServerReadinessRule) }},
	KindImageCatalog:            {new: func() Object { return new(ImageCatalog) }},
	KindSecret:                  {new: func() Object { return new(Secret) }, namespaced: true, core: true},
}

// Kinds are the kinds that Ingot reads, in the order of a server's life.
var Kinds = []Kind{
	KindEndpoint, KindBMC, KindBMCSecret, KindServer, KindServerClaim, KindServerBootConfiguration,
	KindServerMaintenance, KindServerReadinessRule, KindImageCatalog, KindSecret,
}

// Namespaced reports whether objects of the kind live in a namespace.
func (k Kind) Namespaced() bool { return kindTable[k].namespaced }

// KindNamed returns the kind that a person names: ServerClaim, serverclaims, claim and claims are the same.
func KindNamed(word string) (Kind, bool) {
	word = strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(word), "-", ""), "s")
	for _, k := range Kinds {
		if name := strings.ToLower(string(k)); word == name || word != "" && word == strings.TrimPrefix(name, "server") {
			return k, true
		}
	}
	return "", false
}

func kindNames() []string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = string(k)
	}
	return names
}

// Kinds of the ironcore projects that Ingot refuses, and why.
const (
	firmwareMoved = "firmware and BIOS settings left metal-operator for a project of their own, and Ingot does not change firmware"
	bootMade      = "Ingot makes boot entries from its boot tickets itself"
)

var refusedKinds = map[Kind]string{
	"BIOSSettings":    firmwareMoved,
	"BIOSSettingsSet": firmwareMoved,
	"BIOSVersion":     firmwareMoved,
	"BIOSVersionSet":  firmwareMoved,
	"BMCSettings":     firmwareMoved,
	"BMCSettingsSet":  firmwareMoved,
	"BMCVersion":      firmwareMoved,
	"BMCVersionSet":   firmwareMoved,
	"BMCUser":         "it is deprecated upstream: keep accounts on the BMC and name their credentials in a BMCSecret",
	"ServerMetadata":  "discovery fills in what is known of a server, and labels of the Server add to it",
	"IPXEBootConfig":  bootMade,
	"HTTPBootConfig":  bootMade,
	"Lease":           "leases are what Ingot's DHCP observes: write an Endpoint to fix an address",

	"ServerMaintenanceSet": "write a ServerMaintenance for each of its servers",
	"ServerWiring":         "Ingot does not compare cabling with a plan: the status of a Server has its neighbours",
	"Console":              "Ingot does not register servers at a vendor's management console",
}

// aliasGroup is a name under which upstream's group appears in documents that
// people still copy from.
const aliasGroup = "metal.OpenKCM.dev"

// MaintenanceVersion is the apiVersion of ServerMaintenances since they left metal-operator.
const MaintenanceVersion = "maintenance." + APIVersion

// upstreamMarks are annotations and labels of metal-operator and its maintenance operator, and what to write instead.
var upstreamMarks = map[string]string{
	Group + "/parked":                `has no effect: it is metal-operator's record. To park a server, write the annotation ` + AnnotationOperation + ": " + OperationPark,
	Group + "/maintenance-requested": "has no effect: write a ServerMaintenance that names the server",
	Group + "/maintenance-needed":    "has no effect: the status of the claim says whether a ServerMaintenance waits for its approval",
}

var allowedValues = map[reflect.Type][]string{
	reflect.TypeFor[Power]():             {string(PowerOn), string(PowerOff)},
	reflect.TypeFor[ReclaimPolicy]():     {string(ReclaimRecycle), string(ReclaimRetain)},
	reflect.TypeFor[TaintEffect]():       {string(TaintNoBind), string(TaintEvict)},
	reflect.TypeFor[MaintenancePolicy](): {string(MaintenanceOwnerApproval), string(MaintenanceEnforced)},

	reflect.TypeFor[metav1.LabelSelectorOperator](): selectorOps,
}

// fieldValues are the values of fields that are enumerations without a type of their own.
var fieldValues = map[reflect.Type]map[string][]string{
	reflect.TypeFor[Protocol]():                {"name": protocolNames, "scheme": protocolSchemes},
	reflect.TypeFor[ConsoleProtocol]():         {"name": consoleNames},
	reflect.TypeFor[ServerSpec]():              {"indicatorLED": indicatorLEDs},
	reflect.TypeFor[Toleration]():              {"operator": tolerationOps},
	reflect.TypeFor[RequiredCondition]():       {"requiredStatus": conditionStatus},
	reflect.TypeFor[ServerReadinessRuleSpec](): {"enforcementMode": enforcementModes},
	reflect.TypeFor[CatalogImage]():            {"architecture": imageArchitectures},
	reflect.TypeFor[macPrefixEntry]():          {"protocolScheme": protocolSchemes},
	reflect.TypeFor[macPrefixConsole]():        {"type": consoleNames},
}

func allowed[T ~string]() []string { return allowedValues[reflect.TypeFor[T]()] }

// extraFields are names that files may hold beside the fields of the Go types.
var extraFields = map[reflect.Type]map[string]extraField{
	reflect.TypeFor[Meta](): ignoredFields("belongs to Kubernetes' bookkeeping: ignored",
		"clusterName", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
		"generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"),
	reflect.TypeFor[ServerSpec](): {
		"uuid": {alias: "systemUUID", warning: `is deprecated: write "systemUUID"`},
	},
	reflect.TypeFor[ServerMaintenanceSpec](): {
		"priority":   {warning: "has no effect: of several ServerMaintenances of a server the first by name begins"},
		"locatorLED": {warning: "has no effect: set spec.indicatorLED of the Server"},
	},
}

func init() {
	top := ignoredFields("is written by Ingot on the status branch: ignored", "status")
	top["apiVersion"], top["kind"] = extraField{}, extraField{}
	secret := map[string]extraField{"data": {}, "stringData": {}, "sops": {}}
	maps.Copy(secret, top)
	for kind, info := range kindTable {
		extra := top
		if kind.secret() {
			extra = secret
		}
		extraFields[reflect.TypeOf(info.new()).Elem()] = extra
	}
}

func (k Kind) secret() bool { return k == KindSecret || k == KindBMCSecret }

func ignoredFields(why string, names ...string) map[string]extraField {
	m := make(map[string]extraField, len(names))
	for _, name := range names {
		m[name] = extraField{warning: why}
	}
	return m
}

// annotation is what is known of one of Ingot's own annotations.
type annotation struct {
	kinds  []Kind   // on which it has an effect
	values []string // that it may have, nil for any
}

// ownPrefix begins the annotations that only Ingot knows.
const ownPrefix = "ingot/"

var annotations = map[string]annotation{
	AnnotationReprovision: {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
	AnnotationPriority:    {kinds: []Kind{KindServerClaim}},
	AnnotationDiscover:    {kinds: []Kind{KindServer}},
	AnnotationBoot:        {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}, values: []string{"once", "always"}},
	AnnotationBooted:      {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}, values: []string{BootedServed, BootedKernel}},
	AnnotationCleanup: {
		kinds:  []Kind{KindServer, KindServerClaim, KindServerBootConfiguration},
		values: cleanupModes,
	},
	AnnotationHandOverTo:          {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
	AnnotationMaintenanceApproved: {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
	AnnotationMaintenanceReason:   {kinds: []Kind{KindServerMaintenance}},
	AnnotationSSHKeys:             {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
	AnnotationKernelArguments:     {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
	AnnotationDisksAccepted:       {kinds: []Kind{KindServer}},
	AnnotationMACAddresses:        {kinds: []Kind{KindServer}},
	AnnotationClientID:            {kinds: []Kind{KindEndpoint}},
	AnnotationCircuitID:           {kinds: []Kind{KindEndpoint}},
	AnnotationRemoteID:            {kinds: []Kind{KindEndpoint}},
	AnnotationTLSMinimum:          {kinds: []Kind{KindBMC, KindServer}, values: []string{"1.0", "1.1", "1.2", "1.3"}},
	AnnotationBootFromDisk:        {kinds: []Kind{KindServer}, values: []string{"exit", "sanboot", "http-404"}},
	AnnotationBootLoader:          {kinds: []Kind{KindServer, KindEndpoint}, values: bootLoaders},
	AnnotationRootDevice:          {kinds: []Kind{KindServer, KindServerClaim, KindServerBootConfiguration}},
	AnnotationSeed:                {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}, values: seedKinds},
	AnnotationOverwrite:           {kinds: []Kind{KindServerClaim, KindServerBootConfiguration}},
}

// operations are the known values of AnnotationOperation; those that upstream
// knows and Ingot does not carry out are false.
var operations = map[string]bool{
	OperationIgnore:            true,
	OperationRetry:             true,
	OperationPark:              true,
	OperationForget:            true,
	OperationUnpark:            true,
	OperationGracefulRestart:   true,
	OperationHardRestart:       true,
	OperationPowerCycle:        true,
	OperationForceOff:          true,
	OperationForceOn:           true,
	"allow-in-progress-delete": false,
	"allow-in-progress-update": false,
	"retry-propagated":         false,
	"rotate-credentials":       false,
	"graceful-restart-bmc":     false,
	"force-ssh-reset-bmc":      false,
}

// listKind reports whether kind is a list of other objects, as kubectl writes it.
func listKind(kind string) bool {
	item, ok := strings.CutSuffix(kind, "List")
	_, known := kindTable[Kind(item)]
	return ok && (item == "" || known)
}
