package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// timings measures how long servers and claims take, from the records that one plan finds
// and the next. What the first plan finds is where it begins: an Ingot before this one has
// counted it, so that a restart counts nothing twice.
type timings struct {
	stages    *prometheus.HistogramVec // by stage
	states    *prometheus.HistogramVec // by state
	release   prometheus.Histogram
	discovery prometheus.Histogram
	// Of disk images: how long their writing took, how much was written, and what failed, by
	// reason.
	installs       prometheus.Histogram
	installBytes   prometheus.Counter
	installFailure *prometheus.CounterVec

	seen map[model.ServerName]course // nil = before the first plan
}

// claimStage is how far the boot for a claim has come.
type claimStage int

// The stages of the boot for a claim, in order.
const (
	stageBound    claimStage = iota
	stageArmed               // its image is pinned, its configuration rendered
	stagePowered             // its server was asked to power on
	stageScript              // the iPXE script was served
	stageIgnition            // the configuration was served, or whatever is last that is
	stageBooted              // the server reported that it runs
	claimStages              // how many there are
)

// claimStageNames are the values of the label stage.
var claimStageNames = [claimStages]string{"bound", "armed", "powered", "script", "ignition", "booted"}

// course is what is known of one server's course from one plan to the next.
type course struct {
	record   *model.ServerRecord
	progress *model.Progress
	booted   *model.BootState

	counted  [claimStages]bool // of the present binding
	appeared time.Time         // when it was seen first, until it was Available; zero = it was, or that is not known
	removed  time.Time         // when its claim was removed, until it is Available; zero = it was not, or that is not known
}

type took struct {
	what  measure
	of    string // the value of its label, "" = it has none
	since time.Time
	until time.Time
	bytes uint64 // of measureInstall
}

type measure int

const (
	measureStage measure = iota
	measureState
	measureRelease
	measureDiscovery
	measureInstall
	measureInstallFailure // of a reason
)

// Months in a state are as common as the seconds of a boot are.
var (
	lifeBuckets = []float64{1, 10, 60, 300, 900, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}
	bootBuckets = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 3600, 4 * 3600, 24 * 3600}
)

func newTimings(reg prometheus.Registerer) timings {
	t := timings{
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_claim_stage_seconds", Help: "Time from when a claim was first seen in Git until its first boot reached a stage: bound, armed (image pinned, configuration rendered), powered, script, ignition, booted.",
			Buckets: bootBuckets,
		}, []string{"stage"}),
		states: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_server_state_duration_seconds", Help: "Time that servers spent in a state, observed when they leave it.",
			Buckets: lifeBuckets,
		}, []string{"state"}),
		release: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_release_seconds", Help: "Time from when the removal of a claim was seen in Git until its server was Available again.",
			Buckets: bootBuckets,
		}),
		discovery: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_discovery_seconds", Help: "Time from when a server, or its BMC's device, was first seen until it was Available.",
			Buckets: bootBuckets,
		}),
	}
	t.installs = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ingot_install_seconds", Help: "Time from when a probe began to write a disk image until it had verified it.",
		Buckets: bootBuckets,
	})
	t.installBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ingot_install_bytes_total", Help: "Bytes of disk images that probes wrote and verified; zeros are not counted.",
	})
	t.installFailure = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_install_failures_total", Help: "Attempts to write a disk image that failed, by reason.",
	}, []string{"reason"})
	for _, reason := range installReasons {
		t.installFailure.WithLabelValues(reason)
	}
	for _, name := range claimStageNames {
		t.stages.WithLabelValues(name)
	}
	for _, s := range model.ServerStates {
		t.states.WithLabelValues(string(s))
	}
	reg.MustRegister(t.stages, t.states, t.release, t.discovery, t.installs, t.installBytes, t.installFailure)
	return t
}

// saw measures what became of each server since the plan before.
func (t *timings) saw(o *model.Observed) {
	first := t.seen == nil
	if first {
		t.seen = make(map[model.ServerName]course, len(o.Servers))
	}
	for name, rec := range o.Servers {
		was, known := t.seen[name]
		if known && was.record == rec && was.progress == o.Progress[name] && was.booted == o.BootStates[name] {
			continue
		}
		now, times := was.next(o, rec)
		t.seen[name] = now
		if !first {
			t.count(times)
		}
	}
	if len(t.seen) > len(o.Servers) {
		maps.DeleteFunc(t.seen, func(name model.ServerName, _ course) bool { return o.Servers[name] == nil })
	}
}

func (t *timings) count(times []took) {
	for _, m := range times {
		seconds := max(m.until.Sub(m.since), 0).Seconds()
		switch m.what {
		case measureStage:
			t.stages.WithLabelValues(m.of).Observe(seconds)
		case measureState:
			t.states.WithLabelValues(m.of).Observe(seconds)
		case measureRelease:
			t.release.Observe(seconds)
		case measureDiscovery:
			t.discovery.Observe(seconds)
		case measureInstall:
			t.installs.Observe(seconds)
			t.installBytes.Add(float64(m.bytes))
		case measureInstallFailure:
			t.installFailure.WithLabelValues(m.of).Inc()
		}
	}
}

// next returns the server's course with what is observed now, and what can be measured by
// that. The zero course is that of a server which was not seen before.
func (c course) next(o *model.Observed, rec *model.ServerRecord) (course, []took) {
	was, wasSeen := c.record, c.progress
	c.record, c.progress, c.booted = rec, o.Progress[rec.Name], o.BootStates[rec.Name]
	var times []took
	if was == nil {
		c.appeared = appeared(o, rec)
	} else if was.Life.State != rec.Life.State {
		times = append(times, took{measureState, stateLabel(was.Life.State), was.Life.Since, rec.Life.Since, 0})
	}
	if was == nil || was.Claim.Name != rec.Claim.Name && !was.Claim.BoundAt.Equal(rec.Claim.BoundAt) { // a renamed claim keeps its time
		c.counted = [claimStages]bool{}
	}
	c, freed := c.freed(o)
	c, staged := c.staged(o)
	return c, slices.Concat(times, freed, staged, c.wrote(was, wasSeen))
}

// installReasons are the reasons of failed installs that have a series before one has come.
var installReasons = []model.Reason{
	model.ReasonInstallStalled, model.ReasonInstallFailed, model.ReasonRootDeviceNotBlank, model.ReasonRootDeviceMissing,
	model.ReasonDuplicateIdentity, model.ReasonDiskBusy, model.ReasonDiskWriteFailed, model.ReasonDiskLies,
}

// wrote measures what became of the writing of a disk image since the record and the progress
// that were seen before.
func (c course) wrote(was *model.ServerRecord, seen *model.Progress) (times []took) {
	t, p := c.record.Boot.Ticket, c.progress
	if t != nil && t.Disk != nil && p != nil && p.Ticket == t.ID && p.Install.Verified() &&
		(seen == nil || seen.Ticket != t.ID || !seen.Install.Verified()) {
		in := p.Install
		times = append(times, took{measureInstall, "", cmp.Or(in.StartedAt, in.VerifiedAt), in.VerifiedAt, in.Done})
	}
	problem := c.record.Boot.Problem
	if proposal.FailedDisk(problem) && (was == nil || was.Boot.Problem == nil || was.Boot.Problem.Failures < problem.Failures) {
		times = append(times, took{what: measureInstallFailure, of: reasonLabel(problem.Reason)})
	}
	return times
}

// stateLabel is a state as a metric's label. A record on the status branch may have any.
func stateLabel(s model.ServerState) string {
	if slices.Contains(model.ServerStates, s) {
		return string(s)
	}
	return otherLabel
}

// appeared is when a server that was never Available was first seen, zero when that is not
// known: its record says when its state was entered, which is that in Initial alone, and not
// once it was discovered in vain.
func appeared(o *model.Observed, rec *model.ServerRecord) time.Time {
	if rec.Life.State != model.StateInitial || rec.Boot.Attempts > 0 {
		return time.Time{}
	}
	if device := o.Endpoints[string(rec.BMC)]; device != nil && device.Since.Before(rec.Life.Since) {
		return device.Since
	}
	return rec.Life.Since
}

// freed measures how long it took the server to become Available: from when it appeared, or
// from the removal of its claim.
func (c course) freed(o *model.Observed) (course, []took) {
	var times []took
	switch rec := c.record; rec.Life.State {
	case model.StateAvailable:
		if !c.appeared.IsZero() {
			times = append(times, took{measureDiscovery, "", c.appeared, rec.Life.Since, 0})
		}
		if !c.removed.IsZero() {
			times = append(times, took{measureRelease, "", c.removed, rec.Life.Since, 0})
		}
		c.appeared, c.removed = time.Time{}, time.Time{}
	case model.StateReserved:
		c.appeared, c.removed = time.Time{}, time.Time{}
		if rec.Release != nil {
			c.removed = removal(o, rec.Release)
		}
	case model.StateReleased: // a person decides when it goes on
		c.appeared, c.removed = time.Time{}, time.Time{}
	case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateMaintenance, model.StateError:
	}
	return c, times
}

// removal is when the removal of a claim was seen in Git: before the guard let it pass.
func removal(o *model.Observed, r *model.Release) time.Time {
	for _, gone := range o.Fleet.Removed {
		if gone.Identity.ClaimName() == r.Claim && gone.At.Before(r.At) {
			return gone.At
		}
	}
	return r.At
}

// staged measures the stages that the first boot for the server's claim came to. What a
// reprovision does was decided upon long after the claim was seen.
func (c course) staged(o *model.Observed) (course, []took) {
	rec := c.record
	claim := o.Claims[rec.Claim.Name]
	if rec.Claim.Name == "" || claim == nil || rec.Life.State != model.StateReserved {
		return c, nil
	}
	var times []took
	for stage, at := range stagesOf(o, rec) {
		if c.counted[stage] {
			continue
		}
		reached := !at.IsZero()
		if reached && rec.Install.Reprovision == "" {
			times = append(times, took{measureStage, claimStageNames[stage], claim.FirstSeen, at, 0})
		}
		c.counted[stage] = reached || rec.Install.Reprovision != "" || rec.Install.Digest != "" && claimStage(stage) != stageBooted
	}
	return c, times
}

// stagesOf are when the boot for a server's claim came to each stage, zero for not yet.
func stagesOf(o *model.Observed, rec *model.ServerRecord) (at [claimStages]time.Time) {
	at[stageBound] = rec.Claim.BoundAt
	t := rec.Boot.Ticket
	if t == nil || t.Purpose != model.PurposeClaim || t.Claim != rec.Claim.Name || t.ArmedAt.Before(rec.Claim.BoundAt) {
		return at
	}
	at[stageArmed] = t.ArmedAt
	if a := rec.Power.Asked; a != nil && a.Want == model.PowerOn && !a.At.Before(t.ArmedAt) {
		at[stagePowered] = a.At
	}
	p := o.ProgressOf(rec)
	if p != nil {
		at[stageScript] = p.ScriptAt
	}
	at[stageIgnition] = t.ServedAt(p)
	if b := o.BootStates[rec.Name]; b != nil && b.Ticket == t.ID {
		at[stageBooted] = b.ReceivedAt
	}
	return at
}
