package model

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ingot/model/must"
)

// onlyChecks are files of this package that read fields to check them, or to show how one
// differs from another, and do nothing more about them.
var onlyChecks = []string{"validate.go", "validate_field.go", "inert.go", "immutable.go"}

var refusedOtherwise = []string{"Protocol.Name"}

// TestNothingIsAcceptedInSilence: each field of each kind is read by what the program
// consists of, beside what checks and shows it, or has a warning in inert.
func TestNothingIsAcceptedInSilence(t *testing.T) {
	fields, read := fieldsRead(t)
	warned := make(map[string]bool)
	for _, i := range inert {
		warned[string(i.kind)+" "+i.field] = true
	}
	for _, kind := range Kinds {
		object := reflect.TypeOf(kindTable[kind].new()).Elem()
		spec, has := object.FieldByName("Spec")
		if !has || warned[string(kind)+" "] {
			continue
		}
		for f := range spec.Type.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if warned[string(kind)+" "+name] {
				continue
			}
			for _, unread := range unreadFields(spec.Type, f, fields, read) {
				t.Errorf("nothing is done about spec.%s of %s (%s): act upon it, or have inert say so", name, kind, unread)
			}
		}
	}
}

// unreadFields are those of a field, or of the structs of this package that it consists of,
// which nobody reads.
func unreadFields(of reflect.Type, f reflect.StructField, fields map[string]*types.Var, read map[*types.Var]bool) []string {
	id := of.Name() + "." + f.Name
	if !read[fields[id]] && !slices.Contains(refusedOtherwise, id) {
		return []string{id}
	}
	typ := f.Type
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != "ingot/model" {
		return nil
	}
	var unread []string
	for inner := range typ.Fields() {
		unread = append(unread, unreadFields(typ, inner, fields, read)...)
	}
	return unread
}

// fieldsRead returns the fields of this package's structs as "Type.Field", and which of them
// the program reads beside what checks and shows them.
func fieldsRead(t *testing.T) (fields map[string]*types.Var, read map[*types.Var]bool) {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \",\"}}",
		"ingot/cmd/ingot", "ingot/cmd/metalprobe")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as make builds them: nothing is compiled twice
	list.Stderr = os.Stderr
	out := must.Get(list.Output())(t)
	exports, sources := make(map[string]string), make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		col := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[col[0]] = col[1]
		if strings.HasPrefix(col[0], "ingot/") {
			for name := range strings.SplitSeq(col[3], ",") {
				sources[col[0]] = append(sources[col[0]], filepath.Join(col[2], name))
			}
		}
	}
	files := token.NewFileSet()
	p := program{files, importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	model := must.Get(p.imports.Import("ingot/model"))(t)
	read = make(map[*types.Var]bool)
	for path := range sources {
		if path != "ingot/model" && path != "ingot/reconcile/report" && !strings.HasPrefix(path, "ingot/bmc/sim") {
			p.reads(t, path, sources[path], func(_ string, v *types.Var) { read[v] = true })
		}
	}
	fields, byPosition := make(map[string]*types.Var), make(map[string]*types.Var)
	for _, name := range model.Scope().Names() {
		if s, is := model.Scope().Lookup(name).Type().Underlying().(*types.Struct); is {
			for f := range s.Fields() {
				fields[name+"."+f.Name()] = f
				byPosition[at(files, f)] = f
			}
		}
	}
	// Checked from its source, this package has fields of its own, which stand where those
	// do that the others see.
	p.reads(t, "ingot/model", sources["ingot/model"], func(file string, v *types.Var) {
		if f := byPosition[at(files, v)]; f != nil && !slices.Contains(onlyChecks, file) {
			read[f] = true
		}
	})
	return fields, read
}

func at(files *token.FileSet, v *types.Var) string {
	p := files.Position(v.Pos())
	return fmt.Sprintf("%s:%d: %s", filepath.Base(p.Filename), p.Line, v.Name())
}

// program checks the types of packages from their sources, with what they import compiled.
type program struct {
	files   *token.FileSet
	imports types.Importer
}

func (p program) reads(t *testing.T, path string, sources []string, found func(file string, field *types.Var)) {
	t.Helper()
	var parsed []*ast.File
	for _, name := range sources {
		f := must.Get(parser.ParseFile(p.files, name, nil, parser.SkipObjectResolution))(t)
		parsed = append(parsed, f)
	}
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	must.Get((&types.Config{Importer: p.imports}).Check(path, p.files, parsed, info))(t)
	for e, s := range info.Selections {
		if v, is := s.Obj().(*types.Var); is && v.IsField() {
			found(filepath.Base(p.files.Position(e.Pos()).Filename), v)
		}
	}
}
