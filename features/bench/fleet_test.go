package bench

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"ingot/bmc/sim"
)

// What Ingot is held to. The figures of the peers that they come from are those of
// metal-operator with a Kubernetes API server on a machine like this one.
const (
	goalOnboard100  = 4500 * time.Millisecond
	goalClaim100    = 2 * time.Second
	goalClaim500    = 15 * time.Second
	goalRequests    = 28 // per server, onboarding and claim together
	goalConnections = 3
	goalSessions    = 1
	goalCPU100      = 4 * time.Second
	goalResident    = 60.0  // MiB at 100 servers
	goalResident1k  = 120.0 // MiB at 1,000
	goalResident2k  = 300.0 // MiB at 2,000
	goalCore2k      = 0.25  // of a core, at 2,000 and a poll a minute
	goalLatency     = time.Second
)

var bootTime = sim.FastDelays().Boot

func BenchmarkFleet(b *testing.B) {
	program := build(b)
	for _, c := range []struct {
		name string
		run  func(*testing.B, string, *table)
	}{
		{"100 servers", func(b *testing.B, program string, t *table) { lifecycle(b, program, 100, t) }},
		{"100 servers, Redis", func(b *testing.B, program string, t *table) { withRedis(b, program, 100, t) }},
		{"500 servers", func(b *testing.B, program string, t *table) { lifecycle(b, program, 500, t) }},
		{"1000 servers, idle", func(b *testing.B, program string, t *table) {
			resting{servers: 1000, poll: 10 * time.Second, resident: goalResident1k, core: none}.watch(b, program, t)
		}},
		{"2000 servers, idle, a poll a minute", func(b *testing.B, program string, t *table) {
			resting{servers: 2000, poll: time.Minute, resident: goalResident2k, core: goalCore2k}.watch(b, program, t)
		}},
		{"from commit to power", latency},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := &table{TB: b, title: c.name}
			c.run(b, program, t)
			t.print(os.Stderr)
		})
	}
}

func lifecycle(b *testing.B, program string, servers int, t *table, settings ...string) {
	y := measureYardsticks(b, servers)
	f := newFleet(b, program, servers, settings...)
	before := cpuOf(b, f.daemon.Process.Pid)
	onboard := f.onboard()
	atHalf := cpuOf(b, f.daemon.Process.Pid)
	claim := f.claim(0, servers)
	f.booted(servers)
	f.settle()
	cpu := cpuOf(b, f.daemon.Process.Pid) - before
	resident := memoryOf(b, f.daemon.Process.Pid)

	n := float64(servers)
	t.duration("BMCs committed until all Available", onboard, onlyAt(servers, 100, goalOnboard100), y.Onboard.Wall+bootTime)
	t.duration("claims committed until all bound and on", claim, claimGoal(servers), y.Claim.Wall)
	t.number("Redfish requests per server", float64(f.rack.Requests().Total)/n,
		goalRequests, float64(y.Onboard.Requests+y.Claim.Requests)/n)
	t.number("connections per server", float64(f.rack.Connections().Total)/n, goalConnections, 1)
	t.number("sessions per server", float64(f.rack.Sessions().Total)/n, goalSessions, 1)
	t.duration("CPU for onboarding and claiming", cpu, onlyAt(servers, 100, goalCPU100), y.Onboard.CPU+y.Claim.CPU)
	t.duration("  of it for onboarding", atHalf-before, none, y.Onboard.CPU)
	t.memory(resident, onlyAt(servers, 100, goalResident))
	t.number("status commits", float64(f.statusCommits()), none, none)
	t.number("store writes per server", f.metric("ingot_store_writes_total")/n, none, none)
	t.number("store commits", f.metric("ingot_store_commit_seconds_count"), none, none)
	t.number("plans", f.metric("ingot_plan_duration_seconds_count"), none, none)
	b.ReportMetric(onboard.Seconds(), "s-onboard")
	b.ReportMetric(claim.Seconds(), "s-claim")
	b.ReportMetric(cpu.Seconds(), "s-cpu")
	b.ReportMetric(mebibytes(resident.now), "MiB")
}

func withRedis(b *testing.B, program string, servers int, t *table) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		b.Skip("NOT MEASURED: the fleet on Redis, for redis-server is not installed: make setup")
	}
	url, pid := startRedis(b)
	lifecycle(b, program, servers, t, "INGOT_REDIS_URL="+url)
	t.duration("CPU of Redis", cpuOf(b, pid), none, none)
	t.number("resident of Redis, MiB", mebibytes(memoryOf(b, pid).now), none, none)
}

const idlePolls = 2

// resting is a fleet in which nothing happens, with its goals.
type resting struct {
	servers        int
	poll           time.Duration
	resident, core float64 // in MiB, and of a core
}

func (r resting) watch(b *testing.B, program string, t *table) {
	y := measureYardsticks(b, r.servers)
	f := newFleet(b, program, r.servers, "--poll-interval="+r.poll.String())
	onboard := f.onboard()
	f.settle()
	f.await("the Ignition that probes were given is forgotten", 2*time.Minute, func() bool {
		time.Sleep(time.Second)
		return f.metric("ingot_store_writes_total", `bucket="payload"`) >= float64(2*r.servers)
	})
	writes := func() float64 { return f.metric("ingot_store_writes_total") }
	plans := func() float64 { return f.metric("ingot_plan_duration_seconds_count") }
	requests, connections, commits := f.rack.Requests().Total, f.rack.Connections().Total, f.statusCommits()
	written, planned := writes(), plans()
	cpu := cpuOf(b, f.daemon.Process.Pid)
	watched := idlePolls * r.poll
	time.Sleep(watched)
	cpu = cpuOf(b, f.daemon.Process.Pid) - cpu
	resident := memoryOf(b, f.daemon.Process.Pid)

	perPoll := func(n int64) float64 { return float64(n) / float64(r.servers) / idlePolls }
	t.duration("BMCs committed until all Available", onboard, none, y.Onboard.Wall+bootTime)
	t.number("requests per server and poll interval", perPoll(f.rack.Requests().Total-requests), 1.1, 1)
	t.number("connections opened meanwhile", float64(f.rack.Connections().Total-connections), 0, none)
	t.number("status commits meanwhile", float64(f.statusCommits()-commits), 0, none)
	t.number("store writes meanwhile", writes()-written, 0, none)
	t.number("sessions per server, from the start", float64(f.rack.Sessions().Total)/float64(r.servers), goalSessions, 1)
	servers := time.Duration(r.servers)
	t.number("of a core", cpu.Seconds()/watched.Seconds(), r.core, none)
	t.duration("CPU per server and poll", cpu/servers/idlePolls, none, y.Poll.CPU/servers)
	t.duration("  the same by a new gofish client each time", y.FreshClient.CPU/freshClients, none, y.Poll.CPU/servers)
	t.number("plans per second", (plans()-planned)/watched.Seconds(), none, none)
	t.memory(resident, r.resident)
	b.ReportMetric(mebibytes(resident.now), "MiB")
	b.ReportMetric(perPoll(f.rack.Requests().Total-requests), "requests/poll")
}

func latency(b *testing.B, program string, t *table) {
	const claims = 21
	f := newFleet(b, program, claims)
	f.onboard()
	f.settle()
	var took []time.Duration
	for i := range claims {
		files := f.claims(i, i+1)
		committed := time.Now()
		f.commit(files, "claim a server")
		f.await("the claimed server is asked to power on", time.Minute, func() bool { return f.count(isOn) == i+1 })
		took = append(took, f.lastPowerOn().Sub(committed))
	}
	t.duration("commit until power-on request, median", median(took), goalLatency, none)
	t.duration("  the longest", longest(took), none, none)
	b.ReportMetric(median(took).Seconds(), "s-median")
}

func (f *fleet) lastPowerOn() (last time.Time) {
	for _, s := range f.rack.Servers() {
		for _, r := range s.Resets() {
			if r.Type == "On" && r.At.After(last) {
				last = r.At
			}
		}
	}
	return last
}

// settle waits until the status branch, which is written each 10 s at most, has
// nothing to add. The daemon is not asked, for answers cost it CPU time.
func (f *fleet) settle() {
	f.Helper()
	head, since := "", time.Now()
	f.await("the status branch is quiet", 2*time.Minute, func() bool {
		time.Sleep(250 * time.Millisecond)
		if now := f.repository.Head("status"); now != head {
			head, since = now, time.Now()
		}
		return time.Since(since) > 11*time.Second
	})
}

// onlyAt is a goal that is set for a fleet of one size.
func onlyAt[G time.Duration | float64](servers, at int, goal G) G {
	if servers == at {
		return goal
	}
	return none
}

func claimGoal(servers int) time.Duration {
	if servers == 500 {
		return goalClaim500
	}
	return onlyAt(servers, 100, goalClaim100)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
