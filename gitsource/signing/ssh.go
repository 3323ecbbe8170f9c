package signing

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// namespace is what Git signs by SSH for, so that a signature of a file, say, is none of a
// commit.
const namespace = "git"

// minRSABits is how long an RSA key has to be.
const minRSABits = 2048

// addPublicKeys reads the lines of a *.pub file. Of the options in sshd(8) it takes
// expiry-time.
func (k *Keys) addPublicKeys(file string, content []byte) error {
	return eachLine(content, func(line string) error {
		key, comment, options, err := publicKey(line)
		if err != nil {
			return err
		}
		s := sshKey{key: key, name: cmp.Or(comment, strings.TrimSuffix(file, path.Ext(file)))}
		for _, option := range options {
			name, value := splitOption(option)
			if name != "expiry-time" {
				return fmt.Errorf("option %s is not known here: only expiry-time is", name)
			}
			if s.before, err = parseTime(name, value); err != nil {
				return err
			}
		}
		k.ssh = append(k.ssh, s)
		return nil
	})
}

// addAllowedSigners reads a file as in ssh-keygen(1), "ALLOWED SIGNERS".
func (k *Keys) addAllowedSigners(_ string, content []byte) error {
	return eachLine(content, func(line string) error {
		principals, rest, err := cutPrincipals(line)
		if err != nil {
			return err
		}
		key, _, options, err := publicKey(rest)
		if err != nil {
			return err
		}
		s, forGit := sshKey{key: key, name: principals}, true
		for _, option := range options {
			name, value := splitOption(option)
			switch strings.ToLower(name) {
			case "namespaces":
				forGit = matches(value)
			case "valid-after":
				s.after, err = parseTime(name, value)
			case "valid-before":
				s.before, err = parseTime(name, value)
			case "cert-authority":
				err = errors.New("option cert-authority is not supported: certificates are not verified, list the keys themselves")
			default:
				err = fmt.Errorf("option %s is not known: namespaces, valid-after and valid-before are", name)
			}
			if err != nil {
				return err
			}
		}
		if forGit {
			k.ssh = append(k.ssh, s)
		}
		return nil
	})
}

// eachLine calls fn for each line that is no comment. Its error names the line.
func eachLine(content []byte, fn func(string) error) error {
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := fn(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// publicKey parses options, key and comment of a line.
func publicKey(line string) (ssh.PublicKey, string, []string, error) {
	if strings.Contains(line, "PRIVATE KEY") {
		return nil, "", nil, errors.New("it holds a private key, which does not belong here: take it away and put the public one here")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, "", nil, errors.New("it is no SSH public key, such as ssh-ed25519 AAAA… name")
	}
	return key, strings.Join(strings.Fields(comment), " "), options, weakSSH(key)
}

// cutPrincipals splits the first field of a line off, which may be quoted.
func cutPrincipals(line string) (principals, rest string, err error) {
	found := false
	if quoted, isQuoted := strings.CutPrefix(line, `"`); isQuoted {
		principals, rest, found = strings.Cut(quoted, `"`)
	} else if i := strings.IndexAny(line, " \t"); i >= 0 {
		principals, rest, found = line[:i], line[i:], true
	}
	if rest = strings.TrimSpace(rest); !found || rest == "" {
		return "", "", errors.New("it is not of the form: principal [options] key")
	}
	return principals, rest, nil
}

func splitOption(option string) (name, value string) {
	name, value, _ = strings.Cut(option, "=")
	return name, strings.Trim(value, `"`)
}

// matches reports whether a list of patterns, see ssh_config(5), has our namespace.
func matches(patterns string) bool {
	found := false
	for p := range strings.SplitSeq(patterns, ",") {
		pattern, not := strings.CutPrefix(strings.TrimSpace(p), "!")
		if ok, err := path.Match(pattern, namespace); err != nil || !ok {
			continue
		}
		if not {
			return false
		}
		found = true
	}
	return found
}

// parseTime reads YYYYMMDD[HHMM[SS]][Z], in this machine's time zone without the Z.
func parseTime(name, text string) (time.Time, error) {
	zone, digits := time.Local, text
	if d, utc := strings.CutSuffix(text, "Z"); utc {
		zone, digits = time.UTC, d
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.ParseInLocation(layout, digits, zone); err == nil && len(layout) == len(digits) {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is no time: write it as YYYYMMDD or YYYYMMDDHHMMSS, with a Z behind it for UTC", name, text)
}

// weakSSH says why a key is not good enough to sign.
func weakSSH(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if c, ok := key.(ssh.CryptoPublicKey); ok {
			if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() >= minRSABits {
				return nil
			}
		}
		return fmt.Errorf("RSA keys need at least %d bits", minRSABits)
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return errors.New("it is a certificate, which is not supported: use the key itself")
	}
	return fmt.Errorf("keys of type %s are too weak or not known: use ed25519, ecdsa or rsa", key.Type())
}

// verifySSH verifies a signature as git makes it with gpg.format ssh.
func (k *Keys) verifySSH(payload []byte, signature string, now time.Time) (Signer, error) {
	sig, err := sshsig.Unarmor([]byte(signature))
	if err != nil {
		return Signer{}, fmt.Errorf("has an SSH signature that cannot be read: %w", err)
	}
	by := Signer{Key: "SSH key " + ssh.FingerprintSHA256(sig.PublicKey)}
	if err := weakSSH(sig.PublicKey); err != nil {
		return Signer{}, fmt.Errorf("is signed with %s, which is not accepted: %w", by.Key, err)
	}
	refusal := fmt.Errorf("is signed with %s, which is none of the allowed keys", by.Key)
	for _, allowed := range k.ssh {
		if !bytes.Equal(allowed.key.Marshal(), sig.PublicKey.Marshal()) {
			continue
		}
		by.Name = allowed.name
		if err := sshsig.Verify(bytes.NewReader(payload), sig, allowed.key, sig.HashAlgorithm, namespace); err != nil {
			return Signer{}, fmt.Errorf("claims to be signed by %s, but the signature is not of this content: %w", by, err)
		}
		switch {
		case !allowed.before.IsZero() && now.After(allowed.before):
			refusal = fmt.Errorf("is signed by %s, whose key expired on %s", by, day(allowed.before))
		case !allowed.after.IsZero() && now.Before(allowed.after):
			refusal = fmt.Errorf("is signed by %s, whose key may not sign before %s", by, day(allowed.after))
		default:
			return by, nil
		}
	}
	return Signer{}, refusal
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func parsePrivateSSH(content []byte) (func([]byte) (string, error), error) {
	signer, err := ssh.ParsePrivateKey(content)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, errors.New("it needs a passphrase, for which nobody can be asked: take it off by ssh-keygen -p, or use another key")
	}
	if err != nil {
		return nil, errors.New("it is neither an SSH private key nor an armored OpenPGP private key")
	}
	if err := weakSSH(signer.PublicKey()); err != nil {
		return nil, err
	}
	return func(payload []byte) (string, error) {
		sig, err := sshsig.Sign(bytes.NewReader(payload), signer, sshsig.HashSHA512, namespace)
		if err != nil {
			return "", err
		}
		return string(slices.Clip(sshsig.Armor(sig))), nil
	}, nil
}
