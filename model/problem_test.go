package model

import "testing"

func TestProblemIsOneLine(t *testing.T) {
	tests := map[string]struct {
		p    Problem
		want string
	}{
		"with everything": {
			p:    Problem{SeverityError, "servers/a.yaml", 6, 5, "Server s1", "spec.protocl", `unknown field, did you mean "protocol"?`, RuleUnknownField},
			want: `servers/a.yaml:6:5: Server s1: spec.protocl: unknown field, did you mean "protocol"?`,
		},
		"a warning says so": {
			p:    Problem{Severity: SeverityWarning, File: "a.yaml", Line: 1, Message: "odd"},
			want: "a.yaml:1: warning: odd",
		},
		"of a file as a whole": {
			p:    Problem{Severity: SeverityError, File: "a.yaml", Message: "too large"},
			want: "a.yaml: too large",
		},
		"of an object without file": {
			p:    Problem{Severity: SeverityError, Object: "BMC b", Message: "odd"},
			want: "BMC b: odd",
		},
	}
	for name, tt := range tests {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestWarningsAreNoErrors(t *testing.T) {
	warning := Problem{Severity: SeverityWarning, File: "a", Message: "odd"}
	one, two := Problem{Severity: SeverityError, File: "a", Message: "one"}, Problem{Severity: SeverityError, File: "b", Message: "two"}
	if err := JoinErrors([]Problem{warning}); err != nil || HasErrors([]Problem{warning}) {
		t.Errorf("a warning alone: got %v", err)
	}
	if err := JoinErrors([]Problem{one, warning, two}); err == nil || err.Error() != "a: one\nb: two" {
		t.Errorf("got %v, want both errors and no warning", err)
	}
}

func TestNearestName(t *testing.T) {
	known := []string{"power", "serverRef", "serverSelector", "image", "tolerations"}
	for name, want := range map[string]string{
		"Power": "power", "powr": "power", "pwoer": "power", "serverref": "serverRef", "imgae": "image",
		"toleration": "tolerations", "serverSel": "serverSelector", "x": "", "": "", "hostname": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
