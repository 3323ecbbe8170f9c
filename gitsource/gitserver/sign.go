package gitserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SigningKey is a key that the git on this machine signs with.
type SigningKey struct {
	// Public is the key as it is put into a folder of keys that may sign, under the file name
	// that Ext ends.
	Public []byte
	Ext    string

	format, key string // gpg.format and user.signingKey
	home        string // GnuPG's
}

// NewSSHKey makes an SSH key in a directory by ssh-keygen; kind is its type and length, such
// as ed25519, or rsa -b 2048.
func NewSSHKey(dir, name string, kind ...string) (SigningKey, error) {
	file := filepath.Join(dir, name)
	args := append([]string{"-q", "-N", "", "-C", name, "-f", file, "-t"}, kind...)
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		return SigningKey{}, fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	return SigningKey{Public: public, Ext: ".pub", format: "ssh", key: file}, err
}

// File is the file of an SSH key's private half.
func (k SigningKey) File() string { return k.key }

// NewOpenPGPKey makes an OpenPGP key in a directory by gpg; kind is its algorithm, such as
// ed25519 or rsa2048, expire when it expires, such as never or 1d. The directory's name must
// be short: a socket's stands below it. CloseOpenPGP is to be called when it is done with.
func NewOpenPGPKey(dir, name, kind, expire string) (SigningKey, error) {
	k := SigningKey{Ext: ".asc", format: "openpgp", key: name, home: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, err
	}
	if _, err := k.gpg("--quick-gen-key", name, kind, "sign", expire); err != nil {
		return k, err
	}
	var err error
	k.Public, err = k.gpg("--armor", "--export", name)
	return k, err
}

// Private is an OpenPGP key's private half, armored.
func (k SigningKey) Private() ([]byte, error) {
	return k.gpg("--armor", "--export-secret-keys", k.key)
}

// CloseOpenPGP ends the agent that gpg started for a directory.
func CloseOpenPGP(dir string) {
	cmd := exec.Command("gpgconf", "--kill", "gpg-agent")
	cmd.Env = append(os.Environ(), "GNUPGHOME="+dir)
	_ = cmd.Run() // of a directory of a test's own
}

func (k SigningKey) gpg(args ...string) ([]byte, error) {
	cmd := exec.Command("gpg", append([]string{"--batch", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+k.home)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("gpg %s: %w", args[0], err)
	}
	return out, nil
}

func (r *Repo) signed(k SigningKey, args ...string) (string, error) {
	env := "GNUPGHOME=" + k.home
	args = append([]string{"-C", r.Dir, "-c", "gpg.format=" + k.format, "-c", "user.signingKey=" + k.key,
		"-c", "user.name=Signer", "-c", "user.email=signer@example.com"}, args...)
	out, err := runIn([]string{env}, nil, args...)
	return strings.TrimSpace(out), err
}

// Sign makes a branch's newest commit anew, signed, and returns it.
func (r *Repo) Sign(branch string, k SigningKey) (string, error) {
	commit, err := r.sign("refs/heads/"+branch, k)
	if err != nil {
		return "", err
	}
	return commit, r.SetBranch(branch, commit)
}

func (r *Repo) sign(of string, k SigningKey) (string, error) {
	message, err := r.Git("log", "-1", "--format=%B", of)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-S", "-m", strings.TrimSpace(message)}
	parents, err := r.Git("log", "-1", "--format=%P", of)
	if err != nil {
		return "", err
	}
	for p := range strings.FieldsSeq(parents) {
		args = append(args, "-p", p)
	}
	return r.signed(k, append(args, of+"^{tree}")...)
}

// SignTag makes a signed tag of a commit, or moves it there.
func (r *Repo) SignTag(name, commit string, k SigningKey) error {
	_, err := r.signed(k, "tag", "-f", "-s", "-m", name, name, commit)
	return err
}

// VerifyCommit has git verify a commit's signature with the key as the only one that may
// sign, and returns what it says.
func (r *Repo) VerifyCommit(commit string, k SigningKey) (string, error) {
	signers := filepath.Join(r.Dir, "allowed_signers")
	if err := os.WriteFile(signers, append([]byte("signer "), k.Public...), 0o600); err != nil {
		return "", err
	}
	return r.signed(k, "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", commit)
}
