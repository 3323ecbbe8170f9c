package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// parallel is how many tests run at once: they mostly wait for clients.
const parallel = "12"

// scratch is a folder for what is built once, and sweptContext ends with the run.
var (
	scratch      string
	sweptContext context.Context
)

// Main runs the tests of a package, or what the rig needs this program for in their
// place, and returns the exit code.
func Main(m *testing.M) int {
	if run := os.Getenv(helperVariable); run != "" {
		return helper(run)
	}
	flag.Parse()
	if !isSet("test.parallel") {
		_ = flag.Set("test.parallel", parallel)
	}
	code, err := sweptRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		code = 1
	}
	return code
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// sweptRun runs the tests between a beginning and an end without leftovers.
func sweptRun(m *testing.M) (code int, err error) {
	if os.Geteuid() == 0 {
		sweep()
	}
	if scratch, err = os.MkdirTemp("", "ingot-lab-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sweptContext = ctx
	return m.Run(), nil
}

// builtIngot builds the program under test, once, and returns where it is. A
// program that was built before is tested when the environment names one.
var builtIngot = sync.OnceValues(func() (string, error) {
	if program := os.Getenv("INGOT_LAB_PROGRAM"); program != "" {
		return program, nil
	}
	program := filepath.Join(scratch, "ingot")
	return program, Build(program, "ingot/cmd/ingot")
})

// Build builds a program of this module.
func Build(path, source string, flags ...string) error {
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), source)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	return nil
}
