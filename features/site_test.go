package features

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bmc/sim"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/gitsource/forge/forgeserver"
	"ingot/gitsource/gitserver"
	"ingot/model"
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
	if s == redisStore {
		return "~@file"
	}
	if !long() {
		return "~@redis && ~@long"
	}
	return "~@redis && @long"
}

// long reports whether FEATURES_LONG asks for the scenarios tagged @long: variants of
// others, which "make test" leaves to "make test-long".
func long() bool { return os.Getenv("FEATURES_LONG") != "" }

// bmcPassword opens every BMC, claimSecret is in every claim's Ignition. Neither
// may ever be seen in a log or on the status branch.
const (
	bmcPassword = "correct-horse-battery"
	claimSecret = "tr0ub4dor-and-three"
)

// site is all that one scenario has around it.
type site struct {
	protected atomic.Bool // the status branch takes no pushes

	name     string      // what happens in it
	overdue  *time.Timer // ends the tests if it is still there too late
	store    storeKind
	dir      string
	rack     *sim.Rack
	rackHost string     // where the BMCs listen, "" = the usual address
	firmware []func()   // what asks DHCP when a machine asks for its boot script
	uuids    []string   // of the first machines, if not made up
	sessions int        // that a BMC keeps, 0 = the usual number
	racked   chan error // what the rack's Run returns
	repo     *gitserver.Repo
	commits  *ledger.Reader     // what the bookkeeper read of repo
	remote   string             // the repository's URL, as Ingot is told
	auth     string             // how Ingot gets in there, as configuration
	forge    *forgeserver.Forge // where repo is, or nil
	webhook  string             // its settings, as configuration
	access   adminAccess        // to the admin listener
	images   *ociserver.Registry
	image    map[string]string // reference of each image, by its short name
	probe    string            // reference of the probe's image
	imageDir string            // folder with images, or ""
	publish  *publisher        // has files at URLs, nil = nobody has
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

	machines   map[string]*machine        // by the name that the scenario has for it
	bmcs       map[string]*sim.BMC        // likewise
	claims     map[string]map[string]any  // what Git says of each claim, by name
	servers    map[string]map[string]any  // what Git says of each server
	followed   []ledger.Configuration     // what each Ingot that was started follows
	taken      map[string]model.ClaimName // which claims machines served, by UUID, before Ingot came
	given      []ledger.Event             // Ignition that a scenario's own requests were answered with
	noted      map[string]facts           // of each machine, before the scenario's first When
	watcher    *watcher                   // who is told of changes by the API, or nil
	stranger   *stranger                  // who is none of the fleet, or nil
	clients    []func()                   // to be closed at the end
	heads      map[string]string          // commits by the name that the scenario has for them
	statusHead string                     // of the status branch, when a step noted it
	shownAt    string                     // the head of the status branch that shown was read from
	shown      summary
	changes    int   // that BMCs had been asked for when a step noted it
	imagesSeen *gate // between Ingot and the image registry
	refused    int   // status code of the last report that a step sent
	seed       int64 // of the random choices

	networks []*network         // that Ingot serves by DHCP
	bmcPort  string             // on which BMCs that DHCP finds listen
	devices  map[string]*device // that asked DHCP, by the name that the scenario has for it
	cables   map[*device]*cable
	found    map[string]string // Ingot's names of BMCs and devices that nobody typed
	told     *dhcpv4.DHCPv4    // what a machine was last told to boot
	manifest string            // of a device's Endpoint, as it was committed last

	tenants     []tenant // besides the operator, who has the rest of the repository
	bmcNetworks string   // the setting bmc.networks, if there is one
	sshKeys     string   // boot.sshKeys, if there are any
	bindTickets string   // boot.bindTickets, if it is not the usual one
	sealed      string   // the encrypted file with the BMCSecret of a BMC, "" = it stands in plain text
	outside     bool     // BMCSecrets stand in a folder outside Git
	intervals   intervals
	program     string        // the program under test
	arguments   []string      // of the program, further ones
	environment []string      // of the program
	branch      string        // that Ingot follows
	folder      string        // in it
	admin       string        // address of the admin listener
	proposal    string        // the clone with a pull request
	reviews     *reviews      // its comments
	guard       string        // further settings of the guard
	maxInstalls int           // 0 = the default
	discovery   string        // further settings of the discovery
	unread      bool          // power.restoreWithoutBranch
	proxy       *connectProxy // that Git is reached by, nil without
	redisMore   string        // further settings of redis
	signing     signing

	handout  handout                   // the boot script that a server got last
	heard    answer                    // what the metadata service said last
	ignition map[string]string         // of claims, where it is not the usual one
	byCloud  map[string]map[string]any // data of the Secrets of claims that have user-data of cloud-init
}

type siteKey struct{}

func siteOf(ctx context.Context) *site { return ctx.Value(siteKey{}).(*site) }

func newSite(name string, store storeKind) (*site, error) {
	w := &site{
		name: name, store: store, log: &logTail{}, program: ingotProgram, intervals: hurried,
		branch: gitBranch, folder: ".", admin: "127.0.0.1:0", bmcNetworks: loopback,
		boot: newGate(), report: newGate(), imagesSeen: newGate(),
		machines: make(map[string]*machine), bmcs: make(map[string]*sim.BMC), image: make(map[string]string),
		claims: make(map[string]map[string]any), servers: make(map[string]map[string]any),
		devices: make(map[string]*device), cables: make(map[*device]*cable), found: make(map[string]string),
		ignition: make(map[string]string), byCloud: make(map[string]map[string]any), seed: seed(), taken: make(map[string]model.ClaimName),
	}
	w.overdue = w.dieIfOverdue()
	if err := w.furnish(); err != nil {
		w.overdue.Stop()
		return w, err
	}
	return w, nil
}

func seed() int64 {
	if n, err := strconv.ParseInt(os.Getenv("FEATURES_SEED"), 10, 64); err == nil {
		return n
	}
	return time.Now().UnixNano()
}

func (w *site) furnish() (err error) {
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
	w.repo.OnUpdate = ledger.Noter(w.repo.Dir)
	if err = w.serve(false); err != nil {
		return err
	}
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

func (w *site) serve(realGit bool) error {
	s, err := w.repo.ServeHTTP(gitserver.HTTPOptions{RealGit: realGit})
	if err != nil {
		return err
	}
	w.clients = append(w.clients, s.Close)
	w.remote = s.URL
	return nil
}

func (w *site) push(name string) (reference string, err error) {
	reference, _, err = w.images.PushBootImage("images/"+name, "1", []byte(name+" kernel"), []byte(name+" initrd"), []byte(name+" root"))
	// named by the gate, which is where Ingot finds it
	return strings.Replace(reference, w.images.Host(), w.imagesSeen.host(), 1), err
}

func (w *site) eventually(ctx context.Context, check func(summary) error) error {
	return w.eventuallyWithin(ctx, patience, check)
}

func (w *site) eventuallyWithin(ctx context.Context, limit time.Duration, check func(summary) error) error {
	return rig.Within(limit, func() error {
		s, err := w.ingot.summary(ctx)
		if err != nil {
			return err
		}
		return check(s)
	})
}

func (w *site) end() error {
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
