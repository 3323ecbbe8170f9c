package daemon

import (
	"context"
	"path/filepath"
	"time"

	"ingot/cmd/daemon/config"
	"ingot/gitsource"
)

// openGit opens the branch with the manifests and the status branch.
func (d *daemon) openGit() (err error) {
	o := &d.opts
	auth := GitAuth(o.Git.Auth)
	d.source, err = gitsource.New(gitsource.Options{
		URL: o.Git.URL, Branch: o.Git.Branch, Path: o.Git.Path, Interval: o.Git.Interval, Auth: auth,
		Tenants: o.Git.Tenants, Strict: o.Git.Strict, AllowPlaintextSecrets: o.Git.AllowPlaintextSecrets,
		Dir: filepath.Join(o.State.Dir, "git"), Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return err
	}
	d.status, err = gitsource.NewStatusBranch(gitsource.StatusOptions{
		URL: o.Git.URL, Branch: o.Status.Branch, Auth: auth, AuthorName: o.Status.AuthorName, AuthorEmail: o.Status.AuthorEmail,
		Log: d.log, Registerer: d.metrics,
	})
	return err
}

// GitAuth names the credential files as gitsource wants them.
func GitAuth(a config.GitAuth) gitsource.Auth {
	return gitsource.Auth{
		UsernameFile: a.UsernameFile, PasswordFile: a.PasswordFile, CAFile: a.CAFile,
		SSHKeyFile: a.SSHKeyFile, KnownHostsFile: a.KnownHostsFile,
	}
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

// awaitManifests waits until Git was read, because the Endpoints there tell machines apart,
// but no longer than timeout.
func (d *daemon) awaitManifests(ctx context.Context, timeout time.Duration) {
	over := time.After(timeout)
	for d.source.Desired() == nil {
		select {
		case <-ctx.Done():
			return
		case <-over:
			d.log.Warn("machines are served without the Endpoints in Git, which was not read yet", "after", timeout)
			return
		case <-time.After(20 * time.Millisecond): // machines wait
		}
	}
}
