package features

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ingot/features/ledger"
)

func (w *site) configuration(stateDir string) string {
	redis, host := "", "127.0.0.1"
	if w.redis != nil {
		redis, host = w.redis.url(), ownHost() // its ports are closed until it leads
	}
	return fmt.Sprintf(`
git: {url: %q, branch: %q, path: %q, interval: %s, allowPlaintextSecrets: %v%s%s%s%s}
status: {branch: status%s}
power: {restoreWithoutBranch: %v}
redis: {url: %q%s}
state: {dir: %q}
bmc: {%srequestsPerSecond: 1000, powerOffGrace: 5s}
discovery: {image: %q, macPrefixesFile: %q%s}
guard: {maxConcurrentPowerOns: 200%s}
boot: {listen: "%s:0", url: %q, cacheSize: 1GiB%s%s, loaderDirs: [%q]%s}
registry: {listen: "%s:0", url: %q}
metadata: {listen: "%s:0"}
admin: {%s}
secretFiles: %q
%s%s`, w.remote, w.branch, w.folder, w.intervals.git, w.sealed == "", w.keySettings(), w.auth, w.tenantSettings(), w.signing.verify(),
		w.signing.status(), w.unread, redis, w.redisMore, stateDir, w.bmcNetworks,
		w.probe, w.prefixes(), w.discovery, w.guard, host, w.boot.server.URL, w.registrySettings(), w.imageSettings(), w.loaderDir(), w.bindingSettings()+w.sshKeys,
		host, w.report.server.URL, host, w.adminSettings(), w.secretFolder(), w.webhook, w.networkSettings())
}

// bindingSettings are none as a rule, so that the default is what scenarios are about.
func (w *site) bindingSettings() string {
	if w.bindTickets == "" {
		return ""
	}
	return fmt.Sprintf(", bindTickets: %q", w.bindTickets)
}

// tuning are the flags for values that users cannot set.
func (w *site) tuning() []string {
	var flags []string
	if w.intervals.poll != "" {
		flags = append(flags, "--poll-interval="+w.intervals.poll)
	}
	if w.intervals.status != "" {
		flags = append(flags, "--status-interval="+w.intervals.status)
	}
	if w.maxInstalls > 0 {
		flags = append(flags, fmt.Sprintf("--max-installs=%d", w.maxInstalls))
	}
	return flags
}

func (w *site) stateDir() string { return filepath.Join(w.dir, "state") }

func (w *site) start() (err error) {
	if w.ingot, err = w.launch("ingot.yaml", w.stateDir()); err != nil {
		return err
	}
	w.admit()
	return nil
}

func (w *site) launch(config, stateDir string) (*program, error) {
	file := filepath.Join(w.dir, config)
	if err := os.WriteFile(file, []byte(w.configuration(stateDir)), 0o600); err != nil {
		return nil, err
	}
	w.followed = append(w.followed, ledger.Configuration{
		At: time.Now(), Branch: w.branch, Path: w.folder, URL: w.remote, Folders: w.folders(),
	})
	p, err := startProgram(w.program, file, w.log, append(w.tuning(), w.arguments...), w.environment)
	if p != nil {
		p.access = w.access
		w.launched = append(w.launched, p)
		w.tell(p)
	}
	return p, err
}

func (w *site) admit() {
	w.boot.open(w.ingot.where.Boot)
	w.report.open(w.ingot.where.Registry)
}

func (w *site) kill() error {
	w.boot.open("")
	w.report.open("")
	return w.ingot.kill()
}

func (w *site) emptyStore() error {
	if w.redis != nil {
		return w.redis.do("FLUSHALL", "+OK")
	}
	return os.Remove(filepath.Join(w.stateDir(), "ingot.db"))
}

func startElsewhere(ctx context.Context, what, where string) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		if what == "branch" {
			w.branch = where
			return nil
		}
		w.folder = where
		return nil
	})
}

func (w *site) whileStopped(do func() error) error {
	w.boot.open("")
	w.report.open("")
	if err := w.ingot.stop(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.start()
}

func (w *site) whileDead(do func() error) error {
	if err := w.kill(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.start()
}
