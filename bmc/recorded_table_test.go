package bmc_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ingot/model/must"
)

const (
	hardwareFile  = "../docs/hardware.md"
	hardwareTable = "<!-- The rest is written by go test ./bmc -run TestRecordedBMCs -update -->\n"
)

// compareHardware holds the results to the table in the documentation, or writes that anew.
// Recordings that are not in the table are somebody's own.
func compareHardware(t *testing.T, results []*result) {
	raw := must.Get(os.ReadFile(hardwareFile))(t)
	head, table, found := strings.Cut(string(raw), hardwareTable)
	if !found {
		t.Fatalf("%s has no line %q", hardwareFile, hardwareTable)
	}
	if *updateHardware {
		must.Do(t, os.WriteFile(hardwareFile, []byte(head+hardwareTable+"\n"+tableOf(results)), 0o644))
		return
	}
	rows := strings.Split(table, "\n")
	for _, res := range results {
		first, row := "| "+res.name+" |", res.row()
		if i := slices.IndexFunc(rows, func(r string) bool { return strings.HasPrefix(r, first) }); i >= 0 && rows[i] != row {
			t.Errorf("%s differs from %s, which -update writes anew:\n  was %s\n  now %s", res.name, hardwareFile, rows[i], row)
		}
	}
}

func tableOf(results []*result) string {
	var b strings.Builder
	good := 0
	for _, res := range results {
		if res.verdict != partly {
			good++
		}
	}
	fmt.Fprintf(&b, "%d of %d recordings come out right, or are refused with the right reason.\n\n", good, len(results))
	b.WriteString("| recording | BMC | outcome | servers | not read, and why | requests |\n|---|---|---|---|---|---|\n")
	for _, res := range results {
		b.WriteString(res.row() + "\n")
	}
	return b.String()
}

func (res *result) row() string {
	requests := fmt.Sprintf("%d + %d + %d", res.requests[0], res.requests[1], res.requests[2])
	cells := []string{
		res.name, strings.TrimSpace(res.vendor + " " + res.model + " " + res.firmware), string(res.verdict),
		strings.Join(counted(res.servers), "<br>"), strings.Join(shortened(res.notes), "<br>"), requests,
	}
	for i, cell := range cells {
		cells[i] = strings.NewReplacer("|", "\\|", "\n", " ").Replace(cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func counted(all []string) (out []string) {
	for i, text := range all {
		if slices.Index(all, text) < i {
			continue
		}
		n := 0
		for _, other := range all {
			if other == text {
				n++
			}
		}
		if n > 1 {
			text = fmt.Sprintf("%d × %s", n, text)
		}
		out = append(out, text)
	}
	return out
}

// shortened are the first of the texts, without what is the same in all.
func shortened(all []string) (out []string) {
	const most = 4
	for _, text := range all {
		text = strings.NewReplacer("bmc recorded: ", "", ": 404 page not found", "").Replace(text)
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return out
}
