package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model/must"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ingot": main})
}

// The scripts run the command as people do and compare what it prints.
func TestScripts(t *testing.T) {
	seeds := must.Get(filepath.Abs("../../examples/seeds"))(t)
	encrypted := must.Get(filepath.Abs("../../gitsource/sops/testdata"))(t)
	disk := filepath.Join(t.TempDir(), "disk.raw")
	must.Do(t, os.WriteFile(disk, diskimagetest.Disk(diskimagetest.Options{BootCode: true, ESP: diskimagetest.Bootable()}), 0o600))
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("SEEDS", seeds)
			env.Setenv("SOPS", encrypted)
			env.Setenv("DISK", disk)
			return nil
		},
	})
}
