package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ingot/model"
)

// sealedValue is an encrypted value as SOPS writes it.
var sealedValue = regexp.MustCompile(`^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]*),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$`)

// Sizes of a value's parts, in bytes.
const (
	nonceSize = 32
	tagSize   = 16
)

// maxDepth bounds the names that lead to a value: rules look at all of them for each.
const maxDepth = 100

// sealed is an encrypted value taken apart.
type sealed struct {
	data, nonce []byte // data ends with the tag
	kind        string
}

var errNotSealed = errors.New("not as SOPS writes it")

func parseSealed(text string) (sealed, error) {
	m := sealedValue.FindStringSubmatch(text)
	if m == nil {
		return sealed{}, errNotSealed
	}
	data, err := base64.StdEncoding.DecodeString(m[1])
	nonce, errNonce := base64.StdEncoding.DecodeString(m[2])
	tag, errTag := base64.StdEncoding.DecodeString(m[3])
	_, known := tags[m[4]]
	if errors.Join(err, errNonce, errTag) != nil || len(nonce) != nonceSize || len(tag) != tagSize || !known {
		return sealed{}, errNotSealed
	}
	return sealed{append(data, tag...), nonce, m[4]}, nil
}

// tags are the YAML tags of SOPS' types. A comment is no value.
var tags = map[string]string{
	"str": "!!str", "int": "!!int", "float": "!!float", "bool": "!!bool", "bytes": "!!str", "time": "!!timestamp", "comment": "",
}

// opener walks the values of a file in their order, as SOPS does when it seals it.
type opener struct {
	*metadata
	gcm    cipher.AEAD // nil = nothing is opened, only looked at
	mac    hash.Hash
	values map[*yaml.Node]bool // that are encrypted
	first  *yaml.Node          // the first of them in this document
}

// open decrypts the documents in place, and checks that nothing was changed.
func open(documents []*yaml.Node, m *metadata, key []byte) (model.Opened, *model.OpenError) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return model.Opened{}, wrong("the key of the file is not as SOPS writes it: run `sops rotate`")
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, nonceSize)
	if err != nil {
		return model.Opened{}, wrong("the key of the file is not as SOPS writes it: run `sops rotate`")
	}
	o := &opener{metadata: m, gcm: gcm, mac: sha512.New(), values: make(map[*yaml.Node]bool)}
	for _, root := range documents {
		if fault := o.document(root); fault != nil {
			return model.Opened{}, fault
		}
	}
	want, err := o.decrypt(m.MAC, m.modified)
	got := fmt.Sprintf("%X", o.mac.Sum(nil))
	if err != nil || subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		return model.Opened{}, &model.OpenError{Doubtful: true, Message: "the file was changed without SOPS (MAC mismatch), so nothing " +
			"in it is believed: take it from history, and change it with `sops edit`"}
	}
	return model.Opened{Values: o.values, Key: digest(key)}, nil
}

// document walks a document but for its field sops.
func (o *opener) document(root *yaml.Node) *model.OpenError {
	if root.Kind != yaml.MappingNode {
		return wrongAt(root, "is no mapping, which SOPS does not encrypt")
	}
	o.first = nil
	return o.mapping(root, nil)
}

func (o *opener) mapping(n *yaml.Node, path []string) *model.OpenError {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case len(path) == 0 && key.Value == "sops":
			continue
		case len(path) == maxDepth:
			return wrongAt(key, "is nested too deeply for an encrypted file")
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			return wrongAt(key, "is a key that is no string, which SOPS does not encrypt")
		}
		if fault := o.walk(value, append(slices.Clip(path), key.Value)); fault != nil {
			return fault
		}
	}
	return nil
}

func (o *opener) walk(n *yaml.Node, path []string) *model.OpenError {
	switch n.Kind {
	case yaml.MappingNode:
		return o.mapping(n, path)
	case yaml.SequenceNode:
		return o.sequence(n, path)
	case yaml.ScalarNode:
		return o.scalar(n, path)
	default:
		return wrongAt(n, `aliases ("*name") are not read in an encrypted file: write the value out`)
	}
}

// sequence walks a list. SOPS does not count its items, and has comments among them.
func (o *opener) sequence(n *yaml.Node, path []string) *model.OpenError {
	items := n.Content[:0:0]
	for _, item := range n.Content {
		if s, err := parseSealed(item.Value); err == nil && s.kind == "comment" && o.isEncrypted(item, path) {
			continue
		}
		if fault := o.walk(item, path); fault != nil {
			return fault
		}
		items = append(items, item)
	}
	n.Content = items
	return nil
}

func (o *opener) scalar(n *yaml.Node, path []string) *model.OpenError {
	if n.Tag == "!!null" {
		return nil
	}
	if !o.isEncrypted(n, path) {
		text, ok := canonical(n)
		if !ok {
			return wrongAt(n, "is a value of a kind that SOPS does not know")
		}
		o.hash(text)
		return nil
	}
	if n.Tag == "!!str" && n.Value == "" {
		return nil // SOPS leaves it as it is
	}
	s, err := parseSealed(n.Value)
	if err != nil || n.Tag != "!!str" || s.kind == "comment" {
		return wrongAt(n, "is not encrypted as SOPS would have it: change the file with `sops edit`")
	}
	o.values[n] = true
	if o.first == nil {
		o.first = n
	}
	if o.gcm == nil {
		return nil
	}
	text, err := o.unseal(s, strings.Join(path, ":")+":")
	if err != nil {
		return &model.OpenError{At: n, Doubtful: true, Message: "cannot be decrypted: it was changed, or moved here from another field or file; " +
			"take it from history, and change it with `sops edit`"}
	}
	n.Value, n.Tag, n.Style = text, tags[s.kind], 0
	if n.Tag == "!!bool" {
		n.Value = strings.ToLower(text)
	}
	hashed, ok := canonical(n)
	if !ok {
		return wrongAt(n, "is not of the kind that it says it is: change it with `sops edit`")
	}
	o.hash(hashed)
	return nil
}

func (o *opener) hash(text string) {
	if o.mac != nil {
		o.mac.Write([]byte(text))
	}
}

func (o *opener) decrypt(text, bound string) (string, error) {
	s, err := parseSealed(text)
	if err != nil {
		return "", err
	}
	return o.unseal(s, bound)
}

func (o *opener) unseal(s sealed, bound string) (string, error) {
	text, err := o.gcm.Open(nil, s.nonce, s.data, []byte(bound))
	return string(text), err
}

// isEncrypted reports whether the value at a path is encrypted, by the rules of the file.
// Rules about comments are not looked at: the value's own form tells then.
func (o *opener) isEncrypted(n *yaml.Node, path []string) bool {
	anyOf := func(is func(name string) bool) bool { return slices.ContainsFunc(path, is) }
	encrypted := true
	if o.UnencryptedSuffix != "" && anyOf(func(s string) bool { return strings.HasSuffix(s, o.UnencryptedSuffix) }) {
		encrypted = false
	}
	if o.EncryptedSuffix != "" {
		encrypted = anyOf(func(s string) bool { return strings.HasSuffix(s, o.EncryptedSuffix) })
	}
	if o.unencrypted != nil && anyOf(o.unencrypted.MatchString) {
		encrypted = false
	}
	if o.encrypted != nil {
		encrypted = anyOf(o.encrypted.MatchString)
	}
	if o.UnencryptedCommentRegex != "" || o.EncryptedCommentRegex != "" {
		encrypted = n.Tag == "!!str" && sealedValue.MatchString(n.Value)
	}
	return encrypted
}

// canonical is a clear value as it goes into the code over all values.
func canonical(n *yaml.Node) (string, bool) {
	var v any
	if n.Decode(&v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case time.Time:
		text, err := v.MarshalText()
		return string(text), err == nil
	}
	return "", false
}

func wrongAt(n *yaml.Node, message string) *model.OpenError {
	return &model.OpenError{At: n, Message: message}
}
