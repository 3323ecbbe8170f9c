package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// CheckAccess asks a repository for what is followed there, and then whether these
// credentials may push, without changing anything. A server says the second when it
// advertises its refs for a push; a branch protection that only the push itself meets it
// does not tell of.
func CheckAccess(ctx context.Context, url string, follows Ref, auth Auth, timeout time.Duration) (read, write error) {
	r, err := newRemote(url, follows, auth, timeout)
	if err != nil {
		return err, err
	}
	defer r.close()
	ctx, cancel := r.within(ctx)
	defer cancel()
	return r.canRead(ctx), r.canWrite(ctx)
}

func (r *remote) canRead(ctx context.Context) error {
	s, err := r.uploadSession(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // nothing was changed
	_, _, err = r.resolved(ctx, s)
	return err
}

func (r *remote) canWrite(ctx context.Context) error {
	s, err := r.receiveSession(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // nothing was changed
	_, err = s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil
	}
	return r.explained(ctx, err)
}

// CheckPath returns an error if the newest commit of the branch or tag has no folder at a path.
func CheckPath(ctx context.Context, url string, follows Ref, auth Auth, path string, timeout time.Duration) error {
	r, err := newRemote(url, follows, auth, timeout)
	if err != nil {
		return err
	}
	defer r.close()
	ctx, cancel := r.within(ctx)
	defer cancel()
	session, err := r.uploadSession(ctx)
	if err != nil {
		return err
	}
	defer closeSession(session)
	adv, t, err := r.resolved(ctx, session)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ingot-check-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the folder for temporary files
	st, err := openStore(dir)
	if err != nil {
		return err
	}
	defer st.close()
	w := wanted{commits: []plumbing.Hash{t.object()}, depth: 1}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = packp.FilterBlobNone()
	}
	if err := fetchWanted(ctx, session, adv, st, w); err != nil {
		return r.explain(ctx, err)
	}
	c, err := st.commit(t.commit)
	if err != nil {
		return err
	}
	if _, err = folder(st, c.TreeHash, path); errors.Is(err, errPathMissing) {
		return fmt.Errorf("folder %s is not in %s: %w", path, t.revision(), err)
	}
	return err
}
