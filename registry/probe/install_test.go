package probe

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

// diskRig is a rig in which server 1 is to be installed from a disk image, and what time it is
// there.
func diskRig(t *testing.T, changes ...func(*model.Ticket)) (rig, *time.Time) {
	at := now
	r := newRig(t, Options{Clock: func() time.Time { return at }})
	rec := fleet()[claimed]
	ticket := *rec.Boot.Ticket
	ticket.Disk = &model.DiskImage{Ref: "registry.example.com/debian:13", Bytes: 4e9, Data: 1e9}
	for _, change := range changes {
		change(&ticket)
	}
	rec.Boot.Ticket = &ticket
	save(t, r.Registry, registry.Changes{Servers: []*model.ServerRecord{rec}})
	return r, &at
}

// installs is a report of the install of server 1.
func installs(stage model.DiskInstallStage, change ...func(*model.ProbeInstall)) string {
	r := model.ProbeInstall{SystemUUID: uuidOf(claimed), Install: "server-1-1", Stage: stage}
	if stage != model.DiskProbeBooted {
		r.Disk = &model.RootDisk{Name: "sda", Serial: "S1", Bytes: 1 << 40}
	}
	for _, f := range change {
		f(&r)
	}
	raw, _ := json.Marshal(r)
	return string(raw)
}

func done(n uint64) func(*model.ProbeInstall) { return func(r *model.ProbeInstall) { r.Done = n } }

func (r rig) install(t *testing.T, body string) *model.DiskInstall {
	t.Helper()
	if w := r.do("POST", "/r/"+r.token(claimed)+"/install", body); w.Code != 201 {
		t.Fatalf("%.80s is answered %d: %s", body, w.Code, w.Body)
	}
	if p := r.Observed().Progress["server-1"]; p != nil {
		return p.Install
	}
	return nil
}

func TestInstallReportsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		ticket func(*model.Ticket)
		of     int
		body   string
		code   int
		says   string
	}{
		"a report of the server's own ticket is taken": {of: claimed, body: installs(model.DiskWriting), code: 201},
		"one of another install is refused": {
			of: claimed, body: installs(model.DiskWriting, func(r *model.ProbeInstall) { r.Install = "server-1-0" }), code: 409, says: "not the one"},
		"one of another server is refused": {of: discovered, body: installs(model.DiskWriting), code: 403},
		"a ticket without a disk image has no install": {
			ticket: func(t *model.Ticket) { t.Disk = nil }, of: claimed, body: installs(model.DiskWriting), code: 403, says: "disk image"},
		"a ticket for cleanup has none": {
			ticket: func(t *model.Ticket) { t.Purpose = model.PurposeCleanup }, of: claimed, body: installs(model.DiskWriting), code: 403},
		"after its release it is refused (N59)": {
			ticket: func(t *model.Ticket) { t.Ended = model.TicketSpent }, of: claimed, body: installs(model.DiskWriting), code: 403},
		"after its system has booted it is refused": {
			ticket: func(t *model.Ticket) { t.Ended = model.TicketBooted }, of: claimed, body: installs(model.DiskWriting), code: 403},
		"a stage that is not known is refused": {of: claimed, body: installs("Almost"), code: 400, says: "Booted, DiskChosen, Writing"},
		"what is verified has a disk": {
			of: claimed, body: installs(model.DiskVerified, func(r *model.ProbeInstall) { r.Disk = nil }), code: 400, says: "disk"},
		"a serial number of any length is refused": {
			of: claimed, body: installs(model.DiskChosen, func(r *model.ProbeInstall) { r.Disk.Serial = strings.Repeat("x", 257) }), code: 400, says: "serial"},
		"a reason that cannot be shown is refused": {
			of: claimed, body: installs(model.DiskChosen, func(r *model.ProbeInstall) { r.Reason = "a\nb" }), code: 400, says: "reason"},
		"there is no install of another UUID": {
			of: claimed, body: installs(model.DiskWriting, func(r *model.ProbeInstall) { r.SystemUUID = uuidOf(99) }), code: 403},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.ticket == nil {
				tc.ticket = func(*model.Ticket) {}
			}
			r, _ := diskRig(t, tc.ticket)
			w := r.do("POST", "/r/"+r.token(tc.of)+"/install", tc.body)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("answered %d %q, want %d and %q", w.Code, w.Body, tc.code, tc.says)
			}
			if p := r.Observed().Progress["server-1"]; (p != nil && p.Install != nil) != (tc.code == 201) {
				t.Errorf("on record %+v", p)
			}
		})
	}
}

func TestAnInstallOnlyGoesForward(t *testing.T) {
	r, _ := diskRig(t)
	failed := func(r *model.ProbeInstall) { r.Reason, r.Message = model.ReasonDiskWriteFailed, "sector 7" }
	for i, step := range []struct {
		body   string
		stage  model.DiskInstallStage
		done   uint64
		reason string
		boots  bool // the server asks for its script again before
	}{
		{body: installs(model.DiskProbeBooted), stage: model.DiskProbeBooted},
		{body: installs(model.DiskWriting, done(5e8)), stage: model.DiskWriting, done: 5e8},
		{body: installs(model.DiskChosen), stage: model.DiskWriting, done: 5e8},
		{body: installs(model.DiskWriting, done(4e8)), stage: model.DiskWriting, done: 5e8},
		{body: installs(model.DiskWriting, done(9e18)), stage: model.DiskWriting, done: 1e9},
		{body: installs(model.DiskWriting, failed), stage: model.DiskWriting, done: 1e9, reason: model.ReasonDiskWriteFailed},
		{body: installs(model.DiskVerified), stage: model.DiskWriting, done: 1e9, reason: model.ReasonDiskWriteFailed},
		{boots: true, body: installs(model.DiskChosen), stage: model.DiskChosen}, // its first report was lost
		{body: installs(model.DiskVerified, failed), stage: model.DiskWriting, reason: model.ReasonDiskWriteFailed},
		{boots: true, body: installs(model.DiskProbeBooted), stage: model.DiskProbeBooted},
		{body: installs(model.DiskVerified, done(1e9)), stage: model.DiskVerified, done: 1e9},
		{body: installs(model.DiskBootEntry, failed), stage: model.DiskVerified, done: 1e9},
		{boots: true, body: installs(model.DiskProbeBooted), stage: model.DiskVerified, done: 1e9},
		{body: installs(model.DiskRebooting), stage: model.DiskRebooting, done: 1e9},
	} {
		if step.boots {
			ticket := r.Observed().Servers["server-1"].Boot.Ticket
			for _, stage := range []model.BootStage{model.StageScript, model.StageIgnition, model.StageScript} {
				must.Do(t, r.Boots.Note(t.Context(), ticket, stage, netip.Addr{}))
			}
		}
		in := r.install(t, step.body)
		if in.Stage != step.stage || in.Done != step.done || in.Reason != step.reason {
			t.Errorf("%d. after %s it is at %s with %d bytes done, reason %q; want %s, %d, %q", i, step.body, in.Stage, in.Done, in.Reason,
				step.stage, step.done, step.reason)
		}
	}
	p := r.Observed().Progress["server-1"]
	if ticket := r.Observed().Servers["server-1"].Boot.Ticket; ticket.ServedAt(p) != p.Install.VerifiedAt || ticket.MayBoot(p) {
		t.Errorf("once it is verified it may boot from the network %v, served at %v", ticket.MayBoot(p), ticket.ServedAt(p))
	}
	if !strings.Contains(p.Install.Warning, "sector 7") {
		t.Errorf("what failed after that is not a warning: %+v", p.Install)
	}
}

func TestHowFarAnInstallIsIsWrittenNowAndThen(t *testing.T) {
	r, at := diskRig(t)
	before := r.writes(t, "progress")
	writes := func() int { return int(r.writes(t, "progress") - before) }
	r.install(t, installs(model.DiskWriting))
	for i := range 50 { // of 1 ‰ each, within 5 s
		*at = at.Add(100 * time.Millisecond)
		r.install(t, installs(model.DiskWriting, done(uint64(i)*1e6)))
	}
	if n := writes(); n < 4 || n > 6 {
		t.Errorf("50 reports of a thousandth each are written %d times, want about 5", n-1)
	}
	n := writes()
	*at = at.Add(9 * time.Second)
	r.install(t, installs(model.DiskWriting, done(49e6)))
	r.install(t, installs(model.DiskWriting, done(49e6)))
	*at = at.Add(2 * time.Second)
	in := r.install(t, installs(model.DiskWriting, done(49e6)))
	if got := writes() - n; got > 1 || !in.ReportedAt.Equal(*at) {
		t.Errorf("reports of nothing new are written %d times within 11 s, last at %s; want once, now", got, in.ReportedAt)
	}
	n = writes()
	in = r.install(t, installs(model.DiskVerified, done(1e9)))
	if got := writes() - n; got != 1 || !in.Verified() || in.Tenths != 10 {
		t.Errorf("a stage is written %d times: %+v", got, in)
	}
}

func TestWhatAnInstallSaysIsClipped(t *testing.T) {
	r, _ := diskRig(t)
	long := func(r *model.ProbeInstall) {
		r.Reason, r.Message, r.Warning = model.ReasonRootDeviceMissing, strings.Repeat("ä", 1<<16), "a\x1b[2Jb\x00"
	}
	in := r.install(t, installs(model.DiskChosen, long))
	if len(in.Message) > maxInstallText || !strings.HasSuffix(in.Message, "ä…") || in.Warning != "a [2Jb " {
		t.Errorf("%d bytes of message are kept, warning %q", len(in.Message), in.Warning)
	}
}
