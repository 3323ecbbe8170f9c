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

// print prints a summary in the format that was asked for.
func (s statusCommand) print(c *console, summary report.Summary, now time.Time) error {
	switch c.format {
	case "json":
		return c.printJSON(summary)
	case "yaml":
		return c.printYAML(summary)
	case "name":
		printNames(c, summary)
	default:
		printSummary(c, summary, s.whole(), now)
	}
	if s.Selector != "" && len(summary.Servers)+len(summary.Claims)+len(summary.BMCs) == 0 {
		fmt.Fprintf(c.err, "ingot: nothing has the labels %s\n", printable(s.Selector))
	}
	return nil
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

// printNames prints what each object is called.
func printNames(c *console, s report.Summary) {
	for _, v := range s.Servers {
		c.printf("server/%s\n", printable(string(v.Name)))
	}
	for _, v := range s.Claims {
		c.printf("claim/%s\n", printable(string(v.Name)))
	}
	for _, v := range s.BMCs {
		c.printf("bmc/%s\n", printable(string(v.Name)))
	}
}

// labelsText are labels as selectors have them.
func labelsText(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, strings.TrimSuffix(key+"="+labels[key], "="))
	}
	return orDash(strings.Join(all, ","))
}

// placeText is where a server is: berlin/r7 U4.
func placeText(labels map[string]string) string {
	p := report.PlaceOf(labels, nil)
	text := p.Rack
	if p.Location != "" {
		text = p.Location + "/" + p.Rack
	}
	if p.Unit > 0 {
		text += fmt.Sprintf(" U%d", p.Unit)
	}
	return orDash(text)
}
