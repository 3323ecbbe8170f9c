package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ruleFile is a file of rules as Prometheus has it.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record"`
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// testFile is a file of histories as promtool has it.
type testFile struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []struct {
		Name        string `json:"name"`
		Interval    string `json:"interval"`
		InputSeries []struct {
			Series string `json:"series"`
			Values string `json:"values"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			EvalTime  string `json:"eval_time"`
			Alertname string `json:"alertname"`
			ExpAlerts []struct {
				Labels      map[string]string `json:"exp_labels"`
				Annotations map[string]string `json:"exp_annotations"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file ruleFile
	readYAML(t, "rules.yaml", &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(rules(t), func(r rule) bool { return r.Alert == "" })
}

func TestEachAlertSaysWhatWaitsAndWhereToReadOn(t *testing.T) {
	for _, r := range alerts(t) {
		if s := r.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s has severity %q: critical, warning and info are the ones", r.Alert, s)
		}
		if s := r.Annotations["summary"]; !strings.HasSuffix(s, ".") {
			t.Errorf("%s says %q, which is no sentence", r.Alert, s)
		}
		if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s has runbook_url %q", r.Alert, url)
		}
		for _, label := range grouped(r.Expr) {
			if !strings.Contains(r.Annotations["summary"], "$labels."+label) {
				t.Errorf("%s is one alert for each %s, and its sentence does not name it", r.Alert, label)
			}
		}
	}
}

var by = regexp.MustCompile(`^(?:\(?time\(\) - )?(?:max|min|sum) by \(([a-z, ]+)\)`)

// grouped are the labels that an expression begins with to group by.
func grouped(expr string) []string {
	m := by.FindStringSubmatch(expr)
	if m == nil {
		return nil
	}
	return strings.Split(m[1], ", ")
}

func TestEachAlertHasARunbookAndNoRunbookIsLeft(t *testing.T) {
	content, err := os.ReadFile(root + "/docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, s := range strings.Split(string(content), "\n### ")[1:] {
		name, body, _ := strings.Cut(s, "\n")
		sections[name] = body
	}
	for _, r := range alerts(t) {
		for _, part := range []string{"**It means:** ", "**See:** ", "**Do:** "} {
			if !strings.Contains(sections[r.Alert], part) {
				t.Errorf("docs/runbooks.md lacks a section %s with %s", r.Alert, part)
			}
		}
		delete(sections, r.Alert)
	}
	for name := range sections {
		t.Errorf("docs/runbooks.md has a section %s, which is no alert", name)
	}
}

func TestEachAlertHasAHistoryThatFiresAndOneThatDoesNot(t *testing.T) {
	files, err := filepath.Glob("tests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, file := range files {
		var f testFile
		readYAML(t, file, &f)
		for _, test := range f.Tests {
			for _, a := range test.AlertRuleTest {
				fired := len(a.ExpAlerts) > 0
				if fired != strings.HasSuffix(test.Name, " fires") || !strings.HasPrefix(test.Name, a.Alertname+" ") {
					t.Errorf("%s: %q expects %s to fire: %t", file, test.Name, a.Alertname, fired)
				}
				if fired {
					fires[a.Alertname] = true
				} else {
					quiet[a.Alertname] = true
				}
			}
		}
	}
	for _, r := range alerts(t) {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("%s has a history in which it fires: %t, and one in which it does not: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
		delete(fires, r.Alert)
	}
	for name := range fires {
		t.Errorf("there is a history of %s, which is no alert", name)
	}
}

// program is the path of a program of Prometheus' package. Without it the test is skipped,
// unless INGOT_LAB=required says that nothing may be.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	const how = "Debian's package prometheus has it: make setup"
	if os.Getenv("INGOT_LAB") == "required" {
		t.Fatalf("%s is missing; %s", name, how)
	}
	t.Skipf("%s is missing, so this is not tested; %s", name, how)
	return ""
}

func TestPromtoolFindsTheRulesRightAndTheHistoriesTrue(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	files, err := filepath.Glob("tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, append([]string{"test", "rules"}, files...)} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
