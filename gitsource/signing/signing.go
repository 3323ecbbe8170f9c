package signing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxSignature bounds a signature, in bytes.
const maxSignature = 64 << 10

// Signer is who signed.
type Signer struct {
	Name string // of the key, as its owner or the operator wrote it
	Key  string // "SSH key SHA256:…" or "OpenPGP key <fingerprint>"
}

// String is the signer for people.
func (s Signer) String() string {
	if s.Name == "" {
		return s.Key
	}
	return s.Name + " (" + s.Key + ")"
}

const (
	beginOpenPGP = armorBegin + "SIGNATURE-----"
	beginMessage = armorBegin + "MESSAGE-----" // gpg's older way to say the same
	beginSSH     = "-----BEGIN SSH SIGNATURE-----"
	beginX509    = "-----BEGIN SIGNED MESSAGE-----"
)

// Verify returns who signed payload. Its error reads on from what is signed: "is signed
// by …". Whether a key is expired is asked of now: the time in a commit or signature is
// what its maker wrote, and so who got hold of an expired key could write any.
func (k *Keys) Verify(payload []byte, signature string, now time.Time) (Signer, error) {
	switch {
	case signature == "":
		return Signer{}, errors.New("is not signed")
	case len(signature) > maxSignature, strings.Count(signature, "-----BEGIN ") != 1:
		return Signer{}, errors.New("has something else than one signature")
	case strings.HasPrefix(signature, beginSSH):
		return k.verifySSH(payload, signature, now)
	case strings.HasPrefix(signature, beginOpenPGP), strings.HasPrefix(signature, beginMessage):
		return k.verifyOpenPGP(payload, signature, now)
	case strings.HasPrefix(signature, beginX509):
		return Signer{}, errors.New("has an X.509 signature, which is not verified: sign with OpenPGP or SSH")
	}
	return Signer{}, errors.New("has a signature of a kind that is not known: sign with OpenPGP or SSH")
}

const signatureHeader = "gpgsig "

// SplitCommit splits the content of a commit object into what is signed and the signature,
// "" if there is none, see gitformat-signature(5).
func SplitCommit(raw []byte) (payload []byte, signature string) {
	var signed, sig bytes.Buffer
	inSignature := false
	for rest := raw; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		switch {
		case line[0] == '\n': // the end of the headers
			signed.Write(rest)
			return signed.Bytes(), sig.String()
		case inSignature && line[0] == ' ':
			sig.Write(line[1:])
		case bytes.HasPrefix(line, []byte(signatureHeader)):
			inSignature = true
			sig.Write(line[len(signatureHeader):])
		default:
			inSignature = false
			signed.Write(line)
		}
		rest = rest[len(line):]
	}
	return signed.Bytes(), sig.String()
}

// JoinCommit puts a signature into the content of a commit that has none.
func JoinCommit(payload []byte, signature string) []byte {
	headers, message, _ := bytes.Cut(payload, []byte("\n\n"))
	folded := strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n ")
	return fmt.Appendf(nil, "%s\n%s%s\n\n%s", headers, signatureHeader, folded, message)
}

// SplitTag splits the content of a tag object into what is signed and the signature: the
// last line that begins one, and all behind it.
func SplitTag(raw []byte) (payload []byte, signature string) {
	at := len(raw)
	for i := 0; i < len(raw); {
		for _, begin := range []string{beginOpenPGP, beginMessage, beginSSH, beginX509} {
			if bytes.HasPrefix(raw[i:], []byte(begin)) {
				at = i
			}
		}
		next := bytes.IndexByte(raw[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return raw[:at], string(raw[at:])
}

// PrivateKey is a key to sign with. What is secret of it cannot be printed.
type PrivateKey struct {
	sign func(payload []byte) (string, error)
}

// ParsePrivateKey reads an SSH private key or an armored OpenPGP private key.
func ParsePrivateKey(content []byte) (*PrivateKey, error) {
	parse := parsePrivateSSH
	if bytes.Contains(content, []byte(armorBegin)) {
		parse = parsePrivateOpenPGP
	}
	sign, err := parse(content)
	if err != nil {
		return nil, err
	}
	return &PrivateKey{sign}, nil
}

// Commit returns the content of a commit with a signature of it.
func (k *PrivateKey) Commit(payload []byte) ([]byte, error) {
	signature, err := k.sign(payload)
	if err != nil {
		return nil, fmt.Errorf("sign the commit: %w", err)
	}
	return JoinCommit(payload, signature), nil
}
