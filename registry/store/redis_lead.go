package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// RaiseFence implements Leadership.
func (s *Redis) RaiseFence(ctx context.Context, above uint64) (uint64, error) {
	keys := []string{s.key("lease"), s.key("fence"), s.key("format")}
	answer := raiseScript.Run(ctx, s.client, keys, s.Owner, s.TTL.Milliseconds(), s.fence, above+1)
	if err := s.storeError(ctx, answer, "raise the fencing number in redis"); err != nil {
		return 0, err
	}
	s.fence = above + 1
	return s.fence, nil
}

// Acquire implements Leadership. After a loss it stands back for a while.
func (s *Redis) Acquire(ctx context.Context) (uint64, string, error) {
	if wait, err := s.leaveToLeader(ctx); wait || err != nil {
		return 0, "nobody: the store was lost, and who led may write it again", err
	}
	keys := []string{s.key("lease"), s.key("fence")}
	answer, err := acquireScript.Run(ctx, s.client, keys, s.Owner, s.TTL.Milliseconds(), s.fence, nextFence(0, s.Clock())).StringSlice()
	if err != nil {
		return 0, "", fmt.Errorf("ask redis for the lease: %w", s.explained(ctx, err))
	}
	if len(answer) != 2 {
		return 0, "", fmt.Errorf("ask redis for the lease: %d answers", len(answer))
	}
	switch holder := answer[1]; {
	case holder != "" && s.HasDied != nil && s.HasDied(holder):
		if err := releaseScript.Run(ctx, s.client, keys[:1], holder).Err(); err != nil {
			return 0, "", fmt.Errorf("end the lease of a process that has died: %w", err)
		}
		return s.Acquire(ctx)
	case holder != "":
		return 0, holder, nil
	}
	s.fence, s.leading = parseNumber(answer[0]), true
	return s.fence, "", nil
}

// leaveToLeader reports whether to stand back because the store was lost or rolled
// back: for the time of one lease, for the leader knows best what was in it.
func (s *Redis) leaveToLeader(ctx context.Context) (bool, error) {
	if s.revision == 0 {
		return false, nil
	}
	var stored *redis.IntCmd
	var revision *redis.StringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		stored, revision = p.Exists(ctx, s.key("format")), p.Get(ctx, s.key("revision"))
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err):
		return false, fmt.Errorf("ask redis for the lease: %w", err)
	case stored.Val() > 0 && parseNumber(revision.Val()) >= s.revision:
		s.lostAt = time.Time{}
		return false, nil
	case s.lostAt.IsZero():
		s.lostAt = time.Now()
	}
	return time.Since(s.lostAt) < s.TTL, nil
}

// Renew implements Leadership.
func (s *Redis) Renew(ctx context.Context) error {
	keys := append([]string{s.key("lease"), s.key("fence"), s.key("format"), s.key("revision"), s.key("counts")}, s.hashes()...)
	return s.storeError(ctx, renewScript.Run(ctx, s.client, keys, s.Owner, s.TTL.Milliseconds(), s.fence, s.revision), "renew the lease in redis")
}

// Confirm implements Leadership.
func (s *Redis) Confirm(ctx context.Context, fence uint64) error {
	var fences, leases *redis.StringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		fences, leases = p.Get(ctx, s.key("fence")), p.Get(ctx, s.key("lease"))
		return nil
	})
	newest, holder := parseNumber(fences.Val()), leases.Val()
	switch {
	case err != nil && !errors.Is(err, redis.Nil):
		return fmt.Errorf("ask the store who leads: %w", err)
	case newest == fence && holder != "" && holder != s.Owner:
		return fmt.Errorf("%w: %s has fencing number %d, too", ErrFenced, holder, fence)
	case newest > fence:
		return fmt.Errorf("%w: the store shows fencing number %d, ours is %d", ErrFenced, newest, fence)
	case newest < fence:
		return fmt.Errorf("the store shows fencing number %d, ours is %d: %w", newest, fence, ErrLost)
	}
	return nil
}

// Release lets the next leader in at once instead of after the lease ran out.
func (s *Redis) Release() {
	if !s.leading {
		return
	}
	s.leading = false
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := releaseScript.Run(ctx, s.client, []string{s.key("lease")}, s.Owner).Err(); err != nil {
		s.Log.Warn("the lease could not be given back: the next leader waits until it runs out", "err", err)
	}
}
