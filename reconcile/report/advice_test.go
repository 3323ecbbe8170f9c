package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// TestEveryReasonSaysWhoHasToActAndWhatToDo demands both for each reason that there is.
func TestEveryReasonSaysWhoHasToActAndWhatToDo(t *testing.T) {
	known := make(map[model.Reason]bool)
	for _, reason := range model.Reasons {
		a := adviceOn(reason)
		if a.Text == "" {
			t.Errorf("nobody knows what to do about %s", reason)
		}
		if a.Actor == proposal.ActorNone && !strings.HasPrefix(a.Text, "nothing: ") {
			t.Errorf("%s is nobody's, and yet there is something to do: %s", reason, a.Text)
		}
		if known[reason] {
			t.Errorf("%s is listed twice", reason)
		}
		known[reason] = true
	}
	for _, reason := range slices.AppendSeq(slices.Collect(maps.Keys(advices)), maps.Keys(model.BMCAdvice)) {
		if !known[reason] {
			t.Errorf("there is no reason %s", reason)
		}
	}
	for reason := range advices {
		if _, twice := model.BMCAdvice[reason]; twice {
			t.Errorf("%s has two texts", reason)
		}
	}
}

// TestReasonsListsAllOfThem reads the constants of the model.
func TestReasonsListsAllOfThem(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../model/reason.go", nil, 0)
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
		if value := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`); !slices.Contains(model.Reasons, value) ||
			spec.Names[0].Name != "Reason"+value {
			t.Errorf("%s = %s is not listed, or called otherwise", spec.Names[0].Name, value)
		}
		return true
	})
	if n != len(model.Reasons) {
		t.Errorf("%d reasons, of which %d are listed", n, len(model.Reasons))
	}
}
