package sops

import (
	"crypto/sha256"
	"encoding/base64"

	"go.yaml.in/yaml/v3"

	"ingot/model"
)

// Check is Open without a key: it checks that the file is as SOPS writes it, and which
// values are encrypted. Those of secrets are empty then; other objects with such values, and
// documents of which not even the kind is known, are sealed.
func Check(documents []*yaml.Node) (model.Opened, *model.OpenError) {
	return check(documents, func(string) string { return "" })
}

// Compare is Check for comparing revisions: it puts a digest of its ciphertext, in base64, in
// the place of each value of a secret, so that the values differ where the ciphertexts do.
func Compare(documents []*yaml.Node) (model.Opened, *model.OpenError) {
	return check(documents, func(sealed string) string { return digest([]byte(sealed)) })
}

// digest tells one value from another, and nothing of it that could be guessed.
func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// check puts what comes of each encrypted value in its place.
func check(documents []*yaml.Node, value func(sealed string) string) (model.Opened, *model.OpenError) {
	m, fault := readMetadata(documents)
	if fault != nil {
		return model.Opened{}, fault
	}
	o := &opener{metadata: m, values: make(map[*yaml.Node]bool)}
	// A key encrypted anew, by sops updatekeys, is taken for another one.
	opened := model.Opened{Values: o.values, Sealed: make(map[*yaml.Node]*yaml.Node), Unknown: true, Key: digest([]byte(m.Age[0].Enc))}
	for _, root := range documents {
		if fault := o.document(root); fault != nil {
			return model.Opened{}, fault
		}
		if sealed := o.beyondSecrets(root); sealed != nil {
			opened.Sealed[root] = sealed
		}
	}
	for n := range o.values {
		n.Value = value(n.Value)
	}
	return opened, nil
}

// beyondSecrets returns the first encrypted value of a document that is not one of a
// secret's own, nil if there is none.
func (o *opener) beyondSecrets(root *yaml.Node) *yaml.Node {
	kind := field(root, "kind")
	if kind == nil || kind.Value != string(model.KindSecret) && kind.Value != string(model.KindBMCSecret) {
		return o.first
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if name := root.Content[i].Value; name == "data" || name == "stringData" || name == "sops" {
			continue
		}
		if n := o.firstIn(root.Content[i+1]); n != nil {
			return n
		}
	}
	return nil
}

// firstIn returns the first encrypted value of a node, or nil.
func (o *opener) firstIn(n *yaml.Node) *yaml.Node {
	if o.values[n] {
		return n
	}
	for _, c := range n.Content {
		if found := o.firstIn(c); found != nil {
			return found
		}
	}
	return nil
}
