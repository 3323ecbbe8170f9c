package model

import (
	"cmp"
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
	indicatorLEDs    = []string{IndicatorUnknown, IndicatorLit, IndicatorBlinking, IndicatorOff}
	conditionStatus  = []string{StatusTrue, StatusFalse, StatusUnknown}
	enforcementModes = []string{BootstrapOnly, Continuous}
	selectorOps      = []string{"In", "NotIn", "Exists", "DoesNotExist"}
	tolerationOps    = []string{tolerationEqual, tolerationExists}
)

// check validates an object that was decoded, fills in its defaults and makes
// its addresses canonical. It runs on objects with errors too, so that all of
// them are found.
func check(r *nodeDecoder, o Object) {
	d := &fieldChecker{r, o.Metadata()}
	d.in("metadata", func() { checkMeta(d, o.Identity().Kind) })
	checkInert(d, o.Identity().Kind)
	switch o := o.(type) {
	case *BMCSecret:
		checkBMCSecret(d, o)
		return
	case *Secret:
		return
	case *Endpoint:
		d.in("spec", func() {
			d.mac("macAddress", &o.Spec.MACAddress, !isToldBeside(o.Annotations))
			d.ip("ip", &o.Spec.IP)
		})
	case *BMC:
		d.in("spec", func() { checkBMC(d, &o.Spec) })
	case *Server:
		d.in("spec", func() { checkServer(d, &o.Spec) })
	case *ServerClaim:
		d.in("spec", func() { checkClaim(d, &o.Spec) })
	case *ServerBootConfiguration:
		if o.ofDiscovery() {
			d.in("metadata", func() {
				d.in("annotations", func() {
					d.odd(AnnotationType, "metal-operator made it for its discovery: ignored, Ingot makes its own")
				})
			})
		}
		d.in("spec", func() { checkBootConfiguration(d, &o.Spec) })
	case *ServerMaintenance:
		o.Spec.Reason = cmp.Or(o.Spec.Reason, o.Annotations[AnnotationMaintenanceReason])
		d.in("spec", func() { checkMaintenance(d, &o.Spec) })
	case *ServerReadinessRule:
		d.in("spec", func() { checkReadinessRule(d, &o.Spec) })
	case *ImageCatalog:
		d.in("metadata", func() { d.oneOf("name", o.Name, []string{CatalogName}) })
		d.in("spec", func() { checkCatalog(d, &o.Spec) })
	}
}

func checkMeta(d *fieldChecker, kind Kind) {
	m := d.meta
	d.name("name", m.Name)
	if kind.Namespaced() {
		d.fault("namespace", m.Namespace, labelFault(m.Namespace))
	}
	if len(m.Labels) > 0 {
		d.in("labels", func() { d.checkLabels(m.Labels) })
	}
	if len(m.Annotations) > 0 {
		d.in("annotations", func() { checkAnnotations(d, kind, m.Annotations) })
	}
}

func (d *fieldChecker) checkLabels(labels map[string]string) {
	for key, value := range labels {
		d.upstreamMark(key)
		d.fault(key, key, keyFault(key))
		d.fault(key, value, valueFault(value))
	}
}

func checkAnnotations(d *fieldChecker, kind Kind, all map[string]string) {
	for key, value := range all {
		d.fault(key, key, keyFault(strings.ToLower(key)))
		switch key {
		case AnnotationOperation, AnnotationReprovision, AnnotationDiscover, AnnotationDisksAccepted, AnnotationOverwrite:
			if len(value) > maxAsked {
				d.bad(key, "it has "+strconv.Itoa(len(value))+" bytes, at most "+strconv.Itoa(maxAsked)+" are allowed")
			}
		}
		switch {
		case key == AnnotationOperation:
			checkOperation(d, value)
		case strings.HasPrefix(key, ownPrefix), key == AnnotationMaintenanceApproved, key == AnnotationMaintenanceReason:
			checkOwnAnnotation(d, kind, key, all)
		case strings.HasPrefix(key, DHCPOptionPrefix):
			checkDHCPOption(d, kind, key, all)
		default:
			d.upstreamMark(key)
		}
	}
}

// upstreamMark warns of an annotation or label that has an effect only upstream.
func (d *fieldChecker) upstreamMark(key string) {
	if says, has := upstreamMarks[key]; has {
		d.odd(key, says)
	}
}

// maxAsked is how long a value may be that asks for something once: it is remembered.
const maxAsked = 256

// maxURI is how long the place of a system on its BMC may be: messages name it.
const maxURI = 256

func checkOperation(d *fieldChecker, value string) {
	name, _ := operation(value)
	done, known := operations[name]
	switch {
	case !known:
		d.bad(AnnotationOperation, "found "+show(name)+", "+guess(name, slices.Sorted(maps.Keys(operations))))
	case !done:
		d.odd(AnnotationOperation, "Ingot does not carry out "+name+": ignored")
	}
}

func checkOwnAnnotation(d *fieldChecker, kind Kind, key string, all map[string]string) {
	a, known := annotations[key]
	value := all[key]
	switch {
	case !known:
		if !d.full() { // a guess is costly
			d.odd(key, "unknown annotation, "+guess(key, slices.Sorted(maps.Keys(annotations))))
		}
		return
	case !slices.Contains(a.kinds, kind):
		d.odd(key, "has no effect on a "+string(kind))
		return
	case a.values != nil:
		d.oneOf(key, value, a.values)
		if key == AnnotationSeed {
			d.place(key)
		}
	case key == AnnotationPriority:
		if _, err := strconv.Atoi(value); err != nil {
			d.bad(key, "found "+show(value)+", want a whole number in quotes, higher is served first")
		}
	case key == AnnotationMACAddresses:
		checkMACAddresses(d, value)
	case key == AnnotationKernelArguments:
		d.place(key)
	case key == AnnotationSSHKeys:
		checkSSHKeys(d, value)
	case key == AnnotationRootDevice:
		if _, err := ParseRootDeviceHints(value); err != nil {
			d.bad(key, err.Error())
		}
	case kind == KindEndpoint:
		checkDHCPClient(d, all, key, value)
	}
}

// checkSSHKeys checks public keys, one a line, and reports each wrong one at its own line of the file.
func checkSSHKeys(d *fieldChecker, text string) {
	_, wrong := ParseSSHKeys(text)
	n := locate(d.root, d.path, AnnotationSSHKeys)
	d.in(AnnotationSSHKeys, func() {
		for _, w := range wrong {
			at, isOwn := d.lineOf(n, w.Line)
			if !isOwn && w.Line > 1 {
				w.Message = "line " + strconv.Itoa(w.Line) + ": " + w.Message
			}
			d.fail(at, w.Message)
		}
	})
}

// checkDHCPOption checks an option for the device of an Endpoint.
func checkDHCPOption(d *fieldChecker, kind Kind, key string, all map[string]string) {
	if kind != KindEndpoint {
		d.odd(key, "has no effect on a "+string(kind))
		return
	}
	option := strings.TrimPrefix(key, DHCPOptionPrefix)
	if err := (DHCPOptions{}).Set(option, all[key]); err != nil {
		d.bad(key, err.Error())
		return
	}
	name := DHCPOptionName(option)
	if _, twice := all[DHCPOptionPrefix+name]; twice {
		d.bad(key, "option "+option+" is set by "+name+", too: keep one of them")
	}
}

func checkMACAddresses(d *fieldChecker, value string) {
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

func checkBMC(d *fieldChecker, s *BMCSpec) {
	d.uuid("bmcUUID", &s.BMCUUID)
	switch {
	case s.EndpointRef != nil && s.Access != nil:
		d.bad("access", "endpointRef and access are both given: keep one of them")
	case s.EndpointRef == nil && s.Access == nil && !d.reported("spec.endpointRef") && !d.reported("spec.access"):
		d.missing("", "one of endpointRef and access is required")
	}
	d.optionalRef("endpointRef", s.EndpointRef, KindEndpoint)
	if a := s.Access; a != nil {
		d.in("access", func() {
			d.mac("macAddress", &a.MACAddress, false)
			d.ip("ip", &a.IP)
		})
	}
	d.ref("bmcSecretRef", s.BMCSecretRef, KindBMCSecret)
	d.protocol(&s.Protocol)
	if c := s.ConsoleProtocol; c != nil {
		d.in("consoleProtocol", func() {
			d.requiredOneOf("name", c.Name, consoleNames)
			d.port("port", c.Port)
		})
	}
	d.hostname("hostname", s.Hostname)
}

func (d *fieldChecker) protocol(p *Protocol) {
	d.in("protocol", func() {
		d.requiredOneOf("name", p.Name, protocolNames)
		d.port("port", p.Port)
		if p.Scheme == "" {
			p.Scheme = protocolSchemes[0]
		}
		d.oneOf("scheme", p.Scheme, protocolSchemes)
	})
}

func checkBMCSecret(d *fieldChecker, o *BMCSecret) {
	if len(o.Values) == 0 {
		return
	}
	for _, key := range []string{"username", "password"} {
		if _, ok := o.Values[key]; !ok && d.errors == 0 {
			d.odd("", "has no "+key+": no BMC can be logged in to with it")
		}
	}
}

func checkServer(d *fieldChecker, s *ServerSpec) {
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
	d.objectRef("serverClaimRef", s.ServerClaimRef, KindServerClaim)
	d.optionalRef("bmcRef", s.BMCRef, KindBMC)
	if b := s.BMC; b != nil {
		d.in("bmc", func() {
			d.protocol(&b.Protocol)
			d.ip("address", &b.Address)
			d.ref("bmcSecretRef", b.BMCSecretRef, KindBMCSecret)
		})
		if s.BMCRef != nil {
			d.bad("bmc", "bmcRef and bmc are both given: keep one of them")
		}
	}
	d.objectRef("bootConfigurationRef", s.BootConfigurationRef, KindServerBootConfiguration)
	checkBootOrder(d, s.BootOrder)
	if d.few("taints", len(s.Taints)) {
		each(d.nodeDecoder, "taints", s.Taints, d.taint)
		uniqueTaints(d, s.Taints)
	}
}

// maxBootOrder is how many entries a boot order may have.
const maxBootOrder = 64

// checkBootOrder checks that the entries have an order, and say what they mean.
func checkBootOrder(d *fieldChecker, all []BootOrder) {
	if len(all) > maxBootOrder {
		d.bad("bootOrder", "found "+strconv.Itoa(len(all))+" entries, at most "+strconv.Itoa(maxBootOrder)+" are allowed")
		return
	}
	taken := make(map[int]string, len(all)) // by priority
	each(d.nodeDecoder, "bootOrder", all, func(b *BootOrder) {
		d.required("name", b.Name)
		d.required("device", b.Device)
		if other, twice := taken[b.Priority]; twice {
			d.bad("priority", "found "+strconv.Itoa(b.Priority)+", which "+show(other)+" has, too: give each entry one of its own")
		}
		taken[b.Priority] = b.Name
	})
}

func (d *fieldChecker) taint(t *Taint) {
	if d.required("key", t.Key) {
		d.fault("key", t.Key, keyFault(t.Key))
	}
	d.fault("value", t.Value, valueFault(t.Value))
	if t.Effect == "" {
		t.Effect = TaintNoBind
	}
	d.effect(t.Effect)
}

func (d *fieldChecker) effect(e TaintEffect) {
	d.oneOf("effect", string(e), allowed[TaintEffect]())
	if e == TaintEvict {
		d.odd("effect", "Evict is reserved and has no effect yet")
	}
}

func uniqueTaints(d *fieldChecker, taints []Taint) {
	if len(taints) < 2 {
		return
	}
	seen := make(map[Taint]bool, len(taints))
	each(d.nodeDecoder, "taints", taints, func(t *Taint) {
		at := Taint{Key: t.Key, Effect: t.Effect}
		if seen[at] {
			d.bad("key", "the taint "+show(t.Key)+" is given twice for one effect")
		}
		seen[at] = true
	})
}

func checkClaim(d *fieldChecker, s *ServerClaimSpec) {
	d.requiredOneOf("power", string(s.Power), allowed[Power]())
	d.optionalRef("serverRef", s.ServerRef, KindServer)
	d.selector("serverSelector", s.ServerSelector)
	d.optionalRef("ignitionSecretRef", s.IgnitionSecretRef, KindSecret)
	d.optionalRef("userDataRef", s.UserDataRef, KindSecret)
	d.image(s.Image)
	if d.few("tolerations", len(s.Tolerations)) {
		each(d.nodeDecoder, "tolerations", s.Tolerations, d.toleration)
	}
}

// image checks what a server is to boot. Of a URL nothing is quoted that may be a password.
func (d *fieldChecker) image(image string) {
	if !d.requiredAs("image", image, "is required: "+strings.TrimPrefix(imageWant, "want ")) {
		return
	}
	d.place("image")
	if IsCatalogName(image) {
		return
	}
	if IsImageURL(image) {
		if _, err := ParseImageURL(image); err != nil {
			d.bad("image", err.Error())
		}
		return
	}
	if _, err := ParseImageReference(image); err != nil {
		d.fault("image", image, imageWant+" ("+err.Error()+")")
	}
}

func (d *fieldChecker) toleration(t *Toleration) {
	if t.Operator == "" {
		t.Operator = tolerationEqual
	}
	d.oneOf("operator", t.Operator, tolerationOps)
	switch {
	case t.Key != "":
		d.fault("key", t.Key, keyFault(t.Key))
	case t.Operator == tolerationEqual:
		d.missing("key", "is required, unless operator is Exists, which then tolerates every taint")
	}
	if t.Operator == tolerationExists && t.Value != "" {
		d.bad("value", "must not be given with operator Exists, which tolerates every value")
	}
	d.fault("value", t.Value, valueFault(t.Value))
	d.effect(t.Effect)
}

func checkBootConfiguration(d *fieldChecker, s *ServerBootConfigurationSpec) {
	d.ref("serverRef", s.ServerRef, KindServer)
	d.image(s.Image)
	d.optionalRef("ignitionSecretRef", s.IgnitionSecretRef, KindSecret)
}

func checkMaintenance(d *fieldChecker, s *ServerMaintenanceSpec) {
	d.ref("serverRef", s.ServerRef, KindServer)
	d.oneOf("policy", string(s.Policy), allowed[MaintenancePolicy]())
	d.oneOf("serverPower", string(s.ServerPower), allowed[Power]())
}

func checkReadinessRule(d *fieldChecker, s *ServerReadinessRuleSpec) {
	switch n := len(s.Conditions); {
	case n == 0:
		d.missing("conditions", "is required: name at least one condition")
	case n > MaxRequiredConditions:
		d.bad("conditions", "it has "+strconv.Itoa(n)+" conditions, at most "+strconv.Itoa(MaxRequiredConditions)+" are allowed")
	}
	seen := make(map[string]bool, len(s.Conditions))
	each(d.nodeDecoder, "conditions", s.Conditions, func(c *RequiredCondition) {
		if d.required("type", c.Type) {
			d.conditionType(c.Type)
			if seen[c.Type] {
				d.bad("type", "the condition "+show(c.Type)+" is given twice")
			}
			seen[c.Type] = true
		}
		d.requiredOneOf("requiredStatus", c.RequiredStatus, conditionStatus)
	})
	d.requiredOneOf("enforcementMode", s.EnforcementMode, enforcementModes)
	d.in("taint", func() { d.taint(&s.Taint) })
	d.selector("serverSelector", s.ServerSelector)
}
