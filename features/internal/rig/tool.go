package rig

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Tool is a program that tests run, and the package of Debian that has it.
type Tool struct{ Program, Install string }

// The tools. Every test needs ip, busybox and git.
var (
	ToolIP         = Tool{"ip", "iproute2"}
	ToolBusybox    = Tool{"busybox", "busybox-static"}
	ToolDhclient   = Tool{"dhclient", "isc-dhcp-client"}
	ToolDhcpcd     = Tool{"dhcpcd", "dhcpcd-base"}
	ToolDhcrelay   = Tool{"dhcrelay", "isc-dhcp-relay"}
	ToolDnsmasq    = Tool{"dnsmasq", "dnsmasq-base"}
	ToolRedis      = Tool{"redis-server", "redis-server"}
	ToolGit        = Tool{"git", "git"}
	ToolNft        = Tool{"nft", "nftables"}
	ToolRadvd      = Tool{"radvd", "radvd"}
	ToolQEMU       = Tool{"qemu-system-x86_64", "qemu-system-x86"}
	ToolMtools     = Tool{"mcopy", "mtools"}
	ToolSyslinux   = Tool{"syslinux", "syslinux"}
	ToolMmdebstrap = Tool{"mmdebstrap", "mmdebstrap"}
	ToolSfdisk     = Tool{"sfdisk", "fdisk"}
	ToolMkfsVFAT   = Tool{"mkfs.vfat", "dosfstools"}
	ToolQEMUImg    = Tool{"qemu-img", "qemu-utils"}
	ToolZstd       = Tool{"zstd", "zstd"}
	ToolSSH        = Tool{"ssh", "openssh-client"}
	ToolKea4       = Tool{"kea-dhcp4", "kea-dhcp4-server"}
	ToolKea6       = Tool{"kea-dhcp6", "kea-dhcp6-server"}
	ToolPerfdhcp   = Tool{"perfdhcp", "kea-admin"}
	ToolCurl       = Tool{"curl", "curl"}
	ToolNginx      = Tool{"nginx", "nginx-light"}
	ToolTftpd      = Tool{"in.tftpd", "tftpd-hpa"}

	ToolOsslsigncode = Tool{"osslsigncode", "osslsigncode"}
)

// SkipIfLate skips what is left of a long proof after PROOFS_UNTIL, in seconds since 1970:
// continuous integration has an end. What is left out stands in the file LEFT_OUT, too, if there is one.
func SkipIfLate(t testing.TB) {
	t.Helper()
	until, err := strconv.ParseInt(os.Getenv("PROOFS_UNTIL"), 10, 64)
	if err != nil || until <= 0 || time.Now().Unix() < until {
		return
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	if f, err := os.OpenFile(os.Getenv("LEFT_OUT"), os.O_APPEND|os.O_WRONLY, 0); err == nil {
		fmt.Fprintln(f, "LEFT OUT, AND NOT PROVED, for it is later than PROOFS_UNTIL: a part of "+name)
		f.Close()
	}
	t.Skip("SKIPPED, AND NOTHING IS PROVED: it is later than PROOFS_UNTIL")
}

// required is set where a test that cannot run is a failure.
var required = os.Getenv("INGOT_LAB") == "required"

// Need skips the test, or fails it where the lab is required, if this is not
// root or a tool is missing.
func Need(t testing.TB, tools ...Tool) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "the lab makes network namespaces, which takes root: run the tests as root")
	}
	if err := namespacesWork(); err != nil {
		Missing(t, "no network namespace can be made here: "+err.Error())
	}
	if hint := Lacking(append(tools, ToolIP, ToolBusybox, ToolGit)...); hint != "" {
		Missing(t, hint)
	}
}

// Lacking says which of the tools are not here and how to get them, "" if all are.
func Lacking(tools ...Tool) string {
	var install []string
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.Program); err != nil {
			install = append(install, tool.Install)
		}
	}
	if len(install) == 0 {
		return ""
	}
	return "programs are missing: apt-get install --no-install-recommends " + strings.Join(install, " ")
}

// NeedFile is need for a file that a package brings.
func NeedFile(t testing.TB, path, install string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		Missing(t, path+" is missing: apt-get install --no-install-recommends "+install)
	}
}

// Missing skips the test, or fails it where the lab is required, for want of what
// the message says.
func Missing(t testing.TB, message string) {
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
