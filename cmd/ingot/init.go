package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/cmd/daemon/config"
	"ingot/examples"
	"ingot/model"
	"ingot/model/text"
)

type initCommand struct {
	Dir   string `arg:"" type:"path" help:"The folder of the new repository; created if it does not exist."`
	Local bool   `help:"Make Ingot follow the folder itself, without a Git host, and accept secrets in plain text: to try Ingot on this machine."`

	newRepository `embed:""`
}

// newRepository is what is said of a repository that is made.
type newRepository struct {
	URL    string            `name:"url" placeholder:"URL" help:"Where the repository will be: for the configuration, and as the remote origin."`
	Forge  string            `enum:"github,gitlab,forgejo,none" default:"none" placeholder:"FORGE" help:"Write pull request checks for this forge: github, gitlab, forgejo or none. Default: ${default}."`
	Owner  string            `placeholder:"@TEAM" help:"Default owner in CODEOWNERS; without it, no CODEOWNERS is written."`
	Config string            `type:"path" placeholder:"FILE" help:"Where to write Ingot's configuration. Default: ingot.yaml beside the folder."`
	DHCP   *interfaceAddress `name:"dhcp" placeholder:"INTERFACE[=IP/BITS]" help:"Make Ingot serve addresses and boot loaders on this interface. Default of the address: the IPv4 address that the interface has."`
	NoGit  bool              `help:"Only write files: no git init, no commit."`

	plaintext bool // manifests hold secrets as they are
	local     bool // URL is the folder itself
}

// Help implements kong.HelpProvider.
func (initCommand) Help() string {
	return `Creates a repository to start from: a README that explains it, a folder for each kind of manifest with a commented-out example, pull request checks, and beside it the configuration of Ingot. No file is overwritten.

Examples:

  ingot init fleet
  ingot init fleet --url https://git.example.com/infra/fleet.git --forge forgejo --owner @infra
  ingot init fleet --local --dhcp eth1
  ingot init fleet --dhcp eth1=10.20.0.1/24
  git clone git@git.example.com:infra/fleet.git && ingot init fleet --no-git`
}

// forgeFiles are where each forge looks for its checks.
var forgeFiles = map[string]string{
	"github": ".github/workflows/ingot.yaml", "gitlab": ".gitlab-ci.yml", "forgejo": ".forgejo/workflows/ingot.yaml",
}

// templateURL and templateOwner stand in the templates for what the command line says.
const (
	templateURL   = "https://git.example.com/infra/metal.git"
	templateOwner = "@infra"
)

// Run makes the repository.
func (i initCommand) Run(ctx context.Context, c *console) error {
	if i.Local {
		if i.URL != "" {
			return usageError("--local and --url: the repository is the folder itself, or elsewhere")
		}
		if _, err := exec.LookPath("git"); i.NoGit || err != nil {
			return usageError("--local needs git, and no --no-git: Ingot follows the commits of the folder")
		}
		i.URL, i.local, i.plaintext = i.Dir, true, true
	}
	committed, err := i.make(ctx, c, i.Dir, nil)
	if err == nil {
		i.printNext(c, i.Dir, committed)
	}
	return err
}

// make writes a repository, with manifests by path with slashes, and its configuration.
func (n newRepository) make(ctx context.Context, c *console, dir string, manifests map[string]string) (committed bool, err error) {
	if within, err := filepath.Rel(dir, n.config(dir)); err == nil && filepath.IsLocal(within) {
		return false, fmt.Errorf("%s is within the repository, where it would be read as a manifest: name another place with --config",
			n.config(dir))
	}
	repository, err := repositoryFiles(n.Forge, n.Owner)
	if err != nil {
		return false, err
	}
	maps.Copy(repository, manifests)
	files := make(map[string]string)
	for path, content := range repository {
		files[filepath.Join(dir, filepath.FromSlash(path))] = content
	}
	if files[n.config(dir)], err = n.configuration(); err != nil {
		return false, err
	}
	if err := writeNew(files); err != nil {
		return false, err
	}
	if !c.json() {
		c.printf("%s written: the repository is %s, the configuration of Ingot %s.\n", text.Plural(len(files), "file"), dir, n.config(dir))
	}
	if committed, err = n.commit(ctx, c, dir, slices.Sorted(maps.Keys(repository))); err != nil {
		err = fmt.Errorf("the files are written, and not committed: %w", err)
	}
	return committed, err
}

// config is where the configuration goes of a repository in a folder.
func (n newRepository) config(dir string) string {
	if n.Config != "" {
		return n.Config
	}
	return filepath.Join(filepath.Dir(dir), "ingot.yaml")
}

// repositoryFiles are the files of a new repository, by path with slashes.
func repositoryFiles(forge, owner string) (map[string]string, error) {
	files, err := quickstart()
	if err != nil {
		return nil, err
	}
	if path, known := forgeFiles[forge]; known {
		check, err := examples.CI.ReadFile("ci/" + forge + ".yaml")
		if err != nil {
			return nil, err
		}
		files[path] = string(check)
	}
	if owner == "" {
		return files, nil
	}
	if !strings.Contains(owner, "@") || strings.ContainsAny(owner, " \t\n#") {
		return nil, usageError("%q is no owner: write @team, @organisation/team or an address", owner)
	}
	owners, err := initTemplate("CODEOWNERS")
	files["CODEOWNERS"] = strings.ReplaceAll(owners, templateOwner, owner)
	return files, err
}

func initTemplate(name string) (string, error) {
	data, err := fs.ReadFile(examples.Init, "init/"+name)
	return string(data), err
}

func (n newRepository) configuration() (string, error) {
	content, err := initTemplate("ingot.yaml")
	if n.DHCP != nil {
		at, err := n.DHCP.resolve()
		if err != nil {
			return "", err
		}
		settings, err := networkSettings(at)
		if err != nil {
			return "", err
		}
		before, rest, _ := strings.Cut(content, bootComment)
		_, after, _ := strings.Cut(rest, "\n\n")
		content = before + settings + "\n" + after
	}
	if n.plaintext {
		const branch = "\n  branch: main\n"
		content = strings.Replace(content, branch, branch+"  # Secrets stand in plain text in the repository. For trying out.\n"+
			"  allowPlaintextSecrets: true\n", 1)
	}
	if err != nil || n.URL == "" {
		return content, err
	}
	opts := config.Default()
	opts.Git.URL = n.URL
	if err := model.JoinErrors(opts.Validate()); err != nil {
		return "", err
	}
	quoted, err := yaml.Marshal(n.URL)
	return strings.Replace(content, templateURL, strings.TrimSpace(string(quoted)), 1), err
}

func writeNew(files map[string]string) error {
	paths := slices.Sorted(maps.Keys(files))
	var there []string
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			there = append(there, path)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("nothing was written, because nothing is overwritten, and %s there:\n%s",
			text.Plural(len(there), "file")+map[bool]string{true: " is", false: " are"}[len(there) == 1], strings.Join(there, "\n"))
	}
	for _, path := range paths {
		if err := writeNewFile(path, files[path]); err != nil {
			return err
		}
	}
	return nil
}

// writeNewFile writes one file that is not there, and the folders above it.
func writeNewFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// commit makes a Git repository of the folder, if it is none and there is git, and commits
// what was written.
func (n newRepository) commit(ctx context.Context, c *console, dir string, written []string) (committed bool, err error) {
	if _, err := exec.LookPath("git"); n.NoGit || err != nil {
		return false, nil
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return false, nil // its user commits, perhaps along with something else
	}
	g := &clone{c: c, dir: dir, remote: "origin"}
	if _, err := g.git(ctx, "init", "--quiet", "--initial-branch", "main"); err != nil {
		return false, err
	}
	if err := n.identify(ctx, g); err != nil {
		return false, err
	}
	if n.URL != "" && !n.local {
		if _, err := g.git(ctx, "remote", "add", "origin", n.URL); err != nil {
			return false, err
		}
	}
	for some := range slices.Chunk(written, 500) {
		if _, err := g.git(ctx, append([]string{"add", "--"}, some...)...); err != nil {
			return false, err
		}
	}
	return true, g.show(ctx, "commit", "--quiet", "-m", "begin the repository of our bare metal")
}

// identify gives the repository an author where git knows none, as on a machine that was just
// installed: else git commits nothing.
func (n newRepository) identify(ctx context.Context, g *clone) error {
	if _, err := g.git(ctx, "var", "GIT_AUTHOR_IDENT"); err == nil {
		return nil
	}
	name, host := "root", "localhost"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	for _, setting := range [][2]string{{"user.name", name}, {"user.email", name + "@" + host}} {
		if _, err := g.git(ctx, "config", setting[0], setting[1]); err != nil {
			return err
		}
	}
	fmt.Fprintf(g.c.err, "git does not know who you are: commits in %s are by %s <%[2]s@%s>, until git config user.name and user.email say otherwise.\n", g.dir, name, host)
	return nil
}

func (n newRepository) printNext(c *console, dir string, committed bool) {
	c.printf("\nNext:\n\n")
	if !committed {
		c.printf("  commit it               git -C %s add --all && git -C %s commit\n", shellWord(dir), shellWord(dir))
	}
	c.printf("  read it                 %s\n", filepath.Join(dir, "README.md"))
	if n.URL == "" {
		c.printf("  say where it will be    git.url in %s\n", n.config(dir))
	}
	if !n.local {
		if n.URL == "" {
			c.printf("  name its remote         git -C %s remote add origin URL\n", shellWord(dir))
		}
		c.printf("  push it                 git -C %s push -u origin main\n", shellWord(dir))
	}
	c.printf("  add your first BMC      %s\n", filepath.Join(dir, "bmcs", "example.yaml"))
	c.printf("  run Ingot               ingot run --config %s\n", shellWord(n.config(dir)))
	if n.Forge != "none" {
		c.printf("  let checks run          set the variables INGOT_VERSION and INGOT_RELEASES at the Git host, see %s\n", forgeFiles[n.Forge])
	}
	if n.local {
		return
	}
	c.printf("\nProtect the branches main and status: who may push to main may do anything to the machines.\n")
}
