package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ingot/bmc/sim"
	"ingot/model"
)

type simCommand struct {
	BMCs           *int     `name:"bmcs" placeholder:"N" help:"How many BMCs. Default: 3; with --qemu, 1."`
	Systems        *int     `placeholder:"N" help:"How many servers behind each BMC. Default: 2; with --qemu, 1."`
	Host           string   `placeholder:"IP" help:"Address that the BMCs listen on, each on its own port. Default: 127.0.0.1; with --bridge, its address."`
	Port           int      `placeholder:"N" help:"Port of the first BMC; the others take the following ones. Default: any free ports."`
	BootURL        string   `name:"boot-url" placeholder:"URL" help:"The boot service that the servers' firmware uses, boot.url of the daemon. Default: http://127.0.0.1:8082."`
	Fast           bool     `help:"Leave out the delays of real machines."`
	Personality    string   `default:"generic" placeholder:"NAME" help:"The vendor whose BMCs are imitated: ${personalities}. Default: ${default}."`
	Username       string   `default:"admin" placeholder:"NAME" help:"Account of the BMCs. Default: ${default}."`
	PasswordFile   string   `type:"path" placeholder:"FILE" help:"File that holds its password. Default: the password is ingot-sim."`
	StateDir       string   `type:"path" placeholder:"DIR" help:"Keep disks, power state, addresses and certificates here, so that the rack is the same after a restart."`
	WriteManifests string   `short:"m" type:"path" placeholder:"DIR" help:"Write the BMC and BMCSecret manifests of the rack here, ready to be committed."`
	Fault          []string `placeholder:"FAULT" sep:"none" help:"A fault that the rack starts with, such as slow,delay=5s; may be repeated. See below."`
	Control        string   `placeholder:"ADDRESS" help:"Listen here, such as 127.0.0.1:9000, for requests that cut power or set faults. Default of the host: loopback."`

	qemuFlags `embed:"" group:"QEMU virtual machines"`
}

// Help implements kong.HelpProvider.
func (simCommand) Help() string {
	return `Simulated BMCs answer Redfish over HTTPS, and their servers boot for real: they fetch iPXE script, kernel and Ignition, report as a probe, and are wiped. Prints the addresses and runs until SIGINT or SIGTERM. docs/simulator.md says more.

The manifests hold the password in plain text, so the daemon needs git.allowPlaintextSecrets: true, bmc.networks: [127.0.0.0/8] to reach BMCs on this machine, and boot.bindTickets: nothing, because servers on loopback cannot be distinguished.

Examples:

  ingot sim --bmcs 2 --systems 4 --write-manifests ./rack
  ingot sim --personality lenovo --fault patch-lag,delay=5s --fault session-limit,on=rack1-bmc-01
  ingot sim --control 127.0.0.1:9000
  curl -X POST http://127.0.0.1:9000/servers/NAME/power-cut
  curl -X POST http://127.0.0.1:9000/bmcs/NAME/unplug
  curl -d '{"target": "NAME", "fault": "slow", "delay": "2s"}' http://127.0.0.1:9000/faults
  curl -X DELETE 'http://127.0.0.1:9000/faults?target=NAME'

A fault is a name and its arguments, FAULT[,on=NAME][,ARGUMENT=VALUE]…; on names a BMC or a server; the default is every BMC. The faults:

` + faultList() + `

With --qemu the servers are QEMU virtual machines with the same BMCs: power, resets and boot override act on them, and a machine boots what it finds on the network of its tap interface. --bridge makes that network, on which this machine has an address and nothing else is, until the rack ends, and implies --qemu; taps that --tap names have to exist. Their consoles are logged to STATE-DIR/server-NAME-console.log; GET /servers/NAME of --control names the file. This needs Debian's packages qemu-system-x86 and ipxe-qemu, ovmf for --firmware uefi, iproute2 for --bridge, and root for taps:

  ingot sim --bridge rack0 --write-manifests ./fleet
  ingot sim --bridge rack0=10.20.0.1/24 --systems 2 --state-dir ./rack --write-manifests ./fleet
  ip tuntap add tap0 mode tap && ip link set tap0 master br0 up
  ingot sim --qemu --tap tap0 --state-dir ./rack --write-manifests ./fleet
  ingot sim --qemu --systems 2 --tap tap0 --tap tap1 --firmware uefi
  ip netns exec lab ingot sim --qemu --tap tap0 --host 192.0.2.10`
}

func faultList() string {
	var list strings.Builder
	for _, k := range sim.FaultKinds() {
		takes := ""
		if len(k.Takes) > 0 {
			takes = " [" + strings.Join(k.Takes, ", ") + "]"
		}
		fmt.Fprintf(&list, "  %s%s: %s\n", k.Name, takes, k.About)
	}
	return list.String()
}

// simulated is what the command prints for each BMC.
type simulated struct {
	BMC     model.BMCName      `json:"bmc"`
	URL     string             `json:"url"`
	Servers []model.ServerName `json:"servers"`
}

// Run runs the rack until ctx is done.
func (s simCommand) Run(ctx context.Context, c *console) error {
	s.QEMU = s.QEMU || s.Bridge != nil
	bmcs, systems := s.layout()
	if s.Bridge != nil {
		b, err := s.bridge(bmcs * systems)
		if err != nil {
			return err
		}
		if err := b.make(ctx); err != nil {
			return err
		}
		defer b.remove(ctx)
		s.Tap, s.Host = b.taps, cmp.Or(s.Host, b.address.Addr().String())
	}
	opts, err := s.options(c)
	if err != nil {
		return err
	}
	rack, err := sim.New(opts)
	if err != nil {
		return err
	}
	defer rack.Close()
	for _, text := range s.Fault {
		if err := setFault(rack, text); err != nil {
			return fmt.Errorf("--fault: %w", err)
		}
	}
	control, err := s.listenControl(ctx)
	if err != nil {
		return err
	}
	if err := s.writeManifests(rack); err != nil {
		return err
	}
	if err := printRack(c, rack); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return rack.Run(ctx) })
	if control != nil {
		fmt.Fprintf(c.err, "Control at http://%s\n", control.Addr())
		group.Go(func() error { return serveControl(ctx, control, rack.ControlHandler()) })
	}
	return group.Wait()
}

func setFault(rack *sim.Rack, text string) error {
	f, err := sim.ParseFault(text)
	if err != nil {
		return err
	}
	return rack.SetFault(f)
}

func (s simCommand) options(c *console) (sim.Options, error) {
	bmcs, systems := s.layout()
	opts := sim.Options{
		BMCs: bmcs, SystemsPerBMC: systems, Host: s.Host, Port: s.Port, Username: s.Username, Personality: s.Personality,
		BootURL: s.BootURL, Delays: sim.DefaultDelays(), StateDir: s.StateDir, Log: c.log,
	}
	if opts.BootURL == "" {
		opts.BootURL = "http://127.0.0.1:8082"
	}
	if s.Fast {
		opts.Delays = sim.FastDelays()
	}
	machines, err := s.machines(bmcs * systems)
	if err != nil {
		return opts, err
	}
	if len(machines) > 0 {
		opts.Machines = machines
	}
	if s.PasswordFile != "" {
		data, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return opts, fmt.Errorf("read the password: %w", err)
		}
		opts.Password = model.NewSensitive(strings.TrimRight(string(data), "\r\n"))
		if opts.Password.IsZero() {
			return opts, fmt.Errorf("read the password: %s is empty", s.PasswordFile)
		}
	}
	return opts, nil
}

// layout returns how many BMCs there are, and how many servers behind each. A QEMU virtual
// machine takes memory and a processor, so there is one unless more are asked for.
func (s simCommand) layout() (bmcs, systems int) {
	bmcs, systems = 3, 2
	if s.QEMU {
		bmcs, systems = 1, 1
	}
	if s.BMCs != nil {
		bmcs = *s.BMCs
	}
	if s.Systems != nil {
		systems = *s.Systems
	}
	return bmcs, systems
}

func (s simCommand) listenControl(ctx context.Context) (net.Listener, error) {
	if s.Control == "" {
		return nil, nil
	}
	address := s.Control
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--control: %w", err)
	}
	return ln, nil
}

func (s simCommand) writeManifests(rack *sim.Rack) error {
	if s.WriteManifests == "" {
		return nil
	}
	for path, content := range rack.Manifests() {
		if err := writeFile(filepath.Join(s.WriteManifests, filepath.FromSlash(path)), content); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	return nil
}

// writeFile writes a file that may hold a password, and the folders above it.
func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func printRack(c *console, rack *sim.Rack) error {
	var all []simulated
	for _, b := range rack.BMCs() {
		one := simulated{BMC: b.Name(), URL: "https://" + b.Addr()}
		for _, s := range b.Servers() {
			one.Servers = append(one.Servers, s.Name())
		}
		all = append(all, one)
	}
	if c.json() {
		return c.printJSON(all)
	}
	var rows [][]cell
	for _, one := range all {
		names := make([]string, len(one.Servers))
		for i, n := range one.Servers {
			names[i] = string(n)
		}
		rows = append(rows, []cell{textCell(string(one.BMC)), textCell(one.URL), textCell(strings.Join(names, " "))})
	}
	c.printTable([]string{"BMC", "URL", "SERVERS"}, rows)
	return nil
}

// serveControl answers control requests until ctx is done.
func serveControl(ctx context.Context, ln net.Listener, handler http.Handler) error {
	srv := &http.Server{Handler: handler, MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
