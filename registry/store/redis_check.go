package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func (s *Redis) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("not reachable: %w%s", err, trustHint(err))
	}
	if err := s.onEach(ctx, s.checkEviction); err != nil {
		return err
	}
	return checkFormat("it", s.client.Get(ctx, s.key("format")).Val())
}

// onEach calls f for each server that keys may be on.
func (s *Redis) onEach(ctx context.Context, f func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return f(ctx, c) })
	}
	return f(ctx, s.client)
}

// checkEviction refuses a Redis that drops keys when memory is short, for it
// would drop records.
func (s *Redis) checkEviction(ctx context.Context, c redis.Cmdable) error {
	policy := infoField(ctx, c, "memory", "maxmemory_policy")
	if policy == "" {
		config, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
		if err != nil {
			s.Log.Warn("cannot check whether Redis may drop records: its eviction policy must be noeviction", "err", err)
			return nil
		}
		policy = config["maxmemory-policy"]
	}
	if policy != "" && policy != "noeviction" {
		return fmt.Errorf("its maxmemory-policy is %s, so it may drop records: set it to noeviction", policy)
	}
	return nil
}

// CheckWrites returns the reason for which Redis refuses writes, nil if it accepts them. Its command writes nothing,
// because the key does not exist.
func (s *Redis) CheckWrites(ctx context.Context) error {
	err := s.client.SetXX(ctx, s.key("check"), "", 0).Err()
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	return fmt.Errorf("redis: %w", s.explained(ctx, err))
}

// refusals are the reasons for which Redis refuses writes, by the code in its answer.
var refusals = map[string]string{
	"READONLY":   "it is a read-only replica: set redis.url to the Sentinels (redis+sentinel://), or to its master",
	"MISCONF":    "it refuses writes because it cannot save them to its disk: free some space there, and see its log",
	"NOREPLICAS": "it refuses writes because fewer replicas follow it than min-replicas-to-write: start them, or lower that setting",
	"OOM":        "it refuses writes because its memory is full: raise its maxmemory",
}

// explained adds the reason to an error of a Redis that refuses writes.
func (s *Redis) explained(ctx context.Context, err error) error {
	for code, reason := range refusals {
		if strings.Contains(err.Error(), code+" ") {
			return fmt.Errorf("%s%s: %w", reason, s.master(ctx), err)
		}
	}
	return err
}

// master returns " HOST:PORT (link up)" of a replica's master, "" of another server.
func (s *Redis) master(ctx context.Context) string {
	info := func(field string) string { return infoField(ctx, s.client, "replication", field) }
	if host := info("master_host"); host != "" {
		return fmt.Sprintf(" %s (link %s)", net.JoinHostPort(host, info("master_port")), info("master_link_status"))
	}
	return ""
}

// infoField returns one field of INFO, "" if the server does not have it.
func infoField(ctx context.Context, c redis.Cmdable, section, field string) string {
	info, err := c.Info(ctx, section).Result()
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(info, "\r\n") {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return value
		}
	}
	return ""
}

// trustHint says what to look at where a server has a certificate that is not trusted.
func trustHint(err error) string {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return ": look at redis.caFile, which has to hold the CA that signed its certificate"
	}
	return ""
}
