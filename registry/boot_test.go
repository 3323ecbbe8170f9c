package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

var stages = []model.BootStage{
	model.StageDHCP, model.StageTFTP, model.StageHTTPBoot, model.StageScript, model.StageKernel, model.StageInitrd, model.StageIgnition,
}

// atMinute are times of stages in the order of stages: minutes after now, 0 = never.
func progressOf(t *model.Ticket, client string, minutes ...int) *model.Progress {
	p := model.Progress{Ticket: t.ID, Client: client}
	for i, m := range minutes {
		if m > 0 {
			p, _ = p.Reached(stages[i], now.Add(time.Duration(m)*time.Minute))
		}
	}
	return &p
}

func TestBootIsNotedStageByStage(t *testing.T) {
	const dhcp, tftp, httpBoot, script, kernel, ignition = 0, 1, 2, 3, 4, 6
	cases := map[string]struct {
		notes []int // stages, one a minute
		want  []int // minute of each stage
	}{
		"from DHCP to Ignition": {
			notes: []int{0, 1, 2, 3, 4, 5, 6},
			want:  []int{1, 2, 3, 4, 5, 6, 7},
		},
		"iPXE asks DHCP again": {
			notes: []int{dhcp, tftp, dhcp, script},
			want:  []int{1, 2, 0, 4},
		},
		"a server that boots again asks DHCP again": {
			notes: []int{dhcp, tftp, script, kernel, dhcp, tftp, script},
			want:  []int{1, 2, 0, 3, 4},
		},
		"DHCP told late stands not after what came of it": {
			notes: []int{script, dhcp},
			want:  []int{0, 0, 0, 1},
		},
		"DHCP told after Ignition was served": {
			notes: []int{script, kernel, ignition, dhcp, tftp, httpBoot},
			want:  []int{0, 0, 0, 1, 2, 0, 3},
		},
		"TFTP told late stands not after what came of it": {
			notes: []int{dhcp, script, tftp},
			want:  []int{1, 0, 0, 2},
		},
		"firmware that boots by HTTP": {
			notes: []int{dhcp, httpBoot, ignition},
			want:  []int{1, 0, 2, 0, 0, 0, 3},
		},
		"a kernel that is fetched after Ignition is noted": {
			notes: []int{script, ignition, kernel},
			want:  []int{0, 0, 0, 1, 3, 0, 2},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			minute := 0
			r := lead(t, Options{Dir: t.TempDir(), Clock: func() time.Time { return now.Add(time.Duration(minute) * time.Minute) }})
			rec := serverRecord(0, model.PurposeClaim)
			save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			var last model.BootStage
			for i, stage := range c.notes {
				minute = i + 1
				must.Do(t, r.Boots.Note(t.Context(), rec.Boot.Ticket, stages[stage], netip.MustParseAddr("192.0.2.7")))
				now, _ := r.Observed().Progress["server-0"].Last()
				if at(now) < at(last) {
					t.Errorf("the last stage was %s and is %s", last, now)
				}
				last = now
			}
			holder, _ := r.Boots.Find(uuidOf(0))
			if diff := cmp.Diff(progressOf(rec.Boot.Ticket, "192.0.2.7", c.want...), holder.Progress); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func at(stage model.BootStage) int {
	for i, s := range stages {
		if s == stage {
			return i
		}
	}
	return -1
}

// Firmware that boots from the network without leave leaves no trace in a ticket.
func TestNoStageIsNotedWithASpentTicket(t *testing.T) {
	for _, stage := range stages {
		for _, ended := range []model.TicketState{model.TicketSpent, model.TicketBooted} {
			t.Run(fmt.Sprint(stage, " ", ended), func(t *testing.T) {
				r := lead(t, Options{Dir: t.TempDir()})
				rec := serverRecord(0, model.PurposeClaim)
				rec.Boot.Ticket.Ended = ended
				save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
				if err := r.Boots.Note(t.Context(), rec.Boot.Ticket, stage, netip.Addr{}); !errors.Is(err, model.ErrTicketSpent) {
					t.Errorf("got %v", err)
				}
				if p := r.Observed().Progress["server-0"]; p != nil {
					t.Errorf("noted %v", p)
				}
			})
		}
	}
}

// What is known of a machine's firmware outlives the ticket it booted with.
func TestFirmwareIsNoted(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeDiscovery)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	bios, uefi := model.BootFirmware{Architecture: "amd64"}, model.BootFirmware{Architecture: "amd64", UEFI: true}
	for range 2 {
		must.Do(t, errors.Join(r.Boots.NoteFirmware(t.Context(), rec.Boot.Ticket, bios), r.Boots.NoteFirmware(t.Context(), rec.Boot.Ticket, uefi)))
	}
	before := r.Observed()
	if err := r.Boots.NoteFirmware(t.Context(), rec.Boot.Ticket, uefi); err != nil || r.Observed() != before {
		t.Errorf("what is known is written again, %v", err)
	}
	next := serverRecord(0, model.PurposeClaim)
	next.Boot.Ticket.ID = "server-0-2"
	save(t, r, Changes{Servers: []*model.ServerRecord{next}})
	if err := r.Boots.NoteFirmware(t.Context(), rec.Boot.Ticket, bios); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("with the ticket before: %v", err)
	}
	must.Do(t, r.Boots.Note(t.Context(), next.Boot.Ticket, model.StageDHCP, netip.Addr{}))
	want := &model.Progress{Ticket: "server-0-2", DHCPAt: now, Firmware: &uefi}
	if diff := cmp.Diff(want, r.Observed().Progress["server-0"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Before it has a lease a machine has no address: none is shown.
func TestClientIsShownOnceItHasAnAddress(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	for i, c := range []struct {
		client netip.Addr
		want   string
	}{
		{netip.Addr{}, ""}, {netip.IPv4Unspecified(), ""}, {netip.MustParseAddr("192.0.2.7"), "192.0.2.7"}, {netip.Addr{}, "192.0.2.7"},
	} {
		must.Do(t, r.Boots.Note(t.Context(), rec.Boot.Ticket, stages[i], c.client))
		if got := r.Observed().Progress["server-0"].Client; got != c.want {
			t.Errorf("%s from %v: client %q, want %q", stages[i], c.client, got, c.want)
		}
	}
}
