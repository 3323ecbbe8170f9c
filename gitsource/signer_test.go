package gitsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/gitsource/gitserver"
	"ingot/gitsource/signing"
	"ingot/model/must"
)

func TestWhatIsWrittenIsSigned(t *testing.T) {
	t.Parallel()
	repo, dir := newRepo(t), t.TempDir()
	first := ok[gitserver.SigningKey](t)(gitserver.NewSSHKey(dir, "first", "ed25519"))
	second := ok[gitserver.SigningKey](t)(gitserver.NewSSHKey(dir, "second", "ed25519"))
	file := writeFile(t, ok[[]byte](t)(os.ReadFile(first.File())))
	b := ok[*StatusBranch](t)(NewStatusBranch(StatusOptions{
		URL: repo.URL(), Dir: t.TempDir(), Timeout: 30 * time.Second, SigningKeyFile: file,
	}))
	t.Cleanup(b.Close)
	signed := func(rev string, by gitserver.SigningKey) {
		t.Helper()
		if out, err := repo.VerifyCommit(rev, by); err != nil {
			t.Errorf("%s: %v %s", rev, err, out)
		}
		said := ok[string](t)(repo.Git("-c", "gpg.ssh.allowedSignersFile="+repo.Dir+"/allowed_signers", "log", "-1", "--format=%G? %GS", rev))
		if strings.TrimSpace(said) != "G signer" {
			t.Errorf("git log says of %s: %q", rev, said)
		}
	}
	ok[Published](t)(b.Publish(t.Context(), report(1, map[string]string{"README.md": "a"})))
	signed("status", first)
	change := func(content []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(file, content, 0o600))
	}
	change(ok[[]byte](t)(os.ReadFile(second.File())))
	ok[Published](t)(b.Publish(t.Context(), report(1, map[string]string{"README.md": "b"})))
	signed("status", second)
	holds(t, repo, map[string]string{"README.md": "b"}, 2)

	// Nothing goes out unsigned.
	for what, change := range map[string]func(){
		"a key that is broken": func() { change([]byte("broken")) },
		"a key that is gone":   func() { _ = os.Remove(file) },
	} {
		change()
		_, err := b.Publish(t.Context(), report(1, map[string]string{"README.md": what}))
		if err == nil || !strings.Contains(err.Error(), "status.signingKeyFile") || kindOf(err) != failureKey {
			t.Errorf("%s: %v", what, err)
		}
		_, err = NewStatusBranch(StatusOptions{URL: repo.URL(), SigningKeyFile: file})
		if err == nil || !strings.Contains(err.Error(), "status.signingKeyFile") { // S09
			t.Errorf("at the start, %s: %v", what, err)
		}
	}
	holds(t, repo, map[string]string{"README.md": "b"}, 2)
}

func TestAHistoryThatIsCutIsSignedAnew(t *testing.T) {
	t.Parallel()
	key := ok[gitserver.SigningKey](t)(gitserver.NewSSHKey(t.TempDir(), "ingot", "ed25519"))
	s := signer{file: key.File()}
	commit := func(message string) keptCommit {
		raw := encodeCommit(plumbing.ZeroHash, plumbing.ZeroHash, signature{"i", "i@example.com"}, newClock().now, message)
		signed, _, err := s.commit(raw)
		if err != nil {
			t.Fatal(err)
		}
		return keptCommit{raw: signed}
	}
	var written [][]byte
	_, head, err := cutHistory([]keptCommit{commit("two\n"), commit("one\n")}, plumbing.ZeroHash, func(raw []byte) ([]byte, plumbing.Hash, error) {
		content, h, err := s.commit(raw)
		written = append(written, content)
		return content, h, err
	})
	if err != nil || len(written) != 2 || head != hashObject("commit", written[1]) {
		t.Fatalf("%d commits, head %s, %v", len(written), head, err)
	}
	keys := ok[*signing.Keys](t)(signing.Load(filepath.Dir(key.File())))
	for _, raw := range written {
		payload, signature := signing.SplitCommit(raw)
		if _, err := keys.Verify(payload, signature, time.Now()); err != nil {
			t.Errorf("%v:\n%s", err, raw)
		}
	}
}
