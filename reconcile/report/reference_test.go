package report

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

const (
	top           = "../../"
	referenceFile = top + "docs/reference/conditions.md"
)

const referenceHead = `# Conditions and reasons

The conditions and reasons in documents of the status branch, in ` + "`ingot explain`" + ` and in the API. This page is generated from the comments of
the source: ` + "`go test ./reconcile/report -run TestReference -update`" + `.

A condition has a status, a reason, a message that names the objects, and the time of its last change. The message ends with the actor
if an action is needed. An entry of ` + "`waiting`" + ` has one of these reasons too; its ` + "`actor`" + ` is absent if no action is needed, because Ingot continues by
itself. Each reason has an anchor, such as ` + "`conditions.md#GuardHeld`" + `.

## Conditions

Other conditions have the name of the reason that they report: %s.

| condition | meaning |
|---|---|
`

// TestReferenceHasEveryConditionAndReason holds docs/reference/conditions.md to the source, and with
// -update writes it anew.
func TestReferenceHasEveryConditionAndReason(t *testing.T) {
	types := append(constantsIn(t, "reconcile/report/condition_types.go", "type"), constantsIn(t, "model/readiness.go", "Condition")...)
	slices.SortFunc(types, func(a, b constant) int { return strings.Compare(a.value, b.value) })
	var like []string
	for name := range shownConditions(t) {
		if value, own := strings.CutPrefix(name, "model.Reason"); own {
			like = append(like, "`"+value+"`")
		} else if !slices.ContainsFunc(types, func(c constant) bool { return c.name == name || "model."+c.name == name }) {
			t.Errorf("nothing says what the condition %s is for: say it beside its constant, in condition_types.go", name)
		}
	}
	slices.Sort(like)
	var doc strings.Builder
	fmt.Fprintf(&doc, referenceHead, strings.Join(like, ", "))
	for _, c := range types {
		fmt.Fprintf(&doc, "| `%s` | %s |\n", c.value, c.about)
	}
	doc.WriteString("\nA server's `Ready` that is True has its state as its reason:")
	for i, state := range model.ServerStates {
		fmt.Fprintf(&doc, "%s `%s`", map[bool]string{true: "", false: ","}[i == 0], state)
	}
	doc.WriteString(".\n")
	advised(t, &doc)
	for _, s := range []struct{ title, file, prefix string }{
		{"Reasons of what is as it should be, and of what a condition alone says", "reconcile/report/condition_types.go", "reason"},
		{"Reasons of BootRefused and TicketRefused", "model/ticket_use.go", "Refused"},
		{"Reasons of AbsentWithoutCommit", "model/record.go", "Absent"},
		{"Reasons of Operation", "model/record.go", "Outcome"},
		{"Reasons of BootProgress", "model/ticket_progress.go model/boot_trace.go", "Stage"},
		{"Reasons in the log and in timelines, of firmware that is told no boot file", "bootsvc/netboot/netboot.go", "Reason"},
	} {
		fmt.Fprintf(&doc, "\n## %s\n\n| reason | meaning |\n|---|---|\n", s.title)
		for file := range strings.FieldsSeq(s.file) {
			for _, c := range constantsIn(t, file, s.prefix) {
				fmt.Fprintf(&doc, "| %s | %s |\n", anchored(shownReason(c)), c.about)
				if c.about == "" {
					t.Errorf("nothing says what %s (%s) means: say it beside its constant in %s", c.name, c.value, file)
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(is), doc.String()); diff != "" {
		t.Errorf("%s is not what is generated; make it anew with -update (-is +should):\n%s", referenceFile, diff)
	}
}

// anchored is a reason with the anchor that links lead to.
func anchored(reason string) string {
	if strings.Contains(reason, " ") { // of the log
		return "`" + reason + "`"
	}
	return fmt.Sprintf("<a id=%q></a>`%s`", reason, reason)
}

// shownReason is what a constant is as the reason of a condition.
func shownReason(c constant) string {
	if reason, stage := stageReasons[model.BootStage(c.value)]; stage {
		return reason
	}
	if _, outcome := strings.CutPrefix(c.name, outcomePrefix); outcome {
		return outcomePrefix + c.value
	}
	return c.value
}

// writtenOut is a reason that is written into what says why.
var writtenOut = regexp.MustCompile(`Why\{"|\b[wW]hy(?:Since)?\("[A-Z]|\bReason(?:: +| = )"[A-Z]`)

// TestReasonsAreConstants: a reason that is written out would have no entry.
func TestReasonsAreConstants(t *testing.T) {
	n := 0
	for _, folder := range []string{"reconcile", "reconcile/plan", "reconcile/plan/*", "reconcile/report", "cmd/daemon/adapter", "bootsvc/oci", "bootsvc/ignition"} {
		files, err := filepath.Glob(filepath.Join(top, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n++
			for line := range strings.Lines(string(source)) {
				if writtenOut.MatchString(line) {
					t.Errorf("%s: a reason is written out: make it a constant of model/reason.go with what it means\n%s", file, line)
				}
			}
		}
	}
	if n < 100 {
		t.Fatalf("%d files were looked at", n)
	}
}

// advised writes the reasons of model, with who has to act and what to do.
func advised(t *testing.T, doc *strings.Builder) {
	actors := map[proposal.Actor]string{proposal.ActorNone: "no action", proposal.Tenant: "the tenant", proposal.RackOperator: "the rack operator"}
	group := ""
	for _, c := range constantsIn(t, "model/reason.go", "Reason") {
		if c.group != group {
			group = c.group
			fmt.Fprintf(doc, "\n## %s\n\n| reason | meaning | who acts | what to do |\n|---|---|---|---|\n", strings.TrimSuffix(group, "."))
		}
		a := adviceOn(c.value)
		if c.about == "" || a.Text == "" {
			t.Errorf("nothing says what %s means, or what to do: say it in model/reason.go, and in an advice.go", c.value)
		}
		fmt.Fprintf(doc, "| %s | %s | %s | %s |\n", anchored(c.value), c.about, actors[a.Actor], a.Text)
	}
}

// constant is a constant of the source, and what is said beside it.
type constant struct{ name, value, about, group string }

// constantsIn are the texts of a file whose names begin with prefix and go on with a capital
// letter, in their order. What is said of their whole block is their group.
func constantsIn(t *testing.T, file, prefix string) (all []constant) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			s := spec.(*ast.ValueSpec)
			rest, named := strings.CutPrefix(s.Names[0].Name, prefix)
			text, is := literal(s)
			if !named || !is || rest == "" || rest != strings.ToUpper(rest[:1])+rest[1:] {
				continue
			}
			about := strings.TrimSuffix(oneLine(s.Comment.Text()+s.Doc.Text()), ".")
			about = strings.TrimPrefix(about, s.Names[0].Name+": ")
			all = append(all, constant{s.Names[0].Name, text, about, oneLine(block.Doc.Text())})
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no constants that begin with %q", file, prefix)
	}
	return all
}

func literal(s *ast.ValueSpec) (string, bool) {
	if len(s.Values) != 1 {
		return "", false
	}
	lit, ok := s.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// shownConditions are the types of all conditions that the package makes, as the source names
// them. Types and reasons have to be constants: what is written out has no entry.
func shownConditions(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	eachCall(t, func(at string, call *ast.CallExpr) {
		kind := func(e ast.Expr) {
			if is(e, "kind") { // handed on by a function that is looked at itself
				return
			}
			if name := expression(e); strings.ContainsRune(name, '"') {
				t.Errorf("%s: the type of a condition is written out: make it a constant of condition_types.go", at)
			} else {
				names[name] = true
			}
		}
		reason := func(e ast.Expr) {
			if strings.ContainsRune(expression(e), '"') {
				t.Errorf("%s: a reason is written out: make it a constant with what it means", at)
			}
		}
		switch {
		case is(call.Fun, "condition") && len(call.Args) == 5:
			kind(call.Args[0])
			reason(call.Args[2])
		case is(call.Fun, "identified") && len(call.Args) == 3 && !is(call.Args[0], "n"):
			reason(call.Args[1])
		case is(call.Fun, "settingCondition"):
			kind(call.Args[0])
		}
	})
	if len(names) < 20 {
		t.Fatalf("%d types of conditions were found in the source", len(names))
	}
	return names
}

// eachCall visits the calls in the package.
func eachCall(t *testing.T, visit func(at string, call *ast.CallExpr)) {
	t.Helper()
	files := token.NewFileSet()
	noTest := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(files, ".", noTest, 0) //nolint:staticcheck // build tags do not matter here
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				visit(files.Position(call.Pos()).String(), call)
			}
			return true
		})
	}
}

// is reports whether an expression is a name, or a method or field of that name.
func is(e ast.Expr, name string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return e.Sel.Name == name
	}
	return false
}

// expression is an expression as it is written, as far as types and reasons are.
func expression(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return expression(e.X) + "." + e.Sel.Name
	case *ast.BasicLit:
		return e.Value
	case *ast.BinaryExpr:
		return expression(e.X) + "+" + expression(e.Y)
	}
	return "…"
}
