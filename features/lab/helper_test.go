package lab

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
)

// helperVariable names, in the environment, what this test program is to do in
// place of tests: be a part of the lab that must run in a namespace as a whole.
const helperVariable = "INGOT_LAB_HELPER"

// helper runs a part of the lab and returns its exit code.
func helper(name string) int {
	err := fmt.Errorf("there is no helper %q", name)
	if name == "rack" {
		err = runRack(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

// rackOrder is what a simulated rack is to be, and where it leaves word of it.
type rackOrder struct {
	Host, BootURL, StateDir string
	BMCs, SystemsPerBMC     int
	Delays                  sim.Delays
	QEMU                    []sim.QEMUMachine
	Facts                   string // a file for simulatedRack
}

// options are those of o's rack.
func (o rackOrder) options() sim.Options {
	return sim.Options{
		Host: o.Host, BootURL: o.BootURL, StateDir: o.StateDir, BMCs: o.BMCs, SystemsPerBMC: o.SystemsPerBMC,
		Delays: o.Delays, QEMU: o.QEMU, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
}

// simulatedRack is what a simulated rack is.
type simulatedRack struct {
	BMCs    []simulatedBMC
	Servers []simulatedServer
}

type simulatedBMC struct{ Name, Address, MAC string }

type simulatedServer struct{ Name, UUID, MAC, Console string }

// rackControl is where a simulated rack takes what a person may do to it.
const rackControl = "127.0.0.1:9000"

// runRack runs a simulated rack until it is killed.
func runRack(order string) error {
	var o rackOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	rack, err := sim.New(o.options())
	if err != nil {
		return err
	}
	facts := simulatedRack{}
	for _, b := range rack.BMCs() {
		facts.BMCs = append(facts.BMCs, simulatedBMC{string(b.Name()), b.Addr(), b.MAC()})
	}
	for _, s := range rack.Servers() {
		facts.Servers = append(facts.Servers, simulatedServer{string(s.Name()), s.UUID(), s.MAC(0), s.Console()})
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

// startRack runs a simulated rack in the namespace.
func (n *namespace) startRack(t *testing.T, order rackOrder) simulatedRack {
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
	n.startWith(t, "simulated rack", []string{helperVariable + "=rack"}, self, string(data))
	var facts simulatedRack
	eventually(t, patience, func() error {
		data, err := os.ReadFile(order.Facts)
		if err != nil {
			return fmt.Errorf("the simulated rack does not run: %w", err)
		}
		return json.Unmarshal(data, &facts)
	})
	return facts
}

// control reads what a simulated rack says of itself.
func (n *namespace) control(path string, into any) error {
	body, err := n.get("http://" + rackControl + path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}
