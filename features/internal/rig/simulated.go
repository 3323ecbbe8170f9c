package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"ingot/bmc/sim"
	"ingot/bmc/sim/qemu"
)

// helperVariable names, in the environment, what this test program is to do in
// place of tests: be a part of the rig that must run in a namespace as a whole.
const helperVariable = "INGOT_LAB_HELPER"

// helper runs a part of the rig and returns its exit code.
func helper(name string) int {
	err := fmt.Errorf("there is no helper %q", name)
	if name == "rack" {
		err = runRack(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		return 1
	}
	return 0
}

// RackOrder is what a simulated rack is to be, and where it leaves word of it.
type RackOrder struct {
	Host, BootURL, StateDir string
	BMCs, SystemsPerBMC     int
	Delays                  sim.Delays
	QEMU                    qemu.Machines
	NetworkFirst            []bool // in the persistent boot order, by server
	Facts                   string // a file for a SimulatedRack, which StartRack names
}

func (o RackOrder) options() sim.Options {
	all := sim.Options{
		Host: o.Host, BootURL: o.BootURL, StateDir: o.StateDir, BMCs: o.BMCs, SystemsPerBMC: o.SystemsPerBMC,
		Delays: o.Delays, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if len(o.QEMU) > 0 {
		all.Machines = o.QEMU
	}
	return all
}

// SimulatedRack is what a simulated rack is.
type SimulatedRack struct {
	BMCs    []SimulatedBMC
	Servers []SimulatedServer
}

// SimulatedBMC is a BMC of a simulated rack.
type SimulatedBMC struct{ Name, Address, MAC string }

// SimulatedServer is a server of a simulated rack.
type SimulatedServer struct {
	Name, UUID, MAC string
	// These are of QEMU virtual machines: the log of its console, and its disks.
	Console string
	Disks   []string
	// DiskSerials are the serial numbers of the disks.
	DiskSerials []string
}

// rackControl is where a simulated rack takes what a person may do to it.
const rackControl = "127.0.0.1:9000"

// runRack runs a simulated rack until it is killed.
func runRack(order string) error {
	var o RackOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	rack, err := sim.New(o.options())
	if err != nil {
		return err
	}
	for n, first := range o.NetworkFirst {
		rack.Servers()[n].SetNetworkFirst(first)
	}
	facts := SimulatedRack{}
	for _, b := range rack.BMCs() {
		facts.BMCs = append(facts.BMCs, SimulatedBMC{string(b.Name()), b.Addr(), b.MAC()})
	}
	for _, s := range rack.Servers() {
		server := SimulatedServer{Name: string(s.Name()), UUID: s.UUID(), MAC: s.MAC(0), Console: s.Console(), Disks: s.DiskFiles()}
		for i := range server.Disks {
			server.DiskSerials = append(server.DiskSerials, s.DiskSerial(i))
		}
		facts.Servers = append(facts.Servers, server)
	}
	data, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.Facts+".part", data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(o.Facts+".part", o.Facts); err != nil {
		return err
	}
	go func() { _ = http.ListenAndServe(rackControl, rack.ControlHandler()) }() //nolint:gosec // of a namespace's own loopback
	return rack.Run(context.Background())
}

// StartRack runs a simulated rack in the namespace.
func (n *Namespace) StartRack(t testing.TB, order RackOrder) SimulatedRack {
	t.Helper()
	order.Facts = filepath.Join(t.TempDir(), "facts")
	data, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.StartWith(t, "simulated rack", []string{helperVariable + "=rack"}, self, string(data))
	var facts SimulatedRack
	Eventually(t, Patience, func() error {
		data, err := os.ReadFile(order.Facts)
		if err != nil {
			return fmt.Errorf("the simulated rack does not run: %w", err)
		}
		return json.Unmarshal(data, &facts)
	})
	return facts
}

// Control reads what a simulated rack says of itself.
func (n *Namespace) Control(path string, into any) error {
	body, err := n.Get("http://" + rackControl + path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// Meddle does what a person may do to a simulated rack.
func (n *Namespace) Meddle(path string) error {
	_, err := answered(n.Web().Post("http://"+rackControl+path, "", nil))
	return err
}
