package model

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"
)

// sopsField is the field in which SOPS keeps what it needs to open a document.
const sopsField = "sops"

// Opened is what came of an encrypted file.
type Opened struct {
	// Values are the nodes whose values were encrypted, and are not any more.
	Values map[*yaml.Node]bool
	// Sealed are the documents with values that nobody could open, for lack of a key, by
	// their roots: the first such value of each. A file is then checked without them.
	Sealed map[*yaml.Node]*yaml.Node
	// Unknown is set if Values were not decrypted: placeholders are in their place.
	Unknown bool
	// Key tells the key that the values are encrypted with from others, and nothing of it.
	Key string
}

// OpenError is why an encrypted file could not be opened. It holds no value of the file.
type OpenError struct {
	At      *yaml.Node // where, nil for each document's field sops
	Message string
	// Doubtful is set when the file was changed behind the back of SOPS: not even the names
	// in it are to be believed.
	Doubtful bool
}

// sealed reads a file that is encrypted as a whole: the seal of SOPS is around all of its
// documents. It returns false for one that is not encrypted.
func (r *fileReader) sealed(docs []document) bool {
	var roots []*yaml.Node
	var offsets []int
	var unread []Problem
	encrypted := false
	for _, doc := range docs[:min(len(docs), maxDocuments)] {
		found, bad := doc.parse()
		if bad != nil {
			unread = append(unread, bad.problem(r.file))
		}
		for _, root := range found {
			roots, offsets = append(roots, root), append(offsets, doc.line-1)
			encrypted = encrypted || child(root, sopsField) != nil
		}
	}
	switch {
	case !encrypted:
		return false
	case len(unread) > 0:
		r.problems = unread[:min(len(unread), maxProblems)]
		return true
	case len(docs) > maxDocuments:
		r.problems = []Problem{{Severity: SeverityError, File: r.file, Rule: RuleSyntax, Message: "the encrypted file has too many documents: split it"}}
		return true
	}
	opened, failed := r.open(roots)
	for i, root := range roots {
		if len(r.problems) >= maxProblems {
			break
		}
		// Without a way to open anything what is not encrypted is read all the same.
		if failed != nil && (r.opts.Open != nil || child(root, sopsField) != nil) {
			r.unopened(root, offsets[i], failed)
			continue
		}
		r.openedDocument(root, offsets[i], opened)
	}
	return true
}

func (r *fileReader) open(roots []*yaml.Node) (Opened, *OpenError) {
	if r.opts.Open == nil {
		return Opened{}, &OpenError{Message: "the object is encrypted with SOPS and was not decrypted: is git.ageKeyFile set?"}
	}
	return r.opts.Open(roots)
}

// openedDocument decodes a document of an encrypted file, or says that it is not known
// what it holds.
func (r *fileReader) openedDocument(root *yaml.Node, offset int, opened Opened) {
	if at := opened.Sealed[root]; at != nil {
		d := r.decoder(root, offset)
		d.nameObject()
		d.report(at, Problem{Severity: SeverityWarning, Rule: RuleSecret, Message: "is encrypted, so the object is not checked without the key"})
		r.problems = append(r.problems, d.problems...)
		return
	}
	if i := keyIndex(root, sopsField); i >= 0 {
		root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
	}
	r.encrypted, r.dataKey, r.unknown = opened.Values, opened.Key, opened.Unknown
	r.manifest(root, offset, 0)
}

func (r *fileReader) unopened(root *yaml.Node, offset int, failed *OpenError) {
	d := r.decoder(root, offset)
	if !failed.Doubtful {
		d.nameObject()
	}
	switch {
	case failed.At == nil:
		d.in(sopsField, func() { d.failBy(RuleSecret, locate(root, nil, sopsField), failed.Message) })
	case within(root, failed.At):
		d.failBy(RuleSecret, failed.At, failed.Message)
	default:
		d.failBy(RuleSecret, root, "is in an encrypted file that is wrong elsewhere, and is not read")
	}
	r.problems = append(r.problems, d.problems...)
}

// nameObject has problems of the document name its object, if that is sure.
func (d manifestDecoder) nameObject() {
	quiet := d.reader.decoder(d.root, d.offset)
	if h, ok := quiet.header(); ok && quiet.known(h) {
		d.object = quiet.object
	}
}

func within(whole, part *yaml.Node) bool {
	return whole == part || slices.ContainsFunc(whole.Content, func(n *yaml.Node) bool { return within(n, part) })
}

// mentionsSops reports whether a file may be encrypted, so that others are read once.
func mentionsSops(data []byte) bool { return bytes.Contains(data, []byte(sopsField)) }

// holdsEncrypted reports whether a value, or part of it, was encrypted in the file. A
// message about it must not quote it.
func (d *nodeDecoder) holdsEncrypted(n *yaml.Node) bool {
	if len(d.encrypted) == 0 {
		return false
	}
	return d.encrypted[n] || slices.ContainsFunc(n.Content, d.holdsEncrypted)
}

// plain returns a value of a mapping that was not encrypted in the file, nil if all were.
// What is empty is no secret, and SOPS leaves it as it is.
func (d manifestDecoder) plain(n *yaml.Node) *yaml.Node {
	if d.encrypted == nil || n.Kind != yaml.MappingNode {
		return n
	}
	for i := 1; i < len(n.Content); i += 2 {
		v := n.Content[i]
		if !d.encrypted[v] && !isNull(v) && !(v.Kind == yaml.ScalarNode && v.Value == "") {
			return v
		}
	}
	return nil
}

// allEncrypted reports whether a secret's values were encrypted in the file, all of them.
func (d manifestDecoder) allEncrypted() bool {
	for _, field := range []string{"data", "stringData"} {
		if n := child(d.root, field); n != nil && d.plain(n) != nil {
			return false
		}
	}
	return d.holdsEncrypted(d.root)
}

func (d manifestDecoder) secret(m *Meta) (values map[string]Sensitive) {
	values = d.secretValues(m)
	if m.Encrypted = d.allEncrypted(); m.Encrypted {
		m.DataKey = d.reader.dataKey
	}
	m.Sealed = d.reader.unknown && d.holdsEncrypted(d.root)
	return values
}
