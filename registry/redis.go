package registry

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each runs at one moment, so nobody is between check and write.
var (
	//go:embed script/acquire.lua
	acquireSource string
	//go:embed script/raise.lua
	raiseSource string
	//go:embed script/renew.lua
	renewSource string
	//go:embed script/commit.lua
	commitSource string
	//go:embed script/fill.lua
	fillSource string
	//go:embed script/release.lua
	releaseSource string

	acquireScript = redis.NewScript(acquireSource)
	raiseScript   = redis.NewScript(raiseSource)
	renewScript   = redis.NewScript(renewSource)
	commitScript  = redis.NewScript(commitSource)
	fillScript    = redis.NewScript(fillSource)
	releaseScript = redis.NewScript(releaseSource)
)

const (
	// feedLength is about how many commits a standby may be behind before it has
	// to load everything again.
	feedLength = 4096
	// fillBytes is about how much of a lost store is written by one script, during
	// which Redis does nothing else.
	fillBytes = 4 << 20
)

// redisConfig is what a redisStore needs to know.
type redisConfig struct {
	url    string
	prefix string
	owner  string // unique to this process
	ttl    time.Duration
	clock  func() time.Time
	log    *slog.Logger
}

// redisStore keeps each bucket in a hash. All its keys have the prefix as hash
// tag, so that in a cluster they are in one place, where scripts can see them.
type redisStore struct {
	redisConfig
	client  redis.UniversalClient
	durable Durability
	leading bool

	fence    uint64 // ours, or the newest one that was seen
	revision uint64 // of the newest commit that is ours, or that was loaded or followed
	seq      uint64 // of the newest commit that was tried, or any that was seen
	feedID   string // newest entry of the feed that was seen
	lostAt   time.Time
}

// openRedis connects and refuses a Redis that would lose records.
func openRedis(ctx context.Context, c redisConfig) (*redisStore, error) {
	o, err := parseRedisURL(c.url)
	if err != nil {
		return nil, err
	}
	if err := checkExposure(o); err != nil {
		return nil, err
	}
	redis.SetLogger(driverLog{c.log}) // there is but one for the process
	s := &redisStore{redisConfig: c, client: redis.NewUniversalClient(o), feedID: "0"}
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s: %w", strings.Join(o.Addrs, ","), err), s.client.Close())
	}
	return s, nil
}

func (s *redisStore) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("not reachable: %w", err)
	}
	if err := s.onEach(ctx, s.checkEviction); err != nil {
		return err
	}
	return s.inspectPersistence(ctx)
}

// onEach calls f for each server that keys may be on.
func (s *redisStore) onEach(ctx context.Context, f func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return f(ctx, c) })
	}
	return f(ctx, s.client)
}

// checkEviction refuses a Redis that drops keys when memory is short, for it
// would drop records.
func (s *redisStore) checkEviction(ctx context.Context, c redis.Cmdable) error {
	policy := infoField(ctx, c, "memory", "maxmemory_policy")
	if policy == "" {
		config, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
		if err != nil {
			s.log.Warn("cannot see whether Redis may drop records: its eviction policy must be noeviction", "err", err)
			return nil
		}
		policy = config["maxmemory-policy"]
	}
	if policy != "" && policy != "noeviction" {
		return fmt.Errorf("its maxmemory-policy is %s, so it may drop records: set it to noeviction", policy)
	}
	return nil
}

// inspectPersistence finds out whether what is committed survives a restart of
// Redis. Of several servers the worst counts; where Redis does not say, it does not.
func (s *redisStore) inspectPersistence(ctx context.Context) error {
	var mu sync.Mutex // a cluster's servers are asked at the same time
	worst := DurableAlways
	err := s.onEach(ctx, func(ctx context.Context, c redis.Cmdable) error {
		found := persistenceOf(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		worst = min(worst, found)
		return nil
	})
	s.durable = worst
	return err
}

// persistenceOf is how durable one server says that it is. Those that others manage
// may keep CONFIG to themselves.
func persistenceOf(ctx context.Context, c redis.Cmdable) Durability {
	if infoField(ctx, c, "persistence", "aof_enabled") != "1" {
		return DurableNo
	}
	config, err := c.ConfigGet(ctx, "appendfsync").Result()
	if err != nil {
		return DurableNo
	}
	switch config["appendfsync"] {
	case "always":
		return DurableAlways
	case "everysec":
		return DurableEverySecond
	default:
		return DurableNo
	}
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

// key returns the name of a key in Redis.
func (s *redisStore) key(name string) string { return "{" + s.prefix + "}:" + name }

func (s *redisStore) hash(b bucket) string { return s.key("data:" + string(b)) }

func (s *redisStore) hashes() []string {
	keys := make([]string, len(buckets))
	for i, b := range buckets {
		keys[i] = s.hash(b)
	}
	return keys
}

// hashIndex is the place of each bucket's hash among hashes, from 1 as in Lua. The
// leases' is after them.
var hashIndex = func() map[bucket]string {
	index := make(map[bucket]string, len(buckets)+1)
	for i, b := range append(slices.Clone(buckets), bucketLease) {
		index[b] = strconv.Itoa(i + 1)
	}
	return index
}()

func (s *redisStore) load(ctx context.Context) (loaded, error) {
	var schema, fence, revision *redis.StringCmd
	var counts *redis.MapStringStringCmd
	var feed *redis.XMessageSliceCmd
	hashes := make(map[bucket]*redis.MapStringStringCmd, len(buckets))
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		schema, fence, revision = p.Get(ctx, s.key("schema")), p.Get(ctx, s.key("fence")), p.Get(ctx, s.key("revision"))
		feed, counts = p.XRevRangeN(ctx, s.key("feed"), "+", "-", 1), p.HGetAll(ctx, s.key("counts"))
		for _, b := range buckets {
			hashes[b] = p.HGetAll(ctx, s.hash(b))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err) {
		return loaded{}, fmt.Errorf("load from redis: %w", err)
	}
	if newest := feed.Val(); len(newest) > 0 {
		s.feedID = newest[0].ID
	}
	unmarked := isWrongType(schema.Err())
	if schema.Val() == "" && !unmarked {
		return loaded{contents: newContents(), fresh: true}, nil
	}
	if v, err := strconv.Atoi(schema.Val()); !unmarked && (err != nil || v > schemaVersion) {
		return loaded{}, fmt.Errorf("redis has schema %s, this ingot knows up to %d: run the newer ingot that wrote it", schema.Val(), schemaVersion)
	}
	l, err := collect(hashes)
	if err != nil {
		return loaded{}, err
	}
	held := parseNumber(revision.Val())
	l.behind, l.ahead = held < s.revision, unmarked
	if l.uncounted = counts.Val()["revision"] != revision.Val(); !l.uncounted {
		l.count(func(b bucket) int { return int(parseNumber(counts.Val()[s.hash(b)])) })
	}
	s.revision, s.fence = max(held, s.revision), max(s.fence, parseNumber(fence.Val()))
	s.raise(held)
	return l, nil
}

// collect takes the values out of the answers. Where something else than a hash is in
// the place of a bucket's, all values of the bucket are gone.
func collect(hashes map[bucket]*redis.MapStringStringCmd) (loaded, error) {
	l := loaded{contents: make(contents, len(hashes))}
	for b, cmd := range hashes {
		err := cmd.Err()
		if err != nil && !isWrongType(err) {
			return loaded{}, fmt.Errorf("load %s from redis: %w", b, err)
		}
		if err != nil && versioned[b] {
			l.damage = append(l.damage, Damage{Bucket: string(b), Err: errWrongType})
		}
		l.contents[b] = make(map[string][]byte, len(cmd.Val()))
		for name, value := range cmd.Val() {
			l.contents[b][name] = []byte(value)
		}
	}
	return l, nil
}

// isWrongType reports whether Redis met a key of another type than ours is.
func isWrongType(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

func (s *redisStore) next() uint64 { return s.seq + 1 }

func (s *redisStore) raise(seq uint64) { s.seq = max(s.seq, seq) }

func (s *redisStore) raiseFence(ctx context.Context, above uint64) (uint64, error) {
	keys := []string{s.key("lease"), s.key("fence"), s.key("schema")}
	answer := raiseScript.Run(ctx, s.client, keys, s.owner, s.ttl.Milliseconds(), s.fence, above+1)
	if err := s.judge(answer, "raise the fencing number in redis"); err != nil {
		return 0, err
	}
	s.fence = above + 1
	return s.fence, nil
}

func (s *redisStore) acquire(ctx context.Context) (uint64, string, error) {
	if wait, err := s.leaveToLeader(ctx); wait || err != nil {
		return 0, "nobody: the store was lost, and who led may write it again", err
	}
	keys := []string{s.key("lease"), s.key("fence")}
	answer, err := acquireScript.Run(ctx, s.client, keys,
		s.owner, s.ttl.Milliseconds(), s.fence, nextFence(0, s.clock())).StringSlice()
	if err != nil {
		return 0, "", fmt.Errorf("ask redis for the lease: %w", err)
	}
	if len(answer) != 2 {
		return 0, "", fmt.Errorf("ask redis for the lease: %d answers", len(answer))
	}
	if holder := answer[1]; holder != "" {
		return 0, holder, nil
	}
	s.fence, s.leading = parseNumber(answer[0]), true
	return s.fence, "", nil
}

// leaveToLeader reports whether to stand back because the store was lost or rolled
// back: for the time of one lease, for the leader knows best what was in it.
func (s *redisStore) leaveToLeader(ctx context.Context) (bool, error) {
	if s.revision == 0 {
		return false, nil
	}
	var schema *redis.IntCmd
	var revision *redis.StringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		schema, revision = p.Exists(ctx, s.key("schema")), p.Get(ctx, s.key("revision"))
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err):
		return false, fmt.Errorf("ask redis for the lease: %w", err)
	case schema.Val() > 0 && parseNumber(revision.Val()) >= s.revision:
		s.lostAt = time.Time{}
		return false, nil
	case s.lostAt.IsZero():
		s.lostAt = time.Now()
	}
	return time.Since(s.lostAt) < s.ttl, nil
}

func (s *redisStore) renew(ctx context.Context) error {
	keys := append([]string{s.key("lease"), s.key("fence"), s.key("schema"), s.key("revision"), s.key("counts")}, s.hashes()...)
	return s.judge(renewScript.Run(ctx, s.client, keys, s.owner, s.ttl.Milliseconds(), s.fence, s.revision), "renew the lease in redis")
}

func (s *redisStore) commit(ctx context.Context, b batch) error {
	changed, err := json.Marshal(namesOf(b))
	if err != nil {
		return fmt.Errorf("list changes: %w", err)
	}
	keys := append([]string{s.key("fence"), s.key("schema"), s.key("revision"), s.key("feed"), s.key("counts")}, s.hashes()...)
	keys = append(keys, s.hash(bucketLease))
	s.seq++ // whether or not it succeeds: a commit that failed may have been made
	args := make([]any, 0, 5+4*len(b))
	args = append(args, s.fence, s.seq, s.revision, changed, feedLength)
	for _, ch := range b {
		op := "set"
		if ch.value == nil {
			op = "del"
		}
		args = append(args, hashIndex[ch.bucket], op, ch.name, ch.value)
	}
	if err := s.judge(commitScript.Run(ctx, s.client, keys, args...), "write to redis"); err != nil {
		return err
	}
	s.revision = s.seq
	return nil
}

// namesOf is how the feed names what a batch changed. Nobody follows leases.
func namesOf(b batch) [][2]string {
	rest, _ := b.withoutLeases()
	names := make([][2]string, len(rest))
	for i, ch := range rest {
		names[i] = [2]string{string(ch.bucket), ch.name}
	}
	return names
}

// judge turns a script's answer into the errors of the store interface.
func (s *redisStore) judge(answer *redis.Cmd, doing string) error {
	text, err := answer.Text()
	switch {
	case isWrongType(err):
		return fmt.Errorf("%s: %w", doing, errWrongType)
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case text == "lost":
		return errLost
	case text == "holes":
		return errHoles
	case text == "fenced":
		s.leading = false
		return ErrFenced
	}
	return nil
}

func (s *redisStore) replace(ctx context.Context, c contents) error {
	keys := append([]string{s.key("lease"), s.key("fence"), s.key("schema"), s.key("revision"), s.key("feed"), s.key("counts")}, s.hashes()...)
	keys = append(keys, s.hash(bucketLease))
	s.seq++
	pieces := piecesOf(c)
	for i, piece := range pieces {
		place := ""
		switch i {
		case 0:
			place = "first"
		case len(pieces) - 1:
			place = "last"
		}
		args := append([]any{s.owner, s.ttl.Milliseconds(), s.fence, s.seq, schemaVersion, feedLength, place}, piece...)
		if err := s.judge(fillScript.Run(ctx, s.client, keys, args...), "fill redis"); err != nil {
			return err
		}
	}
	s.revision = s.seq
	return s.inspectPersistence(ctx) // what was lost may have changed its ways
}

// leases reads them a piece at a time: all at once would keep Redis from all else.
func (s *redisStore) leases(ctx context.Context, visit func(name, value []byte)) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.client.HScan(ctx, s.hash(bucketLease), cursor, "", leaseGroup).Result()
		if isWrongType(err) {
			s.log.Error("something else is stored in the place of the leases, which are lost")
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

func (s *redisStore) countLeases(ctx context.Context, b batch) (total, fresh int, err error) {
	var count *redis.IntCmd
	known := make([]*redis.BoolCmd, 0, len(b))
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		count = p.HLen(ctx, s.hash(bucketLease))
		for _, ch := range b {
			if ch.value != nil {
				known = append(known, p.HExists(ctx, s.hash(bucketLease), ch.name))
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

// piecesOf cuts c into the arguments of at least two calls.
func piecesOf(c contents) [][]any {
	pieces := [][]any{nil}
	size := 0
	for b, values := range c {
		for name, value := range values {
			last := len(pieces) - 1
			pieces[last] = append(pieces[last], hashIndex[b], name, value)
			if size += len(name) + len(value); size >= fillBytes {
				pieces, size = append(pieces, nil), 0
			}
		}
	}
	return append(pieces, nil)
}

func (s *redisStore) follow(ctx context.Context) (batch, bool, error) {
	streams, err := s.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{s.key("feed"), s.feedID}, Count: 256, Block: followWait,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		stale, err := s.missed(ctx)
		return nil, stale, err
	case err != nil:
		return nil, false, fmt.Errorf("read the change feed of redis: %w", err)
	}
	changed := make(map[key]bool)
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
func (s *redisStore) missed(ctx context.Context) (bool, error) {
	revision, err := s.client.Get(ctx, s.key("revision")).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("read the revision of redis: %w", err)
	}
	return revision > s.revision, nil
}

// notice takes over one entry of the feed, and reports whether the entry follows
// on the last one that was seen. Our own commits are noticed too, which is of no
// harm.
func (s *redisStore) notice(entry redis.XMessage, changed map[key]bool) bool {
	var names [][2]string
	text, _ := entry.Values["changed"].(string)
	revision, _ := entry.Values["revision"].(string)
	fence, _ := entry.Values["fence"].(string)
	s.fence = max(s.fence, parseNumber(fence))
	if json.Unmarshal([]byte(text), &names) != nil || parseNumber(revision) > s.revision+1 {
		return false
	}
	s.feedID, s.revision = entry.ID, max(s.revision, parseNumber(revision))
	s.raise(s.revision)
	for _, n := range names {
		changed[key{bucket(n[0]), n[1]}] = true
	}
	return true
}

// fetch reads the present values of what changed.
func (s *redisStore) fetch(ctx context.Context, changed map[key]bool) (batch, error) {
	if len(changed) == 0 {
		return nil, nil
	}
	values := make(map[key]*redis.StringCmd, len(changed))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for k := range changed {
			values[k] = p.HGet(ctx, s.hash(k.bucket), k.name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read what changed in redis: %w", err)
	}
	b := make(batch, 0, len(values))
	for k, cmd := range values {
		value, err := cmd.Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read %s %s from redis: %w", k.bucket, k.name, err)
		}
		b = append(b, change{k, value})
	}
	return b, nil
}

func (s *redisStore) durability() Durability { return s.durable }

// release lets the next leader in at once instead of after the lease ran out.
func (s *redisStore) release() {
	if !s.leading {
		return
	}
	s.leading = false
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := releaseScript.Run(ctx, s.client, []string{s.key("lease")}, s.owner).Err(); err != nil {
		s.log.Warn("the lease could not be given back: the next leader waits until it runs out", "err", err)
	}
}

func (s *redisStore) close() error {
	s.release()
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// driverLog takes what go-redis would print on standard error. Its failures come
// back as errors too, so nobody need see it.
type driverLog struct{ log *slog.Logger }

// Printf implements go-redis' logging interface.
func (l driverLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "go-redis", "says", fmt.Sprintf(format, args...))
}

// ownerName makes a name that no other process has.
func ownerName(name string) string { return name + "/" + strings.ToLower(rand.Text()[:10]) }

func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
