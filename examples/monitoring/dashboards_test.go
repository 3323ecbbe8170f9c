package monitoring

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ingot/examples/monitoring/internal/grafana"
)

func TestTheDashboardsAreThoseOfTheSource(t *testing.T) {
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range grafana.Boards() {
		content, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		file := "dashboards/" + name + ".json"
		golden(t, file, content)
		files = slices.DeleteFunc(files, func(f string) bool { return f == file })
	}
	for _, f := range files {
		t.Errorf("%s is no dashboard of the source", f)
	}
}

var (
	selector = regexp.MustCompile(`\b(?:ingot|metal|process|go)_\w+(\{[^}]*\})?`)
	ranged   = regexp.MustCompile(`\[([^]]+)\]`)
	counter  = regexp.MustCompile(`(.{0,12})\b\w+_(?:total|bucket|count|sum)\{`)
)

// The rules are those of Grafana's dashboard-linter.
func TestDashboardsFollowGrafanasRules(t *testing.T) {
	for name, d := range grafana.Boards() {
		problem := func(format string, args ...any) {
			t.Helper()
			t.Errorf(name+": "+format, args...)
		}
		if d.Editable || d.Description == "" || d.UID == "" {
			problem("it is editable, or has no description or uid")
		}
		for i, want := range []string{"datasource", "job", "instance"} {
			v := d.Templating.List[i]
			if v.Name != want || v.Label == "" || v.Type == "query" && (v.Refresh != 2 || !v.Multi || v.AllValue != ".+") {
				problem("variable %d is %+v, want %s", i, v, want)
			}
		}
		seen := make(map[string]bool)
		for _, p := range d.Panels {
			if p.Title == "" || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" || seen[p.Title] {
				problem("panel %q has no title of its own, no description that is a sentence, or no unit", p.Title)
			}
			seen[p.Title] = true
			if p.Datasource.UID != "${datasource}" || p.GridPos.X+p.GridPos.W > 24 {
				problem("panel %q takes its data from %q, or is out of the picture", p.Title, p.Datasource.UID)
			}
			for _, target := range p.Targets {
				for _, s := range selector.FindAllStringSubmatch(target.Expr, -1) {
					if !strings.HasPrefix(s[1], `{job=~"$job", instance=~"$instance"`) {
						problem("panel %q selects %s without job and instance", p.Title, s[0])
					}
				}
				for _, r := range ranged.FindAllStringSubmatch(target.Expr, -1) {
					if r[1] != "$__rate_interval" {
						problem("panel %q looks over %s, not $__rate_interval", p.Title, r[1])
					}
				}
				for _, c := range counter.FindAllStringSubmatch(target.Expr, -1) {
					if !strings.HasSuffix(c[1], "rate(") {
						problem("panel %q shows a counter, not its rate: %s", p.Title, target.Expr)
					}
				}
			}
		}
	}
}

func TestGrafanasLinterFindsNothing(t *testing.T) {
	linter, err := exec.LookPath("dashboard-linter")
	if err != nil {
		t.Skip("dashboard-linter is missing, so this is not tested; make lint-dashboards runs it by go run")
	}
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if out, err := exec.CommandContext(t.Context(), linter, "lint", "--strict", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
