package daemon

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/dhcp/lease"
	"ingot/gitsource"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func TestAnEmptyRepositoryReservesNothingAndDelaysNothing(t *testing.T) {
	dir := t.TempDir()
	repo := must.Get(gitserver.New(dir, "repository"))(t)
	d := newDaemon(&core{log: slog.New(slog.DiscardHandler)})
	d.source = must.Get(gitsource.New(gitsource.Options{URL: repo.URL(), Dir: filepath.Join(dir, "git")}))(t)
	d.desired = d.source.Desired
	d.clients.dhcp = must.Get(dhcp.New(dhcp.Options{Networks: []dhcp.Network{{
		Name: "r", Listen: "127.0.0.1:0", Role: model.RoleHost, Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("127.0.0.0/8")}},
	}}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	known, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.network.reserve(ctx, known) }()
	select {
	case <-known:
		t.Error("reservations are known before Git was looked at")
	default:
	}
	d.source.Begin(gitsource.Beginning{})
	_ = d.source.Sync(ctx)
	<-known
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatIsPlannedWithIsReservedBefore(t *testing.T) {
	asked := model.NewDesired()
	d := newDaemon(&core{log: slog.New(slog.DiscardHandler), desired: func() *model.Desired { return asked }})
	var err error
	d.clients.dhcp, err = dhcp.New(dhcp.Options{Networks: []dhcp.Network{{
		Name: "r", Listen: "127.0.0.1:0", Role: model.RoleHost, Subnets: []dhcp.Subnet{{
			CIDR: netip.MustParsePrefix("127.0.0.0/8"), Ranges: []lease.Range{lease.Range{First: netip.MustParseAddr("127.0.0.10"), Last: netip.MustParseAddr("127.0.0.19")}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	asked = model.NewDesired()
	asked.Add(&model.Endpoint{
		Meta: model.Meta{Name: "e"}, Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:01", IP: "127.0.0.10"},
	})
	if got, used := d.network.reserveDesired(), d.clients.dhcp.Pools()[0].Used; got != asked || used != 1 {
		t.Errorf("got %p, want %p; %d addresses are reserved, want 1", got, asked, used)
	}
}
