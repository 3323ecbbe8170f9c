package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"ingot/model/must"
)

// model is that of the command line.
func cliModel(t *testing.T) *kong.Node {
	t.Helper()
	parser := must.Get(kong.New(&commandLine{}, kong.Name("ingot"), kong.Description(description), kong.Vars{"personalities": "x", "version": "v"}))(t)
	return parser.Model.Node
}

func TestComplete(t *testing.T) {
	for line, want := range map[string]string{
		"sta":                       "status",
		"":                          "run",
		"image p":                   "push pull",
		"explain ":                  "server claim boot-configuration bmc endpoint",
		"explain cl":                "claim",
		"explain --watch cl":        "claim",
		"completion ":               "bash zsh fish",
		"image make --arch ":        "amd64 arm64",
		"image make --arch=amd64 x": "",
		"image make --uk":           "--uki",
		"run --config ":             "",
		"run --fa":                  "",
		"--log-fo":                  "--log-format",
		"--log-format j":            "json",
		"--log-format json stat":    "status",
		"__":                        "",
	} {
		got := complete(cliModel(t), strings.Split(line, " "))
		if line == "" {
			if !slices.Contains(got, want) {
				t.Errorf("nothing: got %v", got)
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", line, got, want)
		}
	}
}

func TestCompletionsAreWhatShellsUnderstand(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here: its completion is not tried", shell)
			continue
		}
		cmd := exec.Command(program, "-n")
		cmd.Stdin = strings.NewReader(completions[shell])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

func TestManPages(t *testing.T) {
	app := cliModel(t)
	page := manPage(app, childOf(app, "check"), "ingot-check")
	for _, want := range []string{".TH INGOT\\-CHECK 1", ".SH NAME\ningot\\-check \\- ", ".B ingot check", "\\-\\-config"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	man, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not here: pages are not set")
		return
	}
	cmd := exec.Command(man, "-man", "-Tutf8", "-ww", "-z", filepath.Join("/dev", "stdin"))
	cmd.Stdin = strings.NewReader(page + manPage(app, app, "ingot"))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}
