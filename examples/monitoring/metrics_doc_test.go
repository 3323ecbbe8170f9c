package monitoring

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/examples/monitoring/internal/exported"
)

var update = flag.Bool("update", false, "write what is generated: docs/metrics.md and the dashboards")

const root = "../.."

// sourceFolders are where metrics are made.
var sourceFolders = []string{"bmc", "bootsvc", "cmd", "gitsource", "reconcile", "registry"}

func exportedMetrics(t *testing.T) []exported.Metric {
	t.Helper()
	all, err := exported.Metrics(root, sourceFolders...)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%d metrics were found in the source", len(all))
	}
	return all
}

// chapters are the packages that make metrics, by what they are to an operator.
var chapters = []struct{ title, packages string }{
	{"The fleet", "reconcile"},
	{"BMCs", "bmc"},
	{"Boots", "bootsvc bootsvc/oci bootsvc/cachedir bootsvc/imagecache bootsvc/diskimage bootsvc/tftp bootsvc/metadata bootsvc/conversation"},
	{"DHCP", "bootsvc/dhcp bootsvc/dhcp/lease"},
	{"Reports of machines", "registry/probe"},
	{"Git and the status branch", "gitsource gitsource/forge"},
	{"The store", "registry"},
	{"Access", "cmd/daemon/access"},
	{"The process", "cmd/daemon cmd/daemon/secretfiles"},
}

const metricsHead = `# Metrics

The metrics at ` + "`/metrics`" + ` of the admin listener. This page is generated from the source: ` + "`go test ./examples/monitoring -update`" + `.

Names of metal-operator (` + "`metal_*`" + `) are unchanged; Ingot's own begin with ` + "`ingot_`" + `. Label values come from
the configuration, from Git, or from fixed lists: a reason is one of those on the status branch, otherwise ` + "`other`" + `. Network
traffic never creates new series. Metrics with a series per object that could become many, such as
` + "`ingot_claim_waiting_since_timestamp_seconds`" + `, have the 100 that have waited longest. Counters with known labels start at
zero. Histograms of boots, releases, discoveries and states are measured by the leading Ingot, from one plan to the next: after a
restart nothing is counted twice, and what happened in between is lost.

A server has one series each for its state, for its power state and for each condition that is not as expected: with those of
its BMC, about 250 bytes. ` + "`admin.serverMetrics: true`" + ` adds the states that it is not in, with the value 0, and all other conditions.

Ages are ` + "`time() - …_timestamp_seconds`" + `. Alerts and dashboards are in [examples/monitoring](../examples/monitoring),
what to do is in [runbooks.md](runbooks.md).
`

func TestEveryMetricIsInTheReferenceAndNoOther(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(metricsHead)
	written := make(map[string]bool)
	all := exportedMetrics(t)
	for _, c := range chapters {
		fmt.Fprintf(&doc, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", c.title)
		for _, m := range all {
			if !strings.Contains(" "+c.packages+" ", " "+m.Package+" ") {
				continue
			}
			written[m.Name] = true
			labels := ""
			if len(m.Labels) > 0 {
				labels = "`" + strings.Join(m.Labels, "`, `") + "`"
			}
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, strings.ReplaceAll(m.Help, "|", `\|`))
		}
	}
	doc.WriteString("\nIn addition there are `go_*` and `process_*`, from Prometheus' Go client.\n")
	for _, m := range all {
		if !written[m.Name] {
			t.Errorf("%s is made by %s, which is in no chapter of docs/metrics.md", m.Name, m.Package)
		}
	}
	golden(t, root+"/docs/metrics.md", doc.String())
}

// golden compares what was generated with the file that is committed.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with go test ./examples/monitoring -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is generated; make it anew with go test ./examples/monitoring -update (-is +should):\n%s", file, diff)
	}
}

func TestMetricsAreNamedByPrometheusConventions(t *testing.T) {
	for _, m := range exportedMetrics(t) {
		if (m.Type == "counter") != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s: names of counters, and no others, end with _total", m.Name, m.Type)
		}
		if m.Help == "" {
			t.Errorf("%s has no help", m.Name)
		}
	}
}
