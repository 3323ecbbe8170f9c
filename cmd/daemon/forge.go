package daemon

import (
	"fmt"
	"path/filepath"

	"ingot/gitsource/forge"
	"ingot/model"
)

// openForge makes what hears of pushes, and what tells the forge what became of a commit.
func (d *daemon) openForge() (err error) {
	o := &d.opts
	if d.listeners.webhook != nil {
		d.webhook, err = forge.NewWebhook(forge.WebhookOptions{
			SecretFile: o.Webhook.SecretFile, Wake: d.source.Wake, Log: d.log, Registerer: d.metrics,
		})
		if err != nil {
			return err
		}
	}
	if o.Git.CommitStatus.TokenFile == "" {
		return nil
	}
	project, err := o.Git.Project()
	if err != nil {
		return fmt.Errorf("git.commitStatus: %w", err)
	}
	d.poster = forge.NewPoster(forge.PosterOptions{
		Project: project, Branch: o.Git.Branch, Target: project.Page(o.Status.Branch), TokenFile: o.Git.CommitStatus.TokenFile,
		StateFile: filepath.Join(o.State.Dir, "commit-status.json"),
		Verdict:   d.verdict(), Leading: d.registry.Lead.Leading, Transport: o.Git.Credentials().Transport,
		Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return nil
}

// verdict returns what says of the newest commit what became of it.
func (d *daemon) verdict() func() (forge.Verdict, bool) {
	var planned model.Revision
	return func() (forge.Verdict, bool) {
		if s := d.loop.Snapshot(); s != nil { // else what was planned before counts
			planned = s.In.Desired.Revision
		}
		return forge.VerdictOf(forge.Known{
			Seen: d.source.Seen(), Desired: d.source.Desired(), Source: d.source.State(), Planned: planned,
		})
	}
}
