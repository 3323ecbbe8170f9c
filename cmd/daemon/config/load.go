package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ingot/gitsource"
	"ingot/model"
)

// maxSize bounds a configuration file, in bytes.
const maxSize = 1 << 20

// Load returns the defaults, overlaid with what file says, overlaid with the INGOT_
// variables of env, and checked. Without a file name the environment is all. An error has a
// line for each problem: where it is, the key, and what to do.
//
// The variable of a key is its path in upper case with underscores: guard.maxDisruptions is
// INGOT_GUARD_MAX_DISRUPTIONS. Lists and mappings have none.
func Load(file string, env []string) (Options, error) {
	opts := Default()
	opts.Git.Branch = "" // the default counts where nothing else is followed
	data, err := readFile(file)
	if err != nil {
		return Options{}, err
	}
	problems := model.DecodeStrict(file, data, &opts)
	for i, p := range problems {
		problems[i].Message = cmp.Or(removedKey(p.Field), p.Message)
	}
	undecoded := slices.ContainsFunc(problems, func(p model.Problem) bool { return p.Severity == model.SeverityError && p.Field == "" })
	if !undecoded {
		set, wrong := overlay(&opts, env)
		if opts.Git.Ref() == (gitsource.Ref{}) {
			opts.Git.Branch = Default().Git.Branch
		}
		opts.findProbe()
		found := append(opts.Validate(), missingFiles(&opts)...)
		locate(found, file, data, set)
		problems = append(problems, wrong...)
		if model.HasErrors(problems) { // a key that is absent may be one of these, misspelt
			found = slices.DeleteFunc(found, func(p model.Problem) bool {
				return set[p.Field] == "" && !isSet(data, p.Field) || slices.ContainsFunc(problems, func(o model.Problem) bool { return o.Field == p.Field })
			})
		}
		problems = append(problems, found...)
	}
	if err := model.JoinErrors(problems); err != nil {
		return Options{}, err
	}
	return opts, nil
}

// isSet reports whether a file has a key.
func isSet(data []byte, path string) bool {
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil {
		return false
	}
	elements := pathElements(path)
	above := nodeAt(&root, elements[:len(elements)-1])
	return above != nil && above.Kind == yaml.MappingNode && nodeAt(above, elements[len(elements)-1:]) != nil
}

// Read returns the configuration in a file, with the defaults. Its values, and the files that they name, are not checked:
// they may be those of another machine.
func Read(file string) (Options, error) {
	opts := Default()
	data, err := readFile(file)
	if err == nil {
		err = model.JoinErrors(model.DecodeStrict(file, data, &opts))
	}
	return opts, err
}

// findProbe has servers discovered with the image that a package installed, where no other
// is set: the layout "probe" in the first of boot.imageDirs that has one.
func (o *Options) findProbe() {
	for _, dir := range o.Boot.ImageDirs {
		layout := filepath.Join(dir, "probe")
		if info, err := os.Stat(filepath.Join(layout, "oci-layout")); o.Discovery.Image == "" && err == nil && info.Mode().IsRegular() {
			o.Discovery.Image = "oci:" + layout
		}
	}
}

func readFile(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read configuration: there is no file %s; name yours with --config", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("read configuration: %s is larger than 1 MiB; is it the right file?", file)
	}
	return data, nil
}

// missingFiles finds settings that name a file that cannot be read and that Ingot does not start
// without, so that it is known at the start, not with the first request to a BMC.
func missingFiles(o *Options) []model.Problem {
	var problems checks
	for _, f := range o.Files() {
		if err := f.Unreadable(); err != nil && f.Without == "" {
			problems.wrong(f.Key, "%q cannot be read: %v; create it, or remove the key", f.Path, err)
		}
	}
	return problems
}

// readable returns why name is no file that can be read, without repeating its
// name.
func readable(name string) error {
	f, err := os.Open(name)
	if err == nil {
		defer f.Close() // read only: nothing is lost
		_, err = f.Read(make([]byte, 1))
	}
	var p *fs.PathError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.As(err, &p):
		return p.Err
	}
	return err
}

// locate notes with each problem where the setting comes from: the variable that set it, or
// its line in the file.
func locate(problems []model.Problem, file string, data []byte, set map[string]string) {
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil {
		return // cannot be: it was decoded before
	}
	for i := range problems {
		p := &problems[i]
		if variable, ok := set[p.Field]; ok {
			p.File = variable
			continue
		}
		p.File = file
		if n := nodeAt(&root, pathElements(p.Field)); n != nil {
			p.Line, p.Column = n.Line, n.Column
		}
	}
}

// pathElements splits the path of a field: dhcp[0].name becomes dhcp, 0, name.
func pathElements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// nodeAt returns the value at path below n, or the nearest node above it that exists. It
// returns nil when not even the first element of path does.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	switch {
	case len(path) == 0:
		return n
	case n.Kind == yaml.DocumentNode && len(n.Content) == 1:
		return nodeAt(n.Content[0], path)
	case n.Kind == yaml.SequenceNode:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(n.Content) {
			return n
		}
		return cmp.Or(nodeAt(n.Content[i], path[1:]), n.Content[i])
	case n.Kind != yaml.MappingNode:
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == path[0] {
			return nodeAt(n.Content[i+1], path[1:])
		}
	}
	return nil
}
