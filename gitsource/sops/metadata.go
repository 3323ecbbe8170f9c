package sops

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"

	"ingot/model"
)

// Limits of what anybody who may commit can write into a file.
const (
	maxRecipients   = 100
	maxEncryptedKey = 8 << 10 // bytes; one for a post-quantum recipient has 2,300
	maxPattern      = 1 << 10 // bytes
	dataKeySize     = 32      // bytes
)

// metadata is the field sops of a file, as far as it is needed here.
type metadata struct {
	Age []struct {
		Recipient string `yaml:"recipient"`
		Enc       string `yaml:"enc"`
	} `yaml:"age"`
	KeyGroups       yaml.Node `yaml:"key_groups"`
	ShamirThreshold int       `yaml:"shamir_threshold"`

	LastModified            string `yaml:"lastmodified"`
	MAC                     string `yaml:"mac"`
	MACOnlyEncrypted        bool   `yaml:"mac_only_encrypted"`
	UnencryptedSuffix       string `yaml:"unencrypted_suffix"`
	EncryptedSuffix         string `yaml:"encrypted_suffix"`
	UnencryptedRegex        string `yaml:"unencrypted_regex"`
	EncryptedRegex          string `yaml:"encrypted_regex"`
	UnencryptedCommentRegex string `yaml:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `yaml:"encrypted_comment_regex"`

	modified               string // as it was sealed with
	encrypted, unencrypted *regexp.Regexp
}

func wrong(format string, args ...any) *model.OpenError {
	return &model.OpenError{Message: fmt.Sprintf(format, args...)}
}

// readMetadata finds and checks the metadata of a file, those of its first document. Every
// document has to have some: one without was added behind the back of SOPS.
func readMetadata(documents []*yaml.Node) (*metadata, *model.OpenError) {
	var first *yaml.Node
	for _, root := range documents {
		at := field(root, "sops")
		switch {
		case at == nil:
			return nil, &model.OpenError{At: root, Doubtful: true, Message: "this document has no field sops, and others of the file have: " +
				"add it with `sops edit`, or give it a file of its own"}
		case first == nil:
			first = at
		}
	}
	m := &metadata{}
	if first.Kind != yaml.MappingNode || hasAlias(first) || first.Decode(m) != nil {
		return nil, wrong("the field sops is not as SOPS writes it: take the file from history, or encrypt it again")
	}
	return m, m.check(first)
}

// check refuses what is not read, and what would not be safe.
func (m *metadata) check(n *yaml.Node) *model.OpenError {
	modified, err := time.Parse(time.RFC3339, m.LastModified)
	m.modified = modified.Format(time.RFC3339)
	switch {
	case m.MACOnlyEncrypted:
		return wrong("mac_only_encrypted is refused, because a change of what is not encrypted would not be noticed: " +
			"take it out of .sops.yaml and encrypt the file again")
	case m.ShamirThreshold != 0 || !m.KeyGroups.IsZero():
		return wrong("key groups (shamir_threshold) are not read: encrypt the file for age recipients alone, see `sops updatekeys`")
	case len(m.Age) == 0:
		return wrong("the file is not encrypted for age%s, and Ingot reads age only: add an age recipient to .sops.yaml and run "+
			"`sops updatekeys`", otherKeys(n))
	case len(m.Age) > maxRecipients:
		return wrong("the file has more than %d age recipients", maxRecipients)
	case err != nil || !sealedValue.MatchString(m.MAC):
		return wrong("the field sops lacks lastmodified or mac as SOPS writes them: take the file from history, or encrypt it again")
	}
	if fault := m.checkRules(); fault != nil {
		return fault
	}
	for _, k := range m.Age {
		if len(k.Enc) > maxEncryptedKey || !strings.HasPrefix(strings.TrimSpace(k.Enc), armor.Header) {
			return wrong("the field sops has an age recipient whose enc is no armored age file: run `sops updatekeys`")
		}
	}
	return nil
}

// checkRules checks the rule that says which values are encrypted. There is one at most;
// files of before there were any have that of unencryptedSuffix.
func (m *metadata) checkRules() (fault *model.OpenError) {
	rules := []string{
		m.UnencryptedSuffix, m.EncryptedSuffix, m.UnencryptedRegex, m.EncryptedRegex, m.UnencryptedCommentRegex, m.EncryptedCommentRegex,
	}
	rules = slices.DeleteFunc(rules, func(rule string) bool { return rule == "" })
	if len(rules) > 1 {
		return wrong("the field sops has more than one rule for what is encrypted: take the file from history, or encrypt it again")
	}
	if len(rules) == 0 {
		m.UnencryptedSuffix = unencryptedSuffix
	}
	if m.encrypted, fault = pattern(m.EncryptedRegex); fault == nil {
		m.unencrypted, fault = pattern(m.UnencryptedRegex)
	}
	return fault
}

const unencryptedSuffix = "_unencrypted"

func pattern(text string) (*regexp.Regexp, *model.OpenError) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil || len(text) > maxPattern {
		return nil, wrong("the field sops has a regular expression that is none, or too long")
	}
	return re, nil
}

// otherKeys names the kinds of keys that a file is encrypted for.
func otherKeys(n *yaml.Node) string {
	var found []string
	for _, kind := range []string{"pgp", "kms", "gcp_kms", "azure_kv", "hc_vault", "hckms"} {
		if at := field(n, kind); at != nil && len(at.Content) > 0 {
			found = append(found, kind)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (but for " + strings.Join(found, ", ") + ")"
}

// dataKey opens the key that all values are encrypted with. Only what is meant for one of
// our identities is tried: that is cheap, whatever a file holds.
func (m *metadata) dataKey(keys *Keys) ([]byte, *model.OpenError) {
	if keys.file == "" {
		return nil, wrong("the file is encrypted with SOPS for %s: name the file with that identity in git.ageKeyFile", m.recipients())
	}
	for _, k := range m.Age {
		identity := keys.identity(k.Recipient)
		if identity == nil {
			continue
		}
		r, err := age.Decrypt(armor.NewReader(strings.NewReader(k.Enc)), identity)
		if err != nil {
			return nil, wrong("the key for %s cannot be opened with its identity: run `sops updatekeys`", recipient(k.Recipient))
		}
		var key bytes.Buffer
		if _, err := io.Copy(&key, io.LimitReader(r, dataKeySize+1)); err != nil || key.Len() != dataKeySize {
			return nil, wrong("the key for %s is not as SOPS writes it: run `sops rotate`", recipient(k.Recipient))
		}
		return key.Bytes(), nil
	}
	return nil, wrong("the file is encrypted for %s, and the age key file holds the identity of none: add one, or encrypt the file for "+
		"Ingot too (`sops updatekeys`)", m.recipients())
}

// recipients names whom a file is encrypted for. They are no secret.
func (m *metadata) recipients() string {
	const most = 5
	var names []string
	for _, k := range m.Age[:min(len(m.Age), most)] {
		names = append(names, recipient(k.Recipient))
	}
	if n := len(m.Age) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

var recipientPattern = regexp.MustCompile(`^age1[0-9a-z]+$`)

// recipient is a recipient for people: those of post-quantum keys fill screens.
func recipient(s string) string {
	const most = 62 // of X25519
	if !recipientPattern.MatchString(s) {
		return "a recipient that is none of age's"
	}
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// field returns the value of a mapping's key, or nil.
func field(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}
