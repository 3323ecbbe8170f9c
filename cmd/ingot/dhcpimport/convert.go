package dhcpimport

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
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
	// Same are the Endpoints that were there before, for the same device and address.
	Same []string
	// LeftOut is what no manifest was made of, in the order in which it stands.
	LeftOut []LeftOut
}

// Convert makes Endpoints of what files say that a server has reserved, and of its leases that have
// not ended by now. Those that are there keep their names, and their files where nothing else is
// to be said of the device.
func Convert(from Server, paths []string, there []model.Object, now time.Time) (*Result, error) {
	r := &reader{now: now}
	if err := r.read(from, paths); err != nil {
		return nil, err
	}
	c := newConverter(r)
	for _, o := range there {
		c.inFile[fileOf(o)]++
		if e, is := o.(*model.Endpoint); is {
			c.learn(e)
		}
	}
	return c.convert()
}

// learn notes an Endpoint that is there.
func (c *converter) learn(e *model.Endpoint) {
	c.names[e.Name] = true
	at, ok := parseAddress(e.Spec.IP)
	if !ok {
		return
	}
	port := e.RelayPort()
	clientID, _ := hex.DecodeString(e.ClientID())
	own := &entry{address: at, mac: e.Spec.MACAddress, clientID: clientID, circuitID: []byte(port.CircuitID), remoteID: []byte(port.RemoteID)}
	for _, key := range own.keys() {
		c.there[key] = known{e, own}
	}
}

// known is an Endpoint that is there.
type known struct {
	*model.Endpoint
	entry *entry
}

// keys are what is one device's alone.
func (e *entry) keys() []string {
	keys := []string{e.address.String()}
	if e.mac != "" {
		keys = append(keys, e.mac)
	}
	if key := e.key(); key != "" {
		keys = append(keys, key)
	}
	return keys
}

// isThere returns the Endpoint that is there for the device, or else with the address, of an entry.
func (c *converter) isThere(e *entry) (k known, found bool) {
	for _, key := range slices.Backward(e.keys()) {
		if k, found = c.there[key]; found {
			return k, true
		}
	}
	return k, false
}

// converter makes manifests of what was read.
type converter struct {
	*reader
	chosen    []*entry
	addresses map[netip.Addr]*entry
	macs      map[string]*entry
	others    map[string]*entry // by client identifier, or relay port
	there     map[string]known  // by entry.keys
	names     map[string]bool   // of those that are there
	inFile    map[string]int    // objects of each file that is there
}

func newConverter(r *reader) *converter {
	return &converter{
		reader: r, addresses: make(map[netip.Addr]*entry), macs: make(map[string]*entry), others: make(map[string]*entry),
		there: make(map[string]known), names: make(map[string]bool), inFile: make(map[string]int),
	}
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
	slices.SortFunc(all, inUseFirst)
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

// inUseFirst orders leases so that of those of one device the one in use stands first: what was renewed last
// ends last, and an operating system renews its lease while that of the firmware before it runs out.
func inUseFirst(a, b leased) int {
	return cmp.Or(a.rank()-b.rank(), b.end.Compare(a.end), a.address.Compare(b.address))
}

// rank puts leases that never end first, and those that do not count last.
func (l *leased) rank() int {
	switch {
	case l.over != "":
		return 2
	case l.end.IsZero():
		return 0
	}
	return 1
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
	if len(e.clientID) > 0 && len(e.circuitID)+len(e.remoteID) > 0 {
		e.clientID = nil
		if err := c.skip(e.where, "client identifier of the "+what, "its relay port alone says who gets the address"); err != nil {
			return err
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
	shared := c.shared()
	for _, e := range c.chosen {
		name := e.name()
		k, there := c.isThere(e)
		switch {
		case there && slices.Equal(k.entry.keys(), e.keys()):
			r.Same = append(r.Same, k.Name)
			continue
		case there && (path.Base(k.file()) != k.Name+".yaml" || c.inFile[k.file()] > 1 || r.Files[k.Name+".yaml"] != ""):
			if err := c.skip(e.where, e.address.String(), fmt.Sprintf("Endpoint %s in %s is for this device or address, and says otherwise: change it there", k.Name, k.file())); err != nil {
				return nil, err
			}
			continue
		case there:
			name = k.Name
		case shared[name] > 1 || r.Files[name+".yaml"] != "" || c.names[name]:
			name += "-" + e.suffix()
		}
		if !there && (r.Files[name+".yaml"] != "" || c.names[name]) {
			if err := c.skip(e.where, e.address.String(), "Endpoint "+name+" is there already, for another device: give it another name"); err != nil {
				return nil, err
			}
			continue
		}
		data, err := e.manifest(name)
		if err != nil {
			return nil, err
		}
		if why := refused(name, data); why != "" {
			if err := c.skip(e.where, e.address.String(), why); err != nil {
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

// refused returns why the decoder does not take a manifest, "" if it does.
func refused(name, data string) string {
	_, problems := model.Decode(name, []byte(data), model.DecodeOptions{})
	i := slices.IndexFunc(problems, func(p model.Problem) bool { return p.Severity == model.SeverityError })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(problems[i].Field + ": " + problems[i].Message)
}

// file is where an Endpoint stands.
func (k known) file() string { return fileOf(k.Endpoint) }

func fileOf(o model.Object) string {
	file, _ := o.Metadata().Position()
	return file
}

// shared counts how many devices have each name.
func (c *converter) shared() map[string]int {
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
	if e.lease {
		return leaseMark + string(data), err
	}
	return string(data), err
}

// leaseMark stands above what nobody wrote down. It does not say where, so that the manifest is the
// same when it is made again.
const leaseMark = "# A lease of the DHCP server before.\n"
