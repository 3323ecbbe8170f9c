package report

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/install"
)

func TestAServerShowsTheStageOfItsInstall(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	var p Projector
	shown := func() install.Stage {
		r := reportBy(&p, in)
		return r.Documents["servers/"+string(rec.Name)+".yaml"].Object.(*Document).Status.(ServerStatus).InstallStage
	}
	if got := shown(); got != install.Booting {
		t.Errorf("while it boots: %q", got)
	}
	in.Now = rec.Boot.Ticket.ArmedAt.Add(in.Policy.BootGrace)
	in.Observed.Progress[rec.Name] = &model.Progress{Ticket: rec.Boot.Ticket.ID, IgnitionAt: fleettest.Now}
	rec.Boot.Ticket.IgnitionAt = fleettest.Now
	if got := shown(); got != install.Installing {
		t.Errorf("while its report is waited for: %q", got)
	}
	in.Now = fleettest.Now.Add(in.Policy.BootGrace) // nothing but the time is another
	if got := shown(); got != install.Unreported {
		t.Errorf("once its report is late: %q", got)
	}
	rec.Install.Digest = rec.Boot.Ticket.Digest
	if got := shown(); got != install.None {
		t.Errorf("once it is installed: %q", got)
	}
}

func TestAServerShowsANoteOnItsDiskImage(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	rec.Boot.Ticket.Disk = &model.DiskImage{Ref: "os:1", Format: "qcow2", Bytes: 4 << 30, Note: "it is called raw and is qcow2"}
	r := reportOf(in)
	st := r.Documents["servers/"+string(rec.Name)+".yaml"].Object.(*Document).Status.(ServerStatus).Install
	if st == nil || st.Format != "qcow2" || st.Note != rec.Boot.Ticket.Disk.Note {
		t.Errorf("its install is %+v", st)
	}
}
