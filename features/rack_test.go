package features

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/bmc/sim"
	"ingot/model"
)

// machine is one simulated machine and the BMC that the scenario puts it behind.
type machine struct {
	*sim.Server
	name string // in the scenario
	bmc  string
}

const loopback = `networks: ["127.0.0.0/8", "::1/128"], `

// delays are long enough for every step of a boot to be seen, and no longer.
var delays = sim.Delays{
	PowerOn: 30 * time.Millisecond, PowerOff: 30 * time.Millisecond, Firmware: 30 * time.Millisecond,
	Boot: 100 * time.Millisecond, Wipe: 50 * time.Millisecond, Request: time.Millisecond,
	ProbeRestart: 250 * time.Millisecond,
}

func (w *site) assemble(bmcs, perBMC int) (err error) {
	w.rack, err = sim.New(sim.Options{
		BMCs: bmcs, SystemsPerBMC: perBMC, Delays: delays, BootURL: w.boot.server.URL, Password: model.NewSensitive(bmcPassword),
		SessionLimit: w.sessions, Host: w.rackHost, HostNetwork: hostNetwork,
		UUIDs: w.uuids,
	})
	if err != nil {
		return err
	}
	if err := w.placeMachines(); err != nil {
		return err
	}
	w.racked = make(chan error, 1)
	go func() { w.racked <- w.rack.Run(context.Background()) }()
	return nil
}

// hostNetwork is where machines ask from, each from an address of its own. All of it is
// this machine's, so nothing but Endpoints tells Ingot who is where.
var hostNetwork = netip.MustParsePrefix("127.64.0.0/16")

func (w *site) placeMachines() error {
	files := make(map[string]string)
	for _, m := range w.rack.Servers() {
		e := object(model.KindEndpoint, string(m.Name()), nil)
		spec(e)["macAddress"], spec(e)["ip"] = m.MAC(0), m.HostAddress().String()
		files[filepath.Join(w.folder, "endpoints", string(m.Name())+".yaml")] = text(e)
	}
	return w.commit(files, "say where the machines are")
}

func (w *site) machine(name string) (*machine, error) {
	if m := w.machines[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("the scenario has no machine %q", name)
}

// bmcFaults are the faults that are a BMC's own, not one of its servers'.
var bmcFaults = []sim.Fault{
	sim.FaultRefuse, sim.FaultHang, sim.FaultUnauthorized, sim.FaultDropSessions, sim.FaultSessionLimit, sim.FaultSlow,
	sim.FaultServerError, sim.FaultOKError, sim.FaultNoSystems, sim.FaultCollectionEmpty, sim.FaultBladesSwapped,
}

// wire makes a rack of the BMCs and machines that rows name. A machine without a
// BMC of its own name has one named after it.
func (w *site) wire(all []map[string]string) error {
	behind := make(map[string][]map[string]string)
	var order []string
	for _, row := range all {
		b := cmp.Or(row["BMC"], "bmc-"+row["SERVER"])
		if behind[b] == nil {
			order = append(order, b)
		}
		behind[b] = append(behind[b], row)
	}
	perBMC := len(behind[order[0]])
	if err := w.assemble(len(order), perBMC); err != nil {
		return err
	}
	for i, b := range order {
		if len(behind[b]) != perBMC {
			return fmt.Errorf("all BMCs must have as many servers as %s", order[0])
		}
		w.bmcs[b] = w.rack.BMCs()[i]
		for j, row := range behind[b] {
			m := &machine{w.bmcs[b].Servers()[j], row["SERVER"], b}
			w.machines[row["SERVER"]] = m
			if row["RUNS"] != "" {
				m.SetRunning(row["RUNS"])
			}
		}
	}
	for _, row := range all {
		if row["FAULT"] != "" {
			if err := w.suffer(row["SERVER"], sim.Fault(row["FAULT"])); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherUUID is the UUID of another machine than name, for those that pretend.
func (w *site) otherUUID(name string) string {
	for other, m := range w.machines {
		if other != name {
			return m.UUID()
		}
	}
	return ""
}

func (w *site) suffer(name string, fault sim.Fault, requests ...int) error {
	args := sim.FaultArgs{Requests: 5, UUID: w.otherUUID(name)}
	if strings.HasPrefix(string(fault), "reset-answer") {
		args.Requests = 0 // all of them
	}
	for _, n := range requests {
		args.Requests = n
	}
	if b := w.bmcs[name]; b != nil {
		return b.SetFault(fault, args)
	}
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	if slices.Contains(bmcFaults, fault) {
		return m.BMC().SetFault(fault, args)
	}
	return m.SetFault(fault, args)
}

func suffer(ctx context.Context, name, whether, fault, times string) error {
	w := siteOf(ctx)
	if whether == "suffers" {
		if n, err := strconv.Atoi(times); err == nil {
			return w.suffer(name, sim.Fault(fault), n)
		}
		return w.suffer(name, sim.Fault(fault))
	}
	if b := w.bmcs[name]; b != nil {
		return b.ClearFault(sim.Fault(fault))
	}
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	return m.ClearFault(sim.Fault(fault))
}

func keepSessions(ctx context.Context, n int) error {
	siteOf(ctx).sessions = n
	return nil
}

func networkFirst(_ context.Context, m *machine) error {
	m.SetNetworkFirst(true)
	return nil
}

func powerCut(_ context.Context, m *machine) error {
	m.PowerCut()
	return nil
}

func pressPower(_ context.Context, m *machine) error {
	m.PressPower()
	return nil
}
