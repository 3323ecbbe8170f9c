package model

// Rule is what kind of thing a Problem is, for programs: what it says is for people, and its
// words change.
type Rule string

// The rules of manifests.
const (
	RuleSyntax       Rule = "syntax"
	RuleUnknownKind  Rule = "unknown-kind"
	RuleUnknownField Rule = "unknown-field"
	RuleRepeated     Rule = "repeated-field"
	RuleType         Rule = "wrong-type"
	RuleRequired     Rule = "missing-field"
	RuleValue        Rule = "wrong-value"
	RuleSecret       Rule = "secret"
	RuleNoEffect     Rule = "no-effect"
	RuleDefinedTwice Rule = "defined-twice"
	RuleConflict     Rule = "conflict"
	RuleReference    Rule = "missing-object"
	RuleTenant       Rule = "tenant"
)

// Rules are all rules with what each of them is about, in the order in which a manifest is
// checked.
var Rules = []struct {
	Rule  Rule
	About string
}{
	{RuleSyntax, "The file cannot be read as YAML, or is not read at all."},
	{RuleUnknownKind, "Ingot does not read this kind or version."},
	{RuleUnknownField, "The kind has no such field."},
	{RuleRepeated, "A field is given twice."},
	{RuleType, "A value is of another type than the field."},
	{RuleRequired, "A required field is missing or empty."},
	{RuleValue, "A field cannot have this value."},
	{RuleSecret, "A secret is in plain text, or cannot be decrypted."},
	{RuleNoEffect, "What is written has no effect, is deprecated, or may not be what was meant."},
	{RuleDefinedTwice, "More than one place defines the object."},
	{RuleConflict, "Two objects claim what only one of them can have."},
	{RuleReference, "No manifest defines the object that is named."},
	{RuleTenant, "The file's folder may not define this object (git.tenants)."},
}
