package dhcpimport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
)

// Bounds of what is read.
const (
	maxFile    = 64 << 20 // bytes of one file
	maxFiles   = 1000
	maxEntries = 100_000 // reservations and leases, those that are left out too
	maxDepth   = 64      // of blocks within blocks
	maxText    = 256     // bytes of a name, or of what is shown of a line
)

// Server is the DHCP server whose files are read.
type Server string

// The servers.
const (
	Kea     Server = "kea"
	Dnsmasq Server = "dnsmasq"
	Dhcpd   Server = "dhcpd"
)

// entry is an address that somebody has, or is to have.
type entry struct {
	address             netip.Addr
	mac                 string // canonical; empty = not known
	clientID            []byte // client identifier or DUID
	circuitID, remoteID []byte
	hostname            string
	options             map[string]string // of DHCPv4, by Ingot's names
	lease               bool              // the server gave it, and nobody wrote it down
	where               string            // file:line
}

// LeftOut is what no manifest was made of.
type LeftOut struct {
	Where string `json:"where"` // file:line
	What  string `json:"what"`
	Why   string `json:"why"`
}

// reader reads files one after the other.
type reader struct {
	now     time.Time
	file    string
	entries []entry
	leases  map[netip.Addr]leased
	leftOut []LeftOut
}

// leased is what the files say last of an address.
type leased struct {
	entry
	end  time.Time // zero = never
	over string    // why the lease does not count, "" if it does
}

// noPrefixes is why a prefix of DHCPv6 is left out.
const noPrefixes = "prefixes are not reserved for devices: Ingot delegates from dhcp[].subnets[].delegate"

// errTooMany is returned for more than maxEntries.
var errTooMany = fmt.Errorf("there are more than %d reservations and leases: import the networks one by one", maxEntries)

// parsers are how the files of each server are read.
var parsers = map[Server]func(*reader, []byte) error{Kea: (*reader).kea, Dnsmasq: (*reader).dnsmasq, Dhcpd: (*reader).dhcpd}

// unfinished are the endings of files that Kea has beside its leases while it rewrites them, of which the others
// still say all (kea-lfc(8)).
var unfinished = []string{".output", ".pid"}

// read reads files, and those in folders.
func (r *reader) read(from Server, paths []string) error {
	files, err := filesOf(paths)
	if err != nil {
		return err
	}
	for _, r.file = range files {
		if from == Kea && slices.Contains(unfinished, filepath.Ext(r.file)) {
			if err := r.skip(r.file, "the file", "Kea is rewriting its leases, and the other files have all of them"); err != nil {
				return err
			}
			continue
		}
		data, err := readFile(r.file)
		if err == nil {
			err = parsers[from](r, data)
		}
		if err == nil && len(r.entries)+len(r.leases)+len(r.leftOut) > maxEntries {
			err = errTooMany
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r.file, err)
		}
	}
	return nil
}

// filesOf returns files in the order in which they were written: where a server writes its leases anew,
// what it wrote before goes first.
func filesOf(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		all, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			name := f.Name() // as dnsmasq reads a folder
			if f.Type()&fs.ModeType == 0 && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#") && !strings.HasSuffix(name, "~") {
				files = append(files, filepath.Join(path, name))
			}
		}
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("there are %d files, at most %d are read", len(files), maxFiles)
	}
	older := []string{".completed", ".2", ".1"} // of Kea's lease files
	rank := func(path string) int {
		if i := slices.Index(older, filepath.Ext(path)); i >= 0 {
			return i
		}
		return len(older)
	}
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return files, nil
}

// readFile reads a file that is not too long.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("it has more than %d MiB", maxFile>>20)
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("it is not a text file")
	}
	return data, nil
}

// skipUnfinished leaves out a line or block of a lease file that does not end: half of a number is another one.
func (r *reader) skipUnfinished(line int, text string) error {
	return r.skip(r.at(line), strings.TrimSpace(text), "it is cut off: the server was writing it, or the copy is not whole; import again")
}

// at names a line of the file that is read.
func (r *reader) at(line int) string { return fmt.Sprintf("%s:%d", r.file, line) }

// skip leaves something out.
func (r *reader) skip(where, what, why string) error {
	if len(r.leftOut) >= maxEntries {
		return errTooMany
	}
	r.leftOut = append(r.leftOut, LeftOut{where, clip(what), why})
	return nil
}

// add adds what somebody wrote down.
func (r *reader) add(e entry) error {
	if len(r.entries) >= maxEntries {
		return errTooMany
	}
	r.entries = append(r.entries, e)
	return nil
}

// note notes the lease of an address, which counts until the files say something else of it.
func (r *reader) note(l leased) error {
	if r.leases == nil {
		r.leases = make(map[netip.Addr]leased)
	}
	if len(r.leases) >= maxEntries {
		return errTooMany
	}
	l.lease = true
	r.leases[l.address] = l
	return nil
}

// until notes when a lease ends. One that has ended does not count.
func (r *reader) until(l *leased, at time.Time) {
	if l.end = at; !at.After(r.now) {
		l.over = "the lease ended " + at.UTC().Format(time.RFC3339)
	}
}

// parseAddress reads the address of a device.
func parseAddress(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6()
}

// parseMAC reads a MAC address of Ethernet, "" if it is none. Bytes with colons may have one digit.
func parseMAC(s string) string {
	pairs := strings.Split(strings.TrimPrefix(s, "01-"), ":") // dnsmasq's type of hardware
	for i, p := range pairs {
		if len(p) == 1 {
			pairs[i] = "0" + p
		}
	}
	mac, ok := model.ParseMAC(strings.Join(pairs, ":"))
	if !ok || !mac.IsStation() {
		return ""
	}
	return mac.String()
}

// option adds an option of the entry, by Ingot's name for it or its number. One that is
// there by its name counts before the same by its number.
func (r *reader) option(e *entry, where, name, value string) error {
	if err := (model.DHCPOptions{}).Set(name, value); err != nil {
		return r.skip(where, "option "+name, err.Error())
	}
	if e.options == nil {
		e.options = make(map[string]string)
	}
	if named := model.DHCPOptionName(name); e.options[named] != "" {
		return r.skip(where, "option "+name, "it is set by "+named+", too")
	}
	e.options[name] = value
	for other := range e.options {
		if model.DHCPOptionName(other) == name {
			delete(e.options, other)
			return r.skip(where, "option "+other, "it is set by "+name+", too")
		}
	}
	return nil
}

// optionNames are Ingot's names of options that Kea and dhcpd call otherwise.
var optionNames = map[string]string{
	"host-name": "host-name", "interface-mtu": "mtu", "ntp-servers": "ntp-servers", "tftp-server-name": "tftp-server",
	"boot-file-name": "boot-file", "bootfile-name": "boot-file", "domain-search": "domain-search", "v6-only-preferred": "ipv6-only",
	"v4-captive-portal": "captive-portal", "capwap-ac-v4": "capwap", "classless-static-route": "routes", "vendor-encapsulated-options": "vendor",
}

// clip cuts what is shown.
func clip(s string) string { return text.Clip(s, maxText) }
