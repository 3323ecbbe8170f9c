package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		Name           string            `json:"name"`
		Interval       string            `json:"interval"`
		ExternalLabels map[string]string `json:"external_labels"`
		InputSeries    []struct {
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

func rulesIn(t *testing.T, name string) (all []rule) {
	t.Helper()
	var file ruleFile
	readYAML(t, "rules/"+name+".yaml", &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func rules(t *testing.T) []rule {
	t.Helper()
	return append(rulesIn(t, "recording"), alerts(t)...)
}

func alerts(t *testing.T) []rule {
	t.Helper()
	return append(rulesIn(t, "page"), rulesIn(t, "ticket")...)
}

func TestFilesOfRules(t *testing.T) {
	for name, severity := range map[string]string{"recording": "", "page": "page", "ticket": "ticket"} {
		for _, r := range rulesIn(t, name) {
			if (r.Alert == "") != (severity == "") || r.Labels["severity"] != severity || severity != "" && r.Labels["service"] != "ingot" {
				t.Errorf("rules/%s.yaml: %s%s has labels %v", name, r.Record, r.Alert, r.Labels)
			}
		}
	}
}

func TestEachAlertSaysWhatWaitsAndWhereToReadOn(t *testing.T) {
	for _, r := range alerts(t) {
		if s := r.Annotations["summary"]; !strings.HasSuffix(s, ".") {
			t.Errorf("%s says %q, which is no sentence", r.Alert, s)
		}
		if url := r.Annotations["runbook_url"]; url != `{{ or $externalLabels.ingot_runbooks "docs/runbooks.md" }}#`+strings.ToLower(r.Alert) {
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

var matcher = regexp.MustCompile(`^(\w+)=~?"([^"]*)"$`)

// TestInhibitRules checks what amtool does not: that alerts exist, and have the labels that rules compare.
func TestInhibitRules(t *testing.T) {
	known := make(map[string]rule)
	for _, r := range alerts(t) {
		known[r.Alert] = r
	}
	var file struct {
		Route        map[string]any   `json:"route"`
		Receivers    []map[string]any `json:"receivers"`
		InhibitRules []struct {
			SourceMatchers []string `json:"source_matchers"`
			TargetMatchers []string `json:"target_matchers"`
			Equal          []string `json:"equal"`
		} `json:"inhibit_rules"`
	}
	readYAML(t, "alertmanager.yaml", &file)
	if len(file.InhibitRules) == 0 {
		t.Fatal("no inhibit_rules")
	}
	for _, i := range file.InhibitRules {
		for _, m := range append(i.SourceMatchers, i.TargetMatchers...) {
			parts := matcher.FindStringSubmatch(m)
			if parts == nil {
				t.Errorf("%s is not a matcher", m)
				continue
			}
			if parts[1] != "alertname" {
				continue
			}
			for name := range strings.SplitSeq(parts[2], "|") {
				r, ok := known[name]
				if !ok {
					t.Errorf("%s is not an alert", name)
				}
				for _, label := range i.Equal {
					if !strings.Contains(r.Annotations["summary"], "$labels."+label) {
						t.Errorf("%s has no label %s", name, label)
					}
				}
			}
		}
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
	for _, args := range [][]string{{"check", "rules", "rules/recording.yaml", "rules/page.yaml", "rules/ticket.yaml"}, append([]string{"test", "rules"}, files...)} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
