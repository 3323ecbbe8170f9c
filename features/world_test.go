package features

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cucumber/godog"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bmc/sim"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/reconcile/report"
)

// patience is how long what is promised may take to come true.
const patience = 45 * time.Second

// storeKind is where Ingot keeps its records.
type storeKind string

const (
	embeddedStore storeKind = "the embedded store"
	redisStore    storeKind = "redis-server"
)

// tags choose the scenarios that make sense with a store: a file has no server
// that could go down, and Redis no file of ours.
func (s storeKind) tags() string {
	if s == embeddedStore {
		return "~@redis"
	}
	return "~@file"
}

// bmcPassword opens every BMC, claimSecret is in every claim's Ignition. Neither
// may ever be seen in a log or on the status branch.
const (
	bmcPassword = "correct-horse-battery"
	claimSecret = "tr0ub4dor-and-three"
)

// world is all that one scenario has around it.
type world struct {
	protected atomic.Bool // the status branch takes no pushes

	name     string      // what happens in it
	overdue  *time.Timer // ends the tests if it is still there too late
	store    storeKind
	dir      string
	rack     *sim.Rack
	rackAt   rackPlace
	firmware []func()   // what asks DHCP when a machine asks for its boot script
	sessions int        // that a BMC keeps, 0 = the usual number
	racked   chan error // what the rack's Run returns
	repo     *gitserver.Repo
	commits  *ledger.Reader // what the bookkeeper read of repo
	remote   string         // the repository's URL, as Ingot is told
	auth     string         // how Ingot gets in there, as configuration
	images   *ociserver.Registry
	image    map[string]string // reference of each image, by its short name
	probe    string            // reference of the probe's image
	redis    *redisServer
	boot     *gate // between machines and boot service
	report   *gate // between probes and the endpoint that they report to
	log      *logTail
	ingot    *program   // nil before it is first started
	second   *program   // one that stands by, or nil
	launched []*program // every one that was started
	first    *program   // one that another took over from, or nil
	rivalEnd error      // how an Ingot ended that was started beside the first
	pushed   *bell      // tells them of pushes
	revived  bool       // Ingot was started again after it killed itself

	machines   map[string]*machine       // by the name that the scenario has for it
	bmcs       map[string]*sim.BMC       // likewise
	claims     map[string]map[string]any // what Git says of each claim, by name
	servers    map[string]map[string]any // what Git says of each server
	followed   []ledger.Configuration    // what each Ingot that was started follows
	past       []ledger.Event            // what happened to machines before the rack was made
	given      []ledger.Event            // Ignition that a scenario's own requests were answered with
	noted      map[string]facts          // of each machine, before the scenario's first When
	stranger   *stranger                 // who is none of the fleet, or nil
	clients    []func()                  // to be closed at the end
	statusHead string                    // of the status branch, when a step noted it
	changes    int                       // that BMCs had been asked for when a step noted it
	imagesSeen *gate                     // between Ingot and the image registry
	refused    int                       // status code of the last report that a step sent
	seed       int64                     // of what is left to chance

	networks []*network         // that Ingot serves by DHCP
	bmcPort  string             // on which BMCs that DHCP finds listen
	devices  map[string]*device // that asked DHCP, by the name that the scenario has for it
	cables   map[*device]*cable
	found    map[string]string // Ingot's names of BMCs and devices that nobody typed
	told     *dhcpv4.DHCPv4    // what a machine was last told to boot

	tenants     []tenant // besides the operator, who has the rest of the repository
	bmcNetworks string   // the setting bmc.networks, if there is one
	bindTickets string   // boot.bindTickets, if it is not the usual one
	intervals   intervals
	program     string   // the program under test
	arguments   []string // of the program, further ones
	environment []string // of the program
	branch      string   // that Ingot follows
	folder      string   // in it
	guard       string   // further settings of the guard
	mirrorLate  bool     // status.mirrorFirst is false

	handout  handout           // what a server was told last by its boot script
	heard    answer            // what the metadata service said last
	ignition map[string]string // of claims, where it is not the usual one
}

// machine is one simulated machine and the BMC that the scenario puts it behind.
type machine struct {
	*sim.Server
	bmc string
}

// loopback is where simulated BMCs are.
const loopback = `networks: ["127.0.0.0/8", "::1/128"], `

type worldKey struct{}

func worldOf(ctx context.Context) *world { return ctx.Value(worldKey{}).(*world) }

func newWorld(name string, store storeKind) (*world, error) {
	w := &world{
		name: name, store: store, log: &logTail{}, program: ingotProgram, intervals: hurried, branch: gitBranch, folder: ".", bmcNetworks: loopback, boot: newGate(), report: newGate(), imagesSeen: newGate(),
		machines: make(map[string]*machine), bmcs: make(map[string]*sim.BMC), image: make(map[string]string),
		claims: make(map[string]map[string]any), servers: make(map[string]map[string]any),
		devices: make(map[string]*device), cables: make(map[*device]*cable), found: make(map[string]string),
		ignition: make(map[string]string), seed: seed(),
	}
	w.overdue = w.dieIfOverdue()
	if err := w.furnish(); err != nil {
		w.overdue.Stop()
		return w, err
	}
	return w, nil
}

// seed is that of FEATURES_SEED, to repeat what failed, or a new one.
func seed() int64 {
	if n, err := strconv.ParseInt(os.Getenv("FEATURES_SEED"), 10, 64); err == nil {
		return n
	}
	return time.Now().UnixNano()
}

// furnish makes all but the rack, whose size the scenario knows.
func (w *world) furnish() (err error) {
	if w.dir, err = os.MkdirTemp("", "ingot-feature-"); err != nil {
		return err
	}
	if w.repo, err = gitserver.New(w.dir, "fleet"); err != nil {
		return err
	}
	if err = ledger.Watch(w.repo.Dir); err != nil {
		return err
	}
	w.commits = ledger.NewReader(w.repo.Dir)
	w.remote = w.repo.URL()
	if _, err = w.repo.Commit(map[string]string{"README.md": "the fleet\n"}, "begin"); err != nil {
		return err
	}
	if w.images, err = ociserver.New(); err != nil {
		return err
	}
	w.imagesSeen.open(w.images.Host())
	if w.probe, err = w.push("probe"); err != nil {
		return err
	}
	for _, name := range []string{"linux", "newer-linux"} {
		if w.image[name], err = w.push(name); err != nil {
			return err
		}
	}
	if w.store == redisStore {
		w.redis, err = startRedis(w.dir)
	}
	return err
}

func (w *world) push(name string) (reference string, err error) {
	reference, _, err = w.images.PushBootImage("images/"+name, "1", []byte(name+" kernel"), []byte(name+" initrd"), []byte(name+" root"))
	// named by the gate, which is where Ingot finds it
	return strings.Replace(reference, w.images.Host(), w.imagesSeen.host(), 1), err
}

// delays are long enough for every step of a boot to be seen, and no longer.
var delays = sim.Delays{
	PowerOn: 30 * time.Millisecond, PowerOff: 30 * time.Millisecond, Firmware: 30 * time.Millisecond,
	Boot: 100 * time.Millisecond, Wipe: 50 * time.Millisecond, Request: time.Millisecond,
	ProbeRestart: 250 * time.Millisecond,
}

// kernelDigest is how the disk of a machine that runs an image shows that.
func kernelDigest(image string) string {
	sum := sha256.Sum256([]byte(image + " kernel"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// rackPlace is where a rack is that has been there before: where its BMCs listen, and
// the folder that it kept. The zero value is one that nobody knows.
type rackPlace struct {
	host string
	port int
	dir  string
}

// assemble makes the rack.
func (w *world) assemble(bmcs, perBMC int) (err error) {
	w.rack, err = sim.New(sim.Options{
		BMCs: bmcs, SystemsPerBMC: perBMC, Delays: delays, BootURL: w.boot.server.URL, Password: model.NewSensitive(bmcPassword),
		SessionLimit: w.sessions, Host: w.rackAt.host, Port: w.rackAt.port, StateDir: w.rackAt.dir, HostNetwork: hostNetwork,
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

// placeMachines has Git say at which address each machine is.
func (w *world) placeMachines() error {
	files := make(map[string]string)
	for _, m := range w.rack.Servers() {
		e := object(model.KindEndpoint, string(m.Name()), nil)
		spec(e)["macAddress"], spec(e)["ip"] = m.MAC(0), m.HostAddress().String()
		files[filepath.Join(w.folder, "endpoints", string(m.Name())+".yaml")] = text(e)
	}
	_, err := w.repo.Commit(files, "say where the machines are")
	return err
}

// configuration is Ingot's, for this world, with a state folder of its own.
func (w *world) configuration(stateDir string) string {
	redis := ""
	if w.redis != nil {
		redis = "redis://" + w.redis.address + "/0"
	}
	return fmt.Sprintf(`
git: {url: %q, branch: %q, path: %q, interval: %s, allowPlaintextSecrets: true%s%s}
status: {interval: %s%s}
redis: {url: %q}
state: {dir: %q}
bmc: {%srequestsPerSecond: 1000, maxInFlight: 4, pollInterval: 1s, powerOffGrace: 5s}
discovery: {image: %q, macPrefixesFile: %q}
guard: {maxConcurrentPowerOns: 200%s}
boot: {listen: "127.0.0.1:0", url: %q, cacheSize: 1GiB%s, loaderDirs: [%q]%s}
registry: {listen: "127.0.0.1:0", url: %q}
metadata: {listen: "127.0.0.1:0"}
admin: {listen: "127.0.0.1:0"}
%s`, w.remote, w.branch, w.folder, w.intervals.git, w.auth, w.tenantSettings(), w.intervals.status, w.mirroring(), redis, stateDir, w.bmcNetworks, w.probe, w.prefixes(), w.guard, w.boot.server.URL, w.registrySettings(), w.loaderDir(), w.bindingSettings(), w.report.server.URL, w.networkSettings())
}

// bindingSettings are none as a rule, so that the default is what scenarios are about.
func (w *world) bindingSettings() string {
	if w.bindTickets == "" {
		return ""
	}
	return fmt.Sprintf(", bindTickets: %q", w.bindTickets)
}

func (w *world) stateDir() string { return filepath.Join(w.dir, "state") }

// start runs Ingot, and lets machines speak with it.
func (w *world) start() (err error) {
	if w.ingot, err = w.launch("ingot.yaml", w.stateDir()); err != nil {
		return err
	}
	w.admit()
	return nil
}

// launch runs an Ingot.
func (w *world) launch(config, stateDir string) (*program, error) {
	file := filepath.Join(w.dir, config)
	if err := os.WriteFile(file, []byte(w.configuration(stateDir)), 0o600); err != nil {
		return nil, err
	}
	w.followed = append(w.followed, ledger.Configuration{At: time.Now(), Branch: w.branch, Path: w.folder, URL: w.remote, Folders: w.folders()})
	p, err := startProgram(w.program, file, w.log, w.arguments, w.environment)
	if p != nil {
		w.launched = append(w.launched, p)
		w.tell(p)
	}
	return p, err
}

// admit lets machines speak with the Ingot that is in charge.
func (w *world) admit() {
	w.boot.open(w.ingot.where.Boot)
	w.report.open(w.ingot.where.Registry)
}

// kill ends Ingot at once.
func (w *world) kill() error {
	w.boot.open("")
	w.report.open("")
	return w.ingot.kill()
}

// emptyStore loses all that the store holds.
func (w *world) emptyStore() error {
	if w.redis != nil {
		return w.redis.do("FLUSHALL", "+OK")
	}
	return os.Remove(filepath.Join(w.stateDir(), "ingot.db"))
}

// machine returns the machine that the scenario calls by name.
func (w *world) machine(name string) (*machine, error) {
	if m := w.machines[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("the scenario has no machine %q", name)
}

// ready reports whether Ingot says that all its parts are.
func (w *world) ready(ctx context.Context) bool {
	_, err := get(ctx, "http://"+w.ingot.where.Admin+"/readyz")
	return err == nil
}

// eventually tries until check, given how the fleet is, finds nothing wrong.
func (w *world) eventually(ctx context.Context, check func(report.Summary) error) error {
	return w.eventuallyWithin(ctx, patience, check)
}

func (w *world) eventuallyWithin(ctx context.Context, limit time.Duration, check func(report.Summary) error) error {
	return rig.Within(limit, func() error {
		s, err := w.ingot.summary(ctx)
		if err != nil {
			return err
		}
		return check(s)
	})
}

// statusBranch is what the status branch shows, nothing before it is there.
func (w *world) statusBranch() (map[string]string, error) {
	shown := make(map[string]string)
	files, err := w.repo.ReadBranch(statusBranch)
	maps.Copy(shown, files)
	return shown, err
}

// facts is what is to be seen of a machine from outside.
type facts struct {
	PowerOns, Installs, Resets, Boots, Wipes int
	Power                                    model.Power
	Disk                                     string // what is on it, and when that was installed
}

func (m *machine) facts() facts {
	f := facts{
		PowerOns: m.PowerOns(), Installs: len(m.Installs()), Resets: len(m.Resets()), Boots: len(m.Boots()),
		Wipes: m.wipes(), Power: m.Power(),
	}
	if d := m.Disk(); d != nil {
		f.Disk = fmt.Sprintf("%s since %s", d.Image, d.InstalledAt.Format(time.RFC3339Nano))
	}
	return f
}

// wipes counts how often the machine's disks were all erased.
func (m *machine) wipes() int {
	n := 0
	for _, e := range m.Events() {
		if e.Kind == sim.EventWiped && len(e.Left) == 0 {
			n++
		}
	}
	return n
}

// noteBeforeAction remembers how all machines are before the first When.
func noteBeforeAction(ctx context.Context, step *godog.Step) (context.Context, error) {
	w := worldOf(ctx)
	if step.Type == "Action" && w.noted == nil {
		w.noted = make(map[string]facts)
		for name, m := range w.machines {
			w.noted[name] = m.facts()
		}
	}
	return ctx, nil
}

// end takes everything down.
func (w *world) end() error {
	defer w.overdue.Stop()
	var errs []error
	for _, p := range w.launched {
		errs = append(errs, p.end())
	}
	w.pushed.end()
	w.boot.server.CloseClientConnections()
	w.report.server.CloseClientConnections()
	if w.rack != nil {
		w.rack.Close()
		errs = append(errs, <-w.racked)
	}
	w.boot.server.Close()
	w.report.server.Close()
	w.imagesSeen.server.Close()
	for _, c := range w.clients {
		c()
	}
	if w.images != nil {
		errs = append(errs, w.images.Close())
	}
	if w.redis != nil {
		errs = append(errs, w.redis.end())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}
