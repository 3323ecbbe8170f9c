// Package exported reads from the source which metrics Ingot exports: each is made by a call
// that names it, whether or not it is registered in a given configuration.
package exported

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Metric is one metric as the source makes it.
type Metric struct {
	Name    string
	Type    string // counter, gauge or histogram
	Help    string
	Labels  []string
	Package string // the folder that makes it
}

// Metrics are all metrics that are made below the folders of a module, by package and name.
func Metrics(root string, folders ...string) ([]Metric, error) {
	var all []Metric
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			found, err := inFile(root, file)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

func inFile(root, file string) ([]Metric, error) {
	syntax, err := parser.ParseFile(token.NewFileSet(), root+"/"+file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	var found []Metric
	ast.Inspect(syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if m, ok := made(call); ok {
			m.Package = path.Dir(file)
			found = append(found, m)
		}
		return true
	})
	return found, nil
}

func made(call *ast.CallExpr) (Metric, bool) {
	if len(call.Args) < 2 && !isOptions(call) {
		return Metric{}, false
	}
	function := strings.ToLower(called(call))
	m := Metric{}
	for _, kind := range []string{"counter", "gauge", "histogram"} {
		if strings.Contains(function, kind) {
			m.Type = kind
		}
	}
	if options, ok := call.Args[0].(*ast.CompositeLit); ok {
		m.Name, m.Help = field(options, "Name"), field(options, "Help")
	} else if len(call.Args) >= 2 {
		m.Name, m.Help = text(call.Args[0]), text(call.Args[1])
	}
	if function == "newdesc" {
		m.Type = "gauge"
	}
	for _, a := range call.Args[1:] {
		m.Labels = append(m.Labels, texts(a)...)
	}
	ours := strings.HasPrefix(m.Name, "ingot_") || strings.HasPrefix(m.Name, "metal_") || strings.HasPrefix(m.Name, "redfish_")
	return m, ours && m.Type != ""
}

func isOptions(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	_, ok := call.Args[0].(*ast.CompositeLit)
	return ok
}

// called is the name of the function that is called, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// field is the text that a field of a struct is given.
func field(lit *ast.CompositeLit, name string) string {
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return text(pair.Value)
			}
		}
	}
	return ""
}

// text is the value of a literal, or of several that are joined.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}

func texts(e ast.Expr) []string {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var out []string
	for _, item := range list.Elts {
		out = append(out, text(item))
	}
	return out
}
