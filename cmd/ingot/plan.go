package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"ingot/bootsvc/claimcheck"
	"ingot/bootsvc/ignition"
	"ingot/cmd/daemon"
	"ingot/cmd/daemon/config"
	"ingot/gitsource"
	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/preview"
)

type planCommand struct {
	Repository string `type:"path" placeholder:"DIR" xor:"where" help:"A clone of the repository. Default: the working directory."`
	Config     string `type:"path" placeholder:"FILE" xor:"where" help:"Use Ingot's configuration instead of a clone: the branches are fetched from git.url, and the policy is that of the file."`
	Base       string `placeholder:"REVISION" help:"The branch that Ingot watches. Default: the default branch of the clone, or main."`
	Head       string `default:"HEAD" placeholder:"REVISION" help:"The branch, tag or commit to merge into it: also a short hash, or HEAD~1. Default: ${default}."`
	Status     string `default:"status" placeholder:"BRANCH" help:"The status branch. Default: ${default}."`
	Path       string `placeholder:"DIR" help:"The folder of the manifests, as git.path. Default: the one that Ingot read last."`
	AgeKeyFile string `placeholder:"FILE" help:"Decrypt files encrypted with SOPS, using the age identities in this file, and check the contents of Secrets."`
}

// Help implements kong.HelpProvider.
func (planCommand) Help() string {
	return `Shows what merging a branch will do to each machine: which claims get a server, which servers are released and wiped, reinstalled, powered off or taken out of service, what waits and why, and what the guard will hold back. It runs the daemon's own code on the fleet as the status branch shows it. It needs no secrets, contacts no BMC and no registry, and changes nothing: images are not checked, and neither are Secrets that are encrypted, unless --age-key-file opens them. A branch with several commits is judged as one commit and commit by commit, and the worse plan is shown.

The base is what was fetched of the branch from origin, so that commits that are not pushed are part of the plan; only a branch that origin lacks is the clone's own. Other branches may be local or fetched; if there are both, the newer one is used.

Exits 0 if nothing happens, 2 if something does, 3 if something that runs is disrupted (released, wiped, reinstalled, powered off, restarted, taken out of service), even if that waits for an approval, and 1 if the manifests have new errors or the plan cannot be made, also for wrong usage.

Examples:

  ingot plan                                    what merging HEAD of this clone does
  ingot plan --head add-web-servers             what merging a branch does
  ingot plan --config ingot.yaml --head add-web-servers
  ingot plan -o markdown > comment.md           for a comment on the pull request; see examples/ci
  ingot plan -o json | jq '.effects[] | select(.destructive)'`
}

var verdicts = map[preview.Verdict]exitStatus{
	preview.Nothing: exitFine, preview.Changes: exitChanges, preview.Destructive: exitDestructive, preview.Wrong: exitFailed,
}

// Run says what merging does.
func (p planCommand) Run(ctx context.Context, c *console) error {
	seen, err := p.preview(ctx, c)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	switch c.format {
	case "json":
		err = c.printJSON(seen)
	case "markdown":
		c.printf("%s", seen.Markdown())
	default:
		printPreview(c, seen)
	}
	if err == nil && verdicts[seen.Verdict] != exitFine {
		return verdicts[seen.Verdict]
	}
	return err
}

func (planCommand) formats() []string { return []string{"text", "json", "markdown"} }

type planning struct {
	clone    *gitsource.Clone
	fleet    *preview.Fleet
	policy   policy.Options
	files    map[string][]byte // of the status branch
	notes    []string
	baseName string
	merge    gitsource.MergeOptions
	boots    claimcheck.Checker
}

func (p planCommand) preview(ctx context.Context, c *console) (*preview.Preview, error) {
	var in *planning
	var err error
	if p.Config != "" {
		in, err = p.configured(ctx, c)
	} else {
		in, err = p.cloned(ctx, c)
	}
	if in != nil && in.clone != nil {
		defer in.clone.Close()
	}
	if err != nil {
		return nil, err
	}
	if n := in.fleet.Document.LastGoodLeftOut; n > 0 {
		in.notes = append(in.notes, fmt.Sprintf("the status branch leaves out %s that files with errors keep in force: what becomes of them is not known", text.Plural(n, "object")))
	}
	for _, err := range in.fleet.Problems {
		in.notes = append(in.notes, err.Error()+": what it is of is not known")
	}
	now := time.Now()
	in.merge.Beginning, in.merge.LastGood, in.merge.Now = gitsource.BeginningOf(in.fleet.Observed), in.fleet.Document.LastGood, now
	in.merge.Tenants, in.merge.AllowPlaintextSecrets = in.policy.Tenants, in.policy.PlaintextSecrets
	if err := in.check(p.AgeKeyFile); err != nil {
		return nil, err
	}
	merged, err := in.clone.Merge(in.merge)
	if err != nil {
		return nil, p.missing(err, in)
	}
	if merged.Contained {
		in.notes = append(in.notes, fmt.Sprintf("%s already contains all of %s", in.baseName, p.Head))
	}
	if merged.Behind {
		in.notes = append(in.notes, fmt.Sprintf("Ingot has not applied all of %s yet: the plan assumes that it has", in.baseName))
	}
	if err := in.noteApprovals(merged.Approves); err != nil {
		return nil, err
	}
	if n := claimcheck.Sealed(merged.Head); n > 0 {
		in.notes = append(in.notes, fmt.Sprintf("not checked: the contents of %s, encrypted with SOPS; --age-key-file opens them", text.Plural(n, "Secret")))
	}
	seen := in.worse(merged, now)
	seen.Notes = append(seen.Notes, notLooked(seen)...)
	return seen, nil
}

// check has the claims of the merge checked as the daemon does.
func (in *planning) check(ageKeyFile string) (err error) {
	if ageKeyFile != "" {
		if in.merge.Open, err = opener(ageKeyFile); err != nil {
			return err
		}
	}
	in.boots.Compiler, err = ignition.New(ignition.Options{})
	in.merge.Boots = in.boots.Check
	return err
}

// checkBoot checks a boot as the daemon does before it binds a claim, without the network.
func (in *planning) checkBoot(b proposal.Boot) *proposal.Failure {
	err := in.boots.Compile(b.SecretObject, b.KernelArguments, ignition.CheckFor{Image: b.Image, Seed: model.SeedKind(b.ClaimSeed), Always: b.Ticket.Always})
	if err != nil {
		return &proposal.Failure{Reason: model.ReasonSourceInvalid, Text: err.Error()}
	}
	if in.boots.Allowed != nil {
		err = in.boots.Allowed(b.Image)
	}
	if err != nil {
		return &proposal.Failure{Reason: model.ReasonRegistryNotAllowed, Text: err.Error()}
	}
	return nil
}

// notLooked notes the images that the plan installs, of which no registry was asked.
func notLooked(p *preview.Preview) []string {
	images := make(map[string]bool)
	for _, e := range p.Effects {
		if e.Image != "" {
			images[e.Image] = true
		}
	}
	const shown = 5
	names := slices.Sorted(maps.Keys(images))
	if len(names) == 0 {
		return nil
	}
	note := "image not checked: " + strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return []string{note + "; the daemon asks the registry before a server is installed, see ingot image inspect"}
}

// worse previews the merge as one commit and commit by commit, and returns the worse of both: how a request will be
// merged is not known.
func (in *planning) worse(merged *gitsource.Merged, now time.Time) *preview.Preview {
	input := preview.Input{Fleet: in.fleet, Base: merged.Base, Head: merged.Head, Policy: in.policy, Now: now, Behind: merged.Behind, Notes: in.notes, Check: in.checkBoot}
	one := preview.Of(input)
	if merged.OneByOne == nil {
		return one
	}
	input.Head = merged.OneByOne
	each := preview.Of(input)
	switch order := each.Compare(one); {
	case order > 0:
		each.Notes = append(each.Notes, fmt.Sprintf("this is the plan if the commits are merged one by one (rebase or fast-forward)%s. Merged as one commit "+
			"(squash or merge commit), the verdict is %s", removedBy(merged.OneByOne, merged.Head), one.Verdict))
		return each
	case order < 0:
		one.Notes = append(one.Notes, fmt.Sprintf("this is the plan if the commits are merged as one (squash or merge commit)%s. Merged one by one "+
			"(rebase or fast-forward), the verdict is %s", removedBy(merged.Head, merged.OneByOne), each.Verdict))
	}
	return one
}

// removedBy names a commit, and the object that it removes in one way of merging and not in the other.
func removedBy(d, other *model.Desired) string {
	for _, id := range slices.SortedFunc(maps.Keys(d.Removed), func(a, b model.Identity) int { return cmp.Compare(a.String(), b.String()) }) {
		for _, r := range d.Removed[id] {
			if _, both := other.RemovalOf(id, r.Tenant); !both {
				return fmt.Sprintf(": commit %s removes %s", r.Revision.Commit()[:7], id)
			}
		}
	}
	return ""
}

// noteApprovals notes which approvals are of nothing that waits: of a list that has changed, or is done.
func (in *planning) noteApprovals(tokens []string) error {
	if len(tokens) == 0 {
		return nil
	}
	waits := make(map[string]bool)
	for _, h := range in.fleet.Document.Holds {
		waits[h.Token()] = true
		for _, e := range h.Effects {
			waits[e.Token()] = true
		}
	}
	for _, token := range slices.Compact(slices.Sorted(slices.Values(tokens))) {
		if !waits[token] {
			in.notes = append(in.notes, proposal.ApproveLine(token)+" approves nothing that the status branch shows to be waiting: "+
				"a list that changes gets a new token; see what waits with ingot approve --dry-run")
		}
	}
	return nil
}

func (p planCommand) cloned(ctx context.Context, c *console) (*planning, error) {
	clone, err := gitsource.OpenClone(cmp.Or(p.Repository, "."))
	if err != nil {
		return nil, err
	}
	in := &planning{clone: clone}
	in.baseName = cmp.Or(p.Base, clone.DefaultBranch(), gitsource.DefaultBranch)
	at, err := clone.Resolve(p.Status)
	if err != nil {
		return in, fmt.Errorf("status branch: %w: the daemon writes it once it runs with this repository; if it does, run: "+
			"git fetch origin +refs/heads/%s:refs/remotes/origin/%s", err, p.Status, p.Status)
	}
	snapshot, err := clone.Snapshot(at)
	if err != nil {
		return in, p.missing(err, in)
	}
	if err := in.read(snapshot); err != nil {
		return in, fmt.Errorf("read branch %s: %w", p.Status, err)
	}
	in.policy, in.notes = in.fleet.Policy()
	in.merge.Source = in.fleet.Observed.Fleet.Applied
	in.merge.Source.Branch = cmp.Or(in.merge.Source.Branch, in.baseName)
	if p.Path != "" {
		in.merge.Source.Path = p.Path
	}
	if p.Head == headOfClone {
		in.notes = append(in.notes, p.uncommitted(ctx, c, in.merge.Source.Path)...)
	}
	return in, p.resolve(in)
}

// headOfClone is the head unless another is named.
const headOfClone = "HEAD"

// uncommitted notes that manifests below a folder of the repository are not as HEAD has them. Where git
// cannot say so, as in a bare repository, nothing is noted.
func (p planCommand) uncommitted(ctx context.Context, c *console, folder string) []string {
	g, err := openClone(ctx, c, cmp.Or(p.Repository, "."), "origin")
	if err != nil {
		return nil
	}
	var manifests []string
	for _, ending := range []string{"yaml", "yml", "json"} {
		manifests = append(manifests, ":(top,glob,icase)"+path.Join(folder, "**", "*."+ending))
	}
	out, err := g.git(ctx, append([]string{"--no-optional-locks", "status", "--porcelain", "--untracked-files=all", "--"}, manifests...)...)
	if err != nil || out == "" {
		return nil
	}
	n := strings.Count(out, "\n") + 1
	return []string{fmt.Sprintf("changes of %s are not committed, and so no part of the plan", text.Plural(n, "manifest"))}
}

func (p planCommand) configured(ctx context.Context, c *console) (*planning, error) {
	opts, err := config.Load(p.Config, c.env)
	if err != nil {
		return nil, err
	}
	if p.Head == headOfClone {
		return nil, errors.New("name the branch that is to be merged with --head: with --config no clone says which one is meant")
	}
	auth := opts.Git.Credentials()
	in := &planning{baseName: cmp.Or(p.Base, opts.Git.Branch), policy: daemon.Policy(opts, nil)}
	branch, err := gitsource.NewStatusBranch(gitsource.StatusOptions{URL: opts.Git.URL, Branch: opts.Status.Branch, Auth: auth, Log: c.log})
	if err != nil {
		return nil, err
	}
	defer branch.Close()
	snapshot, err := branch.Read(ctx)
	if err != nil {
		return nil, err
	}
	if !snapshot.Exists {
		return nil, fmt.Errorf("there is no branch %s: the daemon writes it once it runs with this repository", opts.Status.Branch)
	}
	if err := in.read(snapshot); err != nil {
		return nil, fmt.Errorf("read branch %s: %w", opts.Status.Branch, err)
	}
	if in.clone, err = gitsource.FetchClone(ctx, opts.Git.URL, auth, in.baseName, p.Head); err != nil {
		return nil, err
	}
	in.merge.Checker = opts.CrossChecker()
	if in.boots.Allowed, err = opts.AllowedImages(); err != nil {
		return nil, err
	}
	in.merge.Source = model.Applied{URL: model.CanonicalURL(opts.Git.URL), Branch: opts.Git.Branch, Path: cmp.Or(p.Path, opts.Git.Path)}
	return in, p.resolve(in)
}

func (in *planning) read(snapshot gitsource.Snapshot) (err error) {
	in.files = snapshot.Files
	if in.fleet, err = preview.ReadFleet(snapshot.Files); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(snapshot.Skipped)) {
		err := snapshot.Skipped[path]
		in.fleet.Problems = append(in.fleet.Problems, fmt.Errorf("read %s of the status branch: %w", path, err))
	}
	return nil
}

func (p planCommand) resolve(in *planning) (err error) {
	const remedy = "%w: name a branch, a tag, HEAD or a hash; a branch that was not fetched yet comes with: " +
		"git fetch origin +refs/heads/%s:refs/remotes/origin/%[2]s"
	if in.merge.Base, err = in.clone.ResolveBase(in.baseName); err != nil {
		return fmt.Errorf(remedy, err, in.baseName)
	}
	if in.merge.Head, err = in.clone.Resolve(p.Head); err != nil {
		return fmt.Errorf(remedy, err, p.Head)
	}
	if watched := in.merge.Source.Branch; watched != "" && in.otherBranch() {
		in.notes = append(in.notes, fmt.Sprintf("Ingot watches %s, not %s: the plan is what merging does once %[1]s has all of that, and until then it does nothing",
			watched, in.baseName))
	}
	return nil
}

// otherBranch reports whether the base is a branch that Ingot does not watch.
func (in *planning) otherBranch() bool {
	name := in.baseName
	for _, prefix := range []string{"refs/heads/", "refs/remotes/", "origin/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name == in.merge.Source.Branch {
		return false
	}
	for _, ref := range []string{"refs/heads/" + name, "refs/remotes/origin/" + name} {
		if _, err := in.clone.Resolve(ref); err == nil {
			return true
		}
	}
	return false
}

func (p planCommand) missing(err error, in *planning) error {
	var lacks *gitsource.MissingError
	switch {
	case !errors.As(err, &lacks):
		return err
	case p.Config != "":
		return fmt.Errorf("%w: it lies too far back, or the history was rewritten; plan in a full clone", err)
	case in.clone.Shallow():
		return fmt.Errorf("%w, which has a part of the history only: run git fetch --unshallow origin (in a CI job: check out with the whole history)", err)
	case lacks.Applied:
		return fmt.Errorf("%w: it is not up to date, run git fetch origin; if that brings nothing, the history was rewritten, and what "+
			"Ingot makes of that cannot be told before it does", err)
	}
	return fmt.Errorf("%w: run git fetch origin; a clone made with --filter needs git fetch --refetch", err)
}
