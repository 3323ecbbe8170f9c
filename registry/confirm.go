package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Confirm asks the store itself whether nobody leads after us, as the last thing before
// an effect on a machine: in a virtual machine that was paused no clock moved, and the
// lease seems to hold. It may be called concurrently.
func (r *Registry) Confirm(ctx context.Context) error {
	fence := r.Fence()
	if fence == 0 {
		return ErrFenced
	}
	s, shared := r.store.(*redisStore)
	if !shared {
		return nil // the file is locked by this process
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	newest, err := s.client.Get(ctx, s.key("fence")).Uint64()
	switch {
	case err != nil && !errors.Is(err, redis.Nil):
		return fmt.Errorf("ask the store who leads: %w", err)
	case newest > fence:
		return fmt.Errorf("%w: the store shows fencing number %d, ours is %d", ErrFenced, newest, fence)
	case newest < fence:
		return fmt.Errorf("the store shows fencing number %d, ours is %d: %w", newest, fence, errLost)
	}
	return nil
}
