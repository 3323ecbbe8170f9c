package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// fieldSchema is what the schemas say of a field beside its type.
type fieldSchema struct {
	about       string // for people who write it
	text        textSchema
	least, most int // of a number, or of a list's entries; 0 = any
}

// textSchema is which texts a field takes; the zero value is any.
type textSchema struct {
	pattern string   // regular expression of the whole text, as Go and ECMA-262 both read it
	want    string   // what that asks for, in words
	not     string   // the same, for what is left out of that
	values  []string // of an enumeration
	max     int      // characters
}

// Regular expressions of what syntax.go reads.
const (
	labelPattern     = `[a-z0-9](?:[-a-z0-9]*[a-z0-9])?`
	subdomainPattern = labelPattern + `(?:\.` + labelPattern + `)*`
	hostPattern      = `[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*`
	valuePattern     = `[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?`
	keyPattern       = `(?:` + subdomainPattern + `/)?` + valuePattern
	annotationKey    = `(?:` + hostPattern + `/)?` + valuePattern
	secretKeyPattern = `[-_.A-Za-z0-9]+`

	base64Digit   = `(?:[A-Za-z0-9+/][\r\n]*)`
	base64Padding = `(?:=[\r\n]*)`
	base64Last    = base64Digit + `{2}` + base64Padding + `{2}|` + base64Digit + `{3}` + base64Padding
	base64Pattern = `[\r\n]*(?:` + base64Digit + `{4})*(?:` + base64Last + `)?`

	imagePart   = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	imageFirst  = `[a-z0-9]+(?:(?:_|__|-+)[a-z0-9]+)*` // without a dot, which only a registry has
	portPattern = `(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])`
	hostLabel   = `[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?`
	imageHost   = `(?:` + hostLabel + `(?:\.` + hostLabel + `)+(?::` + portPattern + `)?|` + hostLabel + `:` + portPattern +
		`|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|\[(?:` + ipv6Plain + `)\](?::` + portPattern + `)?)`
	imageName    = `(?:oci://)?(?:` + imagePart + `|(?:` + imageHost + `|` + imageFirst + `)/` + imagePart + `(?:/` + imagePart + `)*)`
	layoutPart   = `[-_A-Za-z0-9][-_.A-Za-z0-9]*`
	urlPattern   = `https?://[-_.:\[\]A-Za-z0-9]+/[-._~:/?\[\]@!$&'()*+,;=%A-Za-z0-9]+#(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})`
	imagePattern = urlPattern + `|(?:oci:(?:/` + layoutPart + `)+|` + imageName + `)(?::[_A-Za-z0-9][-_.A-Za-z0-9]{0,127})?` +
		`(?:@(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}))?`

	pinnedPattern = urlPattern + `|(?:oci:(?:/` + layoutPart + `)+|` + imageName + `)(?::[_A-Za-z0-9][-_.A-Za-z0-9]{0,127})?` +
		`@(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})`

	// Of the first octet of one device's address the lowest bit is not set.
	hexPair    = `[0-9A-Fa-f]{2}`
	firstPair  = `[0-9A-Fa-f][02468ACEace]`
	macPattern = firstPair + `(?:(?::` + hexPair + `){5}|(?:-` + hexPair + `){5}|` +
		hexPair + `\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}|[0-9A-Fa-f]{10})`
	zeroMAC = `[-.:0]+`

	octet       = `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	ipv4Pattern = octet + `(?:\.` + octet + `){3}`
	hextet      = `[0-9A-Fa-f]{1,4}`
	hextets     = `(?:` + hextet + `(?::` + hextet + `){0,6})?`
	ipv6Plain   = `(?:(?:` + hextet + `:){7}` + hextet + `|` + hextets + `::` + hextets +
		`|(?:(?:` + hextet + `:){6}|` + hextets + `::(?:` + hextet + `:){0,5})` + ipv4Pattern + `)`
	ipv6Pattern = ipv6Plain + `(?:%.+)?`
	ipPattern   = ipv4Pattern + `|` + ipv6Pattern // short, and so without the sum of groups on both sides of "::"
	noDevicesIP = `0\.0\.0\.0|2(?:2[4-9]|3[0-9])\..*|::|[Ff]{2}[0-9A-Fa-f]{2}:.*`

	uuidPattern = `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`
	uuidsWanted = uuidPattern + `|\{` + uuidPattern + `\}|[0-9A-Fa-f]{32}`
	noUUID      = `\{?(?:[-0]+|[-Ff]+)\}?`
)

var (
	nameText  = textSchema{pattern: subdomainPattern, want: subdomainWant, max: 253}
	spaceText = textSchema{pattern: labelPattern, want: labelWant, max: 63}
	keyText   = textSchema{pattern: keyPattern, want: keyWant, max: 317}
	valueText = textSchema{pattern: valuePattern, want: valueWant}
	macText   = textSchema{pattern: macPattern, want: "want " + wantMAC, not: zeroMAC}
	ipText    = textSchema{pattern: ipPattern, want: "want " + wantIP, not: noDevicesIP}
	uuidText  = textSchema{pattern: uuidsWanted, want: "want a UUID such as 123e4567-e89b-12d3-a456-426614174000", not: noUUID}
	imageText = textSchema{pattern: imagePattern, want: imageWant, max: 1024}
	anyValue  = textSchema{pattern: `[\s\S]*`} // whatever its type is
)

var fieldSchemas = map[string]fieldSchema{
	"Meta.name":        {about: "Tells the object from others of its kind, and namespace.", text: nameText},
	"Meta.namespace":   {about: "default where it is left out.", text: spaceText},
	"Meta.labels":      {about: "What selectors choose by; values that look like numbers or booleans need quotes.", most: maxLabels},
	"Meta.annotations": {about: "What Ingot is asked for with annotations is asked for by each new value of one. They may have 256 KiB in all."},

	"LocalRef.name":       {about: "Its name.", text: nameText},
	"ObjectRef.namespace": {about: "Its namespace, default where it is left out.", text: spaceText},
	"ObjectRef.name":      {about: "Its name.", text: nameText},

	"Endpoint.spec": {about: "The addresses of a device on the management network."},
	"EndpointSpec.macAddress": {
		about: "Such as 00:1a:2b:3c:4d:5e. It may be left out where annotations say who gets the address.", text: macText,
	},
	"EndpointSpec.ip": {
		about: "The address that is reserved for the device, such as 192.168.100.10 or fd00::10.",
		text:  ipText,
	},

	"BMC.spec":                {about: "How the BMC is reached: exactly one of endpointRef and access."},
	"BMCSpec.bmcUUID":         {about: "While another BMC answers, nothing is done to its servers.", text: uuidText},
	"BMCSpec.endpointRef":     {about: "The Endpoint that has its address."},
	"BMCSpec.access":          {about: "Its address, where there is no Endpoint."},
	"BMCSpec.bmcSecretRef":    {about: "The BMCSecret with its credentials."},
	"BMCSpec.protocol":        {about: "How to speak with it."},
	"BMCSpec.consoleProtocol": {about: "How to reach the consoles of its servers."},
	"BMCSpec.hostname": {
		about: "The name that its certificate is verified against where bmc.caFile is set.",
		text:  textSchema{pattern: hostPattern, want: "want a DNS name", not: ipv4Pattern, max: 253},
	},

	"InlineEndpoint.macAddress": {about: "Such as 00:1a:2b:3c:4d:5e.", text: macText},
	"InlineEndpoint.ip":         {about: "Such as 192.168.100.10 or fd00::10.", text: ipText},

	"Protocol.name": {about: "What the BMC speaks.", text: textSchema{values: protocolNames}},
	"Protocol.port": {about: "443 as a rule.", least: 1, most: 65535},
	"Protocol.scheme": {
		about: "https where it is left out; http has to be allowed by bmc.networks.",
		text:  textSchema{values: protocolSchemes},
	},
	"ConsoleProtocol.name": {about: "What the console speaks.", text: textSchema{values: consoleNames}},
	"ConsoleProtocol.port": {about: "Its port.", least: 1, most: 65535},

	"BMCSecret.immutable": {about: "true: it is never changed, only replaced by another."},
	"BMCSecret.type":      {about: "Not read."},
	"Secret.immutable":    {about: "true: it is never changed, only replaced by another."},
	"Secret.type":         {about: "Not read."},

	"Server.spec":           {about: "What people say of a server that was discovered, or is to be."},
	"ServerSpec.systemUUID": {about: "Which machine it is, as its firmware says.", text: uuidText},
	"ServerSpec.systemURI": {
		about: "Where its BMC has it, such as /redfish/v1/Systems/1.",
		text:  textSchema{pattern: `/.*`, want: "want a path such as /redfish/v1/Systems/1", max: maxURI},
	},
	"ServerSpec.power": {about: "Ignored: power belongs to the ServerClaim.", text: anyValue},
	"ServerSpec.indicatorLED": {
		about: "The light that tells the machine from its neighbours; Unknown leaves it as it is.",
		text:  textSchema{values: indicatorLEDs},
	},
	"ServerSpec.reclaimPolicy": {
		about: "What becomes of the server when its claim is gone: Recycle wipes it, which is the default; Retain " +
			"leaves it untouched until a person acts.",
	},
	"ServerSpec.serverClaimRef":       {about: "The claim that the server is kept for."},
	"ServerSpec.bmcRef":               {about: "The BMC that it is behind."},
	"ServerSpec.bmc":                  {about: "The BMC that it is behind, described here in place of an object of its own."},
	"ServerSpec.bootConfigurationRef": {about: "The ServerBootConfiguration that it boots."},
	"ServerSpec.bootOrder": {
		about: "The boot options that come first, set while the server is Available and off.",
		most:  maxBootOrder,
	},
	"ServerSpec.taints":      {about: "They keep claims off it that do not tolerate them.", most: maxEntries},
	"ServerSpec.unclaimable": {about: "true: no claim is bound to it."},

	"BMCAccess.protocol":     {about: "How to speak with it."},
	"BMCAccess.address":      {about: "Such as 192.168.100.10 or fd00::10.", text: ipText},
	"BMCAccess.bmcSecretRef": {about: "The BMCSecret with its credentials."},
	"BootOrder.name":         {about: "Its DisplayName, or UefiDevicePath, where device names no boot option."},
	"BootOrder.priority":     {about: "The lowest comes first; each entry has one of its own."},
	"BootOrder.device":       {about: "Its BootOptionReference, such as Boot0003, or DisplayName."},

	"Taint.key":      {about: "What is the matter with the server, such as example.com/broken.", text: keyText},
	"Taint.value":    {about: "More of it.", text: valueText},
	"Taint.effect":   {about: "NoBind, the default: no new claim is bound. Evict has no effect yet."},
	"Toleration.key": {about: "The taint that is tolerated; without one, and with operator Exists, every taint.", text: keyText},
	"Toleration.operator": {
		about: "Equal, the default: taints of this value. Exists: of any value.",
		text:  textSchema{values: tolerationOps},
	},
	"Toleration.value":  {about: "The value of the taint, with operator Equal.", text: valueText},
	"Toleration.effect": {about: "The effect of the taint; any where it is left out."},

	"ServerClaim.spec":                  {about: "What the server is asked for."},
	"ServerClaimSpec.power":             {about: "Whether the server is to be on."},
	"ServerClaimSpec.serverRef":         {about: "The server that it has to be."},
	"ServerClaimSpec.serverSelector":    {about: "The labels that the server has to have; any server without it."},
	"ServerClaimSpec.ignitionSecretRef": {about: "The Secret with what configures the server: ignition, user-data or ipxe-script."},
	"ServerClaimSpec.userDataRef":       {about: "The Secret with user data."},
	"ServerClaimSpec.image": {
		about: "What the server boots, such as registry.example.com/os/image:tag or …/image@sha256:digest; oci:/folder:tag is an OCI image layout on Ingot's machine. https://…#sha256:… is a disk image that is written to the server's disk.",
		text:  imageText,
	},
	"ServerClaimSpec.tolerations": {about: "The taints that the server may have.", most: maxEntries},

	"LabelSelector.matchLabels":      {about: "Labels with the value that each has to have.", most: maxLabels},
	"LabelSelector.matchExpressions": {about: "What has to be so of labels beside that.", most: maxEntries},
	"LabelSelectorRequirement.key":   {about: "The label.", text: keyText},
	"LabelSelectorRequirement.operator": {
		about: "In, NotIn: of its value and values. Exists, DoesNotExist: of the label.",
		text:  textSchema{values: selectorOps},
	},
	"LabelSelectorRequirement.values":   {about: "For In and NotIn.", most: maxEntries},
	"LabelSelectorRequirement.values[]": {about: "A value of the label.", text: valueText},
	"ServerBootConfiguration.spec":      {about: "What a server boots once that no claim has."},
	"ServerBootConfigurationSpec.image": {
		about: "What the server boots, such as registry.example.com/os/image:tag or …/image@sha256:digest; oci:/folder:tag is an OCI image layout on Ingot's machine. https://…#sha256:… is a disk image that is written to the server's disk.",
		text:  imageText,
	},
	"ServerMaintenance.spec":          {about: "Which server is out of service, and how."},
	"ServerMaintenanceSpec.serverRef": {about: "The server that is out of service for as long as the object exists."},
	"ServerMaintenanceSpec.policy": {
		about: "OwnerApproval: it begins once the claim that has the server approves. Enforced, the default: it does not ask.",
	},
	"ServerMaintenanceSpec.serverPower": {about: "The power state of the server when it begins; Off where it is left out."},
	"ServerMaintenanceSpec.reason":      {about: "For people."},
	"ImageCatalog.spec":                 {about: "The images that claims name."},
	"ImageCatalogSpec.images":           {about: "One entry for each name and architecture.", most: maxEntries},
	"CatalogImage.name":                 {about: "What claims write as their image: letters, digits and '-'.", text: spaceText},
	"CatalogImage.image": {
		about: "The image with its digest: registry.example.com/os/image@sha256:…, or https://…#sha256:… of a disk image.",
		text:  textSchema{pattern: pinnedPattern, want: "want an image with a digest", max: 1024},
	},
	"CatalogImage.architecture":          {about: "The architecture of servers that the image is for; any where it is left out.", text: textSchema{values: imageArchitectures}},
	"CatalogImage.user":                  {about: "The login user of the image, for the status of claims.", text: textSchema{pattern: imageUserPattern, want: "want the name of a login user, such as debian"}},
	"ServerReadinessRule.spec":           {about: "The conditions that servers have to meet before claims get them."},
	"ServerReadinessRuleSpec.conditions": {about: "All of them have to hold.", least: 1, most: MaxRequiredConditions},
	"ServerReadinessRuleSpec.taint":      {about: "The taint that servers have until then."},
	"RequiredCondition.requiredStatus": {
		about: "The status that it has to have, in quotes.",
		text:  textSchema{values: conditionStatus},
	},

	"ServerBootConfigurationSpec.serverRef": {about: "The server that boots."},
	"ServerBootConfigurationSpec.ignitionSecretRef": {
		about: "The Secret with what configures the server: ignition, user-data or ipxe-script.",
	},
	"RequiredCondition.type": {
		about: "BMCReadable, Discovered, InventoryComplete, Wiped, or a label that attests it, such as burn-in.example.com/passed.",
		text:  textSchema{pattern: keyPattern, want: keyWant, not: "Ready", max: keyText.max},
	},
	"ServerReadinessRuleSpec.enforcementMode": {
		about: "BootstrapOnly: until all conditions have held once. Continuous: all the time.",
		text:  textSchema{values: enforcementModes},
	},
	"ServerReadinessRuleSpec.serverSelector": {about: "The labels of the servers that it is for; all servers without it."},
}

// given is a schema of mappings in which a field is there: null is the same as absent.
func given(field string) schema {
	return schema{"type": "object", "required": []string{field}, "properties": schema{field: schema{"not": schema{"type": "null"}}}}
}

func has(field string, values ...string) schema {
	return schema{"type": "object", "required": []string{field}, "properties": schema{field: schema{"enum": values}}}
}

func isAnnotated(names ...string) schema {
	var cases []schema
	for _, name := range names {
		cases = append(cases, schema{"required": []string{name}, "properties": schema{name: schema{"type": "string", "minLength": 1}}})
	}
	annotations := schema{"required": []string{"annotations"}, "properties": schema{"annotations": schema{"type": "object", "anyOf": cases}}}
	annotations["type"] = "object"
	return schema{"required": []string{"metadata"}, "properties": schema{"metadata": annotations}}
}

// identifierText is what an identifier of a DHCP client or of a relay's port may be.
func identifierText(least int) textSchema {
	const short = hexPrefix + "|" + hexNumber
	times := func(least, most int) string { return fmt.Sprintf("{%d,%d}", least, most) }
	return textSchema{
		pattern: `(?:` + short + `)(?:` + hexPair + `)` + times(least, MaxDHCPIdentifier) +
			`|` + hexPair + `(?::` + hexPair + `)` + times(1, MaxDHCPIdentifier-1) +
			`|(?:` + textPrefix + `)?[ -~]` + times(least, MaxDHCPIdentifier),
		want: "want " + wantIdentifier,
		not: `(?:` + short + `)(?:(?:` + hexPair + `)*(?:[0-9A-Fa-f]?[^0-9A-Fa-f].*|[0-9A-Fa-f])|(?:` + hexPair + `)` +
			times(0, least-1) + `)|` + textPrefix + `[ -~]` + times(0, least-1),
	}
}

var structSchemas = map[string]schema{
	"Endpoint": {
		"if": schema{"not": isAnnotated(AnnotationClientID, AnnotationCircuitID, AnnotationRemoteID)},
		"then": schema{"properties": schema{"spec": schema{
			"type": "object", "required": []string{"macAddress"}, "properties": schema{"macAddress": schema{"type": "string", "minLength": 1}},
		}}},
	},
	"BMCSpec": {"oneOf": []schema{given("endpointRef"), given("access")}},
	"ServerSpec": {"allOf": []schema{
		{"not": schema{"allOf": []schema{given("bmcRef"), given("bmc")}}},
		{"not": schema{"type": "object", "required": []string{"systemUUID", "uuid"}}},
	}},
	"Toleration": {
		"if":   has("operator", tolerationExists),
		"then": schema{"properties": schema{"value": schema{"type": nullOr("string"), "maxLength": 0}}},
		"else": schema{"required": []string{"key"}, "properties": schema{"key": schema{"type": "string", "minLength": 1}}},
	},
	"LabelSelectorRequirement": {
		"allOf": []schema{
			{"if": has("operator", "In", "NotIn"), "then": schema{
				"required": []string{"values"}, "properties": schema{"values": schema{"type": "array", "minItems": 1}},
			}},
			{"if": has("operator", "Exists", "DoesNotExist"), "then": schema{
				"properties": schema{"values": schema{"type": nullOr("array"), "maxItems": 0}},
			}},
		},
	},
}

func hintsPattern() string {
	anyCase := func(words ...string) string {
		for i, word := range words {
			var b strings.Builder
			for _, r := range word {
				if upper := unicode.ToUpper(r); upper != r {
					fmt.Fprintf(&b, "[%c%c]", r, upper)
					continue
				}
				b.WriteRune(r)
			}
			words[i] = b.String()
		}
		return "(?:" + strings.Join(words, "|") + ")"
	}
	named := anyCase(hintSerial, hintWWID, hintModel, hintVendor, hintTransport, hintByPath, hintHCTL) + `\s*!?=\s*[^\s/<>=,][^<>=,]*`
	rotates := anyCase(hintRotational) + `\s*!?=\s*` + anyCase("true", "yes", "1", "false", "no", "0")
	sized := anyCase(hintSize) + `\s*[<>]=\s*[0-9]+\s*(?:KiB|MiB|GiB|TiB|kB|MB|GB|TB|B)?`
	one := `\s*(?:` + named + "|" + rotates + "|" + sized + `)\s*`
	return `\s*|` + one + "(?:," + one + fmt.Sprintf("){0,%d}", maxHints-1)
}

func (w *schemaWriter) annotations() schema {
	names := slices.Sorted(maps.Keys(operations))
	all := map[string]schema{
		AnnotationOperation: textSchema{
			pattern: strings.Join(names, "(?:#.*)?|") + "(?:#.*)?", max: maxAsked,
			want: "want " + oneOf(names) + `, with a suffix after "#" or without`,
		}.schema(true),
	}
	for _, asked := range []string{AnnotationReprovision, AnnotationDiscover, AnnotationDisksAccepted, AnnotationOverwrite} {
		all[asked] = textSchema{max: maxAsked}.schema(false)
	}
	if slices.Contains(annotations[AnnotationRootDevice].kinds, w.kind) {
		all[AnnotationRootDevice] = textSchema{
			pattern: hintsPattern(), max: maxHintsLength,
			want: "want conditions such as serial=S4X1NB0K or rotational=false, size>=400GB; keys are " + oneOf(hintKeys) + ", and no kernel names",
		}.schema(false)
	}
	for name, a := range annotations {
		switch {
		case !slices.Contains(a.kinds, w.kind):
			if all[name] == nil {
				all[name] = textSchema{}.schema(false)
			}
			all[name]["deprecationMessage"] = "has no effect on a " + string(w.kind)
			continue
		case a.values != nil:
			all[name] = textSchema{values: a.values}.schema(false)
		case name == AnnotationPriority:
			all[name] = textSchema{pattern: `[-+]?[0-9]+`, want: "want a whole number in quotes, higher is served first"}.schema(true)
		case name == AnnotationSSHKeys:
			line := `[ \t\r]*(?:#[^\n]*|(?:` + regexp.QuoteMeta(strings.Join(sshKeyTypes, "|")) + `)[ \t]+[A-Za-z0-9+/]+={0,2}(?:[ \t\r][^\n]*)?)?`
			line = strings.ReplaceAll(line, `\|`, "|")
			all[name] = textSchema{pattern: line + `(?:\n` + line + `)*`, want: "want public SSH keys, one a line, without options"}.schema(false)
		case name == AnnotationMACAddresses:
			one := `[ \t]*(?:` + macPattern + `)[ \t]*`
			const want = "want MAC addresses such as 00:1a:2b:3c:4d:5e, separated by commas"
			all[name] = textSchema{pattern: one + `(?:,` + one + `)*`, want: want, not: `(?:.*,)?[ \t]*` + zeroMAC + `[ \t]*(?:,.*)?`}.schema(true)
		case dhcpClientAnnotations[name] > 0:
			all[name] = identifierText(dhcpClientAnnotations[name]).schema(false)
		case all[name] == nil:
			all[name] = textSchema{}.schema(false)
		}
		all[name]["description"] = w.about[name]
	}
	all[AnnotationOperation]["description"] = w.about[AnnotationOperation]
	properties := schema{}
	for name, s := range all {
		properties[name] = s
	}
	return properties
}
