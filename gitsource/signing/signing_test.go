package signing_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"ingot/gitsource/gitserver"
	"ingot/gitsource/signing"
	"ingot/model/must"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// gpgHome is a directory for gpg, with a short name.
func gpgHome(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	dir := must.Get(os.MkdirTemp("", "gpg"))(t)
	t.Cleanup(func() { gitserver.CloseOpenPGP(dir); _ = os.RemoveAll(dir) })
	return dir
}

// signed is a commit that stock git signed: its content, and the repository.
func signed(t *testing.T, key gitserver.SigningKey) (*gitserver.Repo, []byte) {
	t.Helper()
	r := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(r.Commit(map[string]string{"a.yaml": "a"}, "subject\n\nbody\n\nIngot-Approve: x"))(t)
	head := must.Get(r.Sign("main", key))(t)
	return r, []byte(must.Get(r.Git("cat-file", "commit", head))(t))
}

func verify(keys *signing.Keys, raw []byte, now time.Time) (signing.Signer, error) {
	payload, signature := signing.SplitCommit(raw)
	return keys.Verify(payload, signature, now)
}

// keysOf are all keys that stock git may sign with here.
func keysOf(t *testing.T, expire string) map[string]gitserver.SigningKey {
	t.Helper()
	dir, home := t.TempDir(), gpgHome(t)
	return map[string]gitserver.SigningKey{
		"ed25519":         must.Get(gitserver.NewSSHKey(dir, "ed25519", "ed25519"))(t),
		"ecdsa":           must.Get(gitserver.NewSSHKey(dir, "ecdsa", "ecdsa"))(t),
		"rsa":             must.Get(gitserver.NewSSHKey(dir, "rsa", "rsa", "-b", "2048"))(t),
		"OpenPGP ed25519": must.Get(gitserver.NewOpenPGPKey(home, "Alice <alice@example.com>", "ed25519", expire))(t),
		"OpenPGP rsa":     must.Get(gitserver.NewOpenPGPKey(home, "Bob <bob@example.com>", "rsa2048", expire))(t),
	}
}

func TestWhatStockGitSignsIsVerified(t *testing.T) {
	all := keysOf(t, "1d")
	for name, key := range all {
		t.Run(name, func(t *testing.T) {
			repo, raw := signed(t, key)
			keys := must.Get(signing.Load(folder(t, map[string]string{"key" + key.Ext: string(key.Public), "README.md": "x"})))(t)
			by, err := verify(keys, raw, time.Now())
			if err != nil || by.Name == "" || by.Key == "" {
				t.Fatalf("got %v, %v", by, err)
			}
			for what, change := range map[string]func() []byte{
				"another subject": func() []byte { return bytes.Replace(raw, []byte("subject"), []byte("Subject"), 1) },
				"another tree":    func() []byte { return append([]byte("tree "+strings.Repeat("0", 40)+"\n"), raw[46:]...) },
				"another header": func() []byte {
					return bytes.Replace(raw, []byte("author "), []byte("parent "+strings.Repeat("0", 40)+"\nauthor "), 1)
				},
				"no signature": func() []byte {
					payload, _ := signing.SplitCommit(raw)
					return payload
				},
				"two signatures": func() []byte {
					_, signature := signing.SplitCommit(raw)
					return signing.JoinCommit(raw, signature)
				},
			} {
				if by, err := verify(keys, change(), time.Now()); err == nil {
					t.Errorf("%s: accepted of %s", what, by)
				}
			}
			for other, k := range all {
				if other == name {
					continue
				}
				keys := must.Get(signing.Load(folder(t, map[string]string{"key" + k.Ext: string(k.Public)})))(t)
				if _, err := verify(keys, raw, time.Now()); err == nil || !strings.Contains(err.Error(), "none of the allowed keys") {
					t.Errorf("with the key %s: %v", other, err)
				}
			}
			must.Do(t, repo.SignTag("v1", "main", key))
			tag := []byte(must.Get(repo.Git("cat-file", "tag", "v1"))(t))
			if payload, signature := signing.SplitTag(tag); !bytes.HasPrefix(tag, payload) {
				t.Errorf("payload %q", payload)
			} else if _, err := keys.Verify(payload, signature, time.Now()); err != nil {
				t.Errorf("tag: %v", err)
			}
		})
	}
	key := all["OpenPGP rsa"]
	_, raw := signed(t, key)
	keys := must.Get(signing.Load(folder(t, map[string]string{"key.asc": string(key.Public)})))(t)
	for want, now := range map[string]time.Time{
		"whose key is expired": time.Now().Add(48 * time.Hour),
		"key is expired":       time.Now().Add(-48 * time.Hour), // made later
	} {
		if _, err := verify(keys, raw, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %s: %v", now, err)
		}
	}
}

func TestKeysMayBeBoundInTime(t *testing.T) {
	dir := t.TempDir()
	key := must.Get(gitserver.NewSSHKey(dir, "carol", "ed25519"))(t)
	_, raw := signed(t, key)
	line := strings.TrimSpace(string(key.Public))
	bare := strings.Join(strings.Fields(line)[:2], " ")
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		file, content, want string // what is wrong, or who signed
	}{
		"a public key":           {file: "x.pub", content: line, want: "carol (SSH key SHA256:"},
		"one without a comment":  {file: "x.pub", content: bare, want: "x (SSH key SHA256:"},
		"one that expires later": {file: "x.pub", content: `expiry-time="20261122Z" ` + line, want: "carol (SSH"},
		"one that is expired": {
			file: "x.pub", content: `expiry-time="20261121Z" ` + line,
			want: "whose key expired on 2026-11-21 00:00 UTC",
		},
		"an allowed signer": {
			file: "allowed_signers", content: "# team\n\nc@example.com " + line,
			want: "c@example.com (SSH key",
		},
		"for git": {
			file: "allowed_signers", content: `c@example.com namespaces="file,git" ` + bare,
			want: "c@example.com (SSH key",
		},
		"in its time": {
			file: "allowed_signers", content: `"c@example.com" valid-after="20261121115959Z",valid-before="202611211201Z" ` + bare,
			want: "c@example.com (SSH",
		},
		"before its time": {
			file: "allowed_signers", content: `c valid-after="20261121120001Z" ` + bare,
			want: "may not sign before 2026-11-21 12:00 UTC",
		},
		"after its time": {
			file: "allowed_signers", content: `c valid-before="20261121115959Z" ` + bare,
			want: "expired on 2026-11-21 11:59 UTC",
		},
		"twice, once in time": {
			file: "allowed_signers", content: "old valid-before=\"20250101Z\" " + bare + "\nnew " + bare,
			want: "new (SSH key",
		},
		"for files alone": {
			file: "allowed_signers", content: `c namespaces="file" ` + bare,
			want: "holds no key that may sign",
		},
		"not for git": {
			file: "allowed_signers", content: `c namespaces="*,!git" ` + bare,
			want: "holds no key that may sign",
		},
		"an authority": {
			file: "allowed_signers", content: "c cert-authority " + bare,
			want: "allowed_signers: line 1: option cert-authority is not supported",
		},
		"an option that is not known": {
			file: "allowed_signers", content: "c valid-untill=\"2027\" " + bare,
			want: "option valid-untill is not known",
		},
		"no time": {
			file: "x.pub", content: `expiry-time="soon" ` + line,
			want: `x.pub: line 1: expiry-time "soon" is no time`,
		},
		"an option of sshd's": {file: "x.pub", content: `no-pty ` + line, want: "option no-pty is not known here"},
		"no key":              {file: "x.pub", content: "hello", want: "x.pub: line 1: it is no SSH public key"},
		"no signer":           {file: "allowed_signers", content: "hello", want: "principal [options] key"},
		"an empty file":       {file: "x.pub", content: "\n", want: "x.pub: it is empty"},
		"no OpenPGP key":      {file: "x.asc", content: "hello", want: "x.asc: it is no OpenPGP key"},
		"a name of none":      {file: "x.key", content: line, want: "holds no key that may sign"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := signing.Load(folder(t, map[string]string{c.file: c.content}))
			var by signing.Signer
			if err == nil {
				by, err = verify(keys, raw, at)
			}
			got := by.String()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
	if _, err := signing.Load(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a folder that is missing: %v", err)
	}
	private := must.Get(os.ReadFile(key.File()))(t)
	_, err := signing.Load(folder(t, map[string]string{"x.pub": string(private)}))
	if err == nil || !strings.Contains(err.Error(), "private") {
		t.Errorf("a private key: %v", err)
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	dir, home := t.TempDir(), gpgHome(t)
	rsa := must.Get(gitserver.NewSSHKey(dir, "short", "rsa", "-b", "1024"))(t)
	dsa := must.Get(gitserver.NewOpenPGPKey(home, "Dora <d@example.com>", "dsa2048", "never"))(t)
	short := must.Get(gitserver.NewOpenPGPKey(home, "Rob <r@example.com>", "rsa1024", "never"))(t)
	for want, file := range map[string]gitserver.SigningKey{"RSA keys need at least 2048 bits": rsa, "too weak": dsa, "2048 bits": short} {
		_, err := signing.Load(folder(t, map[string]string{"x" + file.Ext: string(file.Public)}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	good := must.Get(gitserver.NewSSHKey(dir, "good", "ed25519"))(t)
	keys := must.Get(signing.Load(folder(t, map[string]string{"x.pub": string(good.Public)})))(t)
	_, raw := signed(t, rsa)
	if _, err := verify(keys, raw, time.Now()); err == nil || !strings.Contains(err.Error(), "2048 bits") {
		t.Errorf("a signature with a short key: %v", err)
	}
	// SHA-1, by a key that is good enough.
	alice := must.Get(gitserver.NewOpenPGPKey(home, "Alice <alice@example.com>", "rsa2048", "never"))(t)
	weak := []byte("digest-algo SHA1\npersonal-digest-preferences SHA1\n")
	must.Do(t, os.WriteFile(filepath.Join(home, "gpg.conf"), weak, 0o600))
	_, raw = signed(t, alice)
	keys = must.Get(signing.Load(folder(t, map[string]string{"x.asc": string(alice.Public)})))(t)
	if _, err := verify(keys, raw, time.Now()); err == nil || !strings.Contains(err.Error(), "SHA-1, which is too weak") {
		t.Errorf("a signature over SHA-1: %v", err)
	}
}

func TestStockGitAcceptsWhatIsSigned(t *testing.T) {
	keys := keysOf(t, "never")
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			var private []byte
			if key.Ext == ".asc" {
				private = must.Get(key.Private())(t)
			} else {
				private = must.Get(os.ReadFile(key.File()))(t)
			}
			signer := must.Get(signing.ParsePrivateKey(private))(t)
			if text := fmt.Sprintf("%v %+v %#v", signer, signer, *signer); len(text) > 200 {
				t.Errorf("the key prints as %s", text)
			}
			repo, raw := signed(t, key)
			payload, _ := signing.SplitCommit(raw)
			content := must.Get(signer.Commit(payload))(t)
			file := filepath.Join(t.TempDir(), "commit")
			must.Do(t, os.WriteFile(file, content, 0o600))
			commit := strings.TrimSpace(must.Get(repo.Git("hash-object", "-t", "commit", "-w", file))(t))
			if out, err := repo.VerifyCommit(commit, key); err != nil {
				t.Errorf("git verify-commit: %v\n%s", err, out)
			}
			allowed := must.Get(signing.Load(folder(t, map[string]string{"x" + key.Ext: string(key.Public)})))(t)
			if _, err := verify(allowed, content, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatCannotSignIsRefused(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	if out, err := exec.Command("ssh-keygen", "-q", "-N", "secret", "-t", "ed25519", "-f", locked).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	short := must.Get(gitserver.NewSSHKey(dir, "short", "rsa", "-b", "1024"))(t)
	good := must.Get(gitserver.NewSSHKey(dir, "good", "ed25519"))(t)
	e := must.Get(openpgp.NewEntity("Eve", "", "eve@example.com", nil))(t)
	armored := func(write func(*bytes.Buffer) error) string {
		var raw, b bytes.Buffer
		must.Do(t, write(&raw))
		w, _ := armor.Encode(&b, openpgp.PrivateKeyType, nil)
		_, _ = w.Write(raw.Bytes())
		_ = w.Close()
		return b.String()
	}
	public := armored(func(b *bytes.Buffer) error { return e.Serialize(b) })
	must.Do(t, e.EncryptPrivateKeys([]byte("secret"), nil))
	encrypted := armored(func(b *bytes.Buffer) error { return e.SerializePrivateWithoutSigning(b, nil) })
	file := func(name string) string { return string(must.Get(os.ReadFile(name))(t)) }
	for name, c := range map[string]struct{ content, want string }{
		"a passphrase":            {content: file(locked), want: "passphrase"},
		"a passphrase of OpenPGP": {content: encrypted, want: "passphrase"},
		"a short key":             {content: file(short.File()), want: "2048 bits"},
		"a public key":            {content: string(good.Public), want: "neither an SSH private key"},
		"a public OpenPGP key":    {content: public, want: "no private key"},
		"no key":                  {content: "hello", want: "neither an SSH private key nor"},
	} {
		if _, err := signing.ParsePrivateKey([]byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
