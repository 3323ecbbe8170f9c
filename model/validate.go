package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Values of fields that are enumerations without a type of their own.
var (
	protocolNames    = []string{"Redfish", "RedfishLocal", "RedfishWithRegistryPatch"}
	protocolSchemes  = []string{"https", "http"}
	consoleNames     = []string{"IPMI", "SSH", "SSHLenovo"}
	indicatorLEDs    = []string{"Unknown", "Lit", "Blinking", "Off"}
	conditionStatus  = []string{"True", "False", "Unknown"}
	enforcementModes = []string{"BootstrapOnly", "Continuous"}
	maintenances     = []string{"OwnerApproval", "Enforced"}
	selectorOps      = []string{"In", "NotIn", "Exists", "DoesNotExist"}
	tolerationOps    = []string{tolerationEqual, tolerationExists}
)

// maxAnnotationBytes is how much Kubernetes lets annotations hold.
const maxAnnotationBytes = 256 << 10

// check validates an object that was decoded, fills in its defaults and makes
// its addresses canonical. It runs on objects with errors too, so that all of
// them are found.
func (d *nodeDecoder) check(o Object) {
	d.in("metadata", func() { d.checkMeta(o.Identity().Kind, o.Metadata()) })
	d.checkInert(o.Identity().Kind)
	switch o := o.(type) {
	case *BMCSecret:
		d.checkBMCSecret(o)
		return
	case *Secret:
		d.checkSops()
		return
	case *Endpoint:
		d.in("spec", func() { d.checkEndpoint(&o.Spec) })
	case *BMC:
		d.in("spec", func() { d.checkBMC(&o.Spec) })
	case *Server:
		d.in("spec", func() { d.checkServer(&o.Spec) })
	case *ServerClaim:
		d.in("spec", func() { d.checkClaim(&o.Spec) })
	case *ServerBootConfiguration:
		d.in("spec", func() { d.checkBootConfiguration(&o.Spec) })
	case *ServerMaintenance:
		d.in("spec", func() { d.checkMaintenance(&o.Spec) })
	case *ServerReadinessRule:
		d.in("spec", func() { d.checkReadinessRule(&o.Spec) })
	}
}

func (d *nodeDecoder) checkMeta(kind Kind, m *Meta) {
	d.name("name", m.Name)
	if kind.Namespaced() {
		d.fault("namespace", m.Namespace, labelFault(m.Namespace))
	}
	if len(m.Labels) > 0 {
		d.in("labels", func() { d.checkLabels(m.Labels) })
	}
	if len(m.Annotations) > 0 {
		d.in("annotations", func() { d.checkAnnotations(kind, m.Annotations) })
	}
}

func (d *nodeDecoder) checkLabels(labels map[string]string) {
	for key, value := range labels {
		d.fault(key, key, keyFault(key))
		d.fault(key, value, valueFault(value))
	}
}

func (d *nodeDecoder) checkAnnotations(kind Kind, all map[string]string) {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
		d.fault(key, key, keyFault(strings.ToLower(key)))
		switch key {
		case AnnotationOperation, AnnotationReprovision, AnnotationDiscover, AnnotationDisksAccepted:
			d.checkAsked(key, value)
		}
		switch {
		case key == AnnotationOperation:
			d.checkOperation(value)
		case strings.HasPrefix(key, ownPrefix):
			d.checkOwnAnnotation(kind, key, value)
		}
	}
	if size > maxAnnotationBytes {
		d.bad("", "the annotations have "+strconv.Itoa(size)+" bytes, at most "+strconv.Itoa(maxAnnotationBytes)+" are allowed")
	}
}

// maxAsked is how long a value may be that asks for something once: it is remembered.
const maxAsked = 256

// maxURI is how long the place of a system on its BMC may be: messages name it.
const maxURI = 256

// checkAsked keeps what is remembered of an annotation short.
func (d *nodeDecoder) checkAsked(key, value string) {
	if len(value) > maxAsked {
		d.bad(key, "it has "+strconv.Itoa(len(value))+" bytes, at most "+strconv.Itoa(maxAsked)+" are allowed")
	}
}

func (d *nodeDecoder) checkOperation(value string) {
	name, _ := operation(value)
	done, known := operations[name]
	switch {
	case !known:
		d.bad(AnnotationOperation, "found "+show(name)+", "+guess(name, slices.Sorted(maps.Keys(operations))))
	case !done:
		d.odd(AnnotationOperation, "Ingot does not carry out "+name+": ignored")
	}
}

func (d *nodeDecoder) checkOwnAnnotation(kind Kind, key, value string) {
	a, known := annotations[key]
	switch {
	case !known:
		d.odd(key, "unknown annotation, "+guess(key, slices.Sorted(maps.Keys(annotations))))
		return
	case !slices.Contains(a.kinds, kind):
		d.odd(key, "has no effect on a "+string(kind))
		return
	case a.values != nil:
		d.oneOf(key, value, a.values)
	case key == AnnotationPriority:
		if _, err := strconv.Atoi(value); err != nil {
			d.bad(key, "found "+show(value)+", want a whole number in quotes, higher is served first")
		}
	case key == AnnotationMACAddresses:
		d.checkMACAddresses(value)
	}
}

// checkMACAddresses checks a list of a server's MAC addresses.
func (d *nodeDecoder) checkMACAddresses(value string) {
	list := strings.Split(value, ",")
	if len(list) > MaxServerMACs {
		d.bad(AnnotationMACAddresses, "found "+strconv.Itoa(len(list))+" MAC addresses, at most "+strconv.Itoa(MaxServerMACs)+" are allowed")
		return
	}
	var known []string
	for _, text := range list {
		text = strings.TrimSpace(text)
		m, ok := ParseMAC(text)
		mac := m.String()
		switch {
		case !ok:
			d.bad(AnnotationMACAddresses, "found "+show(text)+", want MAC addresses such as 00:1a:2b:3c:4d:5e, separated by commas")
			return
		case !m.IsStation():
			d.bad(AnnotationMACAddresses, "found "+show(text)+", want the address of one device")
			return
		case slices.Contains(known, mac):
			d.bad(AnnotationMACAddresses, "found "+mac+" twice")
			return
		}
		known = append(known, mac)
	}
}

func (d *nodeDecoder) checkEndpoint(s *EndpointSpec) {
	d.mac("macAddress", &s.MACAddress, true)
	d.ip("ip", &s.IP)
}

func (d *nodeDecoder) checkBMC(s *BMCSpec) {
	d.uuid("bmcUUID", &s.BMCUUID)
	switch {
	case s.EndpointRef != nil && s.Access != nil:
		d.bad("access", "endpointRef and access are both given: keep one of them")
	case s.EndpointRef == nil && s.Access == nil && !d.reported("spec.endpointRef") && !d.reported("spec.access"):
		d.bad("", "one of endpointRef and access is required")
	}
	d.optionalRef("endpointRef", s.EndpointRef)
	if a := s.Access; a != nil {
		d.in("access", func() {
			d.mac("macAddress", &a.MACAddress, false)
			d.ip("ip", &a.IP)
		})
	}
	d.ref("bmcSecretRef", s.BMCSecretRef)
	d.protocol(&s.Protocol)
	if c := s.ConsoleProtocol; c != nil {
		d.in("consoleProtocol", func() {
			d.requiredOneOf("name", c.Name, consoleNames)
			d.port("port", c.Port)
		})
	}
	d.hostname("hostname", s.Hostname)
}

func (d *nodeDecoder) protocol(p *Protocol) {
	d.in("protocol", func() {
		d.requiredOneOf("name", p.Name, protocolNames)
		d.port("port", p.Port)
		if p.Scheme == "" {
			p.Scheme = protocolSchemes[0]
		}
		d.oneOf("scheme", p.Scheme, protocolSchemes)
	})
}

func (d *nodeDecoder) checkBMCSecret(o *BMCSecret) {
	d.checkSops()
	if len(o.Values) == 0 {
		return
	}
	for _, key := range []string{"username", "password"} {
		if _, ok := o.Values[key]; !ok && d.errors == 0 {
			d.odd("", "has no "+key+": no BMC can be logged in to with it")
		}
	}
}

// checkSops reports a secret that is still encrypted.
func (d *nodeDecoder) checkSops() {
	if child(d.root, "sops") == nil {
		return
	}
	d.in("sops", func() {
		d.fail(locate(d.root, nil, "sops"), "the object is encrypted with SOPS and was not decrypted: is git.ageKeyFile set?")
	})
}

func (d *nodeDecoder) checkServer(s *ServerSpec) {
	name := "systemUUID"
	if child(child(d.root, "spec"), "uuid") != nil {
		name = "uuid"
	}
	d.uuid(name, &s.SystemUUID)
	if s.SystemURI != "" && !strings.HasPrefix(s.SystemURI, "/") || len(s.SystemURI) > maxURI {
		d.bad("systemURI", "found "+show(s.SystemURI)+", want a path such as /redfish/v1/Systems/1, of at most "+strconv.Itoa(maxURI)+" bytes")
	}
	d.oneOf("indicatorLED", s.IndicatorLED, indicatorLEDs)
	d.oneOf("reclaimPolicy", string(s.ReclaimPolicy), allowed[ReclaimPolicy]())
	d.objectRef("serverClaimRef", s.ServerClaimRef)
	d.optionalRef("bmcRef", s.BMCRef)
	if b := s.BMC; b != nil {
		d.in("bmc", func() {
			d.protocol(&b.Protocol)
			d.ip("address", &b.Address)
			d.ref("bmcSecretRef", b.BMCSecretRef)
		})
		if s.BMCRef != nil {
			d.bad("bmc", "bmcRef and bmc are both given: keep one of them")
		}
	}
	d.objectRef("bootConfigurationRef", s.BootConfigurationRef)
	each(d, "bootOrder", s.BootOrder, func(b *BootOrder) {
		d.required("name", b.Name)
		d.required("device", b.Device)
	})
	each(d, "taints", s.Taints, d.taint)
	d.uniqueTaints(s.Taints)
}

func (d *nodeDecoder) taint(t *Taint) {
	if d.required("key", t.Key) {
		d.fault("key", t.Key, keyFault(t.Key))
	}
	d.fault("value", t.Value, valueFault(t.Value))
	if t.Effect == "" {
		t.Effect = TaintNoBind
	}
	d.oneOf("effect", string(t.Effect), allowed[TaintEffect]())
	if t.Effect == TaintEvict {
		d.odd("effect", "Evict is reserved and has no effect yet")
	}
}

func (d *nodeDecoder) uniqueTaints(taints []Taint) {
	if len(taints) < 2 {
		return
	}
	seen := make(map[Taint]bool, len(taints))
	each(d, "taints", taints, func(t *Taint) {
		at := Taint{Key: t.Key, Effect: t.Effect}
		if seen[at] {
			d.bad("key", "the taint "+show(t.Key)+" is given twice for one effect")
		}
		seen[at] = true
	})
}

func (d *nodeDecoder) checkClaim(s *ServerClaimSpec) {
	d.requiredOneOf("power", string(s.Power), allowed[Power]())
	d.optionalRef("serverRef", s.ServerRef)
	d.selector("serverSelector", s.ServerSelector)
	d.optionalRef("ignitionSecretRef", s.IgnitionSecretRef)
	d.optionalRef("userDataRef", s.UserDataRef)
	if d.required("image", s.Image) {
		d.fault("image", s.Image, imageFault(s.Image))
	}
	each(d, "tolerations", s.Tolerations, d.toleration)
}

func (d *nodeDecoder) toleration(t *Toleration) {
	if t.Operator == "" {
		t.Operator = tolerationEqual
	}
	d.oneOf("operator", t.Operator, tolerationOps)
	switch {
	case t.Key != "":
		d.fault("key", t.Key, keyFault(t.Key))
	case t.Operator == tolerationEqual:
		d.bad("key", "is required, unless operator is Exists, which then tolerates every taint")
	}
	if t.Operator == tolerationExists && t.Value != "" {
		d.bad("value", "must not be given with operator Exists, which tolerates every value")
	}
	d.fault("value", t.Value, valueFault(t.Value))
	d.oneOf("effect", string(t.Effect), allowed[TaintEffect]())
}

func (d *nodeDecoder) checkBootConfiguration(s *ServerBootConfigurationSpec) {
	d.ref("serverRef", s.ServerRef)
	if s.Image != "" {
		d.fault("image", s.Image, imageFault(s.Image))
	}
	d.optionalRef("ignitionSecretRef", s.IgnitionSecretRef)
}

func (d *nodeDecoder) checkMaintenance(s *ServerMaintenanceSpec) {
	d.ref("serverRef", s.ServerRef)
	d.oneOf("policy", s.Policy, maintenances)
	d.oneOf("serverPower", string(s.ServerPower), allowed[Power]())
}

func (d *nodeDecoder) checkReadinessRule(s *ServerReadinessRuleSpec) {
	if len(s.Conditions) == 0 {
		d.bad("conditions", "is required: name at least one condition")
	}
	each(d, "conditions", s.Conditions, func(c *RequiredCondition) {
		if d.required("type", c.Type) {
			d.fault("type", c.Type, keyFault(c.Type))
		}
		d.requiredOneOf("requiredStatus", c.RequiredStatus, conditionStatus)
	})
	d.requiredOneOf("enforcementMode", s.EnforcementMode, enforcementModes)
	d.in("taint", func() { d.taint(&s.Taint) })
	d.selector("serverSelector", s.ServerSelector)
}
