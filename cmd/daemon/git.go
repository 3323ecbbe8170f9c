package daemon

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"ingot/bootsvc/claimcheck"
	"ingot/bootsvc/ignition"
	"ingot/cmd/daemon/secretfiles"
	"ingot/gitsource"
)

// openGit opens the branch with the manifests and the status branch.
func (d *daemon) openGit(compiler *ignition.Compiler) (err error) {
	o := &d.opts
	auth := o.Git.Credentials()
	checker, boots := o.CrossChecker(), &claimcheck.Checker{Compiler: compiler}
	if boots.Allowed, err = o.AllowedImages(); err != nil {
		return err
	}
	d.source, err = gitsource.New(gitsource.Options{
		URL: o.Git.URL, Ref: o.Git.Ref(), Path: o.Git.Path, Verify: o.Git.Verification(), Interval: o.Git.Interval, Auth: auth,
		Tenants: o.Git.Tenants, AllowPlaintextSecrets: o.Git.AllowPlaintextSecrets,
		AgeKeyFile: o.Git.AgeKeyFile, Checks: gitsource.Checks{CrossCheck: checker.Check, StillFit: checker.StillFits, Boots: boots.Check},
		Dir: filepath.Join(o.State.Dir, "git"), Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return err
	}
	if info, err := os.Stat(o.Git.AgeKeyFile); err == nil && info.Mode().Perm()&0o006 != 0 {
		d.log.Warn("git.ageKeyFile can be read or changed by anybody on this machine: chmod o-rwx", "file", o.Git.AgeKeyFile)
	}
	d.joinSecrets()
	name, email := o.Status.AuthorName()
	d.status, err = gitsource.NewStatusBranch(gitsource.StatusOptions{
		URL: o.Git.URL, Branch: o.Status.Branch, Auth: auth, AuthorName: name, AuthorEmail: email,
		SigningKeyFile: o.Status.SigningKeyFile, Keep: time.Duration(o.Status.Keep),
		Watch: d.leader.checkHead, Pushing: d.leader.pushing, Log: d.log, Registerer: d.metrics,
	})
	return err
}

// joinSecrets adds the secrets outside Git to what is desired, if there are any.
func (d *daemon) joinSecrets() {
	d.desired, d.desiredChanged = d.source.Desired, d.source.Changed()
	if d.opts.SecretFiles == "" {
		return
	}
	d.secrets = &secretfiles.Folder{
		Dir: d.opts.SecretFiles, Git: d.source.Desired, GitChanged: d.source.Changed(), Tenants: d.opts.Git.Tenants, Log: d.log,
		Registerer: d.metrics,
	}
	d.secrets.Open()
	d.desired, d.desiredChanged = d.secrets.Desired, d.secrets.Changed()
}

// wakeSource has the repository fetched at once whenever the program around asks for it.
func (d *daemon) wakeSource(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
			d.source.Wake()
		}
	}
}

// manifestsKnown reports whether Git was read, be it that there is nothing in it.
func (c *core) manifestsKnown() bool { return c.desired() != nil || c.source.Nothing() }

// awaitManifests waits until Git was read, because the Endpoints there tell machines apart,
// but no longer than timeout.
func (d *daemon) awaitManifests(ctx context.Context, timeout time.Duration) {
	over := time.After(timeout)
	for !d.manifestsKnown() {
		select {
		case <-ctx.Done():
			return
		case <-over:
			d.log.Warn("machines are served without the Endpoints in Git, which has not been read yet", "after", timeout)
			return
		case <-time.After(20 * time.Millisecond): // machines wait
		}
	}
}
