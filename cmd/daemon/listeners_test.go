package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"ingot/cmd/daemon/config"
	"ingot/gitsource/forge"
	"ingot/model/must"
	"ingot/registry"
)

func loopbackOptions() config.Options {
	o := config.Default()
	o.Boot.Listen, o.Registry.Listen, o.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	return o
}

func TestATakenPortIsNamedWithItsKey(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	o := loopbackOptions()
	o.Admin.Listen = other.Addr().String()

	_, err = openListeners(t.Context(), &o)
	want := "admin.listen: cannot listen on " + o.Admin.Listen +
		": address already in use; stop the program that listens there, or set another port"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAnAddressOfAnotherMachineIsNamedWithItsKey(t *testing.T) {
	o := loopbackOptions()
	o.Boot.Listen = "192.0.2.1:8082" // no machine has it, see RFC 5737
	_, err := openListeners(t.Context(), &o)
	start, end := "boot.listen: cannot listen on 192.0.2.1:8082: ", "or leave the host out"
	if err == nil || !strings.HasPrefix(err.Error(), start) || !strings.HasSuffix(err.Error(), end) {
		t.Errorf("got %v, want %s…%s", err, start, end)
	}
}

func TestAnAdminListenerThatOthersReachNeedsSomebodyWhoMayLook(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	must.Do(t, os.WriteFile(users, []byte("anna:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n"), 0o600))
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified}
	for name, tc := range map[string]struct {
		at    net.Addr
		admin config.Admin
		fails bool
	}{
		"a name that stands for all addresses":  {at: everywhere, admin: config.Admin{Listen: "metal01:8080"}, fails: true},
		"a name that stands for loopback":       {at: &net.TCPAddr{IP: net.IPv4(127, 0, 1, 1)}, admin: config.Admin{Listen: "metal01:8080"}},
		"a name that stands for another, users": {at: everywhere, admin: config.Admin{Listen: "metal01:8080", Users: users}},
		"metrics alone":                         {at: everywhere, admin: config.Admin{Listen: ":8080", OpenMetrics: true}, fails: true},
	} {
		d := newDaemon(&core{
			opts: config.Options{Admin: tc.admin}, listeners: &listeners{admin: at{tc.at}}, log: slog.New(slog.DiscardHandler),
			metrics: prometheus.NewRegistry(), clock: time.Now,
		})
		err := d.openAccess()
		if want := "admin.listen: " + config.Unguarded(tc.admin.Listen); tc.fails && (err == nil || err.Error() != want) || !tc.fails && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// at is a listener that only has an address.
type at struct{ addr net.Addr }

func (l at) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l at) Close() error              { return nil }
func (l at) Addr() net.Addr            { return l.addr }

func TestAListenerWithoutAnAddressIsOff(t *testing.T) {
	o := loopbackOptions()
	o.Boot.Listen = ""
	l := must.Get(openListeners(t.Context(), &o))(t)
	defer l.close()
	got := l.addresses()
	if got.Boot != "" || got.Registry == "" || got.Admin == "" {
		t.Errorf("got %+v, want all but boot", got)
	}
}

func TestMachinesAreServedOnceTheLeasesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(&core{})
		close(d.ready) // no machine is served for that alone
		time.AfterFunc(12*time.Second, func() { close(d.leased) })
		began, rec := time.Now(), httptest.NewRecorder()
		h := d.whenReady(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/ipxe/x", nil))
		if took := time.Since(began); rec.Code != http.StatusOK || took != 12*time.Second {
			t.Errorf("answered %d after %s, want %d after 12s", rec.Code, took, http.StatusOK)
		}
	})
}

// pipe is a listener with one connection, in memory: it holds nothing, so a server waits
// until its client reads.
type pipe struct {
	at
	conns chan net.Conn
}

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func TestAnswersThatNobodyReadsEnd(t *testing.T) {
	secrets := filepath.Join(t.TempDir(), "secrets")
	must.Do(t, os.WriteFile(secrets, []byte("a-secret\n"), 0o600))
	for name, which := range map[string]func(l *listeners) *net.Listener{
		"registry": func(l *listeners) *net.Listener { return &l.registry },
		"metadata": func(l *listeners) *net.Listener { return &l.metadata },
		"webhook":  func(l *listeners) *net.Listener { return &l.webhook },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(&core{
					listeners: &listeners{}, metrics: prometheus.NewRegistry(), clock: time.Now, log: slog.New(slog.DiscardHandler), registry: &registry.Registry{Records: &registry.Records{}},
				})
				d.probes = http.NotFoundHandler()
				close(d.leased)
				var err error
				if d.webhook, err = forge.NewWebhook(forge.WebhookOptions{SecretFile: secrets, Log: d.log}); err != nil {
					t.Fatal(err)
				}
				ln := pipe{conns: make(chan net.Conn, 1)}
				*which(d.listeners) = ln
				client, server := net.Pipe()
				ln.conns <- server
				ctx, stop := context.WithCancel(t.Context())
				parts := &parts{Group: new(errgroup.Group)}
				d.serve(ctx, parts)

				_, _ = io.WriteString(client, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
				time.Sleep(time.Minute)
				if got, _ := io.ReadAll(client); len(got) > 0 {
					t.Errorf("after a minute there is still %q to read", got)
				}
				_ = client.Close()
				stop()
				synctest.Wait()
				close(ln.conns)
				_ = parts.Wait()
			})
		})
	}
}
