package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// All mistakes are reported at once; a key that is absent may be a misspelt one, so it is not.
func TestAllErrorsAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("ingot.yaml", []byte("git: {ulr: https://git.example.com/infra/metal.git}\n"+
		"bmc: {powerOffGrace: 5}\ncleanup: {mode: fast}\nstatus: {author: anna}\n"), 0o600))
	_, err := Load(filepath.Base("ingot.yaml"), []string{"INGOT_GUARD_WINDOW=1"})
	want := `ingot.yaml:1:7: git.ulr: unknown field, did you mean "url"?
ingot.yaml:2:22: bmc.powerOffGrace: found the number 5, want a duration with a unit, such as 60s, 5m or 1h30m
INGOT_GUARD_WINDOW: guard.window: "1" is no duration; write a number and a unit, such as 60s, 5m or 1h
ingot.yaml:3:17: cleanup.mode: "fast" is not allowed: must be one of none, quick, secure
ingot.yaml:4:18: status.author: "anna" is not allowed: must be NAME <EMAIL>, the author of the commits on the status branch`
	if err == nil || err.Error() != want {
		t.Error(cmp.Diff(want, err.Error()))
	}
}
