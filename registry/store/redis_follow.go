package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Follow implements Data.
func (s *Redis) Follow(ctx context.Context) (Batch, bool, error) {
	streams, err := s.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{s.key("feed"), s.feedID}, Count: 256, Block: FollowWait,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		stale, err := s.missed(ctx)
		return nil, stale, err
	case err != nil:
		return nil, false, fmt.Errorf("read the change feed of redis: %w", err)
	}
	changed := make(map[Key]bool)
	id, revision := s.feedID, s.revision
	for _, entry := range streams[0].Messages {
		if !s.notice(entry, changed) {
			return nil, true, nil
		}
	}
	b, err := s.fetch(ctx, changed)
	if err != nil {
		s.feedID, s.revision = id, revision
	}
	return b, false, err
}

// missed reports whether there were commits that the feed did not show: after a
// loss its entries may have lower numbers than before, if a clock went back.
func (s *Redis) missed(ctx context.Context) (bool, error) {
	revision, err := s.client.Get(ctx, s.key("revision")).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("read the revision of redis: %w", err)
	}
	return revision > s.revision, nil
}

// notice takes over one entry of the feed, and reports whether the entry follows
// on the last one that was seen. Our own commits are noticed too, which is of no
// harm.
func (s *Redis) notice(entry redis.XMessage, changed map[Key]bool) bool {
	var names [][2]string
	text, _ := entry.Values["changed"].(string)
	revision, _ := entry.Values["revision"].(string)
	fence, _ := entry.Values["fence"].(string)
	s.fence = max(s.fence, parseNumber(fence))
	if json.Unmarshal([]byte(text), &names) != nil || parseNumber(revision) > s.revision+1 {
		return false
	}
	s.feedID, s.revision = entry.ID, max(s.revision, parseNumber(revision))
	s.Raise(s.revision)
	for _, n := range names {
		changed[Key{Bucket(n[0]), n[1]}] = true
	}
	return true
}

func (s *Redis) fetch(ctx context.Context, changed map[Key]bool) (Batch, error) {
	if len(changed) == 0 {
		return nil, nil
	}
	values := make(map[Key]*redis.StringCmd, len(changed))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for k := range changed {
			values[k] = p.HGet(ctx, s.hash(k.Bucket), k.Name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read what changed in redis: %w", err)
	}
	b := make(Batch, 0, len(values))
	for k, cmd := range values {
		value, err := cmd.Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read %s %s from redis: %w", k.Bucket, k.Name, err)
		}
		b = append(b, Change{k, value})
	}
	return b, nil
}
