package ignition

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	"github.com/coreos/ignition/v2/config/v3_0"
	"github.com/coreos/ignition/v2/config/v3_1"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/vcontext/report"
	"go.yaml.in/yaml/v3"
)

// formatButane is the value of a Secret's key format that means Butane.
const formatButane = "fcos"

// maxProblems bounds how many problems of one source are told.
const maxProblems = 10

// SourceProblem is something wrong in what a person wrote.
type SourceProblem struct {
	Line, Column int // from 1; 0 = not known
	Message      string
}

// SourceError says what is wrong with what a person wrote for a machine: a value of
// a claim's Secret, or an annotation. It names lines, columns and known keys, and
// quotes nothing of a Secret.
type SourceError struct {
	Of       string // the Secret's key, or the annotation
	Problems []SourceProblem
}

// Error implements error.
func (e *SourceError) Error() string {
	var texts []string
	for _, p := range e.Problems {
		texts = append(texts, p.Text())
	}
	return e.Of + ": " + strings.Join(texts, "; ")
}

// Text is the message with the place.
func (p SourceProblem) Text() string {
	switch {
	case p.Line == 0:
		return p.Message
	case p.Column == 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// sourceError is what is wrong with a source as a whole.
func sourceError(of, format string, args ...any) *SourceError {
	return &SourceError{of, []SourceProblem{{Message: fmt.Sprintf(format, args...)}}}
}

// spec is one version of the Ignition specification.
type spec struct {
	config reflect.Type
	parse  func(raw []byte) (report.Report, error)
	merge  func(parent, child []byte) ([]byte, report.Report, error)
}

// specs are the versions that Ingot accepts. Experimental ones are not among
// them, for no released Ignition reads them.
var specs = map[string]spec{
	"3.0.0": newSpec(v3_0.Parse, v3_0.Merge),
	"3.1.0": newSpec(v3_1.Parse, v3_1.Merge),
	"3.2.0": newSpec(v3_2.Parse, v3_2.Merge),
	"3.3.0": newSpec(v3_3.Parse, v3_3.Merge),
	"3.4.0": newSpec(v3_4.Parse, v3_4.Merge),
	"3.5.0": newSpec(v3_5.Parse, v3_5.Merge),
	"3.6.0": newSpec(v3_6.Parse, v3_6.Merge),
}

func newSpec[C any](parse func([]byte) (C, report.Report, error), merge func(parent, child C) C) spec {
	return spec{
		config: reflect.TypeFor[C](),
		parse: func(raw []byte) (report.Report, error) {
			_, r, err := parse(raw)
			return r, err
		},
		merge: func(parent, child []byte) ([]byte, report.Report, error) {
			p, r, err := parse(parent)
			if err != nil {
				return nil, r, err
			}
			c, r, err := parse(child)
			if err != nil {
				return nil, r, err
			}
			merged, err := json.Marshal(merge(p, c))
			if err != nil {
				return nil, report.Report{}, err
			}
			_, r, err = parse(merged)
			return merged, r, err
		},
	}
}

// ignitionSource is valid Ignition JSON of a known version.
type ignitionSource struct {
	raw     []byte
	version string
}

// recoverPanic turns a panic of a library on a source that it did not expect into that
// source's error, and nobody else's.
func recoverPanic(err *error) {
	if recover() != nil {
		*err = sourceError(keyIgnition, "the source cannot be translated; check it with butane --strict")
	}
}

func toIgnition(source []byte, format string) (s ignitionSource, err error) {
	defer recoverPanic(&err)
	if format == formatButane || hasVariant(source) {
		return fromButane(source)
	}
	return fromJSON(source)
}

// hasVariant reports whether source is YAML with the key that makes it Butane, or
// was meant to be.
func hasVariant(source []byte) bool {
	var head struct {
		Variant yaml.Node `yaml:"variant"`
	}
	if err := yaml.Unmarshal(source, &head); err != nil {
		return variantLine.Match(source)
	}
	return !head.Variant.IsZero()
}

// fromButane translates Butane. Warnings are errors: an unknown key means that a
// machine would come up without what the person wrote.
func fromButane(source []byte) (ignitionSource, error) {
	var head struct{ Variant, Version string }
	if yaml.Unmarshal(source, &head) == nil && strings.Contains(head.Version, "-") {
		return ignitionSource{}, sourceError(keyIgnition, "experimental and other pre-release versions of Butane are not accepted, for their meaning may change; use a released version")
	}
	// FilesDir stays empty, so that no source can read files of this machine.
	raw, rep, err := config.TranslateBytes(source, common.TranslateBytesOptions{Raw: true})
	if err != nil || len(rep.Entries) > 0 {
		return ignitionSource{}, explainSource(keyIgnition, butaneConfig(head.Variant), rep.Entries, err)
	}
	return known(raw)
}

// fromJSON validates Ignition JSON. Of its warnings only unknown keys are errors;
// the others are advice that the author may have weighed.
func fromJSON(source []byte) (ignitionSource, error) {
	s, err := known(source)
	if err != nil {
		return ignitionSource{}, err
	}
	rep, err := specs[s.version].parse(source)
	wrong := slices.DeleteFunc(slices.Clone(rep.Entries), func(e report.Entry) bool {
		return !e.Kind.IsFatal() && !isUnusedKey(e)
	})
	if err != nil || len(wrong) > 0 {
		return ignitionSource{}, explainSource(keyIgnition, specs[s.version].config, wrong, err)
	}
	return s, nil
}

func known(raw []byte) (ignitionSource, error) {
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return ignitionSource{}, jsonError(raw, err)
	}
	version := head.Ignition.Version
	switch {
	case specs[version].parse != nil:
		return ignitionSource{raw, version}, nil
	case version == "":
		return ignitionSource{}, sourceError(keyIgnition, "there is no ignition.version, so this is not Ignition JSON; Butane needs a variant, or the Secret's key format: fcos")
	case strings.HasPrefix(version, "2.") || strings.HasPrefix(version, "1"):
		return ignitionSource{}, sourceError(keyIgnition, "Ignition specification 1 and 2 are not supported; translate to version 3.0.0 to 3.6.0, for example with ign-converter")
	}
	return ignitionSource{}, sourceError(keyIgnition, "this version of the Ignition specification is not supported; 3.0.0 to 3.6.0 are")
}

// jsonError says where JSON is wrong, and not what stands there.
func jsonError(raw []byte, err error) *SourceError {
	var malformed *json.SyntaxError
	var kind *json.UnmarshalTypeError
	p := SourceProblem{Message: "this is not JSON"}
	switch {
	case errors.As(err, &malformed):
		p.Line, p.Column = position(raw, malformed.Offset)
		p.Message = "this is not JSON: " + quoted.ReplaceAllString(malformed.Error(), "")
		if strings.Contains(p.Message, "object key string") {
			p.Message = "this is not JSON: a key in quotes is expected here; is there a comma too many before it?"
		}
	case errors.As(err, &kind):
		p.Line, p.Column = position(raw, kind.Offset)
		p.Message = fmt.Sprintf("%s must be of type %s", kind.Field, kind.Type)
	}
	return &SourceError{keyIgnition, []SourceProblem{p}}
}

// position returns line and column, from 1, of the byte before offset.
func position(raw []byte, offset int64) (line, column int) {
	before := string(raw[:max(0, min(offset-1, int64(len(raw))))])
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}

// merge returns the source merged with what additions gives for its version. Our
// additions are the child, so they are there whatever the source says.
func (s ignitionSource) merge(additions func(version string) []byte) ([]byte, error) {
	raw, err := s.withoutReplace()
	if err != nil {
		return nil, err
	}
	merged, rep, err := specs[s.version].merge(raw, additions(s.version))
	if err != nil {
		e := explainSource(keyIgnition, specs[s.version].config, rep.Entries, err)
		for i := range e.Problems {
			e.Problems[i].Line, e.Problems[i].Column = 0, 0
			e.Problems[i].Message = "it cannot be joined with " + bootStateFile + " and " + bootStateUnit + ", which Ingot adds: " + e.Problems[i].Message
		}
		return nil, e
	}
	return merged, nil
}

// withoutReplace turns a config that is replaced by another one into one that
// merges just that other one, or Ignition would drop our additions along with the
// rest. How things are fetched stays.
func (s ignitionSource) withoutReplace() ([]byte, error) {
	var head struct {
		Ignition map[string]json.RawMessage `json:"ignition"`
	}
	var references struct {
		Replace map[string]json.RawMessage `json:"replace"`
	}
	if err := json.Unmarshal(s.raw, &head); err != nil {
		return nil, jsonError(s.raw, err)
	}
	if err := json.Unmarshal(head.Ignition["config"], &references); err != nil || len(references.Replace["source"]) == 0 || string(references.Replace["source"]) == "null" {
		return s.raw, nil //nolint:nilerr // no config section, or none that replaces
	}
	merge, err := json.Marshal(map[string]any{"merge": []any{references.Replace}})
	if err != nil {
		return nil, err
	}
	head.Ignition["config"] = merge
	return json.Marshal(head)
}

var (
	// quoted are the characters of a source in messages of package json.
	quoted = regexp.MustCompile(`'(?:[^'\\]|\\.)*' ?`)
	// variantLine is what Butane mostly begins with.
	variantLine = regexp.MustCompile(`(?m)^variant *:`)
)
