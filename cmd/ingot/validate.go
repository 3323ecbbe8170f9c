package main

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
)

type validateCommand struct {
	Paths         []string `arg:"" name:"path" help:"Files, or folders that are searched for .yaml, .yml and .json files; - is standard input."`
	Revision      string   `placeholder:"FILE" help:"revision.yaml of the status branch, or Ingot's configuration: each file is held to what git.tenants lets its folder define. Paths are then those of the repository: run it at its root."`
	AgeKeyFile    string   `placeholder:"FILE" help:"Decrypt files that SOPS encrypted, with the age identities in this file. Without it they are checked as far as that goes without a key."`
	StrictSecrets bool     `help:"Refuse secrets in plain text, as the daemon does unless git.allowPlaintextSecrets is true. Else they are a warning."`
}

// Help implements kong.HelpProvider.
func (validateCommand) Help() string {
	return `Decodes every manifest as the daemon does, strictly, and checks them against one another. A problem is one line, file:line:column: what is wrong and what is allowed. Hidden files and folders are left out.

Exits 0 when there is no error; warnings do not count.

Examples:

  ingot validate fleet/
  ingot validate claims/web-1.yaml claims/web-2.yaml
  kustomize build overlays/berlin | ingot validate -
  git show origin/status:revision.yaml > /tmp/revision.yaml && ingot validate --revision /tmp/revision.yaml .
  ingot validate --age-key-file ~/.config/sops/age/keys.txt .
  ingot validate -o json .`
}

// validation is what was found.
type validation struct {
	Files    int             `json:"files"`
	Objects  int             `json:"objects"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Problems []model.Problem `json:"problems"`
}

// Run checks the manifests and prints what is wrong with them.
func (v validateCommand) Run(c *console) error {
	files, err := manifestFiles(v.Paths)
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
	for _, file := range files {
		if isLink(file) && !slices.Contains(v.Paths, file) {
			check.refuse(displayName(file), "is a symbolic link, which is not followed: put the manifest itself here")
			continue
		}
		data, err := readManifest(file, c.in)
		if err != nil {
			return err
		}
		check.file(displayName(file), data)
	}
	found := check.finish(len(files))
	if c.json() {
		err = c.printJSON(found)
	} else {
		found.print(c)
	}
	if err == nil && found.Errors > 0 {
		err = fmt.Errorf("%s in %s", text.Plural(found.Errors, "error"), text.Plural(found.Files, "file"))
	}
	return err
}

func (v *validation) print(c *console) {
	for _, p := range v.Problems {
		in := red
		if p.Severity == model.SeverityWarning {
			in = yellow
		}
		c.printf("%s\n", c.paint(printable(p.String()), in))
	}
	c.printf("%s, %s: %s, %s\n", text.Plural(v.Files, "file"), text.Plural(v.Objects, "object"), text.Plural(v.Errors, "error"), text.Plural(v.Warnings, "warning"))
}
