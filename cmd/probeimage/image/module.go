package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ingot/cmd/metalprobe/modules"
)

type module struct {
	content  []byte
	needs    []string // modules that have to be loaded before it, or aliases of them
	aliases  []string
	firmware []string // files that its hardware may need
	release  string   // of the kernel that it was built for
}

// readModule reads a module's .modinfo section: words "key=value", each terminated by a
// zero byte.
func readModule(content []byte) (module, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return module{}, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return module{}, errors.New("it has no .modinfo section")
	}
	info, err := section.Data()
	if err != nil {
		return module{}, err
	}
	m := module{content: content}
	for line := range strings.SplitSeq(string(info), "\x00") {
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "depends":
			m.needs = append(m.needs, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })...)
		case "softdep":
			m.needs = append(m.needs, before(value)...)
		case "alias":
			m.aliases = append(m.aliases, value)
		case "firmware":
			m.firmware = append(m.firmware, value)
		case "vermagic":
			m.release, _, _ = strings.Cut(value, " ")
		}
	}
	return m, nil
}

// before returns the modules after "pre:" of a softdep (modprobe.d(5)).
func before(softdep string) []string {
	var names []string
	pre := false
	for word := range strings.FieldsSeq(softdep) {
		switch word {
		case "pre:", "post:":
			pre = word == "pre:"
		default:
			if pre {
				names = append(names, word)
			}
		}
	}
	return names
}

// library reads modules on demand, from a package or a folder.
type library struct {
	files map[string]string // path of a module by its name
	read  func(path string) ([]byte, error)
	known map[string]module
}

// moduleName returns the name of the module at a path, "" when it is none.
func moduleName(file string) (name, compression string) {
	base := path.Base(file)
	name, rest, ok := strings.Cut(base, ".ko")
	if !ok || rest != "" && rest[0] != '.' {
		return "", ""
	}
	return modules.Normal(name), strings.TrimPrefix(rest, ".")
}

func (l *library) get(name string) (module, error) {
	if m, ok := l.known[name]; ok {
		return m, nil
	}
	content, err := l.read(l.files[name])
	if err != nil {
		return module{}, err
	}
	m, err := readModule(content)
	if err != nil {
		return module{}, fmt.Errorf("read module %s: %w", name, err)
	}
	l.known[name] = m
	return m, nil
}

// pick returns the wanted modules and all on which they depend, with an index of them. A
// wanted module that the kernel does not have is left out: it may be built in, or belong
// to older or newer kernels.
func (l *library) pick(wanted []string) (map[string]module, modules.Index, error) {
	order := make(map[string][]string)
	for _, name := range wanted {
		if err := l.resolve(modules.Normal(name), order, nil); err != nil {
			return nil, modules.Index{}, err
		}
	}
	picked := make(map[string]module)
	index := modules.Index{Modules: order}
	for _, name := range slices.Sorted(maps.Keys(order)) {
		picked[name] = l.known[name]
		for _, alias := range l.known[name].aliases {
			if !strings.ContainsAny(alias, " \t\n") {
				index.Aliases = append(index.Aliases, modules.Alias{Pattern: alias, Module: name})
			}
		}
	}
	return picked, index, nil
}

// resolve notes in order the modules on which the module depends, in the order of
// loading. above are the modules that depend on it.
func (l *library) resolve(name string, order map[string][]string, above []string) error {
	if _, done := order[name]; done || l.files[name] == "" {
		return nil
	}
	if slices.Contains(above, name) {
		return fmt.Errorf("modules depend on each other: %s", strings.Join(append(above, name), ", "))
	}
	m, err := l.get(name)
	if err != nil {
		return err
	}
	needed := []string{}
	for _, need := range m.needs {
		need = modules.Normal(need)
		if err := l.resolve(need, order, append(above, name)); err != nil {
			return err
		}
		if _, ok := order[need]; !ok {
			continue // built in
		}
		for _, n := range append(slices.Clone(order[need]), need) {
			if !slices.Contains(needed, n) {
				needed = append(needed, n)
			}
		}
	}
	order[name] = needed
	return nil
}
