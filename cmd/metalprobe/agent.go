package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"ingot/cmd/metalprobe/install"
	"ingot/cmd/metalprobe/install/efi"
	"ingot/cmd/metalprobe/inventory"
	"ingot/cmd/metalprobe/machine"
	"ingot/cmd/metalprobe/wipe"
	"ingot/model"
)

// maxWait is the longest pause between two attempts to report a wipe.
const maxWait = time.Minute

// agent does what the options ask for.
type agent struct {
	options
	host      *inventory.Host
	wiper     wipe.Wiper
	choose    func() []wipe.Choice
	installer func(install.Post) install.Installer
	firmware  func() (efi.Variables, error)
	post      func(ctx context.Context, address string, body any) error
	log       *slog.Logger
}

func newAgent(o options, log *slog.Logger) *agent {
	host := inventory.Local(log)
	return &agent{
		options:   o,
		host:      host,
		wiper:     wipe.Local(log),
		choose:    func() []wipe.Choice { return wipe.Choose(host.Disks(), host.Use(), o.wipe) },
		installer: func(post install.Post) install.Installer { return install.Local(host, post, log) },
		firmware:  efi.Open,
		post:      newClient(o.timeout).post,
		log:       log,
	}
}

// do does what the options ask for. Output for a person goes to stdout.
func (a *agent) do(ctx context.Context, stdout io.Writer) error {
	switch {
	case a.version:
		_, err := fmt.Fprintln(stdout, "metalprobe", buildVersion())
		return err
	case a.json:
		return a.print(ctx, stdout)
	case a.dryRun:
		return a.printChoices(stdout)
	case a.options.wipe != "":
		return a.cleanUp(ctx)
	case a.options.install != "":
		return a.installDisk(ctx)
	case a.bootStateURL != "":
		return a.reportUp(ctx)
	}
	return a.register(ctx)
}

// reportUp posts that the machine is up. It fails if the post does, and is started again then.
func (a *agent) reportUp(ctx context.Context) error {
	if err := a.post(ctx, a.bootStateURL, model.ProbeBootState{SystemUUID: a.serverUUID, Booted: true}); err != nil {
		return fmt.Errorf("report that server %s is up: %w", a.serverUUID, err)
	}
	a.log.Info("this machine is claimed, and reported as up: the image of its claim is the probe's, which does nothing more")
	return nil
}

func (a *agent) print(ctx context.Context, w io.Writer) error {
	data := a.host.Read(time.Now())
	a.refresh(ctx, &data)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(data)
}

// register posts the inventory, and again every interval until ctx ends. It fails if the
// first post does: the service manager restarts the probe then.
func (a *agent) register(ctx context.Context) error {
	data := a.host.Read(time.Now())
	a.awaitNeighbors(ctx, &data)
	if err := a.postInventory(ctx, data); err != nil {
		return fmt.Errorf("register server %s: %w", a.serverUUID, err)
	}
	a.log.Info("server is registered", "uuid", a.serverUUID)
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	for !a.once {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		a.refresh(ctx, &data)
		if err := a.postInventory(ctx, data); err != nil {
			a.log.Warn("server is not registered again", "uuid", a.serverUUID, "err", err)
		}
	}
	return nil
}

func (a *agent) postInventory(ctx context.Context, data model.ProbeData) error {
	address, err := url.JoinPath(a.registryURL, "register")
	if err != nil {
		return errors.New("the URL of the registry cannot be used")
	}
	return a.post(ctx, address, model.ProbeRegistration{SystemUUID: a.serverUUID, Data: data})
}

// awaitNeighbors refreshes data until an LLDP neighbour is seen, for as long as the
// options allow: switches announce themselves about every 30 seconds. Without an LLDP
// daemon it returns at once.
func (a *agent) awaitNeighbors(ctx context.Context, data *model.ProbeData) {
	ctx, cancel := context.WithTimeout(ctx, a.lldpDuration)
	defer cancel()
	for a.refresh(ctx, data) && len(data.LLDP) == 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.lldpInterval):
		}
	}
}

// refresh updates the timestamp and the LLDP neighbours, and reports whether this machine
// has an LLDP daemon. If the daemon does not answer, the last known neighbours are kept.
func (a *agent) refresh(ctx context.Context, data *model.ProbeData) (lldp bool) {
	data.Timestamp = inventory.Timestamp(time.Now())
	neighbors, err := a.host.Neighbors(ctx)
	switch {
	case errors.Is(err, inventory.ErrNoLLDP):
		return false
	case err != nil && ctx.Err() == nil:
		a.log.Warn("LLDP neighbours cannot be read", "err", err)
	case err == nil:
		data.LLDP = neighbors
	}
	return true
}

// cleanUp registers the server, wipes its disks and reports the outcome. The error
// machine.ErrPowerOff means that the machine has nothing more to do.
func (a *agent) cleanUp(ctx context.Context) error {
	data := a.host.Read(time.Now())
	a.refresh(ctx, &data)
	if err := a.postInventory(ctx, data); err != nil {
		a.log.Warn("server is not registered; the wipe goes on", "uuid", a.serverUUID, "err", err)
	} else {
		a.log.Info("server is registered", "uuid", a.serverUUID)
	}
	a.cleanFirmware()
	disks := a.wipeDisks(ctx)
	if ctx.Err() != nil {
		return errors.New("the wipe was interrupted: it starts over when the probe is restarted")
	}
	report := model.ProbeWipe{SystemUUID: a.serverUUID, Mode: a.wipe, Disks: disks}
	if err := a.report(ctx, report); err != nil {
		return err
	}
	a.log.Info("wipe is reported", "disks", len(disks))
	switch failed := failures(disks); {
	case a.powerOff && failed == "":
		return machine.ErrPowerOff
	case failed != "":
		a.log.Error("machine stays on: disks are not wiped", "disks", failed)
	}
	if !a.once {
		<-ctx.Done()
	}
	return nil
}

// installDisk installs a disk image. The error machine.ErrPowerOff means that the outcome is
// reported and the machine has nothing more to do. A claimed server registers no inventory.
func (a *agent) installDisk(ctx context.Context) error {
	address, err := url.JoinPath(a.registryURL, "install")
	if err != nil {
		return errors.New("the URL of the registry cannot be used")
	}
	post := func(ctx context.Context, p model.ProbeInstall) error { return a.post(ctx, address, p) }
	if err := a.installer(post).Run(ctx, a.options.install, a.serverUUID); err != nil {
		return err
	}
	if a.powerOff {
		return machine.ErrPowerOff
	}
	return nil
}

// bootEntries is how the labels of boot entries begin that installs make.
const bootEntries = "Ingot "

// cleanFirmware takes away the boot entries of installs, of whatever tenant.
func (a *agent) cleanFirmware() {
	if a.options.wipe == model.CleanupNone {
		return
	}
	variables, err := a.firmware()
	if errors.Is(err, efi.ErrNone) {
		return
	}
	removed := 0
	if err == nil {
		removed, err = variables.Clean(bootEntries)
	}
	if err != nil {
		a.log.Warn("boot entries of former installs could not be removed", "err", err)
		return
	}
	a.log.Info("boot entries of former installs were removed", "entries", removed)
}

func (a *agent) wipeDisks(ctx context.Context) []model.DiskWipe {
	address, err := progressURL(a.reportURL)
	if err != nil {
		a.log.Warn("progress of the wipe could not be posted", "err", err)
		return a.wipeAll(ctx, a.wiper)
	}
	r := newProgressReporter(func(ctx context.Context, disks []model.DiskProgress) error {
		return a.post(ctx, address, model.ProbeWipeProgress{SystemUUID: a.serverUUID, Mode: a.wipe, Disks: disks})
	}, a.log)
	posting, stop := context.WithCancel(ctx)
	var posted sync.WaitGroup
	posted.Go(func() { r.run(posting) })
	defer posted.Wait() // no progress may arrive after the outcome
	defer stop()
	w := a.wiper
	w.Watch = r.watch
	return a.wipeAll(ctx, w)
}

// wipeAll wipes the present disks, and then those that have appeared meanwhile, because a
// slow controller may find disks late.
func (a *agent) wipeAll(ctx context.Context, w wipe.Wiper) []model.DiskWipe {
	type identity struct{ name, serial, wwid string }
	seen := make(map[identity]bool)
	results := []model.DiskWipe{} // a machine without disks reports none
	for first := true; first || ctx.Err() == nil; first = false {
		unseen := slices.DeleteFunc(a.choose(), func(c wipe.Choice) bool {
			id := identity{c.Disk.Name, c.Disk.Serial, c.Disk.WWID}
			known := seen[id]
			seen[id] = true
			return known
		})
		if !first && len(unseen) == 0 {
			break
		}
		if !first {
			a.log.Warn("disks have appeared during the wipe", "disks", len(unseen))
		}
		results = append(results, w.Wipe(ctx, a.wipe, unseen)...)
	}
	return results
}

func failures(disks []model.DiskWipe) string {
	var list []string
	for _, d := range disks {
		if d.Result == model.WipeFailed {
			list = append(list, fmt.Sprintf("%s (%s): %s", d.Name, cmp.Or(d.Serial, "no serial number"), d.Error))
		}
	}
	return strings.Join(list, "; ")
}

// report posts the outcome of a wipe until it is accepted, with growing pauses. It does
// not give up, because a restarted probe would wipe the disks again.
func (a *agent) report(ctx context.Context, r model.ProbeWipe) error {
	for wait := time.Second; ; wait = min(2*wait, maxWait) {
		err := a.post(ctx, a.reportURL, r)
		if err == nil {
			return nil
		}
		a.log.Warn("wipe could not be reported yet", "retryIn", wait, "err", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("report the wipe: %w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// printChoices prints what a wipe would do, for a person.
func (a *agent) printChoices(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DISK\tSIZE\tSERIAL\tMODEL\tWIPE "+strings.ToUpper(a.wipe))
	for _, c := range a.choose() {
		verdict := "would be wiped"
		if c.Result != "" {
			verdict = c.Result + ": " + c.Why
		}
		d := c.Disk
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", d.Path, d.SizeBytes, d.Serial, d.Model, verdict)
	}
	return table.Flush()
}
