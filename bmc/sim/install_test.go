package sim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

// installer is a boot service that has one disk image installed, and a registry that hears how
// it goes.
type installer struct {
	*bootService
	document model.InstallDocument
	table    []byte
	chunks   []byte
	content  []byte       // of the disk that the image is of
	spoils   atomic.Int64 // answers that have a wrong byte
}

// newInstaller offers a server an image of two and a half chunks, the second of zeros.
func newInstaller(t *testing.T) *installer {
	t.Helper()
	in := &installer{bootService: newBootService(t)}
	in.content = make([]byte, 2*model.ChunkBytes+model.ChunkBytes/2)
	for i := range model.ChunkBytes / 2 {
		in.content[i], in.content[2*model.ChunkBytes+i] = byte(i*7), byte(i*13)
	}
	in.pack(t)
	in.document = model.InstallDocument{
		Version: 1, Install: "s1.1", Table: "table", Chunks: "chunks", TableDigest: "sha256:" + sumOf(in.table),
		Image:      model.DiskImage{Digest: "sha512:image", Bytes: uint64(len(in.content)), Data: 3 * model.ChunkBytes / 2},
		Identities: model.DiskIdentities{Labels: []string{"root"}}, BootEntry: "Ingot web",
		Seed: &model.InstallSeed{Kind: model.SeedNoCloud, Label: "cidata", Files: map[string]string{
			"vendor-data": "#!/bin/sh\nurl='" + in.URL + "/r/tok/bootstate'\nbody='{\"systemUUID\":\"ITS-OWN\",\"booted\":true}'\n",
		}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /install/document", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(in.document) })
	mux.HandleFunc("GET /install/table", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(in.table) })
	mux.HandleFunc("GET /install/chunks", func(w http.ResponseWriter, r *http.Request) {
		chunks := in.chunks
		if in.spoils.Add(-1) >= 0 {
			chunks = slices.Clone(chunks)
			chunks[len(chunks)/2] ^= 1
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chunks))
	})
	in.install = mux
	return in
}

func (in *installer) pack(t *testing.T) {
	t.Helper()
	enc := must.Get(zstd.NewWriter(nil))(t)
	table := model.ChunkTable{Bytes: uint64(len(in.content))}
	for from := 0; from < len(in.content); from += model.ChunkBytes {
		plain := in.content[from:min(from+model.ChunkBytes, len(in.content))]
		c := model.Chunk{}
		if len(bytes.Trim(plain, "\x00")) > 0 {
			stored := enc.EncodeAll(plain, nil)
			c = model.Chunk{Offset: uint64(len(in.chunks)), Length: uint64(len(stored)), Sum: sha256.Sum256(stored)}
			in.chunks = append(in.chunks, stored...)
		}
		table.Chunks = append(table.Chunks, c)
	}
	in.table = table.Encode()
}

func sumOf(raw []byte) string {
	d := sha256.Sum256(raw)
	return hex.EncodeToString(d[:])
}

func (in *installer) installs(s *sim.Server) {
	in.document.Seed.Files["vendor-data"] = strings.ReplaceAll(in.document.Seed.Files["vendor-data"], "ITS-OWN", s.UUID())
	in.offer(s.UUID(), in.probeIgnition(s.UUID(), "--install="+in.URL+"/install/document"))
}

func (in *installer) told(t *testing.T, until model.DiskInstallStage) (stages []model.DiskInstallStage, last model.ProbeInstall) {
	t.Helper()
	for {
		last = receive(t, in.reports)
		if n := len(stages); n == 0 || stages[n-1] != last.Stage {
			stages = append(stages, last.Stage)
		}
		if last.Stage == until || last.Reason != "" {
			return stages, last
		}
	}
}

func TestADiskImageIsInstalledAndBootsFromItsDisk(t *testing.T) {
	in := newInstaller(t)
	rack := start(t, sim.Options{BootURL: in.URL})
	s := rack.Servers()[0]
	in.document.Hints = []string{"serial=" + s.DiskSerial(1)}
	in.installs(s)
	in.fail("/install/document", 1) // what is asked for while it is prepared anew is asked for again
	in.fail("/install/chunks", 2)
	in.spoils.Store(1) // as is a chunk that is not what the table says
	bootOnce(t, s)
	stages, last := in.told(t, model.DiskRebooting)
	if diff := cmp.Diff(model.DiskInstallStages, stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if last.SystemUUID != s.UUID() || last.Install != "s1.1" || last.Disk == nil || last.Disk.Serial != s.DiskSerial(1) {
		t.Errorf("reported at last: %+v", last)
	}
	simtest.Powered(t, s, model.PowerOff)
	want := []sim.Content{{Name: "nvme0n1", Serial: s.DiskSerial(0)}, {
		Name: "sda", Serial: s.DiskSerial(1), Image: "sha512:image", Install: "s1.1", Written: in.document.Image.Data, Whole: true,
		SHA256: sumOf(in.content), Identities: in.document.Identities,
	}}
	if diff := cmp.Diff(want, s.Contents()); diff != "" {
		t.Errorf("what is on the disks (-want +got):\n%s", diff)
	}
	if len(in.bootStates) > 0 {
		t.Error("the probe said that a system is up")
	}
	simtest.Reset(t, s, "On")
	if got, want := receive(t, in.bootStates), (model.ProbeBootState{SystemUUID: s.UUID(), Booted: true}); got != want {
		t.Errorf("boot state %+v, want %+v", got, want)
	}
	booted(t, s, 2, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	simtest.Reset(t, s, "ForceRestart")
	booted(t, s, 3, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	s.PowerCut()
	bootOnce(t, s)
	in.told(t, model.DiskRebooting)
	if len(in.bootStates) > 0 {
		t.Error("another boot from disk posted a boot state again")
	}
}

func TestWhatABrokenInstallLeaves(t *testing.T) {
	for title, tc := range map[string]struct {
		fault  sim.Fault
		args   sim.FaultArgs
		reason model.Reason
		boots  bool // what it leaves
	}{
		"N44: a power cut half way leaves nothing that boots":    {fault: sim.FaultInstallCut, args: sim.FaultArgs{Requests: 1}},
		"N45: one after all is written leaves all of it":         {fault: sim.FaultVerifiedCut, args: sim.FaultArgs{Requests: 1}, boots: true},
		"N33: a disk that cannot be written is told by its name": {fault: sim.FaultWriteFails, reason: model.ReasonDiskWriteFailed},
		"N25: a disk that holds something is refused":            {fault: sim.FaultDiskHolds, reason: model.ReasonRootDeviceNotBlank, boots: true},
		"N35: so is a machine with the same labels elsewhere":    {fault: sim.FaultDuplicateLabels, args: sim.FaultArgs{Disk: 1}, reason: model.ReasonDuplicateIdentity, boots: true},
		"N13: and a disk of other sectors":                       {fault: sim.FaultSectors4K, reason: model.ReasonSectorSizeMismatch, boots: true},
		"N14: and one that is too small":                         {fault: sim.FaultDiskSmall, reason: model.ReasonDiskTooSmall, boots: true},
	} {
		t.Run(title, func(t *testing.T) {
			in := newInstaller(t)
			rack := start(t, sim.Options{BootURL: in.URL})
			s := rack.Servers()[0]
			s.SetRunning("old")
			in.document.Previous = &model.RootDisk{Serial: s.DiskSerial(0), Bytes: 1}
			if tc.fault == sim.FaultDiskHolds {
				in.document.Previous = nil
			}
			in.document.Hints = []string{"serial=" + s.DiskSerial(0)}
			in.installs(s)
			must.Do(t, s.SetFault(tc.fault, tc.args))
			s.PowerCut()
			bootOnce(t, s)
			if tc.reason != "" {
				if _, last := in.told(t, model.DiskVerified); last.Reason != tc.reason || last.Message == "" {
					t.Errorf("reported at last: %+v, want %s", last, tc.reason)
				}
			} else {
				simtest.Eventually(t, "the power fails", func() bool { return s.PowerOns() == 1 && s.Power() == model.PowerOff })
			}
			if got := s.Disk() != nil; got != tc.boots {
				t.Errorf("something boots from disk: %v, want %v; on the disks: %+v", got, tc.boots, s.Contents())
			}
		})
	}
}

func TestAnInstallThatWasCutBeginsAgainAndOneThatWasNotDoesNot(t *testing.T) {
	in := newInstaller(t)
	rack := start(t, sim.Options{BootURL: in.URL})
	s := rack.Servers()[0]
	in.installs(s)
	for _, fault := range []sim.Fault{sim.FaultInstallCut, sim.FaultVerifiedCut} {
		must.Do(t, s.SetFault(fault, sim.FaultArgs{Requests: 1}))
		ons := s.PowerOns()
		bootOnce(t, s)
		simtest.Eventually(t, "the power fails", func() bool { return s.PowerOns() > ons && s.Power() == model.PowerOff })
	}
	written := len(s.Installs())
	bootOnce(t, s)
	for stage := model.DiskInstallStage(""); stage != model.DiskRebooting; {
		_, last := in.told(t, model.DiskRebooting)
		stage = last.Stage
	}
	if got := len(s.Installs()); written != 1 || got != 1 {
		t.Errorf("the image was written %d times, then %d, want once", written, got)
	}
}

func TestADiskThatAnotherInstallWroteIsRefused(t *testing.T) {
	in := newInstaller(t)
	rack := start(t, sim.Options{BootURL: in.URL})
	s := rack.Servers()[0]
	in.installs(s)
	bootOnce(t, s)
	in.told(t, model.DiskRebooting)
	simtest.Powered(t, s, model.PowerOff)
	in.document.Install = "s1.2"
	bootOnce(t, s)
	if _, last := in.told(t, model.DiskRebooting); last.Reason != model.ReasonRootDeviceNotBlank {
		t.Errorf("reported at last: %+v", last)
	}
}

func TestOverwritingLeavesTheSameLabelsOnOtherDisks(t *testing.T) {
	in := newInstaller(t)
	rack := start(t, sim.Options{BootURL: in.URL})
	s := rack.Servers()[0]
	in.installs(s)
	for i, hint := range []string{s.DiskSerial(0), s.DiskSerial(1)} {
		in.document.Install = fmt.Sprintf("s1.%d", i)
		in.document.Hints, in.document.MayOverwrite = []string{"serial=" + hint}, true
		bootOnce(t, s)
		want := []model.Reason{"", model.ReasonDuplicateIdentity}[i]
		if _, last := in.told(t, model.DiskRebooting); last.Reason != want {
			t.Errorf("install %d ends with %q (%s), want %q", i, last.Reason, last.Message, want)
		}
		simtest.Powered(t, s, model.PowerOff)
	}
	if c := s.Contents(); !c[0].Whole || c[1].Image != "" {
		t.Errorf("on the disks: %+v", c)
	}
}
