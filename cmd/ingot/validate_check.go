package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"ingot/bootsvc/claimcheck"
	"ingot/bootsvc/ignition"
	"ingot/cmd/daemon/config"
	"ingot/gitsource"
	"ingot/gitsource/sops"
	"ingot/model"
)

// manifestCheck gathers the objects of many files and what is wrong with them.
type manifestCheck struct {
	strictSecrets bool
	open          openFunc
	tenants       model.Tenants
	objects       int
	foreign       int
	places        map[model.Identity][]string // where objects are defined
	desired       *model.Desired
	problems      []model.Problem
	checker       model.CrossChecker
	boots         claimcheck.Checker
}

// configure has manifests checked against Ingot's configuration; "" = there is none.
func (m *manifestCheck) configure(file string) error {
	if file == "" {
		return nil
	}
	opts, err := config.Read(file)
	if err != nil {
		return err
	}
	m.tenants, m.checker, m.strictSecrets = opts.Git.Tenants, opts.CrossChecker(), m.strictSecrets || !opts.Git.AllowPlaintextSecrets
	m.boots.Allowed, err = opts.AllowedImages()
	return err
}

func newManifestCheck(strictSecrets bool) *manifestCheck {
	compiler, err := ignition.New(ignition.Options{})
	if err != nil {
		panic(err) // the built-in template is wrong
	}
	return &manifestCheck{
		strictSecrets: strictSecrets, places: make(map[model.Identity][]string), desired: model.NewDesired(), boots: claimcheck.Checker{Compiler: compiler},
	}
}

// openFunc opens an encrypted file, for model.DecodeOptions.
type openFunc = func([]*yamlv3.Node) (model.Opened, *model.OpenError)

// opener decrypts with the identities of a file, or checks what can be checked without.
func opener(ageKeyFile string) (openFunc, error) {
	if ageKeyFile == "" {
		return sops.Check, nil
	}
	keys := sops.NewKeys(ageKeyFile)
	_, err := keys.Reload()
	return keys.Open, err
}

// read reads a file, or in for the file "-", and takes it in. One that was found in a folder has to be
// what Git can hold; one that was named may also be a link or a pipe, as a shell's <(command) is.
func (m *manifestCheck) read(file string, in io.Reader, named bool) {
	name := displayName(file)
	if !named {
		if why := notInGit(file); why != "" {
			m.refuse(name, why)
			return
		}
	}
	data, err := readManifest(file, in)
	switch {
	case errors.Is(err, errTooLarge):
		m.refuse(name, gitsource.IsTooLarge)
	case err != nil:
		m.refuse(name, unreadable(err))
	case gitsource.PointsToLFS(data):
		m.refuse(name, gitsource.IsPointer)
	default:
		m.file(name, data, file == "-")
	}
}

// file takes in one file. One that is clearly something else than manifests is passed
// over, unless it was asked for as standard input is: whoever pipes it means it.
func (m *manifestCheck) file(name string, data []byte, asked bool) {
	objects, problems := model.Decode(name, data, model.DecodeOptions{AllowPlaintextSecrets: !m.strictSecrets, Open: m.open})
	if !asked && len(objects) == 0 && model.Foreign(name, data) {
		m.foreign++
		return
	}
	m.problems = append(m.problems, problems...)
	m.objects += len(objects)
	tenants := m.tenants
	if of := tenants.Of(name); path.Base(name) == model.CatalogFile && (of == nil || of.Path == ".") {
		tenants = tenants.WithCatalog(path.Dir(name)) // git.path is not known
	}
	tenants.Place(name, objects)
	if name != displayName("-") {
		model.PlaceCatalog("", name, objects)
	}
	for _, o := range objects {
		if o.Metadata().Refused != "" {
			m.problems = append(m.problems, model.RefusedProblem(o))
			m.desired.Quarantined[o.Identity()] = []string{""}
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
	var document any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("read tenants from %s: %w", file, err)
	}
	if err := hasTenants(document); err != nil {
		return nil, fmt.Errorf("%s %w: --revision takes fleet.yaml of the status branch, as git show origin/status:fleet.yaml prints it, "+
			"or Ingot's configuration", file, err)
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

// hasTenants refuses a document of another kind: without a list of tenants every file may define
// everything. A configuration has the field git, fleet.yaml has the others.
func hasTenants(document any) error {
	if document == nil {
		return errors.New("is empty")
	}
	fields, _ := document.(map[string]any)
	for _, name := range []string{"git", "tenants", "decided", "fence", "observedRevision", "lastAppliedRevision"} {
		if _, has := fields[name]; has {
			return nil
		}
	}
	return errors.New("is something else")
}

func (m *manifestCheck) object(o model.Object) {
	id := o.Identity()
	m.places[id] = append(m.places[id], o.Metadata().Source)
	m.desired.Add(o)
	if holdsSecret(o) {
		m.report(o.Metadata().Source, model.Problem{
			Severity: model.SeverityWarning, Object: id.String(), Rule: model.RuleSecret,
			Message: "holds a secret in plain text, which the daemon refuses unless git.allowPlaintextSecrets is true",
		})
	}
}

func (m *manifestCheck) refuse(name, why string) {
	m.problems = append(m.problems, model.Problem{Severity: model.SeverityError, File: name, Message: why, Rule: model.RuleSyntax})
}

func (m *manifestCheck) report(source string, p model.Problem) {
	p.File, p.Line = splitSource(source)
	m.problems = append(m.problems, p)
}

// twice reports every place of objects that are defined in more than one.
func (m *manifestCheck) twice() {
	for id, places := range m.places {
		for i, here := range places {
			if len(places) == 1 {
				break
			}
			m.report(here, model.Problem{
				Severity: model.SeverityError, Object: id.String(), Rule: model.RuleDefinedTwice,
				Message: model.AlsoDefinedIn(places, i),
			})
		}
	}
}

// findCatalog reads the catalogue that claims need, where only some files of a repository are checked: it is in the nearest
// folder above them, up to the root of the clone.
func (m *manifestCheck) findCatalog() {
	for _, claim := range m.desired.Claims {
		if m.desired.Images != nil || m.desired.IsQuarantined(model.CatalogIdentity) {
			return
		}
		if _, wrong := m.desired.CheckImage(claim.Spec.Image); wrong == "" && !model.IsCatalogName(claim.Spec.Image) {
			continue
		}
		file, _ := claim.Position()
		for dir := path.Dir(file); ; dir = path.Dir(dir) {
			if data, err := os.ReadFile(path.Join(dir, model.CatalogFile)); err == nil {
				objects, _ := model.Decode(model.CatalogFile, data, model.DecodeOptions{})
				for _, o := range objects {
					if catalog, is := o.(*model.ImageCatalog); is {
						m.desired.Images = catalog
					}
				}
				break
			}
			if _, err := os.Stat(path.Join(dir, ".git")); err == nil || dir == path.Dir(dir) {
				break
			}
		}
	}
}

// finish checks the objects against one another and counts.
func (m *manifestCheck) finish(search *manifestSearch) *validation {
	m.findCatalog()
	m.twice()
	for _, p := range m.problems {
		if id, ok := model.ParseIdentity(p.Object); ok && len(m.places[id]) == 0 {
			m.desired.Quarantined[id] = []string{""} // it stands there: what names it is not wrong for that
		}
	}
	m.problems = slices.Concat(m.problems, m.checker.Check(m.desired), m.boots.Check(m.desired))
	model.SortProblems(m.problems)
	v := &validation{
		Files: len(search.files) - m.foreign, Ignored: search.ignored, Foreign: m.foreign, Objects: m.objects, Sealed: claimcheck.Sealed(m.desired),
		Problems: make([]finding, 0, len(m.problems)),
	}
	for _, p := range m.problems {
		v.Problems = append(v.Problems, finding{p, cmp.Or(p.Rule, model.RuleValue)})
		if p.Severity == model.SeverityError {
			v.Errors++
		} else {
			v.Warnings++
		}
	}
	return v
}

// holdsSecret reports whether an object has a secret in plain text.
func holdsSecret(o model.Object) bool {
	switch o := o.(type) {
	case *model.Secret:
		return len(o.Values) > 0 && !o.Encrypted
	case *model.BMCSecret:
		return len(o.Values) > 0 && !o.Encrypted
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
