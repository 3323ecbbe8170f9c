package inventory

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ingot/model"
)

// Bounds on a machine's data.
const (
	maxAttribute = 4 << 10  // bytes of a file that holds one value
	maxFile      = 16 << 20 // bytes of a file that holds many, as /proc/cpuinfo
	maxEntries   = 2048     // entries of a folder, and items of a list
)

// Host is the machine to read.
type Host struct {
	// Root holds sys, proc and dev; empty is the machine this runs on.
	Root string
	// Interfaces lists network interfaces and their addresses.
	Interfaces func() ([]Interface, error)
	// Serial asks a disk for its serial number when sysfs has none.
	Serial func(path string) (string, error)
	// LLDP returns the neighbours as lldpctl prints them in JSON, or ErrNoLLDP.
	LLDP func(ctx context.Context) ([]byte, error)
	Log  *slog.Logger
}

// ErrNoLLDP means that this machine has no LLDP daemon.
var ErrNoLLDP = errors.New("lldpctl is not installed")

// Local is the machine this runs on.
func Local(log *slog.Logger) *Host {
	return &Host{Interfaces: interfaces, Serial: inquireSerial, LLDP: lldpctl, Log: log}
}

// Read returns the machine's inventory as of now, without LLDP neighbours, which come and
// go: Neighbors reads them.
func (h *Host) Read(now time.Time) model.ProbeData {
	return model.ProbeData{
		Timestamp:         Timestamp(now),
		CPU:               h.cpus(),
		NetworkInterfaces: h.networkInterfaces(),
		LLDP:              []model.ProbeLLDP{},
		Storage:           h.storage(),
		NICs:              h.nics(),
	}
}

// Timestamp returns now in the wire format: in UTC, to the second.
func Timestamp(now time.Time) time.Time { return now.UTC().Truncate(time.Second) }

func (h *Host) path(elem ...string) string {
	return filepath.Join(append([]string{h.Root, "/"}, elem...)...)
}

// read returns the first max bytes of a file, nil when it cannot be read.
func (h *Host) read(limit int64, elem ...string) []byte {
	f, err := os.Open(h.path(elem...))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil
	}
	return b
}

// text returns a file's one value, empty when it cannot be read.
func (h *Host) text(elem ...string) string {
	return clean(string(h.read(maxAttribute, elem...)))
}

// number returns a file's one number, 0 when there is none.
func (h *Host) number(elem ...string) uint64 {
	n, err := strconv.ParseUint(h.text(elem...), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// names returns the sorted names of a folder's entries.
func (h *Host) names(elem ...string) []string {
	f, err := os.Open(h.path(elem...))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

func (h *Host) exists(elem ...string) bool {
	_, err := os.Stat(h.path(elem...))
	return err == nil
}

// target returns where the link at elem finally leads, "" when nowhere.
func (h *Host) target(elem ...string) string {
	p, err := filepath.EvalSymlinks(h.path(elem...))
	if err != nil {
		return ""
	}
	return p
}

// clean makes a value fit to be shown: printable UTF-8 of at most 1 KiB, without the
// padding that firmware adds.
func clean(s string) string {
	const longest = 1 << 10
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > longest {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:longest], ""))
	}
	return s
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
