package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// eachFile parses every file of the plan's packages that is no test.
func eachFile(t *testing.T, do func(set *token.FileSet, name string, f *ast.File)) {
	t.Helper()
	set, n := token.NewFileSet(), 0
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err == nil {
			n++
			do(set, name, f)
		}
		return err
	})
	if err != nil || n < 30 {
		t.Fatalf("%d files, %v", n, err)
	}
}

// TestAPlanIsArithmetic checks what the plan's packages import, and that they read no clock:
// the same input gives the same result.
func TestAPlanIsArithmetic(t *testing.T) {
	forbidden := map[string]bool{
		"context": true, "net": true, "net/http": true, "os": true, "log": true, "log/slog": true, "sync": true,
		"sync/atomic": true, "math/rand": true, "math/rand/v2": true, "crypto/rand": true, "io/fs": true,
	}
	clocks := map[string]bool{
		"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true, "Sleep": true, "Tick": true, "NewTimer": true,
		"NewTicker": true,
	}
	eachFile(t, func(set *token.FileSet, name string, f *ast.File) {
		for _, i := range f.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			own := path == "ingot/model" || strings.HasPrefix(path, "ingot/model/") || strings.HasPrefix(path, "ingot/reconcile/plan/")
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
					t.Errorf("%s reads the clock: time.%s", set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestAWhyHasAReasonOfTheModel checks that no Why has a literal as its reason: the list in
// the model is complete only if all reasons are there.
func TestAWhyHasAReasonOfTheModel(t *testing.T) {
	eachFile(t, func(set *token.FileSet, _ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			var reason ast.Expr
			switch n := n.(type) {
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
	})
}
