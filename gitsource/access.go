package gitsource

import (
	"context"
	"errors"
	"time"

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
