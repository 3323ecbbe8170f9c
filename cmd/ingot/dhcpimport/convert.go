package dhcpimport

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Result is what became of the files of a DHCP server.
type Result struct {
	// Files are the manifests, by name.
	Files map[string]string
	// Reserved and Leased are how many of them come of reservations, and of leases alone.
	Reserved, Leased int
	// LeftOut is what no manifest was made of, in the order in which it stands.
	LeftOut []LeftOut
}

// Convert makes Endpoints of what files say that a server has reserved, and of its leases that have
// not ended by now.
func Convert(from Server, paths []string, now time.Time) (*Result, error) {
	r := &reader{now: now}
	if err := r.read(from, paths); err != nil {
		return nil, err
	}
	return newConverter(r).convert()
}

// converter makes manifests of what was read.
type converter struct {
	*reader
	chosen    []*entry
	addresses map[netip.Addr]*entry
	macs      map[string]*entry
	others    map[string]*entry // by client identifier, or relay port
}

func newConverter(r *reader) *converter {
	return &converter{reader: r, addresses: make(map[netip.Addr]*entry), macs: make(map[string]*entry), others: make(map[string]*entry)}
}

func (c *converter) convert() (*Result, error) {
	if err := c.choose(); err != nil {
		return nil, err
	}
	return c.write()
}

// choose takes reservations, and then the leases of what has none.
func (c *converter) choose() error {
	for i := range c.entries {
		if err := c.take(&c.entries[i]); err != nil {
			return err
		}
	}
	all := make([]leased, 0, len(c.leases))
	for _, l := range c.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b leased) int { return a.address.Compare(b.address) })
	for i := range all {
		l := &all[i]
		what := "lease of " + l.address.String()
		var err error
		switch {
		case l.over != "":
			err = c.skip(l.where, what, l.over)
		case c.isReserved(&l.entry): // it is in a manifest already
		default:
			err = c.take(&l.entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isReserved reports whether a lease is of an address that is reserved for its device.
func (c *converter) isReserved(l *entry) bool {
	r := c.addresses[l.address]
	return r != nil && !r.lease && (r.mac == "" || r.mac == l.mac)
}

// take takes an entry, unless its address or its device is another's.
func (c *converter) take(e *entry) error {
	what := map[bool]string{false: "reservation of ", true: "lease of "}[e.lease] + e.address.String()
	if e.lease && e.mac != "" && e.address.Is4() {
		e.clientID = nil // whichever its device showed last: firmware and operating system show others
	}
	if e.address.Is6() {
		e.options, e.circuitID, e.remoteID = nil, nil, nil
		if len(e.clientID) > 0 {
			e.mac = "" // which is that of the same device's IPv4 address, and an Endpoint has one address
		}
	}
	other := cmp.Or(c.addresses[e.address], c.macs[e.mac], c.others[e.key()])
	switch {
	case e.mac == "" && e.key() == "":
		return c.skip(e.where, what, "it does not say which device it is for")
	case other != nil && other.address == e.address:
		return c.skip(e.where, what, "the address is another device's by "+other.where)
	case other != nil:
		return c.skip(e.where, what, fmt.Sprintf("its device has %s by %s, and an Endpoint has one address", other.address, other.where))
	}
	c.chosen, c.addresses[e.address] = append(c.chosen, e), e
	if e.mac != "" {
		c.macs[e.mac] = e
	}
	if key := e.key(); key != "" {
		c.others[key] = e
	}
	return nil
}

// key is whose the address is beside the MAC address, "" for nobody's.
func (e *entry) key() string {
	switch {
	case len(e.circuitID)+len(e.remoteID) > 0:
		return fmt.Sprintf("port %x %x", e.circuitID, e.remoteID)
	case len(e.clientID) > 0:
		return fmt.Sprintf("client %x %v", e.clientID, e.address.Is6())
	}
	return ""
}

// write makes the manifests. Those that the decoder does not take are left out.
func (c *converter) write() (*Result, error) {
	r := &Result{Files: make(map[string]string, len(c.chosen))}
	shared := c.names()
	for _, e := range c.chosen {
		name := e.name()
		if shared[name] > 1 || r.Files[name+".yaml"] != "" {
			name += "-" + e.suffix()
		}
		data, err := e.manifest(name)
		if err != nil {
			return nil, err
		}
		_, problems := model.Decode(name, []byte(data), model.DecodeOptions{})
		if i := slices.IndexFunc(problems, func(p model.Problem) bool { return p.Severity == model.SeverityError }); i >= 0 {
			if err := c.skip(e.where, e.address.String(), strings.TrimSpace(problems[i].Field+": "+problems[i].Message)); err != nil {
				return nil, err
			}
			continue
		}
		r.Files[name+".yaml"] = data
		if e.lease {
			r.Leased++
		} else {
			r.Reserved++
		}
	}
	r.LeftOut = c.leftOut
	return r, nil
}

// names counts how many devices have each name.
func (c *converter) names() map[string]int {
	n := make(map[string]int)
	for _, e := range c.chosen {
		n[e.name()]++
	}
	return n
}

// name is what an Endpoint is called, whatever other devices there are: the device's host name, or
// else its address.
func (e *entry) name() string {
	name, _, _ := strings.Cut(strings.ToLower(e.hostname), ".")
	if !labelPattern.MatchString(name) {
		return "dhcp-" + e.suffix()
	}
	return name
}

// labelPattern is a part of a host name.
var labelPattern = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$`)

// suffix is an address as a part of a name.
func (e *entry) suffix() string {
	if e.address.Is6() {
		return strings.ReplaceAll(e.address.StringExpanded(), ":", "")
	}
	return strings.ReplaceAll(e.address.String(), ".", "-")
}

// manifest is the manifest of an Endpoint.
func (e *entry) manifest(name string) (string, error) {
	annotations := make(map[string]string)
	for key, id := range map[string][]byte{
		model.AnnotationClientID: e.clientID, model.AnnotationCircuitID: e.circuitID, model.AnnotationRemoteID: e.remoteID,
	} {
		if len(id) > 0 {
			annotations[key] = model.FormatIdentifier(id)
		}
	}
	for option, value := range e.options {
		annotations[model.DHCPOptionPrefix+option] = value
	}
	spec, metadata := map[string]any{"ip": e.address.String()}, map[string]any{"name": name}
	if e.mac != "" {
		spec["macAddress"] = e.mac
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	data, err := yaml.Marshal(map[string]any{"apiVersion": model.APIVersion, "kind": model.KindEndpoint, "metadata": metadata, "spec": spec})
	return string(data), err
}
