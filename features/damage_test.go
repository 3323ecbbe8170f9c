package features

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"ingot/bmc/sim"
)

// The embedded store, and what it keeps records of servers in; Redis has a hash for that.
const (
	storeFile   = "ingot.db"
	serverTable = "server"
	serverHash  = "{ingot}:data:server"
)

func (w *site) storeFiles() (store, copied string) {
	if w.redis != nil {
		return filepath.Join(w.dir, "appendonlydir"), filepath.Join(w.dir, "copied")
	}
	return filepath.Join(w.stateDir(), storeFile), filepath.Join(w.dir, "copied")
}

func copyStore(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error { return w.withoutRedis(w.takeCopy) })
}

// withoutRedis does something while redis-server is down, if that is the store.
func (w *site) withoutRedis(do func() error) (err error) {
	if w.redis == nil {
		return do()
	}
	address := w.redis.address
	if err := errors.Join(w.redis.end(), do()); err != nil {
		return err
	}
	w.redis, err = tryRedis(w.dir, address)
	return err
}

func (w *site) takeCopy() error {
	store, copied := w.storeFiles()
	return errors.Join(os.RemoveAll(copied), replicate(store, copied))
}

func (w *site) putCopyBack() error {
	store, copied := w.storeFiles()
	return errors.Join(os.RemoveAll(store), replicate(copied, store))
}

func replicate(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

func putStoreBack(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error { return w.withoutRedis(w.putCopyBack) })
}

// healByCopy has Ingot start twice with the copy of the store while the Git host is away, and the power
// of a server cut meanwhile: each start is another lead, and so is the one once it is back.
func healByCopy(ctx context.Context, m *machine) (err error) {
	w := siteOf(ctx)
	away := w.repo.Dir + ".away"
	err = errors.Join(w.kill(), w.withoutRedis(w.putCopyBack), os.Rename(w.repo.Dir, away), w.start())
	if err == nil {
		err = errors.Join(killIngot(ctx), powerCut(ctx, m), runsFromDisk(ctx, m))
	}
	return errors.Join(err, w.whileDead(func() error { return os.Rename(away, w.repo.Dir) }))
}

func damageRecord(ctx context.Context, how, server string) error {
	w := siteOf(ctx)
	return w.whileDead(func() error { return w.damage(how, server) })
}

func (w *site) damage(how, server string) error {
	if w.redis != nil && how == "loses" {
		return w.redis.do("HDEL "+serverHash+" "+server, ":1")
	}
	if w.redis != nil {
		return w.redis.do("HSET "+serverHash+" "+server+" {garbled", ":0")
	}
	return w.editStore(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(serverTable))
		if b == nil || b.Get([]byte(server)) == nil {
			return fmt.Errorf("the store knows nothing of server %s", server)
		}
		if how == "loses" {
			return b.Delete([]byte(server))
		}
		return b.Put([]byte(server), []byte("{garbled"))
	})
}

func (w *site) editStore(change func(*bolt.Tx) error) error {
	file, _ := w.storeFiles()
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(change), db.Close())
}

func loseBoth(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error { return errors.Join(w.emptyStore(), deleteStatus(ctx)) })
}

func loseServers(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		if w.redis != nil {
			return w.redis.do("DEL "+serverHash, ":1")
		}
		return w.editStore(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(serverTable)) })
	})
}

func damageFile(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		file, _ := w.storeFiles()
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		copy(data[len(data)/2:], bytes.Repeat([]byte("damaged "), len(data)/16))
		return os.WriteFile(file, data, 0o600)
	})
}

func makeHole(ctx context.Context, server string) error {
	return siteOf(ctx).damage("loses", server)
}

func replaceKey(ctx context.Context) error {
	return siteOf(ctx).redis.do("SET "+serverHash+" mine", "+OK")
}

// storeTakesNoMore has each change of the store refused: Redis has no memory for it, or
// the file system no room.
func storeTakesNoMore(ctx context.Context) error {
	w := siteOf(ctx)
	w.changes = w.changesAsked()
	if w.redis != nil {
		return w.redis.do("CONFIG SET maxmemory 1", "+OK")
	}
	const room = 8 << 10 // a commit still fits, but no page of the embedded store
	return w.ingot.limitFiles(room)
}

func storeTakesMore(ctx context.Context) error {
	w := siteOf(ctx)
	if w.redis != nil {
		return w.redis.do("CONFIG SET maxmemory 0", "+OK")
	}
	return w.ingot.limitFiles(unix.RLIM_INFINITY)
}

func (p *program) limitFiles(bytes uint64) error {
	return unix.Prlimit(p.command.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
}

// nothingAsked watches that no BMC is asked to change anything once the store takes no
// more.
func nothingAsked(ctx context.Context) error {
	w := siteOf(ctx)
	return watch(func() error {
		if n := w.changesAsked() - w.changes; n > 0 {
			return fmt.Errorf("BMCs were asked %d times to change something", n)
		}
		return nil
	})
}

func (w *site) changesAsked() (n int) {
	for _, e := range w.rack.Events() {
		if e.Kind == sim.EventRequest {
			n++
		}
	}
	return n
}

// dieTogether loses the leader and what Redis had since it was copied.
func dieTogether(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.kill(); err != nil {
		return err
	}
	if err := w.withoutRedis(w.putCopyBack); err != nil {
		return err
	}
	w.ingot, w.second = w.second, nil
	w.admit()
	return nil
}

func manyNeighbours(ctx context.Context) error {
	siteOf(ctx).report.alter(func(path string, body []byte) []byte {
		var sent map[string]any
		if !strings.HasSuffix(path, "/register") || json.Unmarshal(body, &sent) != nil {
			return body
		}
		data, ok := sent["data"].(map[string]any)
		if !ok {
			return body
		}
		var neighbors []any
		for i := range 1500 {
			neighbors = append(neighbors, map[string]any{
				"chassisId": fmt.Sprintf("chassis-%04d", i), "portId": "port",
				"systemName": "switch", "systemDescription": strings.Repeat("x", 600),
			})
		}
		var seen []any // by each of its cards
		cards, _ := data["networkInterfaces"].([]any)
		for _, c := range cards {
			card, _ := c.(map[string]any)
			seen = append(seen, map[string]any{"name": card["name"], "neighbors": neighbors})
		}
		data["lldp"] = seen
		altered, err := json.Marshal(sent)
		if err != nil {
			return body
		}
		return altered
	})
	return nil
}

// protectOnce protects the status branch while a machine waits for its Ignition.
func protectOnce(ctx context.Context, claim string) error {
	w := siteOf(ctx)
	protected := make(chan error, 1)
	var once sync.Once
	w.boot.onPass(func(e exchange) {
		if e.claim != "" {
			once.Do(func() { protected <- protectStatus(ctx) })
		}
	})
	defer w.boot.onPass(nil)
	if err := w.edit(ctx, claim, "committed"); err != nil {
		return err
	}
	select {
	case err := <-protected:
		return err
	case <-time.After(2 * patience):
		return errors.New("no Ignition is served")
	}
}
