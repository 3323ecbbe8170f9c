package modules

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Folder is where an initramfs has its modules, each as NAME.ko, and IndexFile
// the index of them.
const (
	Folder    = "/lib/modules"
	IndexFile = Folder + "/index"
)

// Index describes a set of modules. Names have underscores, never dashes.
type Index struct {
	// Modules are the modules each module needs, in the order to load them.
	Modules map[string][]string
	Aliases []Alias
}

// Alias says that a module is for what matches a pattern: a device's modalias, or
// a name that the kernel asks for.
type Alias struct {
	Pattern string // *, ? and [a-f] as in fnmatch(3)
	Module  string
}

// Normal is a module's name with underscores.
func Normal(name string) string { return strings.ReplaceAll(name, "-", "_") }

// For returns the modules for a modalias or the name of a module or alias, in
// alphabetical order.
func (x Index) For(wanted string) []string {
	var names []string
	if _, ok := x.Modules[Normal(wanted)]; ok {
		names = append(names, Normal(wanted))
	}
	for _, a := range x.Aliases {
		if a.matches(wanted) {
			names = append(names, a.Module)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// matches compares the text before the first wildcard first, because nearly all aliases
// are for other hardware.
func (a Alias) matches(wanted string) bool {
	plain := a.Pattern
	if i := strings.IndexAny(plain, "*?["); i >= 0 {
		plain = plain[:i]
	}
	if !strings.HasPrefix(wanted, plain) {
		return false
	}
	ok, err := path.Match(noSlash(a.Pattern), noSlash(wanted))
	return err == nil && ok
}

// noSlash hides slashes, which path.Match does not match by a wildcard.
func noSlash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// Encode returns the index as text. Equal indexes give equal text.
func (x Index) Encode() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(x.Modules)) {
		fmt.Fprintln(&b, strings.Join(append([]string{"module", name}, x.Modules[name]...), " "))
	}
	lines := make([]string, 0, len(x.Aliases))
	for _, a := range x.Aliases {
		lines = append(lines, "alias "+a.Module+" "+a.Pattern)
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(&b, line)
	}
	return b.Bytes()
}

// Parse reads what Encode wrote.
func Parse(r io.Reader) (Index, error) {
	x := Index{Modules: make(map[string][]string)}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) >= 2 && words[0] == "module":
			x.Modules[words[1]] = words[2:]
		case len(words) == 3 && words[0] == "alias":
			x.Aliases = append(x.Aliases, Alias{Module: words[1], Pattern: words[2]})
		default:
			return Index{}, fmt.Errorf("module index, line %d: want module NAME NEEDED… or alias NAME PATTERN", n)
		}
	}
	return x, lines.Err()
}
