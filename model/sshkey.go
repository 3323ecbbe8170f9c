package model

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// MaxSSHKeys is how many SSH keys a claim may have, and boot.sshKeys.
const MaxSSHKeys = 64

const (
	maxSSHKey  = 8 << 10 // bytes of one line
	minRSABits = 2048
)

// sshKeyTypes are the types of public keys that a server may get.
var sshKeyTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
}

// SSHKeyProblem is what is wrong with a line of AnnotationSSHKeys.
type SSHKeyProblem struct {
	Line    int // of the text, from 1
	Message string
}

// ParseSSHKeys returns the public keys of a text with one key a line, without repetitions. Empty lines and comments
// are skipped.
func ParseSSHKeys(text string) (keys []string, wrong []SSHKeyProblem) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := ParseSSHKey(line)
		switch {
		case err == nil && slices.Contains(keys, key):
			continue
		case err == nil && len(keys) == MaxSSHKeys:
			return keys, append(wrong, SSHKeyProblem{i + 1, fmt.Sprintf("at most %d keys are allowed", MaxSSHKeys)})
		case err == nil:
			keys = append(keys, key)
			continue
		}
		wrong = append(wrong, SSHKeyProblem{i + 1, err.Error()})
		if strings.HasPrefix(line, privateKey) {
			break // the next lines are the key itself
		}
	}
	return keys, wrong
}

// privateKey begins a private key in PEM.
const privateKey = "-----BEGIN "

// ParseSSHKey returns a public key in the form of authorized_keys: its type, base64 and comment, with one space between
// them. It refuses options, weak keys, and texts of which a program could read a second line.
func ParseSSHKey(text string) (string, error) {
	words := strings.Fields(text)
	isType := func(word string) bool { return slices.Contains(sshKeyTypes, word) }
	switch {
	case strings.HasPrefix(text, privateKey):
		return "", fmt.Errorf("found a private key, want the public key, which is in the file that ends with .pub; make a new pair if this key was committed")
	case strings.ContainsAny(text, "\r\n"):
		return "", fmt.Errorf("found a line break, want one key on one line")
	case len(text) > maxSSHKey:
		return "", fmt.Errorf("the key has %d bytes, at most %d are allowed", len(text), maxSSHKey)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }):
		return "", fmt.Errorf("found a character that cannot be printed, want a key of type, base64 and comment")
	case len(words) == 0:
		return "", fmt.Errorf("the key is empty")
	case !isType(words[0]) && slices.ContainsFunc(words[1:], isType):
		return "", fmt.Errorf("options such as from= and command= are not allowed: begin the line with the type of the key")
	case !isType(words[0]):
		return "", fmt.Errorf("found %s, want a public key on one line that begins with its type: %s", show(words[0]), oneOf(sshKeyTypes))
	case slices.ContainsFunc(words[1:], isType):
		return "", fmt.Errorf("found two keys on one line: write one key a line, in YAML as a block that begins with |")
	case len(words) == 1:
		return "", fmt.Errorf("the key ends after its type %s: write its base64 on the same line", words[0])
	}
	blob, err := base64.StdEncoding.DecodeString(words[1])
	if err != nil {
		return "", fmt.Errorf("the %s key is not base64: copy the line of the .pub file whole", words[0])
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || key.Type() != words[0] {
		return "", fmt.Errorf("the %s key is damaged or of another type: copy the line of the .pub file whole", words[0])
	}
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if k, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && k.N.BitLen() < minRSABits {
			return "", fmt.Errorf("the RSA key has %d bits, at least %d are required; ssh-keygen -t ed25519 makes a better one", k.N.BitLen(), minRSABits)
		}
	}
	return strings.Join(words, " "), nil
}

// SSHKeysSum identifies the text of AnnotationSSHKeys, empty for none. Keys are not secret.
func SSHKeysSum(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// SSHKeyNames names the keys of a text for people, by fingerprint and comment.
func SSHKeyNames(text string) string {
	const most = 4
	keys, _ := ParseSSHKeys(text)
	var names []string
	for _, key := range keys[:min(len(keys), most)] {
		public, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
		if err == nil {
			names = append(names, strings.TrimSpace(ssh.FingerprintSHA256(public)+" "+comment))
		}
	}
	if more := len(keys) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
