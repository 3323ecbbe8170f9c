package plan

import (
	"testing"
	"time"

	"ingot/model"
)

func TestEveryStageSaysWhereToLook(t *testing.T) {
	b := model.BootTrace{Ticket: &model.Ticket{ID: "t"}, Progress: &model.Progress{
		Ticket: "t", DHCPAt: time.Unix(1, 0), TFTPAt: time.Unix(1, 0), HTTPBootAt: time.Unix(1, 0), ScriptAt: time.Unix(1, 0),
		KernelAt: time.Unix(1, 0), InitrdAt: time.Unix(1, 0), IgnitionAt: time.Unix(1, 0),
	}}
	b.Ticket.ArmedAt = time.Unix(1, 0)
	for _, s := range b.Steps() {
		if BootHint(s.Stage) == "" || b.Upcoming(s.Stage) == "" {
			t.Errorf("after %s nobody knows where to look or what comes", s.Stage)
		}
	}
}
