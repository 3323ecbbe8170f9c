package daemon

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"ingot/model"
)

const (
	// variablePrefix begins the name of every environment variable of ours.
	variablePrefix = "INGOT_"
	// maxConfiguration bounds a configuration file, in bytes.
	maxConfiguration = 1 << 20
)

// LoadOptions returns the defaults, overlaid with what file says, overlaid with
// the INGOT_ variables of env, and checked. An empty file name means environment only.
//
// A key's variable is its path in upper case with underscores: bmc.pollInterval
// is INGOT_BMC_POLL_INTERVAL. A list is written with commas. An error has a line
// for each problem: where it stands, the key, and what to do.
func LoadOptions(file string, env []string) (Options, error) {
	opts := DefaultOptions()
	data, err := readConfiguration(file)
	if err != nil {
		return Options{}, err
	}
	problems := model.DecodeStrict(file, data, &opts)
	if !model.HasErrors(problems) {
		set, wrong := overlay(&opts, env)
		if len(wrong) == 0 {
			wrong = append(opts.Validate(), missingFiles(&opts)...)
			locate(wrong, file, data, set)
		}
		problems = wrong
	}
	if err := model.JoinErrors(problems); err != nil {
		return Options{}, err
	}
	return opts, nil
}

func readConfiguration(file string) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, maxConfiguration+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxConfiguration {
		return nil, fmt.Errorf("read configuration: %s is larger than 1 MiB; is it the right file?", file)
	}
	return data, nil
}

// setting is one key of the configuration.
type setting struct {
	path     string // git.auth.usernameFile
	variable string // INGOT_GIT_AUTH_USERNAME_FILE
	value    reflect.Value
}

// settings returns every key of o, in the order of the struct.
func settings(o *Options) []setting {
	return appendSettings(nil, "", reflect.ValueOf(o).Elem())
}

func appendSettings(all []setting, prefix string, v reflect.Value) []setting {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		path := prefix + name
		if field := v.Field(i); field.Kind() == reflect.Struct {
			all = appendSettings(all, path+".", field)
		} else {
			all = append(all, setting{path: path, variable: variableOf(path), value: field})
		}
	}
	return all
}

// variableOf returns the environment variable of the key at path.
func variableOf(path string) string {
	var b strings.Builder
	b.WriteString(variablePrefix)
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return b.String()
}

// overlay sets in o what the variables of env say. It returns the variable by
// path for each key that was set, and what is wrong.
func overlay(o *Options, env []string) (map[string]string, []model.Problem) {
	byVariable := make(map[string]setting)
	var variables []string
	for _, s := range settings(o) {
		byVariable[s.variable] = s
		variables = append(variables, s.variable)
	}
	set := make(map[string]string)
	var problems []model.Problem
	for _, entry := range env {
		variable, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, variablePrefix) {
			continue
		}
		s, known := byVariable[variable]
		if !known {
			problems = append(problems, model.Problem{
				Severity: model.SeverityError, File: variable,
				Message: "there is no such setting" + didYouMean(variable, variables) + "; unset it or correct its name",
			})
			continue
		}
		set[s.path] = variable
		if err := assign(s.value, text); err != nil {
			problems = append(problems, model.Problem{
				Severity: model.SeverityError, File: variable, Field: s.path, Message: err.Error(),
			})
		}
	}
	return set, problems
}

// assign sets v to what text says, by the type of v.
func assign(v reflect.Value, text string) error {
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		return u.UnmarshalText([]byte(text))
	}
	var err error
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = splitList(text)
	case *map[string]string:
		*p, err = splitPairs(text)
		return err
	case *model.BMCNetworks:
		*p, err = splitNetworks(text)
		return err
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is no number", text)
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is no duration; write a number and a unit, such as 60s, 5m or 1h", text)
		}
	default:
		if strings.Trim(text, " []") != "" {
			return errors.New("this list cannot be written in a variable; write it in the configuration file")
		}
		v.SetZero()
	}
	return nil
}

func splitList(text string) []string {
	items := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// splitNetworks reads networks without more to say of them than their prefixes.
func splitNetworks(text string) (model.BMCNetworks, error) {
	networks := model.BMCNetworks{}
	for _, item := range splitList(text) {
		var n model.BMCNetwork
		if err := n.UnmarshalText([]byte(item)); err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// splitPairs reads key=value,key=value.
func splitPairs(text string) (map[string]string, error) {
	pairs := make(map[string]string)
	for _, item := range splitList(text) {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is no pair; write key=value, with commas between pairs", item)
		}
		pairs[key] = value
	}
	return pairs, nil
}

// missingFiles finds settings that name a file which cannot be read: better said
// now than when the first BMC is spoken to.
func missingFiles(o *Options) []model.Problem {
	var problems checks
	for _, s := range settings(o) {
		name, ok := reflect.TypeAssert[string](s.value)
		if !ok || name == "" || !strings.HasSuffix(s.path, "File") {
			continue
		}
		if err := readable(name); err != nil {
			problems.wrong(s.path, "%q cannot be read: %v; create it, or take the key out", name, err)
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

// locate says of each problem where the setting comes from: the variable that
// set it, or its place in the file.
func locate(problems []model.Problem, file string, data []byte, set map[string]string) {
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil {
		return // it was decoded before, so this cannot be
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

// pathElements takes the path of a field apart: dhcp[0].name is dhcp, 0, name.
func pathElements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// nodeAt returns the value at path below n, or the nearest above it that is there;
// nil when not even its first element is.
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

// didYouMean returns a question with the nearest of names, or nothing when none
// is near.
func didYouMean(name string, names []string) string {
	if n := model.Nearest(name, names); n != "" {
		return fmt.Sprintf(", did you mean %s?", n)
	}
	return ""
}
