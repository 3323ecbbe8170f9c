package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"os"
	"time"

	"ingot/cmd/daemon/holder"
	"ingot/model"
	"ingot/registry"
	"ingot/registry/probe"
)

// openRegistry opens the store of records, and makes the endpoint that probes report to.
func (d *daemon) openRegistry(ctx context.Context) error {
	if err := os.MkdirAll(d.opts.State.Dir, 0o700); err != nil {
		return fmt.Errorf("state.dir: %w; create it, or set state.dir to a folder that Ingot may write to", err)
	}
	key, err := registry.LoadSealKey(d.opts.SealKey())
	if err != nil {
		return fmt.Errorf("redis.sealKeyFile: %w", err)
	}
	identity := sha256.Sum256(append([]byte("identity of a DHCP server\x00"), key...))
	d.network.identity = identity[:]
	d.leader.choices = string(append([]byte("choice of store or status branch\x00"), key...))
	o := registry.Options{
		RedisURL: d.opts.Redis.URL, RedisPasswordFile: d.opts.Redis.PasswordFile, RedisCAFile: d.opts.Redis.CAFile, Dir: d.opts.State.Dir, SealKey: key,
		Owner: holder.Owner(d.holder), HasDied: func(owner string) bool { return holder.HasDied(owner, d.holder) },
		Log: d.log, Registerer: d.metrics, Clock: d.clock,
	}
	if d.opts.Tuning.Fast {
		o.LeaderTTL = 2 * time.Second
	}
	if d.registry, err = registry.Open(ctx, o); err != nil {
		return err
	}
	d.probes = probe.Handler(probe.Options{
		Registry: d.registry.Boots, Tokens: d.registry.TokenKey, Log: d.log, Registerer: d.metrics, Clock: d.clock,
		Bound: func(o model.TicketHolder, client netip.Addr) (model.Asker, model.TicketRefusal, string) {
			v := reportRules(d.clients.addressRules(), o.Ticket).Judge(o, client)
			return v.By, v.Refusal, v.Told
		},
	})
	return nil
}
