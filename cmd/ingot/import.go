package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"ingot/cmd/ingot/cluster"
	"ingot/model"
	"ingot/model/text"
)

// importCommands are the sources of an import. The default is a cluster.
type importCommands struct {
	Cluster   importCommand          `cmd:"" default:"withargs" help:"Create a repository from a cluster that runs metal-operator."`
	Endpoints importEndpointsCommand `cmd:"" help:"Create Endpoints from a CSV file with the columns mac,ip,name."`
}

// Help implements kong.HelpProvider.
func (importCommands) Help() string {
	return `Imports a cluster unless another subcommand is given; see ingot import cluster --help and ingot import endpoints --help.

Examples:

  ingot import fleet cluster.yaml
  ingot import endpoints leases.csv`
}

type importCommand struct {
	Dir              string   `arg:"" type:"path" help:"The folder of the new repository; created if it does not exist."`
	Files            []string `arg:"" optional:"" name:"file" help:"Output of kubectl; - or none is standard input."`
	PlaintextSecrets bool     `help:"Write the Secrets in plain text. For evaluation: the daemon refuses them unless git.allowPlaintextSecrets is true."`

	newRepository `embed:""`
}

// Help implements kong.HelpProvider.
func (importCommand) Help() string {
	return `Creates a repository from a cluster that runs metal-operator: one file for each object, without the metadata that Kubernetes adds, and the same other files as ingot init. A bound claim and its server name each other, so that Ingot adopts running servers as they are: nothing is installed or power-cycled.

Secrets are not written; the command prints which ones you have to bring, and how. Everything that is left out is listed. Stop metal-operator before Ingot starts. See docs/migration.md.

Examples:

  K=endpoints.metal.ironcore.dev,bmcs,bmcsecrets,servers,serverclaims,serverbootconfigurations,servermaintenances
  kubectl get $K -A -o yaml | ingot import fleet
  ingot import fleet cluster-1.yaml cluster-2.yaml --url https://git.example.com/infra/fleet.git --forge gitlab
  ingot -o json import fleet cluster.yaml | jq .notes`
}

// imported is what became of a cluster, for programs.
type imported struct {
	Dir     string             `json:"dir"`
	Kinds   map[model.Kind]int `json:"kinds"`
	Bound   int                `json:"bound"`
	Secrets []cluster.Secret   `json:"secrets"`
	LeftOut []cluster.LeftOut  `json:"leftOut"`
	Notes   []string           `json:"notes"`
}

// Run makes a repository of a cluster.
func (i importCommand) Run(ctx context.Context, c *console) error {
	objects, err := i.read(c)
	if err != nil {
		return err
	}
	result, err := cluster.Convert(objects, cluster.Options{PlaintextSecrets: i.PlaintextSecrets})
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	if len(result.Files) == 0 {
		return errors.New("nothing was written: there is no object in it that Ingot has a use for")
	}
	result.Notes = append(result.Notes, contradictions(result.Files)...)
	i.plaintext = i.PlaintextSecrets
	committed, err := i.make(ctx, c, i.Dir, result.Files)
	if err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(imported{
			i.Dir, result.Kinds, result.Bound, append([]cluster.Secret{}, result.Secrets...),
			append([]cluster.LeftOut{}, result.LeftOut...), append([]string{}, result.Notes...),
		})
	}
	i.print(c, result, committed)
	return nil
}

func (i importCommand) read(c *console) ([]cluster.Object, error) {
	files := i.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	var all []cluster.Object
	for _, file := range files {
		objects, err := readCluster(file, c.in)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", displayName(file), err)
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no object in it: is it what kubectl get -A -o yaml prints?")
	}
	return all, nil
}

func readCluster(file string, in io.Reader) ([]cluster.Object, error) {
	if file == "-" {
		return cluster.Read(in)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing is lost
	return cluster.Read(f)
}

// contradictions are what is wrong with manifests beside one another.
func contradictions(files map[string]string) (notes []string) {
	check := newManifestCheck(false)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		check.file(path, []byte(files[path]), true)
	}
	for _, p := range check.finish(&manifestSearch{}).Problems {
		if p.Severity == model.SeverityError {
			notes = append(notes, p.String())
		}
	}
	return notes
}

func (i importCommand) print(c *console, r *cluster.Result, committed bool) {
	var kinds []string
	for _, kind := range model.Kinds {
		if n := r.Kinds[kind]; n > 0 {
			kinds = append(kinds, text.Plural(n, string(kind)))
		}
	}
	c.printf("Carried over: %s. Ingot adopts the servers of %s as they run.\n", strings.Join(kinds, ", "), text.Plural(r.Bound, "claim"))
	i.printSecrets(c, r.Secrets)
	printList(c, "Not carried over:", len(r.LeftOut), func(n int) string { return r.LeftOut[n].Object + ": " + r.LeftOut[n].Why })
	printList(c, "Look at this before you start Ingot:", len(r.Notes), func(n int) string { return r.Notes[n] })
	i.printNext(c, i.Dir, committed)
	c.printf("Stop metal-operator before Ingot starts, and delete nothing in the cluster while it runs: it would release servers.\n")
}

func printList(c *console, title string, n int, line func(int) string) {
	if n == 0 {
		return
	}
	c.printf("\n%s\n\n", c.paint(title, bold))
	for i := range n {
		c.printf("  %s\n", printable(line(i)))
	}
}

func (i importCommand) printSecrets(c *console, secrets []cluster.Secret) {
	if len(secrets) == 0 {
		return
	}
	c.printf("\n%s\n\n", c.paint("Secrets are not written in plain text. Bring these before you start Ingot:", bold))
	for _, s := range secrets {
		c.printf("  %s\n", printable(fmt.Sprintf("%s, for %s", model.Identity{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}, s.For)))
	}
	c.printf("\nEncrypted by SOPS, with the public key of Ingot in $AGE; plain text touches no disk:\n\n  cd %s\n", shellWord(i.Dir))
	for _, s := range secrets {
		c.printf("  %s\n", printable(secretCommand(s)))
	}
	c.printf("\nOr keep them out of Git, in files on the machine that Ingot runs on.\n")
}

// secretCommand encrypts a Secret of the cluster into its file.
func secretCommand(s cluster.Secret) string {
	get, meta := "bmcsecrets.metal.ironcore.dev", "{name: .metadata.name}"
	if s.Kind == model.KindSecret {
		get, meta = "secrets -n "+s.Namespace, "{name: .metadata.name, namespace: .metadata.namespace}"
	}
	return fmt.Sprintf("kubectl get %s %s -o json | jq '{apiVersion, kind, metadata: %s, data}' | "+
		"sops --encrypt --age \"$AGE\" --encrypted-regex '^(data|stringData)$' --input-type json --output-type yaml /dev/stdin > %s",
		get, s.Name, meta, s.Path)
}
