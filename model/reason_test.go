package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestReasonsListsAllOfThem(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || spec.Names[0].Name == "Reasons" {
			return true
		}
		n++
		if value := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`); !slices.Contains(Reasons, value) || spec.Names[0].Name != "Reason"+value {
			t.Errorf("%s = %s is not listed, or called otherwise", spec.Names[0].Name, value)
		}
		return true
	})
	if n != len(Reasons) {
		t.Errorf("%d reasons, of which %d are listed", n, len(Reasons))
	}
}
