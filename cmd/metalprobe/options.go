package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// options are those of the command line. The flags up to duration are those of
// metal-operator's metalprobe, with its defaults.
type options struct {
	registryURL  string // may hold a token, so it is never shown
	serverUUID   string
	timeout      time.Duration
	lldpInterval time.Duration
	lldpDuration time.Duration
	duration     time.Duration

	wipe      string
	reportURL string // as registryURL
	install   string // URL of the install document, as registryURL
	// bootStateURL is where to report that the machine is up, as registryURL.
	bootStateURL string
	dryRun       bool
	interval     time.Duration
	once         bool
	powerOff     bool
	json         bool
	version      bool
}

const usage = `Metalprobe tells Ingot what a server is made of, and wipes its disks on request.
It runs on the server itself, in the image that Ingot boots for discovery and
cleanup; both addresses below are in that image's Ignition.

  Discovery   metalprobe --registry-url URL --server-uuid UUID
              posts the inventory to URL/register, then again every --interval.
              If the first post fails it ends with exit code 1, so that the service
              manager restarts it.

  Cleanup     metalprobe --registry-url URL --server-uuid UUID --wipe quick --report-url URL
              registers, wipes every unused disk of the machine, posts the progress
              and then the outcome of each disk, and does nothing more.
                none     leaves disks as they are and reports that
                quick    formats (NVMe disks that erase by their key) or discards, then
                         overwrites both ends of each disk and partition
                secure   clears the whole disk by its best method: its own sanitize
                         (NVMe, SATA, SAS), format (NVMe) or security erase (SATA), else
                         a secure discard, else zeros on every block. If a method is not
                         proved to have worked, the next is tried.
              THIS DESTROYS DATA. Removable media and disks on a storage network are
              left alone. Disks in use, write-protected ones, those locked by a
              password and those that Linux cannot use are reported as failed.
              With --power-off the machine is powered off when the report is accepted
              and no disk has failed; else it stays on. In the image that Ingot boots
              this is always so.

  Install     metalprobe --registry-url URL --server-uuid UUID --install URL
              registers, fetches the install document, writes its disk image to the disk
              that it names, verifies it, and posts the progress to the registry.
              THIS DESTROYS DATA, on that disk alone. A disk that holds anything is
              refused, unless the document allows it. With --power-off the machine is
              powered off when the outcome is accepted.

  Claim       metalprobe --boot-state-url URL --server-uuid UUID
              posts that the machine is up, and does nothing more: so it is with a claim
              whose image is the probe's.

  By hand     metalprobe --json                   prints the inventory
              metalprobe --wipe quick --dry-run   prints which disks would be wiped

Flags:
`

// parse reads the command line. The error flag.ErrHelp means that help was
// printed to stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("metalprobe", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.registryURL, "registry-url", "", "where to register, for example http://192.0.2.1:10000 (required)")
	f.StringVar(&o.serverUUID, "server-uuid", "", "the system UUID of this server, sent as it is (required)")
	f.DurationVar(&o.timeout, "registry-client-timeout", 5*time.Second, "limit for one request")
	f.DurationVar(&o.lldpInterval, "lldp-sync-interval", 5*time.Second, "how often lldpctl is asked until a neighbour is seen")
	f.DurationVar(&o.lldpDuration, "lldp-sync-duration", 30*time.Second, "how long to wait for a first neighbour; 0 = not at all")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "accepted for compatibility, has no effect")
	f.DurationVar(&o.interval, "interval", 30*time.Second, "how often to post again")
	f.BoolVar(&o.once, "once", false, "end after the first post that succeeded")
	f.StringVar(&o.wipe, "wipe", "", "wipe the disks: none, quick or secure")
	f.StringVar(&o.reportURL, "report-url", "", "where to post the outcome of a wipe (required with --wipe)")
	f.StringVar(&o.install, "install", "", "write the disk image of the install document at this URL to the machine's disk")
	f.StringVar(&o.bootStateURL, "boot-state-url", "", "post to this URL that the machine is up, and end")
	f.BoolVar(&o.powerOff, "power-off", false, "power the machine off after an install, or a wipe that is reported and left no disk failed")
	f.BoolVar(&o.dryRun, "dry-run", false, "with --wipe: print what would be wiped, and end")
	f.BoolVar(&o.json, "json", false, "print the inventory as JSON, and end")
	f.BoolVar(&o.version, "version", false, "print the version, and end")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		f.SetOutput(stderr)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see metalprobe -h", err)
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q is not expected: flags only; see metalprobe -h", f.Arg(0))
	}
	return o, o.check()
}

// check finds what is missing or does not go together.
func (o options) check() error {
	modes := []string{model.CleanupNone, model.CleanupQuick, model.CleanupSecure}
	switch {
	case o.version, o.json && o.wipe == "":
		return nil
	case o.json:
		return errors.New("--json only prints: leave out --wipe, or use --dry-run to see what it would do")
	case o.wipe != "" && !slices.Contains(modes, o.wipe):
		return fmt.Errorf("--wipe %q is not known: use %s", o.wipe, strings.Join(modes, ", "))
	case o.dryRun && o.wipe == "":
		return errors.New("--dry-run needs --wipe, of which it shows the effect")
	case o.dryRun:
		return nil
	case o.install != "" && o.wipe != "":
		return errors.New("--install and --wipe do not go together: a machine is installed, or cleaned up")
	case o.bootStateURL != "" && (o.install != "" || o.wipe != ""):
		return errors.New("--boot-state-url does not go with --install or --wipe: a claimed machine is neither installed nor wiped by this run")
	case o.wipe == "" && o.reportURL != "":
		return errors.New("--report-url is given without --wipe: nothing is wiped unless --wipe says how")
	case o.serverUUID == "":
		return errors.New("--server-uuid is required: the system UUID that the BMC shows for this server")
	case o.timeout <= 0 || o.interval <= 0 || o.lldpInterval <= 0:
		return errors.New("--registry-client-timeout, --interval and --lldp-sync-interval must be longer than 0")
	}
	if o.bootStateURL != "" {
		return checkURL("boot-state-url", o.bootStateURL)
	}
	if err := checkURL("registry-url", o.registryURL); err != nil {
		return err
	}
	switch {
	case o.install != "":
		return checkURL("install", o.install)
	case o.wipe != "":
		return checkURL("report-url", o.reportURL)
	}
	return nil
}

// checkURL does not show the URL, because it may hold a token.
func checkURL(name, address string) error {
	if address == "" {
		return fmt.Errorf("--%s is required: the address that Ingot's registry has, for example http://192.0.2.1:10000", name)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--%s is not an address such as http://192.0.2.1:10000", name)
	}
	return nil
}
