package bmc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// maxProblems bounds the problems of one reading.
const maxProblems = 32

// Inventory reads one machine: what it is, its power state, its parts. Where the
// service expands collections these are some six requests. A part that cannot be
// read is named in the Inventory's Problems and costs nothing but itself; an error
// means that nothing was read, or that ctx ended. The facts carry no server name,
// for the BMC does not know it.
func (p *Pool) Inventory(ctx context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	c, err := p.client(ctx, t.BMC)
	if err != nil {
		return nil, err
	}
	facts, err := c.inventory(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("read inventory: %w", err)
	}
	return facts, nil
}

func (c *reader) inventory(ctx context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	uri := t.URI
	sys, odd, err := c.discoveredOrRead(ctx, uri)
	if err == nil {
		err = c.meant(t, sys.shown())
	}
	if err != nil {
		return nil, err
	}
	r := &reading{reader: c, ctx: ctx}
	if len(odd) > 0 {
		r.problem(oddProblem(uri, odd))
	}
	r.system(sys)
	parts := []struct {
		name string
		read func() error
	}{
		{"processors", func() error { return r.processors(sys) }},
		{"memory", func() error { return r.memory(path(sys.Memory.ID)) }},
		{"storage", func() error { return r.storages(sys) }},
		{"network interfaces", func() error { return r.networkInterfaces(path(sys.EthernetInterfaces.ID)) }},
		{"network cards", func() error { return r.networkCards(uri, sys) }},
		{"Secure Boot", func() error { return r.secureBoot(path(sys.SecureBoot.ID)) }},
	}
	unreachable := 0
	for _, part := range parts {
		err := part.read()
		switch {
		case err == nil:
			continue
		case fatal(err):
			return nil, err
		case errors.Is(err, ErrUnreachable):
			unreachable++
		}
		r.problem(fmt.Sprintf("%s: %v", part.name, err))
		if unreachable == 2 { // it is not the part that does not answer
			r.problem("the rest was not read")
			break
		}
	}
	r.notShown(powerOf(sys.PowerState))
	if err := ctx.Err(); err != nil { // then parts may be missing
		return nil, err
	}
	r.sort()
	return &model.ServerFacts{Power: powerOf(sys.PowerState), Inventory: &r.inv}, nil
}

// discoveredOrRead returns the system as it was discovered a moment ago, at first contact, or reads it.
func (c *reader) discoveredOrRead(ctx context.Context, uri string) (*system, []string, error) {
	if s := c.state(uri); s.first != nil && c.counts(s.seen, confirmWithin) {
		c.learn(uri, func(s *systemState) { s.first = nil }) // it is not a second reading of the power
		return &s.first.system, s.first.odd, nil
	}
	return c.readSystem(ctx, uri)
}

// reading is one reading of a machine's parts. It lives as long as the call that
// ctx is of.
type reading struct {
	*reader
	ctx context.Context
	inv model.Inventory
}

// notShown notes as problems that a machine which is not off shows no processor or no memory.
func (r *reading) notShown(power model.Power) {
	switch {
	case power == model.PowerOff:
		return
	case len(r.inv.Processors) == 0:
		r.problem("the BMC shows no processor")
	}
	if r.inv.MemoryBytes == 0 {
		r.problem("the BMC shows no memory")
	}
}

func (r *reading) problem(text string) {
	if len(r.inv.Problems) < maxProblems && !slices.Contains(r.inv.Problems, text) {
		r.inv.Problems = append(r.inv.Problems, text)
	}
}

func (r *reading) system(s *system) {
	r.inv.UUID, _ = usableUUID(s.UUID) // of one that has none, the BMC says so
	r.inv.Manufacturer = clip(s.Manufacturer)
	r.inv.Model = clip(s.Model)
	r.inv.SKU = clip(s.SKU)
	r.inv.SerialNumber = clip(s.SerialNumber)
	r.inv.BIOSVersion = clip(s.BiosVersion)
	indicator := s.locator().shown()
	r.inv.IndicatorLED, r.inv.IndicatorOnOff = indicator.LED, indicator.OnOff
	r.inv.MemoryBytes = bytesOf(s.MemorySummary.TotalSystemMemoryGiB, 1<<30)
	r.inv.BootTargets, r.inv.BootOrder = clipped(s.Boot.Targets), clipped(s.Boot.Order)
}

// clipped returns the first texts of a list as they may be kept.
func clipped(all []string) (kept []string) {
	for _, s := range all[:min(len(all), 64)] {
		kept = append(kept, clip(s))
	}
	return kept
}

// bytesOf returns n units in bytes, or 0 for what cannot be.
func bytesOf(n float64, unit int64) int64 {
	b := n * float64(unit)
	if !(b > 0) || b >= math.MaxInt64 {
		return 0
	}
	return int64(b)
}

// count returns a count that may be missing or absurd.
func count(n *int) int32 {
	if n == nil || *n < 0 || *n > math.MaxInt32 {
		return 0
	}
	return int32(*n)
}

func size(n *int) int64 {
	if n == nil || *n < 0 {
		return 0
	}
	return int64(*n)
}

// each reads the members of a collection. use may keep no part of what it gets.
func each[T any](r *reading, uri string, levels int, use func(m member, v *T)) error {
	if uri == "" {
		return nil
	}
	return r.eachMember(r.ctx, uri, levels, func(m member, err error) bool {
		if err != nil {
			r.problem(fmt.Sprintf("%s: %v", m.uri, err))
			return true
		}
		if v := read[T](r, m.uri, m.raw); v != nil {
			use(m, v)
		}
		return true
	})
}

// read decodes one resource, or notes why it cannot. Once its caller has gone it does nothing.
func read[T any](r *reading, uri string, raw []byte) *T {
	if r.ctx.Err() != nil {
		return nil
	}
	v, odd, err := decode[T](raw)
	if err != nil {
		r.problem(fmt.Sprintf("%s: cannot be read: %v", uri, r.detail(err.Error())))
		return nil
	}
	if odd = slices.DeleteFunc(odd, unused); len(odd) > 0 {
		r.problem(oddProblem(uri, odd))
	}
	return &v
}

// used are the properties of parts that something is made of. The library reads all of a
// resource, and what is odd in the others is nobody's problem.
var used = []string{
	"Id", "Name", "Status", "Manufacturer", "Model", "SerialNumber", "PartNumber", "Identifiers", "CapacityBytes", "Links",
	"ProcessorType", "ProcessorArchitecture", "InstructionSet", "MaxSpeedMHz", "TotalCores", "TotalThreads",
	"CapacityMiB", "MemoryDeviceType", "OperatingSpeedMhz",
	"Drives", "Volumes", "Devices", "MediaType", "Protocol", "RAIDType", "VolumeUsage",
	"MACAddress", "PermanentMACAddress", "LinkStatus", "IPv4Addresses", "IPv6Addresses",
	"NetworkAdapters", "NetworkDeviceFunctions", "Ports", "NetworkPorts", "Ethernet", "AssociatedNetworkAddresses",
}

// unused reports whether the place of an odd value is in a property that nothing is made of.
func unused(place string) bool {
	if i := strings.IndexAny(place, ".["); i >= 0 {
		place = place[:i]
	}
	return place != "" && !slices.Contains(used, place)
}

// isAbsent reports whether a resource stands for an empty slot.
func isAbsent(state schemas.State) bool { return state == schemas.AbsentState }

// maxSockets bounds the processors of a summary.
const maxSockets = 64

// processors reads the processors one by one, or else how many of which model there are.
func (r *reading) processors(s *system) error {
	err := r.eachProcessor(path(s.Processors.ID))
	if len(r.inv.Processors) > 0 || err != nil && final(err) {
		return err
	}
	sum := s.ProcessorSummary
	n := min(count(sum.Count), maxSockets)
	for i := range n {
		r.inv.Processors = append(r.inv.Processors, model.Processor{
			ID: strconv.Itoa(int(i) + 1), Type: string(schemas.CPUProcessorType), Model: clip(sum.Model),
			TotalCores: count(sum.CoreCount) / n, TotalThreads: count(sum.LogicalProcessorCount) / n,
		})
	}
	if n > 0 {
		r.inv.Summarized = append(r.inv.Summarized, model.PartProcessors)
	}
	return err
}

func (r *reading) eachProcessor(uri string) error {
	return each(r, uri, 1, func(_ member, p *schemas.Processor) {
		if isAbsent(p.Status.State) {
			return
		}
		r.inv.Processors = append(r.inv.Processors, model.Processor{
			ID:             clip(cmp.Or(p.ID, p.Name)),
			Type:           clip(string(p.ProcessorType)),
			Architecture:   clip(string(p.ProcessorArchitecture)),
			InstructionSet: clip(string(p.InstructionSet)),
			Manufacturer:   clip(p.Manufacturer),
			Model:          clip(p.Model),
			MaxSpeedMHz:    count(p.MaxSpeedMHz),
			TotalCores:     count(p.TotalCores),
			TotalThreads:   count(p.TotalThreads),
		})
	})
}

func (r *reading) memory(uri string) error {
	var sum int64
	err := each(r, uri, 1, func(_ member, m *schemas.Memory) {
		if isAbsent(m.Status.State) || size(m.CapacityMiB) == 0 {
			return
		}
		bytes := bytesOf(float64(*m.CapacityMiB), 1<<20)
		sum += bytes
		r.inv.Memory = append(r.inv.Memory, model.MemoryModule{
			ID:           clip(cmp.Or(m.ID, m.Name)),
			Bytes:        bytes,
			Type:         clip(string(m.MemoryDeviceType)),
			SpeedMHz:     count(m.OperatingSpeedMhz),
			Manufacturer: clip(m.Manufacturer),
			SerialNumber: clip(m.SerialNumber),
			PartNumber:   clip(m.PartNumber),
		})
	})
	if r.inv.MemoryBytes == 0 {
		r.inv.MemoryBytes = sum
	}
	return err
}

func (r *reading) networkInterfaces(uri string) error {
	return each(r, uri, 1, func(m member, e *schemas.EthernetInterface) {
		if isAbsent(e.Status.State) || isHostInterface(m, e) {
			return
		}
		n := model.NetworkInterface{
			Name:          clip(cmp.Or(e.ID, e.Name)),
			CarrierStatus: carrier(e.LinkStatus),
		}
		for _, address := range []string{e.MACAddress, e.PermanentMACAddress} {
			if mac, err := model.CanonicalMAC(strings.TrimSpace(address)); err == nil && n.MACAddress == "" {
				n.MACAddress = mac
			}
		}
		r.notePermanent(n.MACAddress, e.PermanentMACAddress)
		for _, a := range e.IPv4Addresses {
			n.IPs = addIP(n.IPs, a.Address)
		}
		for _, a := range e.IPv6Addresses {
			n.IPs = addIP(n.IPs, a.Address)
		}
		r.inv.NetworkInterfaces = append(r.inv.NetworkInterfaces, n)
	})
}

// secureBoot reads whether the firmware's next start checks signatures, which it does if its last
// did and nobody has switched that off since (DSP2046, SecureBoot). What cannot be read is no
// problem of the inventory's: many BMCs have none, or say nothing of it.
func (r *reading) secureBoot(uri string) error {
	if uri == "" {
		return nil
	}
	a, err := r.get(r.ctx, uri)
	if err != nil {
		if final(err) {
			return err
		}
		return nil
	}
	var s struct {
		SecureBootEnable      *bool
		SecureBootCurrentBoot string
	}
	_ = json.Unmarshal(a.body, &s) // what is odd is as if it were not said
	r.inv.SecureBoot = s.SecureBootCurrentBoot == string(schemas.EnabledSecureBootCurrentBootType) && (s.SecureBootEnable == nil || *s.SecureBootEnable)
	return nil
}

// addIP adds an address that is one: unset ones are written 0.0.0.0 and ::.
func addIP(ips []string, address string) []string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.IsUnspecified() || len(ips) >= 16 {
		return ips
	}
	return append(ips, ip.String())
}

func carrier(s schemas.LinkStatus) string {
	switch s {
	case schemas.LinkUpLinkStatus:
		return "up"
	case schemas.LinkDownLinkStatus, schemas.NoLinkLinkStatus:
		return "down"
	}
	return ""
}

// sort puts the parts into an order of their own: some BMCs list them in another
// one each time, which is no change.
func (r *reading) sort() {
	byID := func(a, b string) int { return strings.Compare(a, b) }
	slices.SortStableFunc(r.inv.Processors, func(a, b model.Processor) int { return byID(a.ID, b.ID) })
	slices.SortStableFunc(r.inv.Memory, func(a, b model.MemoryModule) int { return byID(a.ID, b.ID) })
	slices.SortStableFunc(r.inv.Storages, func(a, b model.Storage) int { return byID(a.Name, b.Name) })
	slices.SortStableFunc(r.inv.NetworkInterfaces, func(a, b model.NetworkInterface) int { return byID(a.Name, b.Name) })
	for _, s := range r.inv.Storages {
		slices.SortStableFunc(s.Drives, func(a, b model.Drive) int {
			return cmp.Or(byID(a.Name, b.Name), byID(a.SerialNumber, b.SerialNumber))
		})
		slices.SortStableFunc(s.Volumes, func(a, b model.Volume) int { return byID(a.Name, b.Name) })
	}
}
