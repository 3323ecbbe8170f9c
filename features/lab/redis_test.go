package lab

import (
	"errors"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

// redisServer is a redis-server in a namespace, which keeps what it is told.
type redisServer struct {
	on      *rig.Namespace
	dir     string
	process *rig.Process
}

func newRedis(t *testing.T, on *rig.Namespace) *redisServer {
	t.Helper()
	rig.Need(t, rig.ToolRedis)
	r := &redisServer{on: on, dir: t.TempDir()}
	r.start(t)
	return r
}

func (r *redisServer) start(t *testing.T) {
	t.Helper()
	r.process = r.on.Start(t, "redis-server", "redis-server", "--bind", "127.0.0.1", "--port", "6379", "--dir", r.dir,
		"--appendonly", "yes", "--save", "", "--daemonize", "no")
	rig.Eventually(t, rig.Patience, func() error {
		if !strings.Contains(r.process.Output.String(), "Ready to accept connections") {
			return errors.New("redis-server is not ready")
		}
		return nil
	})
}
