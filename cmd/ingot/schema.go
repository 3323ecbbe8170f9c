package main

import (
	"fmt"
	"strings"

	"ingot/examples"
	"ingot/model"
)

type schemaCommand struct {
	Kind string `arg:"" optional:"" help:"Only this kind. Default: everything that a file of the repository may hold."`
}

// Help implements kong.HelpProvider.
func (schemaCommand) Help() string {
	return `Prints the JSON Schema (draft 2020-12) of manifests, for editors that complete and check them as you type. Editors find errors within one object; "ingot validate" also finds errors between objects.

Examples:

  ingot schema >.manifests.schema.json
  ingot schema ServerClaim

In VS Code, with the YAML extension, for a folder: "yaml.schemas": {".manifests.schema.json": "fleet/**/*.yaml"} in .vscode/settings.json. For one file, as its first line:

  # yaml-language-server: $schema=../.manifests.schema.json`
}

// Validate implements kong's validation of arguments.
func (s *schemaCommand) Validate() error {
	names := []string{"all", "List"}
	for _, kind := range model.Kinds {
		names = append(names, string(kind))
	}
	if s.Kind == "" {
		s.Kind = names[0]
	}
	if kind, known := model.KindNamed(s.Kind); known {
		s.Kind = string(kind)
	}
	for _, name := range names {
		if strings.EqualFold(name, s.Kind) {
			s.Kind = name
			return nil
		}
	}
	return fmt.Errorf("%q is no kind that has a schema: it is %s", s.Kind, strings.Join(names[1:], ", "))
}

// Run prints the schema.
func (s schemaCommand) Run(c *console) error {
	data, err := examples.Schemas.ReadFile("schemas/" + s.Kind + ".json")
	if err == nil {
		_, err = c.out.Write(data)
	}
	return err
}
