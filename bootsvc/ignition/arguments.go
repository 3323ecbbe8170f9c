package ignition

import (
	"slices"
	"strings"
)

// annotationArguments is the claim's annotation that adds kernel arguments, as
// errors name it.
const annotationArguments = "annotation ingot/kernel-arguments"

// maxArguments bounds added kernel arguments, in bytes. Linux reads 2,048 bytes on
// most machines and drops the rest without a word; Ingot's own may take half.
const maxArguments = 1024

// KernelArguments checks arguments that a person wrote, and returns them with one
// space between them. All their characters stand for themselves in an iPXE script:
// there is none that quotes, expands, comments or ends a line or a command.
func KernelArguments(text string) (string, error) {
	if len(text) > maxArguments {
		return "", sourceError(annotationArguments, "the arguments have %d bytes; at most %d are allowed, for Linux drops what is longer than its command line", len(text), maxArguments)
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return r != ' ' && !plainArgument(r) }); at >= 0 {
		return "", &SourceError{annotationArguments, []SourceProblem{{1, at + 1, "a character that is not allowed: kernel arguments are letters, digits and . _ , : ; = / + @ % ~ ! * ? [ ] - with single spaces between"}}}
	}
	words := strings.Fields(text)
	if slices.Contains(words, ";") {
		return "", sourceError(annotationArguments, "a semicolon that stands alone ends a command of iPXE; write it within an argument")
	}
	return strings.Join(words, " "), nil
}

// plainArgument reports whether r means nothing to iPXE.
func plainArgument(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("._,:;=/+@%~!*?[]-", r)
}
