package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestTheTimelineOfABootIsItsStagesInOrder(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 21, 12, 3, s, 5e8, time.UTC) }
	ticket := func(p model.TicketPurpose) *model.Ticket {
		return &model.Ticket{ID: "t", Purpose: p, ArmedAt: at(0)}
	}
	for name, tc := range map[string]struct {
		boot model.BootTrace
		want []model.BootStage
		text string
	}{
		"a server without a ticket boots nothing": {boot: model.BootTrace{}},
		"one that was not seen": {
			boot: model.BootTrace{Ticket: ticket(model.PurposeDiscovery)},
			want: []model.BootStage{model.StageArmed},
			text: "last seen: armed 12:03:00Z; not seen yet: DHCP or iPXE script",
		},
		"one that asked DHCP and fetched nothing": {
			boot: model.BootTrace{Ticket: ticket(model.PurposeDiscovery), Progress: &model.Progress{Ticket: "t", DHCPAt: at(1)}},
			want: []model.BootStage{model.StageArmed, model.StageDHCP},
			text: "last seen: DHCP 12:03:01Z; before it armed 12:03:00Z; not seen yet: boot loader by TFTP or HTTP",
		},
		"one whose boot loader is lost": {
			boot: model.BootTrace{
				Ticket: ticket(model.PurposeDiscovery), Progress: &model.Progress{Ticket: "t", DHCPAt: at(1), TFTPAt: at(2)},
			},
			want: []model.BootStage{model.StageArmed, model.StageDHCP, model.StageTFTP},
			text: "last seen: TFTP 12:03:02Z; before it DHCP 12:03:01Z; not seen yet: iPXE script",
		},
		"what was seen of an older boot does not count": {
			boot: model.BootTrace{
				Ticket: ticket(model.PurposeClaim), Progress: &model.Progress{Ticket: "old", DHCPAt: at(1)},
				Booted: &model.BootState{Ticket: "old", ReceivedAt: at(2)}, Wipe: &model.WipeReport{Ticket: "old", ReceivedAt: at(2)},
				Probe: &model.ProbeReport{Ticket: "old", ReceivedAt: at(2)},
			},
			want: []model.BootStage{model.StageArmed},
			text: "last seen: armed 12:03:00Z; not seen yet: DHCP or iPXE script",
		},
		"a claim that booted": {
			boot: model.BootTrace{
				Ticket: ticket(model.PurposeClaim), Booted: &model.BootState{Ticket: "t", ReceivedAt: at(9)},
				Progress: &model.Progress{
					Ticket: "t", DHCPAt: at(1), HTTPBootAt: at(2), ScriptAt: at(3), KernelAt: at(4), InitrdAt: at(5), IgnitionAt: at(6),
				},
			},
			want: []model.BootStage{
				model.StageArmed, "DHCP", "HTTP boot", "iPXE script", "kernel", "initrd", "Ignition", model.StageBootState,
			},
			text: "last seen: boot state 12:03:09Z; before it Ignition 12:03:06Z",
		},
		"a wipe that is awaited": {
			boot: model.BootTrace{Ticket: ticket(model.PurposeCleanup), Progress: &model.Progress{Ticket: "t", IgnitionAt: at(6)}},
			want: []model.BootStage{model.StageArmed, "Ignition"},
			text: "last seen: Ignition 12:03:06Z; before it armed 12:03:00Z; not seen yet: wipe",
		},
		"Ignition that is remembered though the progress is lost": {
			boot: model.BootTrace{Ticket: &model.Ticket{ID: "t", Purpose: model.PurposeClaim, ArmedAt: at(0), IgnitionAt: at(6)}},
			want: []model.BootStage{model.StageArmed, "Ignition"},
			text: "last seen: Ignition 12:03:06Z; before it armed 12:03:00Z; not seen yet: boot state",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stages := tc.boot.Steps()
			var got []model.BootStage
			for _, s := range stages {
				got = append(got, s.Stage)
				if stageReasons[s.Stage] == "" {
					t.Errorf("%s has no reason for a condition", s.Stage)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
			if len(stages) > 0 && progressText(tc.boot, stages) != tc.text {
				t.Errorf("got  %s\nwant %s", progressText(tc.boot, stages), tc.text)
			}
		})
	}
}
