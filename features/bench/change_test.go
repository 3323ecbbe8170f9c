package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ingot/gitsource"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

const changeRounds = 21

// goalChange is what a changed file may take, until it is planned for, of what git fetch and
// git diff take for it alone; goalChangeResident is the memory of what is held meanwhile.
const (
	goalChange         = 1.0
	goalChangeResident = 60.0
)

// BenchmarkChange measures, once, how long one changed file of 50,000 takes from the push to
// the plan: it is fetched, decoded and planned for, with git fetch and git diff beside it.
func BenchmarkChange(b *testing.B) {
	for _, c := range []struct {
		title           string
		claims, servers int // the first of the claims have the servers
	}{
		{"1 of 50,000 claims changes, 5,000 servers", 50_000, 5_000},
		{"1 of 20,000 claims changes, 20,000 servers", 20_000, 20_000},
	} {
		b.Run(c.title, func(b *testing.B) {
			t := &table{TB: b, title: c.title}
			measureChange(b, t, c.claims, c.servers)
			t.print(os.Stderr)
			b.ReportMetric(0, "ns/op")
		})
	}
}

func measureChange(b *testing.B, t *table, claims, servers int) {
	repo := must.Get(gitserver.New(b.TempDir(), "fleet"))(b)
	files := map[string]string{"secret.yaml": "apiVersion: metal.ironcore.dev/v1alpha1\nkind: BMCSecret\nmetadata: {name: s}\nstringData: {username: u, password: p}\n"}
	for i := range claims {
		files[changeClaimPath(i)] = changeClaim(i, 0)
	}
	for i := range servers {
		files[fmt.Sprintf("bmcs/%03d/%05d.yaml", i/100, i)] = changeBMC(i)
	}
	must.Get(repo.Commit(files, "all"))(b)
	server := must.Get(repo.ServeHTTP(gitserver.HTTPOptions{}))(b)
	b.Cleanup(server.Close)
	source := must.Get(gitsource.New(gitsource.Options{
		URL: server.URL, Dir: filepath.Join(b.TempDir(), "git"), Timeout: 10 * time.Minute, AllowPlaintextSecrets: true,
	}))(b)
	source.Begin(gitsource.Beginning{})
	in := settled(b, source, claims, servers)
	clone := filepath.Join(b.TempDir(), "clone")
	runGit(b, filepath.Dir(clone), "clone", "--quiet", "--depth", "1", server.URL, "clone")

	var fetched, planned, theirs, fetchedCPU, plannedCPU, theirsCPU []time.Duration
	for round := range changeRounds {
		must.Get(repo.Commit(map[string]string{changeClaimPath(round): changeClaim(round, round+1)}, "one"))(b)
		began, before := time.Now(), cpuTime()
		if err := source.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		fetched, fetchedCPU = append(fetched, time.Since(began)), append(fetchedCPU, cpuTime()-before)
		began, before = time.Now(), cpuTime()
		in.Desired = source.Desired()
		plan.Plan(in)
		planned, plannedCPU = append(planned, time.Since(began)), append(plannedCPU, cpuTime()-before)

		began = time.Now()
		cpu := runGit(b, clone, "fetch", "--quiet", "--depth", "1", "origin", "+main:refs/heads/next")
		cpu += runGit(b, clone, "diff", "--name-only", "main", "next")
		theirs, theirsCPU = append(theirs, time.Since(began)), append(theirsCPU, cpu)
		runGit(b, clone, "update-ref", "refs/heads/main", "next")
	}
	ours := make([]time.Duration, changeRounds)
	for i := range ours {
		ours[i] = fetched[i] + planned[i]
	}
	t.duration("fetched and decoded", median(fetched), none, none)
	t.duration("  CPU, the server's share in it", median(fetchedCPU), none, none)
	t.duration("planned", median(planned), none, none)
	t.duration("  CPU", median(plannedCPU), none, none)
	t.duration("together; git fetch and git diff", median(ours), none, median(theirs))
	t.number("  its ratio", float64(median(ours))/float64(median(theirs)), goalChange, none)
	t.duration("  CPU, the server's share with ours alone", median(fetchedCPU)+median(plannedCPU), none, median(theirsCPU))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.number("heap in use, MiB", float64(m.HeapAlloc)/(1<<20), none, none)
	t.memory(memoryOf(b, os.Getpid()), goalChangeResident)
	runtime.KeepAlive(source)
}

// settled is the input of a plan for a fleet whose first claims are served, and in which the
// others wait for a server.
func settled(b *testing.B, source *gitsource.Source, claims, servers int) *world.Input {
	must.Do(b, source.Sync(b.Context()))
	now := time.Now()
	in := &world.Input{
		Desired: source.Desired(), Observed: model.NewObserved(), Policy: policy.Default(), Now: now,
		Readings: make(map[model.ServerName]reading.State, servers), BMCRead: make(map[model.BMCName]time.Time, servers),
	}
	if d := in.Desired; len(d.Claims) != claims || len(d.BMCs) != servers || len(d.Problems) > 0 {
		b.Fatalf("%d claims, %d BMCs, problems %v", len(d.Claims), len(d.BMCs), d.Problems)
	}
	o := in.Observed
	for i := range servers {
		bmc, uuid := model.BMCName(fmt.Sprintf("bmc%05d", i)), fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)
		o.BMCs[bmc] = &model.BMCRecord{Name: bmc, Address: changeAddress(i) + ":443"}
		o.BMCFacts[bmc] = &model.BMCFacts{Name: bmc, Systems: []model.SystemFact{{URI: "/1", UUID: uuid}}}
		claim := in.Desired.Claims[model.ClaimName(fmt.Sprintf("team-%02d/web-%05d", i%50, i))]
		rec := &model.ServerRecord{
			RecordIdentity: model.RecordIdentity{Name: model.ServerName(string(bmc) + "-system-0"), BMC: bmc, SystemURI: "/1", UUID: uuid},
			Life:           model.RecordLife{State: model.StateReserved, Since: now.Add(-time.Hour)},
			Claim:          model.RecordClaim{Name: claim.ClaimName(), Power: model.PowerOn},
			Install:        model.RecordInstall{Digest: booting.BootDigest(proposal.Boot{Image: claim.Spec.Image})},
		}
		o.Servers[rec.Name] = rec
		o.ServerFacts[rec.Name] = &model.ServerFacts{Name: rec.Name, Power: model.PowerOn, Inventory: &model.Inventory{}}
		in.Readings[rec.Name] = reading.State{At: now.Add(-time.Second), Reached: true}
		in.BMCRead[bmc] = now
	}
	for fleet := &o.Fleet; fleet != nil; { // until nothing more is decided
		decided := plan.Plan(in).Decided
		for _, rec := range decided.Claims {
			o.Claims[rec.Name] = rec
		}
		if fleet = decided.Fleet; fleet != nil {
			o.Fleet = *fleet
		}
	}
	p := plan.Plan(in)
	for _, s := range p.Servers {
		if s.Why.Reason != "" {
			b.Fatalf("server %s is not settled: %+v", s.Name, s.Why)
		}
	}
	return in
}

func changeClaimPath(i int) string { return fmt.Sprintf("claims/team-%02d/web-%05d.yaml", i%50, i) }

// changeClaim is a claim as people write it, about 500 bytes.
func changeClaim(i, round int) string {
	return fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: web-%05d
  namespace: team-%02d
  labels: {app: web, tier: frontend}
  annotations: {ingot/priority: "%d"}
spec:
  power: "On"
  serverSelector:
    matchLabels: {rack: r%03d}
    matchExpressions:
    - {key: zone, operator: In, values: [x, y]}
  image: registry.example.com/os/flatcar:4152.2.0
  tolerations:
  - {key: dedicated, operator: Equal, value: web, effect: NoBind}
`, i, i%50, round, i%200)
}

func changeAddress(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

func changeBMC(i int) string {
	return fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata:
  name: bmc%05d
  labels: {rack: r%03d}
spec:
  access: {ip: %s}
  protocol: {name: Redfish, port: 443}
  bmcSecretRef: {name: s}
`, i, i%200, changeAddress(i))
}

func runGit(b *testing.B, dir string, args ...string) time.Duration {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v: %s", args, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
