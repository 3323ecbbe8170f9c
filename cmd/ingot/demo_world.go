package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ingot/bmc/sim"
	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/ociserver"
	"ingot/cmd/daemon/config"
	"ingot/examples"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/reconcile/report"
)

const (
	// claimName is the claim of the demo's script, claimPath its file.
	claimName = model.ClaimName("default/web-1")
	claimPath = "claims/default/web-1.yaml"
	// claimFile holds the claim in the folder of the demo, ready to be copied.
	claimFile = "web-1.yaml"

	statusBranch = "status"
)

// claimManifest claims any server, and has the demo's disk image installed on it.
const claimManifest = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: web-1
  namespace: default
spec:
  power: "On"
  image: %s
`

// demoWorld is what the demo's daemon works with: repository, rack and images.
type demoWorld struct {
	dir        string
	temporary  bool // dir is removed at the end
	repository *gitserver.Repo
	rack       *sim.Rack
	images     *ociserver.Registry
	claimText  string
	options    config.Options
	log        *slog.Logger
}

// newDemoWorld makes the world. The caller removes it.
func newDemoWorld(d demoCommand, log *slog.Logger) (*demoWorld, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("the program git is needed for the demo's repository: install it")
	}
	w := &demoWorld{log: log}
	if err := w.make(d); err != nil {
		return nil, errors.Join(err, w.remove())
	}
	return w, nil
}

func (w *demoWorld) make(d demoCommand) error {
	if err := w.makeDir(d.Dir, d.Keep); err != nil {
		return err
	}
	delays := sim.DefaultDelays()
	delays.Write = time.Second // what is written is tiny
	if d.Fast {
		delays = sim.FastDelays()
	}
	bmcs, perBMC := d.layout()
	var err error
	w.rack, err = sim.New(sim.Options{BMCs: bmcs, SystemsPerBMC: perBMC, Delays: delays, Log: w.log})
	if err != nil {
		return err
	}
	if w.images, err = ociserver.New(); err != nil {
		return err
	}
	probe, err := w.pushImages()
	if err != nil {
		return err
	}
	if err := w.seed(); err != nil {
		return err
	}
	w.options = demoOptions(d, w.dir, w.repository.URL(), probe)
	return nil
}

// makeDir makes the folder of the demo: an empty one that the user names, or a
// temporary one, with a short name if that is free.
func (w *demoWorld) makeDir(dir string, keep bool) (err error) {
	if dir == "" {
		w.temporary = !keep
		w.dir = filepath.Join(os.TempDir(), "ingot-demo")
		if err = os.Mkdir(w.dir, 0o700); errors.Is(err, fs.ErrExist) {
			w.dir, err = os.MkdirTemp("", "ingot-demo-")
		}
		if err != nil {
			w.dir = "" // not ours to remove
		}
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a new folder with --dir", dir)
	}
	w.dir = dir
	return nil
}

// pushImages fills the registry and writes the claim of one image. It returns
// the reference of the probe image.
func (w *demoWorld) pushImages() (probe string, err error) {
	probe, _, err = w.images.PushBootImage("ingot/probe", "demo", []byte("probe kernel"), []byte("probe initrd"), []byte("probe root"))
	if err != nil {
		return "", err
	}
	disk := diskimagetest.Disk(diskimagetest.Options{BootCode: true, ESP: diskimagetest.Bootable()})
	linux, err := w.images.PushDisk("demo/linux", "1", oci.MediaDiskRaw, disk)
	if err != nil {
		return "", err
	}
	w.claimText = fmt.Sprintf(claimManifest, linux)
	return probe, os.WriteFile(filepath.Join(w.dir, claimFile), []byte(w.claimText), 0o644)
}

// seed makes the repository, commits the quick start and the rack to it, and makes what the user
// works with: a clone with an identity, and a link to this program.
func (w *demoWorld) seed() error {
	var err error
	if w.repository, err = gitserver.New(w.dir, "fleet"); err != nil {
		return err
	}
	w.repository.Author, w.repository.Clock = "Demo <demo@localhost>", time.Now
	files, err := quickstart()
	if err != nil {
		return err
	}
	maps.Copy(files, w.rack.Manifests())
	if _, err = w.repository.Commit(files, "add the rack"); err != nil {
		return err
	}
	_, err = w.repository.Git("clone", "--quiet", "--config", "user.name=Demo", "--config", "user.email=demo@localhost",
		"--config", "commit.gpgSign=false", w.repository.Dir, filepath.Join(w.dir, "fleet"))
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(program, filepath.Join(w.dir, "ingot"))
}

func quickstart() (map[string]string, error) {
	root, err := fs.Sub(examples.Quickstart, "quickstart")
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	err = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		files[path] = string(data)
		return err
	})
	return files, err
}

// demoOptions returns the options of the demo's daemon: all on loopback, with short intervals.
func demoOptions(d demoCommand, dir, repository, probe string) config.Options {
	o := config.Default()
	o.Git.URL, o.Git.Interval, o.Git.AllowPlaintextSecrets = repository, time.Second, true
	o.Status.Branch = statusBranch
	o.State.Dir = filepath.Join(dir, "state")
	o.Boot.Listen, o.Registry.Listen, o.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.Discovery.Image = probe
	o.Boot.BindTickets = "nothing" // machines on loopback cannot be told apart, and no others reach it
	// simulated machines share no circuit breaker, and their BMCs can take any load
	o.Guard.MaxConcurrentPowerOns = max(o.Guard.MaxConcurrentPowerOns, d.Servers)
	o.BMC.Networks = model.BMCNetworks{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
	o.BMC.RequestsPerSecond = 50
	if d.Fast {
		o.BMC.RequestsPerSecond = 1000
	}
	o.Tuning = config.Tuning{Fast: d.Fast, StatusInterval: time.Second}
	return o
}

func (w *demoWorld) claim() error {
	_, err := w.repository.Commit(map[string]string{claimPath: w.claimText}, "claim a server")
	return err
}

func (w *demoWorld) release() error {
	_, err := w.repository.Remove("release the server", claimPath)
	return err
}

// statusSaysReleased reports whether the status branch has caught up with the
// release of server.
func (w *demoWorld) statusSaysReleased(server model.ServerName) (bool, string) {
	files, err := w.repository.ReadBranch(statusBranch)
	if err != nil {
		return false, err.Error()
	}
	content := make(map[string][]byte, len(files))
	for path, text := range files {
		content[path] = []byte(text)
	}
	docs, err := report.ReadDocuments(content)
	if err != nil {
		return false, err.Error()
	}
	return released(docs, server)
}

// remove stops what was made and removes the temporary folder.
func (w *demoWorld) remove() error {
	var errs []error
	if w.rack != nil {
		w.rack.Close()
	}
	if w.images != nil {
		errs = append(errs, w.images.Close())
	}
	if w.temporary && w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}
