package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ingot/cmd/daemon/config"
	"ingot/registry"
	registrystore "ingot/registry/store"
)

// store checks whether Redis can be used, or the file of the embedded store.
func store(ctx context.Context, o *config.Options) []Result {
	if o.Redis.URL == "" {
		return []Result{embedded(o.State.Dir)}
	}
	redis, err := registrystore.OpenRedis(ctx, registrystore.RedisConfig{
		URL: o.Redis.URL, PasswordFile: o.Redis.PasswordFile, CAFile: o.Redis.CAFile, Clock: time.Now,
		Log: slog.New(slog.DiscardHandler),
	})
	fix := "start Redis, or correct redis.url"
	if err == nil {
		defer func() { _ = redis.Close() }()  // nothing was written
		err, fix = redis.CheckWrites(ctx), "" // the error says it
	}
	return []Result{judged("redis.url", err, "Redis can be used", fix)}
}

func embedded(dir string) Result {
	name := filepath.Join(dir, "ingot.db")
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok("store", "is created in state.dir at the first start")
	case err != nil:
		return wrong("store", err.Error(), "give the user that Ingot runs as permission to read and write it")
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return skipped("store", name+" is in use: Ingot runs")
	}
	_ = file.Close() // and unlocked; nothing was written
	return judged("store", registrystore.CheckFile(name), name+" can be opened",
		"see docs/operating.md; a damaged file is moved aside at the next start, and counts as a lost store")
}

func sealKey(_ context.Context, o *config.Options) []Result {
	name, own := o.SealKey()
	if own {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return []Result{ok("redis.sealKeyFile", "is created in state.dir at the first start; keep a copy of it")}
		}
	}
	_, err := registry.LoadSealKey(name, false)
	fix := "create one: openssl rand -hex 32, with mode 0600"
	if _, missing := os.Stat(name); missing == nil { // or somebody would write over the only key to the store
		fix = "let only the user that Ingot runs as read it (mode 0600), or put the right one there from your backup; " +
			"a new one is for a new store alone, because what is stored can be read with the old one only"
	}
	return []Result{judged("redis.sealKeyFile", err, "can be used", fix)}
}

// stateDir checks whether state.dir can be written to, or made.
func stateDir(_ context.Context, o *config.Options) []Result {
	dir := existing(o.State.Dir)
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	info, _ := os.Stat(dir)
	switch {
	case info != nil && !info.IsDir():
		return []Result{wrong("state.dir", dir+" is no folder", "name a folder in state.dir")}
	case err != nil:
		return []Result{wrong("state.dir", fmt.Sprintf("%s cannot be written to by user %d: %v", dir, os.Getuid(), err),
			"create "+o.State.Dir+", give it to the user that Ingot runs as, and run the check as that user")}
	case dir != o.State.Dir:
		return []Result{ok("state.dir", "is created at the first start")}
	}
	return []Result{ok("state.dir", "can be written to")}
}

// existing returns dir, or the nearest folder above it that exists.
func existing(dir string) string {
	dir = filepath.Clean(dir)
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// What has to be free on disk at least.
const (
	leastState  = 256 << 20
	leastImages = 10 << 30 // a disk image and its chunks
)

// space checks how much is free where state and images are kept.
func space(_ context.Context, o *config.Options) []Result {
	images := o.Boot.CacheDir
	if images == "" {
		images = filepath.Join(o.State.Dir, "images")
	}
	return []Result{
		spaceOf("state.dir space", o.State.Dir, leastState),
		spaceOf("boot.cacheDir space", images, min(leastImages, uint64(o.Boot.CacheSize))),
	}
}

func spaceOf(check, dir string, least uint64) Result {
	var s unix.Statfs_t
	if err := unix.Statfs(existing(dir), &s); err != nil {
		return skipped(check, err.Error())
	}
	return spaceResult(check, dir, s.Bavail*uint64(s.Bsize), least)
}

func spaceResult(check, dir string, free, least uint64) Result {
	const mib = 1 << 20
	message := fmt.Sprintf("%d MiB are free at %s", free/mib, dir)
	if free < least {
		return wrong(check, message, fmt.Sprintf("free at least %d MiB, or name another folder", least/mib))
	}
	return ok(check, message)
}
