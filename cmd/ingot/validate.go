package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Limits of what is validated, those of a revision in Git.
const (
	maxManifest  = 1 << 20 // bytes of one file
	maxManifests = 100_000 // files
)

type validateCommand struct {
	Paths         []string `arg:"" name:"path" help:"Files, or folders that are searched for .yaml, .yml and .json files; - is standard input."`
	Revision      string   `placeholder:"FILE" help:"revision.yaml of the status branch, or Ingot's configuration: each file is held to what git.tenants lets its folder define. Paths are then those of the repository: run it at its root."`
	StrictSecrets bool     `help:"Refuse secrets in plain text, as the daemon does unless git.allowPlaintextSecrets is true. Else they are a warning."`
}

// Help implements kong.HelpProvider.
func (validateCommand) Help() string {
	return `Decodes every manifest as the daemon does, strictly, and checks them against one another. A problem is one line, file:line:column: what is wrong and what is allowed. Hidden files and folders are left out.

Exits 0 when there is no error; warnings do not count.

Examples:

  ingot validate fleet/
  ingot validate claims/web-1.yaml claims/web-2.yaml
  kustomize build overlays/berlin | ingot validate -
  git show origin/status:revision.yaml > /tmp/revision.yaml && ingot validate --revision /tmp/revision.yaml .
  ingot validate -o json .`
}

// validation is what was found.
type validation struct {
	Files    int             `json:"files"`
	Objects  int             `json:"objects"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Problems []model.Problem `json:"problems"`
}

// Run checks the manifests and prints what is wrong with them.
func (v validateCommand) Run(c *console) error {
	files, err := manifestFiles(v.Paths)
	if err != nil {
		return err
	}
	check := newManifestCheck(v.StrictSecrets)
	if check.tenants, err = readTenants(v.Revision); err != nil {
		return err
	}
	for _, file := range files {
		if isLink(file) && !slices.Contains(v.Paths, file) {
			check.refuse(displayName(file), "is a symbolic link, which is not followed: put the manifest itself here")
			continue
		}
		data, err := readManifest(file, c.in)
		if err != nil {
			return err
		}
		check.file(displayName(file), data)
	}
	found := check.finish(len(files))
	if c.json() {
		err = c.printJSON(found)
	} else {
		found.print(c)
	}
	if err == nil && found.Errors > 0 {
		err = fmt.Errorf("%s in %s", plural(found.Errors, "error"), plural(found.Files, "file"))
	}
	return err
}

func (v *validation) print(c *console) {
	for _, p := range v.Problems {
		in := red
		if p.Severity == model.SeverityWarning {
			in = yellow
		}
		c.printf("%s\n", c.paint(printable(p.String()), in))
	}
	c.printf("%s, %s: %s, %s\n", plural(v.Files, "file"), plural(v.Objects, "object"), plural(v.Errors, "error"), plural(v.Warnings, "warning"))
}

// manifestCheck gathers the objects of many files and what is wrong with them.
type manifestCheck struct {
	strictSecrets bool
	tenants       model.Tenants
	objects       int
	places        map[model.Identity][]string // where objects are defined
	desired       *model.Desired
	problems      []model.Problem
}

func newManifestCheck(strictSecrets bool) *manifestCheck {
	return &manifestCheck{strictSecrets: strictSecrets, places: make(map[model.Identity][]string), desired: model.NewDesired()}
}

// file takes in one file.
func (m *manifestCheck) file(name string, data []byte) {
	objects, problems := model.Decode(name, data, model.DecodeOptions{AllowPlaintextSecrets: !m.strictSecrets})
	m.problems = append(m.problems, problems...)
	m.objects += len(objects)
	m.tenants.Place(name, objects)
	for _, o := range objects {
		if o.Metadata().Refused != "" {
			m.problems = append(m.problems, model.RefusedProblem(o))
			continue
		}
		m.object(o)
	}
}

// readTenants reads who may define what, as the status branch or the configuration has
// it; without a file one operator may define all.
func readTenants(file string) (model.Tenants, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var in struct {
		Tenants model.Tenants
		Git     struct{ Tenants model.Tenants }
	}
	if err := yaml.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("read tenants from %s: %w", file, err)
	}
	return append(in.Tenants, in.Git.Tenants...), nil
}

func (m *manifestCheck) object(o model.Object) {
	id := o.Identity()
	m.places[id] = append(m.places[id], o.Metadata().Source)
	m.desired.Add(o)
	if holdsSecret(o) {
		m.report(model.SeverityWarning, id, o.Metadata().Source, "holds a secret in plain text, which the daemon refuses unless git.allowPlaintextSecrets is true")
	}
}

// refuse says why a file is not looked at.
func (m *manifestCheck) refuse(name, why string) {
	m.problems = append(m.problems, model.Problem{Severity: model.SeverityError, File: name, Message: why})
}

func (m *manifestCheck) report(severity model.Severity, id model.Identity, source, message string) {
	file, line := splitSource(source)
	m.problems = append(m.problems, model.Problem{
		Severity: severity, File: file, Line: line, Object: id.String(), Message: message,
	})
}

// twice reports every place of objects that are defined in more than one.
func (m *manifestCheck) twice() {
	for id, places := range m.places {
		for i, here := range places {
			if len(places) == 1 {
				break
			}
			others := slices.Delete(slices.Clone(places), i, i+1)
			m.report(model.SeverityError, id, here, "is also defined in "+strings.Join(others, " and ")+": keep one of them")
		}
	}
}

// finish checks the objects against one another and counts.
func (m *manifestCheck) finish(files int) *validation {
	m.twice()
	m.problems = append(m.problems, model.CrossCheck(m.desired)...)
	model.SortProblems(m.problems)
	v := &validation{Files: files, Objects: m.objects, Problems: append([]model.Problem{}, m.problems...)}
	for _, p := range m.problems {
		if p.Severity == model.SeverityError {
			v.Errors++
		} else {
			v.Warnings++
		}
	}
	return v
}

func holdsSecret(o model.Object) bool {
	switch o := o.(type) {
	case *model.Secret:
		return len(o.Values) > 0
	case *model.BMCSecret:
		return len(o.Values) > 0
	}
	return false
}

// splitSource splits "path:line".
func splitSource(source string) (file string, line int) {
	i := strings.LastIndexByte(source, ':')
	if i < 0 {
		return source, 0
	}
	if _, err := fmt.Sscanf(source[i+1:], "%d", &line); err != nil {
		return source, 0
	}
	return source[:i], line
}

// manifestFiles returns the files that paths name, in order and each once.
func manifestFiles(paths []string) ([]string, error) {
	var files []string
	seen := make(map[string]bool)
	for _, path := range paths {
		found, err := manifestsAt(path)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
		if len(files) > maxManifests {
			return nil, fmt.Errorf("there are more than %d manifests: validate them by folder", maxManifests)
		}
	}
	return files, nil
}

// manifestsAt returns the file at path, or the manifests in the folder at path.
func manifestsAt(path string) ([]string, error) {
	if path == "-" {
		return []string{"-"}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s", path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{filepath.Clean(path)}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		hidden := at != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir() && isManifest(at):
			files = append(files, filepath.Clean(at))
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no manifests: no file of it ends in .yaml, .yml or .json", path)
	}
	return files, err
}

func isManifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// readManifest reads a file, or in for the file "-".
func readManifest(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close() // read only: nothing is lost
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", displayName(file), err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s has more than %d bytes, which is all a manifest may have: split it", displayName(file), maxManifest)
	}
	return data, nil
}

// displayName is how problems name a file: with slashes, as Git does.
func displayName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return filepath.ToSlash(file)
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
