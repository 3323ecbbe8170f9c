package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"ingot/bootsvc/dhcp"
	"ingot/cmd/daemon/config"
	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

const leaseKey = "{ingot}:lease"

// leaderHere is a leader on this machine that has the ports of a configuration.
type leaderHere struct {
	tcp      net.Listener
	udp      []net.PacketConn
	redis    *miniredis.Miniredis
	settings config.Options
}

func newLeaderHere(t *testing.T) *leaderHere {
	l := &leaderHere{redis: miniredis.RunT(t), tcp: must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)}
	must.Do(t, l.redis.Set(leaseKey, "worker-7/id/place"))
	for range 2 {
		l.udp = append(l.udp, must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t))
	}
	t.Cleanup(l.close)
	o := loopbackOptions()
	o.State.Dir, o.Git.URL, o.Redis.URL = t.TempDir(), t.TempDir(), "redis://"+l.redis.Addr()
	o.Metadata.Listen, o.Boot.Listen, o.TFTP.Listen = "127.0.0.1:0", l.tcp.Addr().String(), l.udp[0].LocalAddr().String()
	o.DHCP = []dhcp.Network{{
		Name: "r", Listen: l.udp[1].LocalAddr().String(), Role: model.RoleHost, Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("127.0.0.0/8")}},
	}}
	l.settings = o
	return l
}

func (l *leaderHere) close() {
	_ = l.tcp.Close()
	for _, c := range l.udp {
		_ = c.Close()
	}
}

// started runs a daemon with the leader's configuration.
func (l *leaderHere) started(t *testing.T) (*daemon, <-chan error) {
	d := must.Get(assemble(t.Context(), l.settings, Environment{}))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- d.run(ctx)
		d.close()
	}()
	t.Cleanup(func() { stop(); <-done })
	return d, ended
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestSocketsForMachinesAreClosedUntilItLeads(t *testing.T) {
	leader := newLeaderHere(t)
	d, _ := leader.started(t)
	refused := func(address string) bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	eventually(t, "it knows the leader", func() bool {
		state, why := d.registry.Lead.State()
		return state == registry.Follows && strings.Contains(why.Error(), "worker-7/id/place")
	})
	a := d.listeners.addresses()
	if !refused(a.Registry) || !refused(a.Metadata) {
		t.Errorf("it listens at %s or %s while another leads", a.Registry, a.Metadata)
	}
	if refused(a.Admin) {
		t.Error("the admin listener is closed")
	}
	leader.redis.Del(leaseKey)
	eventually(t, "it leads", d.registry.Lead.Leading)
	leader.close() // a little later than the lead was given up
	eventually(t, "it listens", func() bool { return !refused(a.Boot) && !refused(a.Registry) && !refused(a.Metadata) })
	for _, udp := range leader.udp {
		eventually(t, "it has "+udp.LocalAddr().String(), func() bool {
			c, err := net.ListenPacket("udp", udp.LocalAddr().String())
			if err == nil {
				_ = c.Close()
			}
			return errors.Is(err, syscall.EADDRINUSE)
		})
	}
}

func TestLeaderWithoutItsPortGivesUp(t *testing.T) {
	leader := newLeaderHere(t)
	_, ended := leader.started(t)
	leader.redis.Del(leaseKey)
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "boot.listen: cannot listen on "+leader.tcp.Addr().String()) {
		t.Errorf("it ends with %v", err)
	}
	if leader.redis.Exists(leaseKey) {
		t.Error("it keeps the lead")
	}
}

func TestStandbyFindsAnAddressThatIsNotThere(t *testing.T) {
	leader := newLeaderHere(t)
	leader.settings.Boot.Listen = "192.0.2.1:8082" // no machine has it, see RFC 5737
	d, err := assemble(t.Context(), leader.settings, Environment{})
	if err == nil || !strings.Contains(err.Error(), "boot.listen: cannot listen on 192.0.2.1:8082") {
		t.Errorf("got %v", err)
		d.close()
	}
}
