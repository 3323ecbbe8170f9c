package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPlanIsArithmetic looks at what this package imports, and at what it asks of time:
// the same input gives the same result because there is nothing else to depend on.
func TestAPlanIsArithmetic(t *testing.T) {
	forbidden := map[string]bool{
		"context": true, "net": true, "net/http": true, "os": true, "log": true, "log/slog": true, "sync": true,
		"sync/atomic": true, "math/rand": true, "math/rand/v2": true, "crypto/rand": true, "io/fs": true,
	}
	clocks := map[string]bool{
		"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true, "Sleep": true, "Tick": true, "NewTimer": true,
		"NewTicker": true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			own := path == "ingot/model" || strings.HasPrefix(path, "ingot/model/")
			if forbidden[path] || strings.Contains(path, ".") || strings.HasPrefix(path, "ingot/") && !own {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s begins a goroutine", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && clocks[n.Sel.Name] {
					t.Errorf("%s asks the clock: time.%s", set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestAWhyHasAReasonOfTheModel looks at what is given as the reason of a Why: the list in
// the model is complete only if all of them stand there.
func TestAWhyHasAReasonOfTheModel(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var reason ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); !ok || id.Name != "Why" || len(n.Elts) == 0 {
					return true
				}
				reason = n.Elts[0]
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
					reason = n.Value
				}
			case *ast.AssignStmt:
				if s, ok := n.Lhs[0].(*ast.SelectorExpr); ok && s.Sel.Name == "Reason" {
					reason = n.Rhs[0]
				}
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) < 2 || s.Sel.Name != "why" && s.Sel.Name != "whySince" && s.Sel.Name != "fail" {
					return true
				}
				reason = n.Args[0]
			}
			if l, ok := reason.(*ast.BasicLit); ok && l.Value != `""` {
				t.Errorf("%s: %s is no reason of the model", set.Position(l.Pos()), l.Value)
			}
			return true
		})
	}
}
