package secretfiles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// every is how often the folder is looked at. What changed is taken over once it was seen the
// same twice: whoever writes it may not be done.
const every = 3 * time.Second

// Folder is a folder of secrets, and what Git asks for together with them.
type Folder struct {
	// Dir is the folder. It need not be there yet.
	Dir string
	// Git is what Git asks for, nil while it was not read; GitChanged delivers a value after
	// that changed.
	Git        func() *model.Desired
	GitChanged <-chan struct{}
	// Tenants say whose a secret is.
	Tenants    model.Tenants
	Log        *slog.Logger
	Registerer prometheus.Registerer // nil = no metrics

	changed  chan struct{}
	problems prometheus.Gauge

	mu     sync.Mutex // guards what is below
	inUse  *snapshot
	seen   [sha256.Size]byte // last
	taken  [sha256.Size]byte // last taken over
	failed string            // why the folder could not be read, "" if it could
	of     *model.Desired    // that joined was made of
	with   *snapshot         // likewise
	joined *model.Desired
}

// Open reads the folder for the first time. One that is not there is waited for.
func (f *Folder) Open() {
	f.changed = make(chan struct{}, 1)
	f.inUse = &snapshot{secrets: make(map[model.Identity]held)}
	f.problems = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ingot_secret_files_problems", Help: "Problems in the folder of secrets outside Git; see fleet.yaml on the status branch.",
	})
	if f.Registerer != nil {
		f.Registerer.MustRegister(f.problems)
	}
	f.look(true)
}

// Check returns what is wrong with a folder of secrets, nil if nothing is.
func Check(dir string) error {
	c, err := read(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	return model.JoinErrors(new(snapshot).next(dir, c).problems)
}

// Desired is what Git asks for together with the secrets, nil while Git was not read.
func (f *Folder) Desired() *model.Desired {
	git := f.Git()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of != git || f.with != f.inUse {
		f.of, f.with, f.joined = git, f.inUse, f.inUse.join(git, f.Dir, f.Tenants)
	}
	return f.joined
}

// Changed delivers a value after Desired changed.
func (f *Folder) Changed() <-chan struct{} { return f.changed }

// Run looks at the folder again and again until ctx ends. It returns nil then.
func (f *Folder) Run(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.GitChanged:
		case <-ticker.C:
			if !f.look(false) {
				continue
			}
		}
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// look reads the folder, and reports whether what is in use is another. At once takes over
// what is seen for the first time.
func (f *Folder) look(atOnce bool) bool {
	c, err := read(f.Dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.problems.Set(float64(len(f.inUse.problems))) }()
	if err != nil {
		f.seen, f.taken = [sha256.Size]byte{}, [sha256.Size]byte{}
		if f.failed == err.Error() {
			return false
		}
		f.failed = err.Error()
		f.inUse = f.inUse.unreadable(f.Dir, err)
		f.Log.Warn("secrets outside Git cannot be read, the previous ones stay in use", "dir", f.Dir, "err", err)
		return true
	}
	seen := f.seen
	f.seen = c.sum
	if c.sum == f.taken || c.sum != seen && !atOnce {
		return false
	}
	f.taken, f.failed = c.sum, ""
	f.inUse = f.inUse.next(f.Dir, c)
	f.Log.Info("secrets outside Git were read", "dir", f.Dir, "secrets", len(f.inUse.secrets), "problems", len(f.inUse.problems))
	return true
}
