package model

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// String writes the problem on one line, as compilers do, so that editors and
// pull-request annotations find the place:
//
//	servers/a.yaml:6:5: Server s1: spec.protocl: unknown field, did you mean "protocol"?
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	for _, n := range []int{p.Line, p.Column} {
		if n == 0 {
			break
		}
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(n))
	}
	if p.Severity == SeverityWarning {
		b.WriteString(": warning")
	}
	for _, part := range []string{p.Object, p.Field, p.Message} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// HasErrors reports whether any of the problems is an error.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == SeverityError })
}

// JoinErrors returns those problems that are errors as one error, a line for
// each, or nil when all are warnings.
func JoinErrors(problems []Problem) error {
	var errs []error
	for _, p := range problems {
		if p.Severity == SeverityError {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

// SortProblems orders problems by file, line and column; those at one place keep
// their order.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
