package features

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"ingot/bmc/sim"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/reconcile/report"
)

// theMachines makes a rack of which Git says nothing yet, and starts Ingot.
func theMachines(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "BMC", "RUNS", "FAULT"); err != nil {
		return err
	}
	w := worldOf(ctx)
	if err := w.wire(rows(table)); err != nil {
		return err
	}
	_, err := begun(ctx)
	return err
}

// theServers makes a rack, has it described in Git, starts Ingot, and waits until
// each server is in the state that the table names.
func theServers(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "BMC", "RUNS", "RACK", "STATE"); err != nil {
		return err
	}
	return worldOf(ctx).inhabit(ctx, rows(table))
}

// manyServers is theServers for a rack of which nobody cares for the names.
func manyServers(ctx context.Context, n int) error {
	all := make([]map[string]string, n)
	for i := range all {
		all[i] = map[string]string{"SERVER": fmt.Sprintf("s%03d", i), "BMC": fmt.Sprintf("bmc-%02d", i/4)}
	}
	return worldOf(ctx).inhabit(ctx, all)
}

func (w *world) inhabit(ctx context.Context, all []map[string]string) error {
	if err := w.wire(all); err != nil {
		return err
	}
	files := make(map[string]string)
	for _, row := range all {
		if err := w.describe(row); err != nil {
			return err
		}
		files[serverPath(row["SERVER"])] = text(w.servers[row["SERVER"]])
	}
	for name := range w.bmcs {
		files[bmcPath(name)] = w.bmcFile(name, nil)
	}
	if _, err := w.repo.Commit(files, "add the servers"); err != nil {
		return err
	}
	if _, err := begun(ctx); err != nil {
		return err
	}
	limit := patience + time.Duration(len(all))*200*time.Millisecond
	return w.eventuallyWithin(ctx, limit, func(s report.Summary) error {
		for _, row := range all {
			if err := serverIn(s, row["SERVER"], cmp.Or(row["STATE"], "Available")); err != nil {
				return err
			}
		}
		return nil
	})
}

func serverPath(name string) string { return "servers/" + name + ".yaml" }

func bmcPath(name string) string { return "bmcs/" + name + ".yaml" }

// wire makes a rack of the BMCs and machines that rows name. A machine without a
// BMC of its own name has one named after it.
func (w *world) wire(all []map[string]string) error {
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
			m := &machine{w.bmcs[b].Servers()[j], b}
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

// bmcFaults are the faults that are a BMC's own, not one of its servers'.
var bmcFaults = []sim.Fault{
	sim.FaultRefuse, sim.FaultHang, sim.FaultUnauthorized, sim.FaultDropSessions, sim.FaultSessionLimit, sim.FaultSlow, sim.FaultServerError,
	sim.FaultOKError, sim.FaultNoSystems, sim.FaultCollectionEmpty, sim.FaultBladesSwapped,
}

func (w *world) suffer(name string, fault sim.Fault) error {
	args := sim.FaultArgs{Requests: 5, UUID: w.otherUUID(name)}
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

// otherUUID is the UUID of another machine than name, for those that pretend.
func (w *world) otherUUID(name string) string {
	for other, m := range w.machines {
		if other != name {
			return m.UUID()
		}
	}
	return ""
}

func sufferFrom(ctx context.Context, name, fault string) error {
	return worldOf(ctx).suffer(name, sim.Fault(fault))
}

func recoverFrom(ctx context.Context, name, fault string) error {
	w := worldOf(ctx)
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
	worldOf(ctx).sessions = n
	return nil
}

func networkFirst(ctx context.Context, name string) error {
	m, err := worldOf(ctx).machine(name)
	if err == nil {
		m.SetNetworkFirst(true)
	}
	return err
}

func powerCut(ctx context.Context, name string) error {
	m, err := worldOf(ctx).machine(name)
	if err == nil {
		m.PowerCut()
	}
	return err
}

func pressPower(ctx context.Context, name string) error {
	m, err := worldOf(ctx).machine(name)
	if err == nil {
		m.PressPower()
	}
	return err
}

// claimsRunOn commits claims for one server each, and waits until they are Booted.
func claimsRunOn(ctx context.Context, claims, servers string) error {
	w := worldOf(ctx)
	on := names(servers)
	for i, c := range names(claims) {
		if err := w.claim(map[string]string{"CLAIM": c, "SERVER": on[i]}); err != nil {
			return err
		}
	}
	if err := w.commitClaims(names(claims)...); err != nil {
		return err
	}
	for i, c := range names(claims) {
		if err := claimIsOn(ctx, c, "Booted", on[i]); err != nil {
			return err
		}
	}
	return nil
}

// reachedOver serves the repository as many people have it. Nobody tells Ingot of pushes.
func reachedOver(ctx context.Context, transport string) error {
	w := worldOf(ctx)
	w.intervals = alone
	if transport == "SSH with a key" {
		s, err := w.repo.ServeSSH()
		if err != nil {
			return err
		}
		w.clients = append(w.clients, s.Close)
		w.remote = s.URL
		return w.authenticate(map[string][]byte{"sshKeyFile": s.ClientKey, "knownHostsFile": s.KnownHosts(s.Ed25519)})
	}
	s, err := w.repo.ServeHTTP(gitserver.HTTPOptions{TLS: true, Username: "ingot", Password: "git-" + bmcPassword})
	if err != nil {
		return err
	}
	w.clients = append(w.clients, s.Close)
	w.remote = s.URL
	return w.authenticate(map[string][]byte{
		"usernameFile": []byte("ingot\n"), "passwordFile": []byte("git-" + bmcPassword + "\n"), "caFile": s.CA,
	})
}

// authenticate writes credential files and names them in the configuration.
func (w *world) authenticate(files map[string][]byte) error {
	var settings []string
	for _, key := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(w.dir, key)
		if err := os.WriteFile(file, files[key], 0o600); err != nil {
			return err
		}
		settings = append(settings, fmt.Sprintf("%s: %q", key, file))
	}
	w.auth = ", auth: {" + strings.Join(settings, ", ") + "}"
	return nil
}

// serverIn reports how a server is not in a state.
func serverIn(s report.Summary, name, state string) error {
	for _, x := range s.Servers {
		if string(x.Name) != name {
			continue
		}
		if x.State != model.ServerState(state) {
			return fmt.Errorf("server %s is %s, not %s: %s", name, x.State, state, x.Why)
		}
		return nil
	}
	return fmt.Errorf("there is no server %s", name)
}
