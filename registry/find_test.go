package registry

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestProgressIsNotedOncePerStage(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	client := netip.MustParseAddr("192.0.2.7")
	var wg sync.WaitGroup
	for _, stage := range []model.BootStage{model.StageScript, model.StageKernel, model.StageScript, model.StageInitrd, model.StageKernel} {
		wg.Go(func() {
			if err := r.Boots.Note(t.Context(), rec.Boot.Ticket, stage, client); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want := &model.Progress{Ticket: rec.Boot.Ticket.ID, ScriptAt: now, KernelAt: now, InitrdAt: now, Client: "192.0.2.7"}
	holder, ok := r.Boots.Find(uuidOf(0))
	if diff := cmp.Diff(want, holder.Progress); !ok || diff != "" {
		t.Errorf("holder %v (-want +got):\n%s", ok, diff)
	}
	if err := r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageKernel, netip.MustParseAddr("192.0.2.9")); err != nil {
		t.Error(err)
	}
	if r.Observed().Progress["server-0"].Client != "192.0.2.7" {
		t.Error("a repeated stage was written")
	}
}

// Progress of an old ticket must not make the new one look unused, for then the
// server would be installed again (law 1).
func TestProgressOfASpentTicketIsRefused(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	old, rec := serverRecord(0, model.PurposeClaim), serverRecord(0, model.PurposeClaim)
	rec.Boot.Ticket.ID = "server-0-2"
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	must.Do(t, r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageIgnition, netip.Addr{}))
	if err := r.Boots.Note(t.Context(), old.Boot.Ticket, model.StageScript, netip.Addr{}); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("old ticket: %v", err)
	}
	if got := r.Observed().Progress["server-0"].Ticket; got != "server-0-2" {
		t.Errorf("progress is of %s", got)
	}
}

func TestOffer(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	twin := serverRecord(3, model.PurposeDiscovery)
	twin.UUID = uuidOf(2)
	bare := serverRecord(4, model.PurposeDiscovery)
	bare.Boot.Ticket = nil
	swapped := serverRecord(5, model.PurposeDiscovery)
	swapped.UUID = "4c4c4544-0042-3510-8054-b7c04f4b4832"
	oneWay, otherWay := serverRecord(6, model.PurposeDiscovery), serverRecord(7, model.PurposeDiscovery)
	oneWay.UUID, otherWay.UUID = "00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-AABBCCDDEEFF"
	save(t, r, Changes{Servers: []*model.ServerRecord{
		serverRecord(1, model.PurposeDiscovery), serverRecord(2, model.PurposeDiscovery), twin, bare, swapped, oneWay, otherWay,
	}})
	cases := map[string]struct {
		uuid string
		want string // ID of the ticket, or else name of the server
	}{
		"the server's ticket":                           {uuidOf(1), "server-1-1"},
		"upper case (R07)":                              {strings.ToUpper(uuidOf(1)), "server-1-1"},
		"two servers share the UUID (R12)":              {uuidOf(2), ""},
		"a server without a ticket is known":            {uuidOf(4), "server-4"},
		"nobody has the UUID":                           {uuidOf(99), ""},
		"the other byte order of SMBIOS":                {"44454c4c-4200-1035-8054-b7c04f4b4832", "server-5-1"},
		"two servers share it in different byte orders": {"00112233-4455-6677-8899-aabbccddeeff", ""},
		"no UUID at all":                                {"", ""},
		"a UUID of firmware that has none":              {"00000000-0000-0000-0000-000000000000", ""},
		"something hostile":                             {"../../etc/passwd", ""},
		"a UUID without dashes, as some firmware says":  {strings.ReplaceAll(uuidOf(1), "-", ""), "server-1-1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			holder, ok := r.Boots.Find(c.uuid)
			got := string(holder.Server)
			if holder.Ticket != nil {
				got = holder.Ticket.ID
			}
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
	remove(t, r, string(twin.Name), serverBuckets...)
	remove(t, r, string(oneWay.Name), serverBuckets...)
	if holder, ok := r.Boots.Find(oneWay.UUID); !ok || holder.Server != otherWay.Name {
		t.Errorf("after the one with the other byte order is gone: %v %v", holder, ok)
	}
	if holder, ok := r.Boots.Find(uuidOf(2)); !ok || holder.Ticket.ID != "server-2-1" {
		t.Errorf("after the twin is gone: %v %v", holder, ok)
	}
}

func TestPinned(t *testing.T) {
	cases := map[string]struct {
		change     func(*model.Ticket)
		repository string
		digest     string
		want       bool
	}{
		"a layer of an open ticket": {
			repository: "registry.example.com/os", digest: "sha256:k", want: true,
		},
		"the manifest of an open ticket": {
			repository: "registry.example.com/os", digest: "sha256:m", want: true,
		},
		"a layer of another repository": {
			repository: "registry.example.com/other", digest: "sha256:k",
		},
		"a layer that nobody boots": {
			repository: "registry.example.com/os", digest: "sha256:z",
		},
		"a layer of a booted ticket": {
			change:     func(t *model.Ticket) { t.Ended = model.TicketBooted },
			repository: "registry.example.com/os", digest: "sha256:k",
		},
		"a layer that is booted always": {
			change:     func(t *model.Ticket) { t.Ended, t.Always = model.TicketBooted, true },
			repository: "registry.example.com/os", digest: "sha256:k", want: true,
		},
		"a revoked ticket that was for always": {
			change:     func(t *model.Ticket) { t.Ended, t.Always = model.TicketSpent, true },
			repository: "registry.example.com/os", digest: "sha256:k",
		},
		"a ticket that is replaced by a new one": {
			change:     func(t *model.Ticket) { t.Image.Kernel.Digest = "sha256:new" },
			repository: "registry.example.com/os", digest: "sha256:k",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			rec := serverRecord(0, model.PurposeClaim)
			save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			if c.change != nil {
				c.change(rec.Boot.Ticket)
				save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			}
			ticket, ok := r.Boots.Pinned(c.repository, c.digest)
			if ok != c.want || (ticket != nil) != c.want {
				t.Errorf("got %v, want %v", ok, c.want)
			}
		})
	}
}
