package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile/report"
)

type statusCommand struct {
	Address string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The admin listener of the daemon. Default: ${default}."`
	Git     string `xor:"source" placeholder:"URL" help:"Read the status branch of this repository instead; a URL or a path."`
	Branch  string `default:"status" placeholder:"NAME" help:"The status branch. Default: ${default}."`
	Kind    string `arg:"" optional:"" help:"Show only this kind: server, claim or bmc."`
	Name    string `arg:"" optional:"" help:"Show only the object of this name; a claim's is namespace/name or name."`

	Auth gitAuthFlags `embed:"" prefix:"git-"`
}

// gitAuthFlags name the files that open a repository.
type gitAuthFlags struct {
	UsernameFile   string `type:"path" placeholder:"FILE" help:"With --git: file that holds the user's name."`
	PasswordFile   string `type:"path" placeholder:"FILE" help:"With --git: file that holds the password or token."`
	SSHKeyFile     string `name:"ssh-key-file" type:"path" placeholder:"FILE" help:"With --git: SSH key."`
	KnownHostsFile string `type:"path" placeholder:"FILE" help:"With --git: known hosts, needed with an SSH key."`
	CAFile         string `name:"ca-file" type:"path" placeholder:"FILE" help:"With --git: certificates to trust."`
}

func (f gitAuthFlags) auth() gitsource.Auth {
	return gitsource.Auth{
		UsernameFile: f.UsernameFile, PasswordFile: f.PasswordFile,
		SSHKeyFile: f.SSHKeyFile, KnownHostsFile: f.KnownHostsFile, CAFile: f.CAFile,
	}
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Asks a running daemon, or reads what it wrote to the status branch, which works from anywhere and also when the daemon is down.

Examples:

  ingot status
  ingot status claim default/web-1
  ingot status --git https://git.example.com/infra/metal.git server
  ingot status -o json | jq '.servers[] | select(.state == "Error")'`
}

// Validate implements kong's validation of flags.
func (s *statusCommand) Validate() error {
	switch s.Kind {
	case "", "server", "claim", "bmc":
		return nil
	}
	return fmt.Errorf("%q is no kind that has a status: it is server, claim or bmc", s.Kind)
}

// Run shows the fleet at a glance.
func (s statusCommand) Run(ctx context.Context, c *console) error {
	summary, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	if summary, err = s.filter(summary); err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(summary)
	}
	printSummary(c, summary, s.Kind == "", time.Now())
	return nil
}

func (s statusCommand) read(ctx context.Context, c *console) (report.Summary, error) {
	if s.Git != "" {
		return s.readBranch(ctx, c)
	}
	client, err := newAdminClient(s.Address)
	if err != nil {
		return report.Summary{}, err
	}
	return client.summary(ctx)
}

func (s statusCommand) readBranch(ctx context.Context, c *console) (report.Summary, error) {
	files, err := readStatusBranch(ctx, c, s.Git, s.Branch, s.Auth)
	if err != nil {
		return report.Summary{}, err
	}
	return report.ReadSummary(files)
}

// readStatusBranch reads the files of the status branch of a repository.
func readStatusBranch(ctx context.Context, c *console, repository, name string, auth gitAuthFlags) (map[string][]byte, error) {
	branch, err := gitsource.NewStatusBranch(gitsource.StatusOptions{
		URL: repositoryURL(repository), Branch: name, Auth: auth.auth(), Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	defer branch.Close()
	snapshot, err := branch.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the status branch: %w", err)
	}
	if !snapshot.Exists {
		return nil, fmt.Errorf("%s has no branch %s: the daemon writes it once it runs with this repository", repository, name)
	}
	for path, err := range snapshot.Skipped {
		c.log.Warn("file of the status branch cannot be read", "path", path, "err", err)
	}
	return snapshot.Files, nil
}

// repositoryURL makes the path of a folder absolute, as what reads it may stand
// elsewhere.
func repositoryURL(url string) string {
	if info, err := os.Stat(url); err == nil && info.IsDir() {
		if abs, err := filepath.Abs(url); err == nil {
			return abs
		}
	}
	return url
}

// filter leaves only what was asked for. That there is no such object is an error.
func (s statusCommand) filter(all report.Summary) (report.Summary, error) {
	if s.Kind == "" {
		return all, nil
	}
	only := report.Summary{
		Revision: all.Revision, Source: all.Source, Guard: all.Guard,
		Servers: []report.ServerSummary{}, Claims: []report.ClaimSummary{}, BMCs: []report.BMCSummary{}, Problems: []model.Problem{},
	}
	found := 0
	switch s.Kind {
	case "server":
		only.Servers = keep(all.Servers, func(v report.ServerSummary) bool { return s.names(string(v.Name)) })
		found = len(only.Servers)
	case "claim":
		only.Claims = keep(all.Claims, func(v report.ClaimSummary) bool { return s.names(string(v.Name)) })
		found = len(only.Claims)
	case "bmc":
		only.BMCs = keep(all.BMCs, func(v report.BMCSummary) bool { return s.names(string(v.Name)) })
		found = len(only.BMCs)
	}
	if s.Name != "" && found == 0 {
		return only, fmt.Errorf("there is no %s %s", s.Kind, s.Name)
	}
	return only, nil
}

// names reports whether the object called name is asked for.
func (s statusCommand) names(name string) bool {
	_, short, namespaced := strings.Cut(name, "/")
	return s.Name == "" || s.Name == name || namespaced && s.Name == short
}

func keep[E any](all []E, wanted func(E) bool) []E {
	kept := []E{}
	for _, e := range all {
		if wanted(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// printSummary prints tables; whole also what is true of the fleet as a whole.
func printSummary(c *console, s report.Summary, whole bool, now time.Time) {
	if whole {
		printSource(c, s, now)
	}
	tables := []struct {
		titles []string
		rows   [][]cell
	}{
		{[]string{"SERVER", "STATE", "POWER", "CLAIM", "SINCE", "WHY"}, serverRows(s.Servers, now)},
		{[]string{"CLAIM", "STATE", "SERVER", "SINCE", "WHY"}, claimRows(s.Claims, now)},
		{[]string{"BMC", "STATE", "ADDRESS", "SINCE", "WHY"}, bmcRows(s.BMCs, now)},
	}
	for i, t := range tables {
		if len(t.rows) > 0 && (whole || i > 0 && len(tables[i-1].rows) > 0) {
			c.printf("\n")
		}
		c.printTable(t.titles, t.rows)
	}
	printProblems(c, s.Problems)
	printGuard(c, s.Guard, now)
	printAbsent(c, s.Absent, now)
}

func printSource(c *console, s report.Summary, now time.Time) {
	revision := string(s.Revision)
	if revision == "" {
		revision = "none yet"
	}
	c.printf("Revision %s\n", printable(revision))
	if s.Source != nil && s.Source.Reason != "" {
		c.printf("%s\n", c.paint(printable(fmt.Sprintf("%s for %s: %s", s.Source.Reason, age(s.Source.Since, now), s.Source.Message)), red))
	}
	if len(s.Servers)+len(s.Claims)+len(s.BMCs) == 0 {
		c.printf("No servers, claims or BMCs are known.\n")
	}
}

// stateColours are the colours of states that deserve one.
var stateColours = map[string]colour{
	string(model.StateAvailable): green, string(model.StateReserved): cyan, string(model.StateError): red,
	string(model.StateDiscovery): yellow, string(model.StateCleanup): yellow, string(model.StateMaintenance): yellow,
	string(report.ClaimBooted): green, string(report.ClaimBound): cyan, string(report.ClaimUnbound): yellow,
	string(report.ClaimUnconfirmed): yellow,
	"Enabled":                       green, "Pending": yellow,
}

func stateCell(state string) cell { return cell{printable(state), stateColours[state]} }

func serverRows(servers []report.ServerSummary, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range servers {
		rows = append(rows, []cell{
			text(string(s.Name)), stateCell(string(s.State)), text(orDash(string(s.Power))),
			text(orDash(string(s.Claim))), text(age(s.Since, now)), text(s.Why),
		})
	}
	return rows
}

func claimRows(claims []report.ClaimSummary, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range claims {
		rows = append(rows, []cell{
			text(string(s.Name)), stateCell(string(s.State)), text(orDash(string(s.Server))), text(age(s.Since, now)), text(s.Why),
		})
	}
	return rows
}

func bmcRows(bmcs []report.BMCSummary, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range bmcs {
		rows = append(rows, []cell{
			text(string(s.Name)), stateCell(s.State), text(orDash(s.Address)), text(age(s.Since, now)), text(s.Why),
		})
	}
	return rows
}

func printProblems(c *console, problems []model.Problem) {
	if len(problems) == 0 {
		return
	}
	c.printf("\n%s\n", c.paint("PROBLEMS", bold))
	for _, p := range problems {
		c.printf("%s\n", printable(p.String()))
	}
}

func printGuard(c *console, holds []model.GuardHold, now time.Time) {
	for _, g := range holds {
		c.printf("\n%s\n", c.paint(printable(fmt.Sprintf("%s wait for approval since %s, with them %s would go beyond the guard's limit of %d:",
			plural(len(g.Steps), "step"), age(g.Since, now), g.Revision, g.Limit)), yellow))
		for _, step := range g.Steps {
			c.printf("%s\n", printable(fmt.Sprintf("  %s %s of claim %s", step.Action, step.Server, step.Claim)))
		}
		if !g.Until.IsZero() {
			c.printf("There is room for them at %s.\n", g.Until.Format(time.RFC3339))
		}
		c.printf("Approve them with a commit whose message ends in the line\n  Ingot-Approve: %s\n", printable(g.Token))
	}
}

// printAbsent lists what is in force though Git lacks it.
func printAbsent(c *console, a *report.AbsentSummary, now time.Time) {
	if a == nil {
		return
	}
	c.printf("\n%s\n", c.paint(fmt.Sprintf("%s in force though Git lacks them or has them otherwise, and no commit that follows on the revision applied says so:",
		plural(len(a.Objects)+a.More, "object")), yellow))
	for _, o := range a.Objects {
		c.printf("%s\n", printable(fmt.Sprintf("  %s, since %s, %s, Ingot-Approve: %s", o.Identity, age(o.Since, now), o.Cause, o.Token)))
	}
	c.printf("Put them back, or let all of them go with a commit whose message ends in the line\n  Ingot-Approve: %s\n", printable(a.Token))
}

// age says how long ago t was, in its largest units, or "-" if it never was.
func age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := max(now.Sub(t), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
