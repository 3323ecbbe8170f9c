package main

import (
	"os"
	"path/filepath"
	"testing"

	"ingot/model/must"
)

func TestTheConfigurationIsThatOfTheWorkingDirectoryUnlessOneIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := configFile(""); got != "" {
		t.Errorf("with no file: %q, want none", got)
	}
	must.Do(t, os.WriteFile("ingot.yaml", nil, 0o600))
	if got := configFile(""); got != "ingot.yaml" {
		t.Errorf("with ingot.yaml: %q", got)
	}
	named := filepath.Join("elsewhere", "a.yaml") // that it is missing, its reader says
	if got := configFile(named); got != named {
		t.Errorf("with another named: %q", got)
	}
}
