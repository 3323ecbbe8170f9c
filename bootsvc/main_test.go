package bootsvc

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ingot/bootsvc/internal/filebench"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/model"
	"ingot/model/must"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if url := os.Getenv("BOOTSVC_DRAIN"); url != "" {
		n, err := filebench.Drain(url, 50)
		fmt.Println(n, err)
		return
	}
	if os.Getenv("BOOTSVC_CHILD") != "" {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	uuid1 = "38373000-3534-584d-5130-333030434a59"
	uuid2 = "00000000-0000-4000-8000-000000000002"
)

const testToken = "abcdefghijklmnopqrstuvwxyz"

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// desk is a Tickets that behaves: it knows servers, keeps progress and pays out
// payloads.
type desk struct {
	mu       sync.Mutex
	holders  map[string]*model.TicketHolder // by UUID or MAC address
	payloads map[string]string              // by ticket ID
	noted    []string
	uses     []string
	broken   error // what Note returns
}

func newDesk() *desk {
	return &desk{holders: make(map[string]*model.TicketHolder), payloads: make(map[string]string)}
}

func (d *desk) arm(t *model.Ticket, payload string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holders[t.UUID] = &model.TicketHolder{Server: t.Server, Ticket: t}
	d.payloads[t.ID] = payload
}

func (d *desk) Find(id string) (model.TicketHolder, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.holders[id]
	if !ok {
		return model.TicketHolder{}, false
	}
	return *o, true
}

func (d *desk) Payload(_ context.Context, t *model.Ticket) (model.Sensitive, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.payloads[t.ID]
	if !ok {
		return model.Sensitive{}, errors.New("no payload")
	}
	return model.NewSensitive(p), nil
}

func (d *desk) Note(_ context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	d.noted = append(d.noted, string(t.Server)+" "+string(stage)+" "+client.String())
	p := model.Progress{Ticket: t.ID}
	if was := d.holders[t.UUID].Progress; was != nil {
		p = *was
	}
	p, _ = p.Reached(stage, t.ArmedAt.Add(1))
	d.holders[t.UUID] = &model.TicketHolder{Server: t.Server, Ticket: t, Progress: &p}
	return nil
}

func (d *desk) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refused model.TicketRefusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	use := string(t.ID) + " " + string(what) + " " + by.Client.String()
	if refused != "" {
		use += " " + string(refused)
	}
	d.uses = append(d.uses, use)
}

func (d *desk) MACs(server model.ServerName) (macs []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, o := range d.holders {
		if o.Server == server && len(id) == len("00:00:00:00:00:00") {
			macs = append(macs, id)
		}
	}
	return macs
}

func (d *desk) Pinned(repository, digest string) (*model.Ticket, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.holders {
		if o.Ticket.Open() && layerIn(o.Ticket, repository, digest) != nil {
			return o.Ticket, true
		}
	}
	return nil, false
}

func (d *desk) notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.noted...)
}

// used returns the uses of tickets since it was last asked.
func (d *desk) used() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	uses := d.uses
	d.uses = nil
	return uses
}

func (d *desk) unnote() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = nil
}

func (d *desk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err
}

// leaseTable is who holds leases: MAC addresses by IP address.
type leaseTable map[string]string

func (l leaseTable) Holder(addr netip.Addr) (string, bool) {
	mac, ok := l[addr.String()]
	return mac, ok
}

func (l leaseTable) bind(o *Options) {
	o.AddressRules = netboot.AddressRules{Evidence: netboot.Evidence{Leases: l}, Servers: o.Tickets.(netboot.Servers)}
}

var sumA = "sha256:" + strings.Repeat("a", 64)

var key = model.NewTokenKey([]byte(strings.Repeat("k", 32)))

func tokenOf(t *model.Ticket) model.Sensitive { return key.Config(t, 0) }

// newImages returns Images for registries on this machine, which the configuration names.
func newImages(t *testing.T, hosts ...string) *oci.Images {
	t.Helper()
	o := oci.Options{Timeout: 20 * time.Second}
	for _, host := range hosts {
		o.Own = append(o.Own, host+"/os")
	}
	i := must.Get(oci.New(o))(t)
	t.Cleanup(i.Close)
	return i
}
