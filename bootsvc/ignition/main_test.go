package ignition

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ingot/model/must"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Package dataurl leaves a goroutine behind for some data URLs that it refuses.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/vincent-petithory/dataurl.(*lexer).emit"))
}

const (
	uuid1 = "38373000-3534-584d-5130-333030434a59"
	uuid2 = "00000000-0000-4000-8000-000000000002"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
