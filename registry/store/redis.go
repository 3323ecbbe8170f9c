package store

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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

// RedisConfig is what a Redis needs to know.
type RedisConfig struct {
	URL string
	// PasswordFile and CAFile are read for each connection; "" = there is none.
	PasswordFile, CAFile string
	Owner                string                  // names this process to the others
	HasDied              func(owner string) bool // nil = it is not known of any
	TTL                  time.Duration
	Clock                func() time.Time
	Log                  *slog.Logger
}

// Redis keeps each bucket in a hash. All its keys have one hash tag, so that a cluster keeps them on one
// server, as scripts require.
type Redis struct {
	RedisConfig
	client  redis.UniversalClient
	leading bool

	fence    uint64 // ours, or the newest one that was seen
	revision uint64 // of the newest commit that is ours, or that was loaded or followed
	seq      uint64 // of the newest commit that was tried, or any that was seen
	feedID   string // newest entry of the feed that was seen
	lostAt   time.Time
}

// OpenRedis connects and refuses a Redis that would lose records.
func OpenRedis(ctx context.Context, c RedisConfig) (*Redis, error) {
	o, err := parseRedisURL(c.URL)
	if err != nil {
		return nil, err
	}
	if err := useFiles(o, c); err != nil {
		return nil, err
	}
	if err := checkExposure(o); err != nil {
		return nil, err
	}
	redis.SetLogger(driverLog{c.Log}) // there is but one for the process
	s := &Redis{RedisConfig: c, client: redis.NewUniversalClient(o), feedID: "0"}
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s: %w", strings.Join(o.Addrs, ","), err), s.client.Close())
	}
	return s, nil
}

func (s *Redis) key(name string) string { return "{ingot}:" + name }

func (s *Redis) hash(b Bucket) string { return s.key("data:" + string(b)) }

func (s *Redis) hashes() []string {
	keys := make([]string, len(Buckets))
	for i, b := range Buckets {
		keys[i] = s.hash(b)
	}
	return keys
}

// hashIndex is the place of each bucket's hash among hashes, from 1 as in Lua. The
// leases' is after them.
var hashIndex = func() map[Bucket]string {
	index := make(map[Bucket]string, len(Buckets)+1)
	for i, b := range append(slices.Clone(Buckets), BucketLease) {
		index[b] = strconv.Itoa(i + 1)
	}
	return index
}()

// Load implements Data.
func (s *Redis) Load(ctx context.Context) (Loaded, error) {
	var stored, fence, revision *redis.StringCmd
	var counts *redis.MapStringStringCmd
	var feed *redis.XMessageSliceCmd
	hashes := make(map[Bucket]*redis.MapStringStringCmd, len(Buckets))
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		stored, fence, revision = p.Get(ctx, s.key("format")), p.Get(ctx, s.key("fence")), p.Get(ctx, s.key("revision"))
		feed, counts = p.XRevRangeN(ctx, s.key("feed"), "+", "-", 1), p.HGetAll(ctx, s.key("counts"))
		for _, b := range Buckets {
			hashes[b] = p.HGetAll(ctx, s.hash(b))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !isWrongType(err) {
		return Loaded{}, fmt.Errorf("load from redis: %w", err)
	}
	if newest := feed.Val(); len(newest) > 0 {
		s.feedID = newest[0].ID
	}
	unmarked := isWrongType(stored.Err())
	if stored.Val() == "" && !unmarked {
		return Loaded{Contents: NewContents(), Fresh: true}, nil
	}
	if err := checkFormat("redis", stored.Val()); err != nil {
		return Loaded{}, err
	}
	l, err := collect(hashes)
	if err != nil {
		return Loaded{}, err
	}
	held := parseNumber(revision.Val())
	l.Behind, l.Ahead = held < s.revision, unmarked
	if len(counts.Val()) > 0 {
		l.Count(func(b Bucket) int { return int(parseNumber(counts.Val()[s.hash(b)])) })
	}
	s.revision, s.fence = max(held, s.revision), max(s.fence, parseNumber(fence.Val()))
	s.Raise(held)
	return l, nil
}

// collect takes the values out of the answers. Where something else than a hash is in
// the place of a bucket's, all values of the bucket are gone.
func collect(hashes map[Bucket]*redis.MapStringStringCmd) (Loaded, error) {
	l := Loaded{Contents: make(Contents, len(hashes))}
	for b, cmd := range hashes {
		err := cmd.Err()
		if err != nil && !isWrongType(err) {
			return Loaded{}, fmt.Errorf("load %s from redis: %w", b, err)
		}
		if err != nil && b.IsRecord() {
			l.Damage = append(l.Damage, Damage{Bucket: string(b), Err: errWrongType})
		}
		l.Contents[b] = make(map[string][]byte, len(cmd.Val()))
		for name, value := range cmd.Val() {
			l.Contents[b][name] = []byte(value)
		}
	}
	return l, nil
}

// isWrongType reports whether Redis met a key of another type than ours is.
func isWrongType(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// Next implements Data.
func (s *Redis) Next() uint64 { return s.seq + 1 }

// Raise implements Data.
func (s *Redis) Raise(seq uint64) { s.seq = max(s.seq, seq) }

// Commit implements Data.
func (s *Redis) Commit(ctx context.Context, b Batch) error {
	changed, err := json.Marshal(namesOf(b))
	if err != nil {
		return fmt.Errorf("list changes: %w", err)
	}
	keys := append([]string{s.key("fence"), s.key("format"), s.key("revision"), s.key("feed"), s.key("counts")}, s.hashes()...)
	keys = append(keys, s.hash(BucketLease))
	s.seq++ // whether or not it succeeds: a commit that failed may have been made
	args := make([]any, 0, 5+4*len(b))
	args = append(args, s.fence, s.seq, s.revision, changed, feedLength)
	for _, ch := range b {
		op := "set"
		if ch.Value == nil {
			op = "del"
		}
		args = append(args, hashIndex[ch.Bucket], op, ch.Name, ch.Value)
	}
	if err := s.storeError(ctx, commitScript.Run(ctx, s.client, keys, args...), "write to redis"); err != nil {
		return err
	}
	s.revision = s.seq
	return nil
}

// namesOf is how the feed names what a batch changed. Nobody follows leases.
func namesOf(b Batch) [][2]string {
	rest, _ := b.WithoutLeases()
	names := make([][2]string, len(rest))
	for i, ch := range rest {
		names[i] = [2]string{string(ch.Bucket), ch.Name}
	}
	return names
}

// storeError turns a script's answer into the errors of the store interface.
func (s *Redis) storeError(ctx context.Context, answer *redis.Cmd, doing string) error {
	text, err := answer.Text()
	switch {
	case isWrongType(err):
		return fmt.Errorf("%s: %w", doing, errWrongType)
	case err != nil:
		return fmt.Errorf("%s: %w", doing, s.explained(ctx, err))
	case text == "lost":
		return ErrLost
	case text == "holes":
		return ErrHoles
	case text == "fenced":
		s.leading = false
		return ErrFenced
	}
	return nil
}

// Replace implements Data.
func (s *Redis) Replace(ctx context.Context, c Contents) error {
	keys := append([]string{s.key("lease"), s.key("fence"), s.key("format"), s.key("revision"), s.key("feed"), s.key("counts")}, s.hashes()...)
	keys = append(keys, s.hash(BucketLease))
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
		args := append([]any{s.Owner, s.TTL.Milliseconds(), s.fence, s.seq, format, feedLength, place}, piece...)
		if err := s.storeError(ctx, fillScript.Run(ctx, s.client, keys, args...), "fill redis"); err != nil {
			return err
		}
	}
	s.revision = s.seq
	return nil
}

// piecesOf cuts c into the arguments of at least two calls.
func piecesOf(c Contents) [][]any {
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

// Close implements Store.
func (s *Redis) Close() error {
	s.Release()
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

func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
