package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/reconcile/report"
)

// documents are printed as JSON and YAML.
type documents struct {
	Fleet *report.Fleet      `json:"fleet"`
	Items []*report.Document `json:"items"`
}

func documentsOf(docs *report.Documents) documents {
	d := documents{docs.Fleet, listed(docs)}
	if d.Items == nil {
		d.Items = []*report.Document{}
	}
	return d
}

func (s statusCommand) print(c *console, docs *report.Documents, now time.Time) (err error) {
	switch c.format {
	case "json":
		err = c.printJSON(documentsOf(docs))
	case "yaml":
		err = c.printYAML(documentsOf(docs))
	case "name":
		for _, d := range listed(docs) {
			c.printf("%s/%s\n", d.Folder().Noun(), printable(d.Name()))
		}
	default:
		printStatus(c, docs, s.whole(), now)
	}
	if err == nil && s.Selector != "" && len(listed(docs)) == 0 {
		return fmt.Errorf("no object has the labels %s", s.Selector)
	}
	return err
}

// printYAML prints v as a YAML document with the names that it has as JSON.
func (c *console) printYAML(v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	c.printf("%s", data)
	return nil
}

func labelsText(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, strings.TrimSuffix(key+"="+labels[key], "="))
	}
	return orDash(strings.Join(all, ","))
}
