package main

import (
	"errors"
	"fmt"

	"ingot/gitsource"
	"ingot/model"
	"ingot/model/text"
)

type validateCommand struct {
	Paths         []string `arg:"" name:"path" help:"Files, or folders that are searched for .yaml, .yml and .json files; - is standard input."`
	Config        string   `short:"c" xor:"tenants" placeholder:"FILE" help:"Ingot's configuration: also check git.tenants, boot.registries, boot.imageDirs, the networks and git.allowPlaintextSecrets. Paths are then those of the repository: run it at its root."`
	Revision      string   `xor:"tenants" placeholder:"FILE" help:"fleet.yaml of the status branch, or Ingot's configuration: each file is checked against what git.tenants allows in its folder. Paths are then those of the repository: run it at its root."`
	AgeKeyFile    string   `placeholder:"FILE" help:"Decrypt files encrypted with SOPS, using the age identities in this file. Without it they are checked as far as possible without a key."`
	StrictSecrets bool     `help:"Refuse secrets in plain text, as the daemon does unless git.allowPlaintextSecrets is true. Otherwise they are a warning."`
}

// Help implements kong.HelpProvider.
func (validateCommand) Help() string {
	return `Decodes every manifest strictly, as the daemon does, and checks them against each other. Each problem is one line, file:line:column: the fault and the allowed values. Hidden files and folders, files that an .ingotignore names (in the syntax of .gitignore, without classes such as [[:digit:]]), and files that are clearly something else, such as renovate.json, are skipped.

It also finds what the daemon would refuse at the boot of a claim: mistakes in user-data, Ignition and Butane of a Secret in plain text (or with --age-key-file), in kernel arguments, and images without a registry; with --config also images from registries that are not allowed. It sends no request: the images themselves are not checked.

Exits 0 if there is no error, 1 if there is one, a path cannot be read or there is no manifest, 2 for wrong usage. Warnings do not count.

In addition to text and json, -o has formats that CI systems show at the lines of a pull request, with paths from the root of the Git repository: github (workflow commands) and gitlab (a Code Quality report).

Examples:

  ingot validate fleet/
  ingot validate claims/web-1.yaml claims/web-2.yaml
  kustomize build overlays/berlin | ingot validate -
  git show origin/status:fleet.yaml > /tmp/fleet.yaml && ingot validate --revision /tmp/fleet.yaml .
  ingot validate --age-key-file ~/.config/sops/age/keys.txt .
  ingot validate -o gitlab . >gl-code-quality-report.json`
}

type validation struct {
	Files    int       `json:"files"`
	Ignored  int       `json:"ignored"` // files and folders that ignore files leave out
	Foreign  int       `json:"foreign"` // files that are clearly something else than manifests
	Objects  int       `json:"objects"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Sealed   int       `json:"sealed,omitempty"` // Secrets that are encrypted, and not checked
	Problems []finding `json:"problems"`
}

// finding is a problem with its rule, which the status branch leaves out.
type finding struct {
	model.Problem
	Rule model.Rule `json:"rule"`
}

// Run checks the manifests and prints what is wrong with them.
func (v validateCommand) Run(c *console) error {
	search, err := manifestFiles(v.Paths)
	if err != nil {
		return err
	}
	check := newManifestCheck(v.StrictSecrets)
	if check.open, err = opener(v.AgeKeyFile); err != nil {
		return err
	}
	if check.tenants, err = readTenants(v.Revision); err != nil {
		return err
	}
	if err = check.configure(v.Config); err != nil {
		return err
	}
	for _, r := range search.refused {
		check.refuse(displayName(r.path), r.why)
	}
	for _, file := range search.files {
		check.read(file, c.in, search.named[file])
	}
	found := check.finish(search)
	err = found.print(c)
	switch {
	case err == nil && found.Errors > 0:
		err = fmt.Errorf("%s in %s", text.Plural(found.Errors, "error"), text.Plural(found.Files, "file"))
	case err == nil && found.Files == 0 && found.Ignored == 0:
		err = errors.New("nothing was checked: there is no manifest")
	}
	return err
}

func (validateCommand) formats() []string {
	return []string{"text", "json", "github", "gitlab"}
}

// print prints what was found in the format that was asked for.
func (v *validation) print(c *console) error {
	switch c.format {
	case "json":
		return c.printJSON(v)
	case "github":
		v.printWorkflowCommands(c)
		return nil
	case "gitlab":
		return c.printJSON(codeQualityReport(v.Problems))
	}
	v.printText(c)
	return nil
}

func (v *validation) printText(c *console) {
	for _, p := range v.Problems {
		in := red
		if p.Severity == model.SeverityWarning {
			in = yellow
		}
		c.printf("%s\n", c.paint(printable(p.String()), in))
	}
	v.printCounts(c)
}

func (v *validation) printCounts(c *console) {
	c.printf("%s, %s: %s, %s", text.Plural(v.Files, "file"), text.Plural(v.Objects, "object"), text.Plural(v.Errors, "error"), text.Plural(v.Warnings, "warning"))
	if v.Ignored > 0 {
		c.printf("; %d left out by %s", v.Ignored, gitsource.IgnoreFile)
	}
	if v.Foreign > 0 {
		c.printf("; %s without manifests", text.Plural(v.Foreign, "file"))
	}
	c.printf("\n")
	if v.Sealed > 0 {
		c.printf("not checked: the contents of %s, encrypted with SOPS; --age-key-file opens them\n", text.Plural(v.Sealed, "Secret"))
	}
}
