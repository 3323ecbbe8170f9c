package features

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ingot/features/internal/rig"
)

func startIngot(ctx context.Context) error { return siteOf(ctx).start() }

func restartIngot(ctx context.Context) error {
	w := siteOf(ctx)
	w.boot.open("")
	w.report.open("")
	if err := w.ingot.stop(); err != nil {
		return err
	}
	return w.start()
}

func killIngot(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.kill(); err != nil {
		return err
	}
	return w.start()
}

func killOften(ctx context.Context, times int) error {
	w := siteOf(ctx)
	for range times {
		if err := killIngot(ctx); err != nil {
			return err
		}
		if err := w.lookedAt(sortedKeys(w.bmcs)...); err != nil {
			return err
		}
	}
	return nil
}

func killAndEmpty(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(w.emptyStore)
}

func loseWhat(ctx context.Context, they, what string) error {
	w, err := begun(ctx)
	if err != nil {
		return err
	}
	by, listener := w.boot, w.ingot.where.Boot
	if they == "report" {
		by, listener = w.report, w.ingot.where.Registry
	}
	if what == "is lost" {
		listener = ""
	}
	by.open(listener)
	return nil
}

func emptyStore(ctx context.Context) error { return siteOf(ctx).emptyStore() }

func storeGoesDown(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.redis.end(); err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if w.ready(ctx) {
			return errors.New("Ingot says that it is ready, without its store")
		}
		return nil
	})
}

func storeComesBack(ctx context.Context) (err error) {
	w := siteOf(ctx)
	if w.redis, err = tryRedis(w.dir, w.redis.address); err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if !w.ready(ctx) {
			return errors.New("Ingot says that it is not ready, though it has its store")
		}
		return nil
	})
}

// idle waits until Ingot has looked at every BMC again, twice.
func idle(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.eventually(ctx, w.statusBranchAgrees); err != nil {
		return err
	}
	w.statusHead = w.repo.Head(statusBranch)
	return w.lookedAt(sortedKeys(w.bmcs)...)
}

func (w *site) lookedAt(bmcs ...string) error {
	const times = 2
	before := make(map[string]int64)
	for _, b := range bmcs {
		before[b] = w.bmcs[b].Requests()
	}
	// An Ingot that was started while the status branch was protected tries again to write
	// it, and looks at no BMC before, once per git.interval.
	return rig.Within(patience+times*defaults.Git.Interval, func() error {
		for _, b := range bmcs {
			if n := w.bmcs[b].Requests() - before[b]; n < times {
				return fmt.Errorf("BMC %s was asked %d times since", b, n)
			}
		}
		return nil
	})
}

func standBy(ctx context.Context) error {
	w := siteOf(ctx)
	dir := filepath.Join(w.dir, "second")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(w.stateDir(), "seal.key"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "seal.key"), key, 0o600); err != nil {
		return err
	}
	w.second, err = w.launch("second.yaml", dir)
	return err
}

// refusesMachines checks that the standby accepts connections on its admin listener alone.
func refusesMachines(ctx context.Context) error {
	where := siteOf(ctx).second.where
	for _, address := range []string{where.Boot, where.Registry, where.Metadata} {
		conn, err := net.DialTimeout("tcp", address, answerLimit)
		if err == nil {
			err = errors.Join(errors.New("the connection is accepted"), conn.Close())
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("connect to %s of the standby: %w", address, err)
		}
	}
	return nil
}

// stopLeader stops the Ingot that leads while a client sends it a request slowly, for which it waits some seconds. Before it
// has ended, the standby leads.
func stopLeader(ctx context.Context) error {
	w := siteOf(ctx)
	conn, err := net.DialTimeout("tcp", w.ingot.where.Boot, answerLimit)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it was cut off
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n"); err != nil {
		return err
	}
	if err := w.ingot.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := rig.Within(patience, func() error {
		_, body, err := w.second.access.ask(ctx, w.second, "/readyz")
		if err == nil && !strings.Contains(string(body), "leadership: ready") {
			err = fmt.Errorf("the standby does not lead: %s", body)
		}
		return err
	}); err != nil {
		return err
	}
	if !w.ingot.running() {
		return errors.New("the first one ended before the standby leads")
	}
	w.succeed(w.second)
	how, err := w.first.awaitEnd()
	return errors.Join(how, err)
}

func killLeader(ctx context.Context) error {
	w := siteOf(ctx)
	if err := w.kill(); err != nil {
		return err
	}
	w.ingot, w.second = w.second, nil
	w.admit()
	return nil
}
