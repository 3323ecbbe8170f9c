package model

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldChecker validates the fields of a decoded object, fills in defaults, and makes addresses canonical.
type fieldChecker struct {
	*nodeDecoder
	meta *Meta // of the object
}

func (d *fieldChecker) selector(name string, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	d.in(name, func() {
		if len(s.MatchLabels) > 0 {
			d.in("matchLabels", func() { d.checkLabels(s.MatchLabels) })
		}
		if d.few("matchExpressions", len(s.MatchExpressions)) {
			each(d.nodeDecoder, "matchExpressions", s.MatchExpressions, d.selectorRequirement)
		}
	})
}

func (d *fieldChecker) selectorRequirement(r *metav1.LabelSelectorRequirement) {
	if d.required("key", r.Key) {
		d.fault("key", r.Key, keyFault(r.Key))
	}
	d.requiredOneOf("operator", string(r.Operator), selectorOps)
	switch r.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(r.Values) == 0 {
			d.missing("values", "is required with operator "+string(r.Operator))
		}
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			d.bad("values", "must not be given with operator "+string(r.Operator))
		}
	}
	if d.few("values", len(r.Values)) {
		each(d.nodeDecoder, "values", r.Values, func(v *string) { d.fault("", *v, valueFault(*v)) })
	}
}

func (d *fieldChecker) fault(name, text, fault string) {
	if fault != "" && !d.quiet {
		d.bad(name, "found "+show(text)+", "+fault)
	} else if fault != "" {
		d.bad(name, fault)
	}
}

func (d *fieldChecker) required(name, text string) bool {
	return d.requiredAs(name, text, "is required")
}

func (d *fieldChecker) requiredAs(name, text, message string) bool {
	if text == "" {
		d.missing(name, message)
	}
	return text != ""
}

// oneOf checks the value of an enumeration, which may be absent.
func (d *fieldChecker) oneOf(name, text string, allowed []string) {
	if text != "" && !slices.Contains(allowed, text) {
		d.bad(name, "found "+show(text)+", want "+oneOf(allowed))
	}
}

func (d *fieldChecker) requiredOneOf(name, text string, allowed []string) {
	if text == "" {
		d.missing(name, "is required: "+oneOf(allowed))
		return
	}
	d.oneOf(name, text, allowed)
}

func (d *fieldChecker) name(field, name string) {
	if d.required(field, name) {
		d.fault(field, name, subdomainFault(name))
	}
}

func (d *fieldChecker) ref(field string, r LocalRef, to Kind) {
	d.in(field, func() {
		d.name("name", r.Name)
		id := Identity{Kind: to, Name: r.Name}
		if to.Namespaced() {
			id.Namespace = d.meta.Namespace
		}
		d.refers(id)
	})
}

func (d *fieldChecker) optionalRef(field string, r *LocalRef, to Kind) {
	if r != nil {
		d.ref(field, *r, to)
	}
}

func (d *fieldChecker) objectRef(field string, r *ObjectRef, to Kind) {
	if r == nil {
		return
	}
	if r.Namespace == "" {
		r.Namespace = DefaultNamespace
	}
	d.in(field, func() {
		d.name("name", r.Name)
		d.fault("namespace", r.Namespace, labelFault(r.Namespace))
		d.refers(Identity{Kind: to, Namespace: r.Namespace, Name: r.Name})
	})
}

// refers notes that the object names another one here.
func (d *fieldChecker) refers(to Identity) {
	n := locate(d.root, d.path, "name")
	d.meta.References = append(d.meta.References, Reference{to, pathText(d.path, "name"), n.Line + d.offset, n.Column})
}

// place notes the position of a field for a check of several objects.
func (d *fieldChecker) place(name string) {
	n := locate(d.root, d.path, name)
	d.meta.Places = append(d.meta.Places, Place{Field: pathText(d.path, name), Line: n.Line + d.offset, Column: n.Column})
}

func (d *fieldChecker) port(name string, port int32) {
	switch {
	case port == 0:
		d.missing(name, "is required: a port from 1 to 65535")
	case port < 0 || port > 65535:
		d.bad(name, "found "+strconv.Itoa(int(port))+", want a port from 1 to 65535")
	}
}

func (d *fieldChecker) mac(name string, mac *string, required bool) {
	if *mac == "" {
		if required {
			d.missing(name, "is required: "+wantMAC)
		}
		return
	}
	m, ok := ParseMAC(*mac)
	switch {
	case !ok:
		d.bad(name, notMAC(*mac))
	case !m.IsStation():
		d.bad(name, "found "+show(*mac)+", want the address of one device")
	default:
		*mac = m.String()
	}
}

func (d *fieldChecker) ip(name string, ip *string) {
	if !d.requiredAs(name, *ip, "is required: "+wantIP) {
		return
	}
	canonical, fault := canonicalIP(*ip)
	if fault != "" {
		d.bad(name, fault)
	}
	*ip = canonical
}

// hostname checks the name that a certificate is for. An address is not one: a certificate
// is verified against that anyway.
func (d *fieldChecker) hostname(field, name string) {
	_, err := netip.ParseAddr(name)
	switch {
	case name == "":
	case err == nil:
		d.bad(field, "found "+show(name)+", want a DNS name; leave it out where the certificate is for the address")
	default:
		d.fault(field, name, subdomainFault(strings.ToLower(name)))
	}
}

func (d *fieldChecker) uuid(name string, uuid *string) {
	if *uuid == "" {
		return
	}
	canonical, err := CanonicalUUID(*uuid)
	switch {
	case err != nil:
		d.bad(name, err.Error())
	case !UsableUUID(canonical):
		d.bad(name, "found "+show(*uuid)+", which firmware shows when it has no UUID of its own")
	default:
		*uuid = canonical
	}
}

// conditionType checks what a rule calls a condition, and warns where it may be misspelt: of a
// label that nobody sets no server is ever ready.
func (d *fieldChecker) conditionType(name string) {
	fault := keyFault(name)
	switch {
	case fault != "":
		d.fault("type", name, fault)
	case name == "Ready":
		d.bad("type", "Ready depends on the rules themselves: name what it is to depend on, a label or one of "+
			strings.Join(readinessConditions, ", "))
	case !slices.Contains(readinessConditions, name) && !strings.Contains(name, "/"):
		d.odd("type", "no condition is called "+show(name)+", so a label of that name is awaited; "+guess(name, readinessConditions)+
			" (to have no warning, give the label a prefix: example.com/"+shorten(name)+")")
	}
}
