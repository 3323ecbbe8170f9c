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
			for name, content := range bootFiles() {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// bootFiles are the smallest valid kernel, initramfs and UKI.
func bootFiles() map[string][]byte {
	kernel := append(make([]byte, 0x202), "HdrS"...)
	arm := append(make([]byte, 0x40), "PE\x00\x00\x64\xaa"...)
	copy(arm, "MZ")
	arm[0x3c] = 0x40
	return map[string][]byte{"vmlinuz": kernel, "initrd": []byte("070701"), "uki-arm64.efi": arm}
}
