package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// probe is what metalprobe does once the machine runs it, until ctx is done. As
// upstream's does, it makes one attempt to register and ends when that fails;
// the service manager starts it again.
func (b *booting) probe(ctx context.Context, p probeRun) {
	if b.faults.has(FaultProbeSilent) {
		return
	}
	if p.install != "" {
		b.installDisk(ctx, p)
		return
	}
	for {
		err := b.register(ctx, p)
		b.posted("registration", err)
		if err == nil || p.wipe != "" {
			break
		}
		if !delay.Wait(ctx, b.delays().ProbeRestart) {
			return
		}
	}
	if p.wipe != "" {
		b.cleanUp(ctx, p)
		return
	}
	for delay.Wait(ctx, b.delays().ProbeRepeat) {
		if err := b.register(ctx, p); ctx.Err() == nil {
			b.posted("registration again", err)
		}
	}
}

func (b *booting) register(ctx context.Context, p probeRun) error {
	return b.post(ctx, p.registryURL+"/register", model.ProbeRegistration{
		SystemUUID: b.reportedUUID(p), Data: b.inventory(time.Now()),
	})
}

func (b *booting) reportedUUID(p probeRun) string {
	args, other := b.faults.get(FaultProbeOtherUUID)
	switch {
	case !other:
		return p.serverUUID
	case args.UUID != "":
		return args.UUID
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(b.uuid)).String()
}

// cleanUp wipes the disks, tells half way how far it is, and reports how it went
// until somebody listens.
func (b *booting) cleanUp(ctx context.Context, p probeRun) {
	half := b.delays().Wipe / 2
	if !delay.Wait(ctx, half) {
		return
	}
	if p.wipe != model.CleanupNone {
		b.posted("wipe progress", b.post(ctx, progressURL(p.reportURL), b.halfWiped(p)))
	}
	for freed := b.faults.until(FaultWipeHangs); freed != nil; freed = b.faults.until(FaultWipeHangs) {
		select {
		case <-ctx.Done():
			return
		case <-freed:
		}
	}
	if !delay.Wait(ctx, half) {
		return
	}
	report := model.ProbeWipe{SystemUUID: b.reportedUUID(p), Mode: p.wipe, Disks: b.wipe(p.wipe)}
	b.until(ctx, "wipe", func() error { return b.post(ctx, p.reportURL, report) })
}

// progressURL is where progress is told, beside where the outcome of a wipe is
// reported.
func progressURL(reportURL string) string {
	return reportURL[:strings.LastIndexByte(reportURL, '/')+1] + "wipe-progress"
}

func (b *booting) halfWiped(p probeRun) model.ProbeWipeProgress {
	progress := model.ProbeWipeProgress{SystemUUID: b.reportedUUID(p), Mode: p.wipe}
	for i, d := range b.build.Hardware.Drives {
		if b.hidden(i) {
			continue
		}
		progress.Disks = append(progress.Disks, model.DiskProgress{
			Name: d.Name, Serial: b.diskSerial(i), SizeBytes: d.Bytes, Method: d.wipeMethod(p.wipe), Percent: 50,
		})
	}
	return progress
}

func (b *booting) wipe(mode string) []model.DiskWipe {
	args, fails := b.faults.get(FaultWipeFails)
	var disks []model.DiskWipe
	var left []string // serial numbers of those that keep what is on them
	for i, d := range b.build.Hardware.Drives {
		if b.hidden(i) {
			left = append(left, b.diskSerial(i))
			continue
		}
		w := model.DiskWipe{Name: d.Name, Serial: b.diskSerial(i), Model: d.Model, SizeBytes: d.Bytes, WWID: b.wwid(i), Method: d.wipeMethod(mode), Result: model.WipeDone}
		switch {
		case mode == model.CleanupNone:
			w.Result, w.Reason = model.WipeSkipped, model.SkipMode
		case fails && args.Disk == i:
			w.Result, w.Error = model.WipeFailed, "write: input/output error"
			left = append(left, w.Serial)
		}
		disks = append(disks, w)
	}
	if mode != model.CleanupNone && len(left) < len(b.build.Hardware.Drives) {
		b.erase(left)
	}
	return disks
}

// erase erases the disks but those with the serial numbers in left.
func (b *booting) erase(left []string) {
	b.during(b.life, func() {
		e := Event{Kind: EventWiped, What: "disks erased", Left: left}
		if b.disk != nil {
			e.Image, e.IgnitionSHA256 = b.disk.Image, b.disk.IgnitionSHA256
		}
		b.log(e)
		for i := range max(len(b.build.Hardware.Drives), 1) {
			if !slices.Contains(left, b.diskSerial(i)) {
				b.clearDisk(b.diskSerial(i))
			}
		}
		b.keep()
	})
}

// A host is a machine as the software that runs on it sees it.
type host struct{ *Server }

// hidden reports whether what runs on the server does not see a disk.
func (s host) hidden(disk int) bool {
	args, hides := s.faults.get(FaultDiskHidden)
	return hides && args.Disk == disk
}

// wwid is the i-th disk's world-wide name.
func (s *mainboard) wwid(i int) string { return "eui." + s.identity().part(i+10) }

// wipeMethod is how a disk of this kind is wiped.
func (d Drive) wipeMethod(mode string) string {
	switch {
	case mode == model.CleanupNone:
		return ""
	case d.rotational() && mode == model.CleanupSecure:
		return "overwrite"
	case d.rotational():
		return "blkzeroout"
	case mode == model.CleanupSecure:
		return "blksecdiscard"
	}
	return "blkdiscard"
}

// post sends body as JSON; 200 and 201 count as success, as with metalprobe.
func (s host) post(ctx context.Context, address string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return errors.New("post: the URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.web().Do(req)
	if err != nil {
		return fmt.Errorf("post: %w", withoutURL(err))
	}
	drain(resp.Body)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return statusError{what: "post", code: resp.StatusCode}
	}
	return nil
}

// HostAddress is the address that a pretended machine asks from, if it has one of its own.
func (s *mainboard) HostAddress() netip.Addr {
	network := s.rack().opts.HostNetwork
	if !network.IsValid() {
		return netip.Addr{}
	}
	a := network.Masked().Addr().As4()
	n := binary.BigEndian.Uint32(a[:]) + uint32((s.bmc.number-1)*s.rack().opts.SystemsPerBMC+s.index) + 1
	binary.BigEndian.PutUint32(a[:], n)
	return netip.AddrFrom4(a)
}

// ip is the address of the i-th NIC, in the network that the rack's hosts have.
func (s host) ip(i int) string {
	n := (s.bmc.number-1)*maxSystemsPerBMC + s.index
	if own := s.HostAddress(); own.IsValid() && i == 0 {
		return own.String()
	}
	return fmt.Sprintf("10.%d.%d.%d", 16*(i+1)+n>>15, n>>7&0xff, n&0x7f+1)
}

func (s host) inventory(now time.Time) model.ProbeData {
	return model.ProbeData{
		Timestamp:         now.UTC().Truncate(time.Second),
		CPU:               []model.ProbeCPU{{Capabilities: []string{"fpu", "sse4_2", "aes", "avx2", "avx512f"}}},
		NetworkInterfaces: s.probeInterfaces(),
		LLDP:              s.probeNeighbors(),
		Storage:           s.probeDisks(),
		NICs:              s.probeNICs(),
	}
}

// nicName is the name that systemd gives the i-th NIC.
func nicName(i int) string { return "enp65s0f" + strconv.Itoa(i) }

func (s host) probeInterfaces() []model.ProbeNetworkInterface {
	nics := make([]model.ProbeNetworkInterface, s.build.NICs)
	for i := range nics {
		nics[i] = model.ProbeNetworkInterface{
			Name: nicName(i), IPAddresses: []string{s.ip(i)}, MACAddress: s.MAC(i), CarrierStatus: "up",
		}
	}
	return nics
}

// probeNeighbors are the two leaf switches of the rack.
func (s host) probeNeighbors() []model.ProbeLLDP {
	lldp := make([]model.ProbeLLDP, s.build.NICs)
	port := "Ethernet" + strconv.Itoa((s.bmc.number-1)*len(s.bmc.rack.bmcs[0].servers)+s.index+1)
	for i := range lldp {
		leaf := fmt.Sprintf("rack1-leaf-%d", i+1)
		lldp[i] = model.ProbeLLDP{Name: nicName(i), Neighbors: []model.ProbeNeighbor{{
			ChassisID: fmt.Sprintf("02:1e:af:00:00:%02x", i+1), PortID: port, PortDescription: "to " + string(s.name),
			SystemName: leaf, SystemDescription: "Simulated leaf switch",
		}}}
	}
	return lldp
}

func (s host) probeDisks() []model.ProbeDisk {
	var disks []model.ProbeDisk
	for i := range s.build.Hardware.Drives {
		if !s.hidden(i) {
			disks = append(disks, s.probeDisk(i))
		}
	}
	return disks
}

// probeDisk is the i-th disk as the probe sees it.
func (s host) probeDisk(i int) model.ProbeDisk {
	d, sector := s.build.Hardware.Drives[i], uint64(512)
	if args, large := s.faults.get(FaultSectors4K); large && args.Disk == i {
		sector = 4096
	}
	if args, small := s.faults.get(FaultDiskSmall); small && args.Disk == i {
		d.Bytes = 1 << 20
	}
	return model.ProbeDisk{
		Path: "/dev/" + d.Name, Name: d.Name, Rotational: d.rotational(), Vendor: d.Vendor, Model: d.Model,
		Serial: s.diskSerial(i), WWID: s.wwid(i), Transport: strings.ToLower(d.Protocol), ByPath: fmt.Sprintf("pci-0000:%02x:00.0", 0x60+i),
		LogicalBlockSize: sector, SizeBytes: d.Bytes,
	}
}

func dimmName(i int) string { return "DIMM" + strconv.Itoa(i+1) }

func (s *mainboard) dimmSerial(i int) string { return fmt.Sprintf("%s%02d", s.serial[:6], i+1) }

func (s host) probeNICs() []model.ProbeNIC {
	nics := make([]model.ProbeNIC, s.build.NICs)
	for i := range nics {
		nics[i] = model.ProbeNIC{Name: nicName(i), MAC: s.MAC(i)}
	}
	return nics
}
