package features

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ingot/gitsource/gitserver"
)

// signing is who signs, and what Ingot is told of it. By default nobody does.
type signing struct {
	keys      string // the folder of keys that may sign
	operators gitserver.SigningKey
	stranger  gitserver.SigningKey
	ingot     gitserver.SigningKey
}

func (s signing) verify() string {
	if s.keys == "" {
		return ""
	}
	return fmt.Sprintf(", verify: {mode: head, keys: %q}", s.keys)
}

func (s signing) status() string {
	if s.keys == "" {
		return ""
	}
	return fmt.Sprintf(", signingKeyFile: %q", s.ingot.File())
}

func signCommits(ctx context.Context) error {
	w := siteOf(ctx)
	w.signing.keys = filepath.Join(w.dir, "keys")
	if err := os.Mkdir(w.signing.keys, 0o700); err != nil {
		return err
	}
	for who, key := range map[string]*gitserver.SigningKey{
		"operators": &w.signing.operators, "stranger": &w.signing.stranger, "ingot": &w.signing.ingot,
	} {
		var err error
		if *key, err = gitserver.NewSSHKey(w.dir, who, "ed25519"); err != nil {
			return err
		}
	}
	w.repo.Key = &w.signing.operators
	return os.WriteFile(filepath.Join(w.signing.keys, "operators.pub"), w.signing.operators.Public, 0o600)
}

func removeUnsigned(ctx context.Context, claim, how string) error {
	w, err := begun(ctx)
	if err != nil {
		return err
	}
	key := w.repo.Key
	defer func() { w.repo.Key = key }()
	if w.repo.Key = nil; how == "a stranger signed" {
		w.repo.Key = &w.signing.stranger
	}
	return removeClaims(ctx, claim)
}

func takeKeys(ctx context.Context) error {
	return os.Remove(filepath.Join(siteOf(ctx).signing.keys, "operators.pub"))
}

func statusIsSigned(ctx context.Context) error {
	w := siteOf(ctx)
	commits, err := w.repo.ReadLog(statusBranch)
	if err != nil {
		return err
	}
	if len(commits) == 0 {
		return errors.New("the status branch has no commit")
	}
	for _, c := range commits {
		said, err := w.repo.VerifyCommit(c.Hash, w.signing.ingot)
		if err != nil {
			return fmt.Errorf("commit %s (%s): %w: %s", c.Hash, strings.SplitN(c.Message, "\n", 2)[0], err, said)
		}
	}
	return nil
}
