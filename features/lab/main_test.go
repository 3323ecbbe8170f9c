package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

func TestMain(m *testing.M) {
	if run := os.Getenv(helperVariable); run != "" {
		os.Exit(helper(run))
	}
	flag.Parse()
	if !isSet("test.parallel") {
		_ = flag.Set("test.parallel", parallel)
	}
	code, err := sweptRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = 1
	}
	os.Exit(code)
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
	if out, err := exec.Command("go", "build", "-o", program, "ingot/cmd/ingot").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ingot: %w\n%s", err, out)
	}
	return program, nil
})

// A tool is a program that the lab runs, and the package of Debian that has it.
type tool struct{ program, install string }

// The tools. ip and busybox are needed by every test.
var (
	toolIP       = tool{"ip", "iproute2"}
	toolBusybox  = tool{"busybox", "busybox-static"}
	toolDhclient = tool{"dhclient", "isc-dhcp-client"}
	toolDhcpcd   = tool{"dhcpcd", "dhcpcd-base"}
	toolDhcrelay = tool{"dhcrelay", "isc-dhcp-relay"}
	toolDnsmasq  = tool{"dnsmasq", "dnsmasq-base"}
	toolRedis    = tool{"redis-server", "redis-server"}
	toolGit      = tool{"git", "git"}
	toolNft      = tool{"nft", "nftables"}
	toolRadvd    = tool{"radvd", "radvd"}
	toolQEMU     = tool{"qemu-system-x86_64", "qemu-system-x86"}
)

// required is set where a test that cannot run is a failure.
var required = os.Getenv("INGOT_LAB") == "required"

// need skips the test, or fails it where the lab is required, if this is not
// root or a tool is missing.
func need(t *testing.T, tools ...tool) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "the lab makes network namespaces, which takes root: run the tests as root")
	}
	if err := namespacesWork(); err != nil {
		missing(t, "no network namespace can be made here: "+err.Error())
	}
	var install []string
	for _, tool := range append([]tool{toolIP, toolBusybox, toolGit}, tools...) {
		if _, err := exec.LookPath(tool.program); err != nil {
			install = append(install, tool.install)
		}
	}
	if len(install) > 0 {
		missing(t, "programs are missing: apt-get install --no-install-recommends "+strings.Join(install, " "))
	}
}

// needFile is need for a file that a package brings.
func needFile(t *testing.T, path, install string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		missing(t, ""+path+" is missing: apt-get install --no-install-recommends "+install)
	}
}

func missing(t *testing.T, message string) {
	t.Helper()
	if required {
		t.Fatal(message)
	}
	t.Skip("SKIPPED, AND NOTHING IS PROVED: " + message)
}

// namespacesWork reports, once, whether this machine lets us make a namespace
// and a link.
var namespacesWork = sync.OnceValue(func() error {
	name := namespacePrefix() + "try"
	for _, command := range [][]string{
		{"netns", "add", name},
		{"-n", name, "link", "add", "name", "here", "type", "veth", "peer", "name", "there"},
		{"netns", "del", name},
	} {
		if out, err := exec.Command("ip", command...).CombinedOutput(); err != nil {
			_ = exec.Command("ip", "netns", "del", name).Run()
			return fmt.Errorf("ip %s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
})
