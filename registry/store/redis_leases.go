package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// EachLease reads them a piece at a time: all at once would keep Redis from all else.
func (s *Redis) EachLease(ctx context.Context, visit func(name, value []byte)) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.client.HScan(ctx, s.hash(BucketLease), cursor, "", LeaseGroup).Result()
		if isWrongType(err) {
			s.Log.Error("something else is stored in place of the leases, which are lost")
			return nil
		}
		if err != nil {
			return fmt.Errorf("read leases from redis: %w", err)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			visit([]byte(pairs[i]), []byte(pairs[i+1]))
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// CountLeases implements Leases.
func (s *Redis) CountLeases(ctx context.Context, b Batch) (total, fresh int, err error) {
	var count *redis.IntCmd
	known := make([]*redis.BoolCmd, 0, len(b))
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		count = p.HLen(ctx, s.hash(BucketLease))
		for _, ch := range b {
			if ch.Value != nil {
				known = append(known, p.HExists(ctx, s.hash(BucketLease), ch.Name))
			}
		}
		return nil
	})
	if isWrongType(err) {
		return 0, len(known), nil // the commit finds that they are lost
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count leases in redis: %w", err)
	}
	for _, cmd := range known {
		if !cmd.Val() {
			fresh++
		}
	}
	return int(count.Val()), fresh, nil
}
