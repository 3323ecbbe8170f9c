package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"ingot/model"
)

// repositoryPath returns the path of a file as forges name it: from the root of the Git
// repository that it lies in. It is as it was given for a file that lies in none, and "" for
// standard input.
func repositoryPath(file string) string {
	abs, err := filepath.Abs(filepath.FromSlash(file))
	if file == displayName("-") || err != nil {
		return ""
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return filepath.ToSlash(strings.TrimPrefix(abs[len(dir):], string(filepath.Separator)))
		}
		if dir == filepath.Dir(dir) {
			return file
		}
	}
}

func (f *finding) text() string {
	p := model.Problem{Object: f.Object, Field: f.Field, Message: f.Message}
	return printable(p.String())
}

// fingerprints returns what tells each finding from the others in every run, wherever its line
// has moved to and however it is worded.
func fingerprints(findings []finding) []string {
	seen := make(map[string]int)
	prints := make([]string, len(findings))
	for i, f := range findings {
		what := strings.Join([]string{string(f.Rule), repositoryPath(f.File), f.Object, f.Field}, "\x00")
		seen[what]++
		prints[i] = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", what, seen[what])))
	}
	return prints
}

// What GitHub reads back out of a workflow command, in its text and in its properties.
// https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
var (
	escapeCommandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeCommandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// printWorkflowCommands prints what GitHub shows at the lines of a pull request. The log of the
// job shows the text of the commands alone, so that has the place, too. A severity is what GitHub
// calls its command.
func (v *validation) printWorkflowCommands(c *console) {
	for _, f := range v.Problems {
		var properties []string
		add := func(name, value string) {
			properties = append(properties, name+"="+escapeCommandProperty.Replace(withoutControls(value)))
		}
		if path := repositoryPath(f.File); path != "" {
			f.File = path
			add("file", path)
		}
		if f.Line > 0 {
			add("line", fmt.Sprint(f.Line))
		}
		if f.Column > 0 {
			add("col", fmt.Sprint(f.Column))
		}
		add("title", string(f.Rule))
		c.printf("::%s %s::%s\n", f.Severity, strings.Join(properties, ","), escapeCommandText.Replace(printable(f.String())))
	}
	v.printCounts(c)
}

// withoutControls replaces control characters, which a terminal that shows the log would obey.
func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\r' { // those are escaped
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// codeQualityIssue is an entry of GitLab's report, see
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
type codeQualityIssue struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

func codeQualityReport(findings []finding) []codeQualityIssue {
	issues := make([]codeQualityIssue, len(findings))
	prints := fingerprints(findings)
	for i, f := range findings {
		issue := codeQualityIssue{Description: f.text(), CheckName: string(f.Rule), Fingerprint: prints[i], Severity: "major"}
		if f.Severity == model.SeverityWarning {
			issue.Severity = "minor"
		}
		issue.Location.Path = cmp.Or(repositoryPath(f.File), f.File)
		issue.Location.Lines.Begin = max(1, f.Line)
		issues[i] = issue
	}
	return issues
}
