package machine

import (
	"net"
	"strings"
)

// maxCommandLine bounds /proc/cmdline, in bytes. Kernels accept about 4 KiB.
const maxCommandLine = 64 << 10

// commandLine is the part of the kernel's command line that matters here.
type commandLine struct {
	// ignitionURL is where the Ignition is, "" when DHCP is to say that. It may hold a
	// token, so it is never shown.
	ignitionURL string
	// bootMAC is the network card that the firmware or iPXE booted from (BOOTIF, as of
	// PXELINUX), nil when they do not say.
	bootMAC net.HardwareAddr
	// ip is a network configuration that is not supported, "" for none.
	ip string
	// modules are parameters of modules, by module: "a=1 b=2".
	modules map[string]string
}

// parseCommandLine reads a kernel's command line. Of a parameter that is given twice the
// last counts, as for the kernel.
func parseCommandLine(text string) commandLine {
	c := commandLine{modules: make(map[string]string)}
	for _, word := range kernelWords(text[:min(len(text), maxCommandLine)]) {
		key, value, _ := strings.Cut(word, "=")
		switch module, parameter, dotted := strings.Cut(key, "."); {
		case key == "ignition.config.url":
			c.ignitionURL = value
		case key == "BOOTIF":
			c.bootMAC = parseBootIF(value)
		case key == "ip":
			c.ip = unusualIP(value)
		case dotted && module != "" && parameter != "":
			name := strings.ReplaceAll(module, "-", "_")
			c.modules[name] = strings.TrimSpace(c.modules[name] + " " + strings.TrimPrefix(word, module+"."))
		}
	}
	return c
}

// kernelWords splits a command line at spaces outside of double quotes, and removes the
// quotes (Linux: lib/cmdline.c, next_arg).
func kernelWords(text string) []string {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range text + " " {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case !quoted && strings.ContainsRune(" \t\r\n\x00", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun { // a quote that never ends
		words = append(words, strings.TrimSpace(word.String()))
	}
	return words
}

// parseBootIF reads BOOTIF: hardware type 01 and a MAC address, with dashes.
func parseBootIF(value string) net.HardwareAddr {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(value, "-", ":"), "01:")
	if !ok {
		rest = value
	}
	mac, err := net.ParseMAC(rest)
	if err != nil || len(mac) != 6 {
		return nil
	}
	return mac
}

// unusualIP returns a value of ip= that asks for anything else than DHCP on all cards.
func unusualIP(value string) string {
	switch value {
	case "", "any", "dhcp", "on", "both", "dhcp6", "auto6", "either6":
		return ""
	}
	return value
}
