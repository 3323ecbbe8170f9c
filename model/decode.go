package model

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DecodeOptions say what Decode takes.
type DecodeOptions struct {
	// AllowPlaintextSecrets takes Secrets and BMCSecrets whose values stand in plain text.
	AllowPlaintextSecrets bool
	// Open is handed the documents of a file that SOPS encrypted, and decrypts their values
	// in place; nil = such a file is refused. What it decrypted is not in plain text.
	Open func(documents []*yaml.Node) (Opened, *OpenError)
}

// Decode reads the manifests of a file: YAML of any number of documents, or
// JSON. It is strict and reads on after a mistake: objects are those without an
// error, in the order of the file, and problems all that a person should correct.
// Names are canonical and defaults filled in.
//
// An error's Problem.Object is set only when it is sure which object stands in
// the file; while it is empty, any object may be the one that is not returned.
// That two documents define the same object is for the caller to find out.
func Decode(file string, data []byte, opts DecodeOptions) (objects []Object, problems []Problem) {
	data, unread := readable(data)
	if unread != nil {
		return nil, []Problem{unread.problem(file)}
	}
	if isKustomization(file) {
		// It is sure that none of the objects that Ingot reads stands in it.
		return nil, []Problem{{Severity: SeverityError, File: file, Line: 1, Column: 1, Object: "Kustomization", Rule: RuleUnknownKind, Message: "is for kustomize, " +
			"which Ingot does not run: render it in CI (kustomize build) and commit what comes out, or leave the file out by .ingotignore"}}
	}
	r := fileReader{file: file, opts: opts, source: &sourceText{text: data}}
	docs := splitDocuments(data)
	if mentionsSops(data) && r.sealed(docs) {
		docs = nil
	}
	for i, doc := range docs {
		if i == maxDocuments || len(r.problems) >= maxProblems {
			r.problems = append(r.problems, (&syntaxError{line: doc.line, column: 1, message: fmt.Sprintf(
				"the rest of the file was not read: at most %d documents and %d problems", maxDocuments, maxProblems)}).problem(file))
			break
		}
		r.document(doc)
	}
	SortProblems(r.problems)
	noKind := func(p Problem) bool { return p.Field == "kind" && p.Rule == RuleRequired }
	if tool := otherTool(file); tool != "" && len(r.objects) == 0 && slices.ContainsFunc(r.problems, noKind) {
		r.problems = []Problem{{Severity: SeverityError, File: file, Line: 1, Column: 1, Rule: RuleUnknownKind,
			Message: "this is " + tool + ", which Ingot does not read: put it into .ingotignore"}}
	}
	return r.objects, r.problems
}

func (e *syntaxError) problem(file string) Problem {
	return Problem{Severity: SeverityError, File: file, Line: e.line, Column: e.column, Message: e.message, Rule: RuleSyntax}
}

type fileReader struct {
	file     string
	opts     DecodeOptions
	objects  []Object
	problems []Problem
	// encrypted are the nodes whose values were encrypted in the file.
	encrypted map[*yaml.Node]bool
	dataKey   string // Opened.Key
	unknown   bool   // Opened.Unknown
	source    *sourceText
}

// manifestDecoder decodes one document of a file into an object.
type manifestDecoder struct {
	*nodeDecoder
	reader *fileReader
}

func (r *fileReader) decoder(root *yaml.Node, offset int) manifestDecoder {
	d := newNodeDecoder(r.file, offset, root)
	d.encrypted, d.source = r.encrypted, r.source
	return manifestDecoder{d, r}
}

func (r *fileReader) document(doc document) {
	roots, bad := doc.parse()
	for _, root := range roots {
		r.manifest(root, doc.line-1, 0)
	}
	if bad != nil {
		r.problems = append(r.problems, bad.problem(r.file))
	}
}

func (r *fileReader) manifest(root *yaml.Node, offset, depth int) {
	d := r.decoder(root, offset)
	defer func() { r.problems = append(r.problems, d.problems...) }()

	h, ok := d.header()
	if !ok {
		return
	}
	if listKind(h.kind) {
		r.list(d.nodeDecoder, offset, depth)
		return
	}
	if !d.known(h) {
		return
	}
	object := d.decode(Kind(h.kind))
	if d.errors == 0 {
		r.objects = append(r.objects, object)
	}
}

func (r *fileReader) list(d *nodeDecoder, offset, depth int) {
	items := child(d.root, "items")
	d.push("items")
	switch {
	case absent(items):
		return
	case depth == maxListDepth:
		d.fail(items, "lists are nested too deeply")
		return
	case items.Kind != yaml.SequenceNode:
		d.mismatch(items, "a list")
		return
	}
	for _, item := range items.Content {
		if len(r.problems) >= maxProblems {
			return
		}
		r.manifest(item, offset, depth+1)
	}
}

// header is what tells which object a document is.
type header struct {
	apiVersion, kind string
	identity         Identity
	sure             bool // the identity is that which the person meant
}

// header reads a document's header, and complains about what is missing.
func (d manifestDecoder) header() (h header, ok bool) {
	if d.root.Kind != yaml.MappingNode {
		d.quiet = true // a document without kind may be anything
		d.mismatch(d.root, "a mapping with the fields apiVersion, kind and metadata")
		return h, false
	}
	h.apiVersion, h.kind = d.headerText("apiVersion"), d.headerText("kind")
	metadata := child(d.root, "metadata")
	name, namespace := plainText(child(metadata, "name")), plainText(child(metadata, "namespace"))
	h.identity = Identity{Kind: Kind(h.kind), Name: name}
	if Kind(h.kind).Namespaced() {
		h.identity.Namespace = namespace
		if namespace == "" {
			h.identity.Namespace = DefaultNamespace
		}
	}
	h.sure = subdomainFault(name) == "" && (absent(child(metadata, "namespace")) || labelFault(namespace) == "") &&
		!anyTwice(d.root, "apiVersion", "kind", "metadata") && !anyTwice(metadata, "name", "namespace")
	return h, d.errors == 0
}

// headerText returns a field of the header, which must be there.
func (d manifestDecoder) headerText(name string) string {
	d.push(name)
	defer d.pop()

	n := child(d.root, name)
	if absent(n) {
		message := "is required"
		if i := slices.IndexFunc(d.root.Content, func(key *yaml.Node) bool {
			return isText(key) && keyIndex(d.root, key.Value) >= 0 && Nearest(key.Value, []string{name}) != ""
		}); i >= 0 {
			message += ", did you mean it by " + show(d.root.Content[i].Value) + "?"
		}
		d.failBy(RuleRequired, d.root, message)
		return ""
	}
	s, _ := d.text(n, "a string")
	return s
}

// plainText returns a string's value, or "" when n is none.
func plainText(n *yaml.Node) string {
	if n == nil || !isText(n) {
		return ""
	}
	return n.Value
}

// anyTwice reports whether a mapping has one of the keys twice.
func anyTwice(n *yaml.Node, names ...string) bool {
	if n == nil || n.Kind != yaml.MappingNode {
		return false
	}
	for _, name := range names {
		if first := keyIndex(n, name); first >= 0 {
			rest := yaml.Node{Kind: yaml.MappingNode, Content: n.Content[first+2:]}
			if keyIndex(&rest, name) >= 0 {
				return true
			}
		}
	}
	return false
}

// known reports whether a document is of a kind that Ingot reads, and complains
// if not. A document that is clearly none of ours is named in the error; one
// that may be a misspelt one of ours is not, for it may be any object.
func (d manifestDecoder) known(h header) bool {
	kind := Kind(h.kind)
	info, isKnown := kindTable[kind]
	group, _, _ := strings.Cut(h.apiVersion, "/")
	ours := strings.EqualFold(group, Group) || strings.EqualFold(group, aliasGroup) || strings.HasSuffix(group, "."+Group)
	why, refused := refusedKinds[kind]
	refused = refused && (ours || kind != "Console") // other projects have one, too

	if isKnown && h.sure || refused {
		d.object = strings.TrimSpace(h.identity.String())
	}
	message := "Ingot does not read the kind " + h.kind + ": " + why
	switch {
	case refused:
	case !isKnown:
		message = "Ingot does not read the kind " + show(h.kind) + ", " + guess(h.kind, kindNames())
		if Nearest(h.kind, kindNames()) == "" && !ours {
			d.object = strings.TrimSpace(h.identity.String())
			message += ". A file that is not for Ingot is left out by .ingotignore"
		}
	default:
		return d.checkVersion(h.apiVersion, kind, info.core)
	}
	d.in("kind", func() { d.failBy(RuleUnknownKind, child(d.root, "kind"), message) })
	return false
}

// checkVersion reports whether apiVersion is right for a kind.
func (d manifestDecoder) checkVersion(apiVersion string, kind Kind, core bool) bool {
	d.push("apiVersion")
	defer d.pop()
	n := child(d.root, "apiVersion")

	want := APIVersion
	if core {
		want = "v1"
	}
	switch {
	case apiVersion == want, kind == KindServerMaintenance && apiVersion == MaintenanceVersion:
		return true
	case !core && strings.EqualFold(apiVersion, aliasGroup+"/v1alpha1"):
		d.warn(n, "is another name for "+APIVersion+": write that")
		return true
	}
	d.failBy(RuleUnknownKind, n, fmt.Sprintf("found %s, want %s", show(apiVersion), want))
	return false
}

// manifest decodes the document into an object of its kind, with its defaults, and
// checks it.
func (d manifestDecoder) decode(kind Kind) Object {
	d.quiet = kind.secret()
	o := kindTable[kind].new()
	v := reflect.ValueOf(o).Elem()
	decodeFuncOf(v.Type())(d.nodeDecoder, d.root, v)

	m := o.Metadata()
	m.Source = d.file + ":" + strconv.Itoa(d.root.Line+d.offset)
	d.namespace(m, kind)
	switch o := o.(type) {
	case *BMCSecret:
		o.Values = d.secret(m)
	case *Secret:
		o.Values = d.secret(m)
		o.Sum = NewSensitive(o.BootSum())
	}
	check(d.nodeDecoder, o)
	return o
}

// namespace fills in the namespace of kinds that have one, and drops that of
// others.
func (d manifestDecoder) namespace(m *Meta, kind Kind) {
	switch {
	case kind.Namespaced() && m.Namespace == "":
		m.Namespace = DefaultNamespace
	case !kind.Namespaced() && m.Namespace != "":
		d.in("metadata", func() { d.odd("namespace", "a "+string(kind)+" has no namespace: ignored") })
		m.Namespace = ""
	}
}

// secretValues merges data and stringData, of which the latter wins.
func (d manifestDecoder) secretValues(m *Meta) map[string]Sensitive {
	values := make(map[string]Sensitive)
	for _, field := range []string{"data", "stringData"} {
		n := child(d.root, field)
		if absent(n) {
			continue
		}
		d.push(field)
		switch {
		case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		case !d.reader.opts.AllowPlaintextSecrets && d.plain(n) != nil:
			d.refusePlain(field, n)
		case d.mapping(n):
			d.secretMap(n, field == "data", m, values)
		}
		d.pop()
	}
	return values
}

// refusePlain refuses a secret that anybody can read who can read the repository.
func (d manifestDecoder) refusePlain(field string, n *yaml.Node) {
	at := d.plain(n)
	if at == n {
		d.failBy(RuleSecret, locate(d.root, d.path[:0], field), "a secret in plain text is refused: "+
			"encrypt the file with SOPS, or set git.allowPlaintextSecrets: true")
		return
	}
	d.failBy(RuleSecret, at, "a secret in plain text is refused, and this value is not encrypted though the file is: have .sops.yaml encrypt all of "+
		"data and stringData (encrypted_regex: ^(data|stringData)$)")
}

// secretMap adds the entries of a mapping to values. Its problems name no key: a
// value that slipped to the place of a key looks like one.
func (d manifestDecoder) secretMap(n *yaml.Node, encoded bool, m *Meta, values map[string]Sensitive) {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == tagMerge {
			d.failBy(RuleSyntax, key, noMerge)
			continue
		}
		if !isText(key) || !isSecretKey(key.Value) {
			d.fail(key, `found a key that is none, want letters, digits, "-", "_" and "."`)
			continue
		}
		if seen[key.Value] {
			d.failBy(RuleRepeated, key, "a key is given twice")
			continue
		}
		seen[key.Value] = true
		text, ok := d.text(value, "a string")
		if encoded && ok {
			var raw []byte
			var err error
			if raw, err = base64.StdEncoding.DecodeString(text); err != nil { // passes over line breaks
				d.fail(value, "found text that is not base64: encode it, or move it to stringData")
				continue
			}
			text = string(raw)
		}
		if ok || isNull(value) {
			values[key.Value] = NewSensitive(text)
			m.Places = append(m.Places, Place{pathText(d.path, key.Value), key.Line + d.offset, key.Column, d.indentOf(value)})
		}
	}
}
