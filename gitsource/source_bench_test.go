package gitsource

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

const benchTeams = 50

// benchClaim is a claim as people write it, about 600 bytes.
func benchClaim(i, round int) string {
	return fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata:
  name: web-%05d
  namespace: team-%02d
  labels: {app: web, tier: frontend}
  annotations:
    ingot/priority: "%d"
spec:
  power: "On"
  serverSelector:
    matchLabels: {rack: r%03d}
    matchExpressions:
    - {key: zone, operator: In, values: [x, y]}
  image: registry.example.com/os/flatcar:4152.2.0
  ignitionSecretRef:
    name: web-ignition
  tolerations:
  - {key: dedicated, operator: Equal, value: web, effect: NoBind}
`, i, i%benchTeams, round, i%200)
}

func benchClaimPath(i int) string {
	return fmt.Sprintf("claims/team-%02d/web-%05d.yaml", i%benchTeams, i)
}

func benchRepository(b *testing.B, n int) (*gitserver.Repo, string) {
	repo := must2(gitserver.New(b.TempDir(), "fleet"))
	files := make(map[string]string, n+benchTeams)
	for i := range n {
		files[benchClaimPath(i)] = benchClaim(i, 0)
	}
	for i := range benchTeams {
		files[fmt.Sprintf("secrets/team-%02d.yaml", i)] = fmt.Sprintf(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: web-ignition, namespace: team-%02d}\nstringData: {ignition: \"{}\"}\n", i)
	}
	must2(repo.Commit(files, "all"))
	server := must2(repo.ServeHTTP(gitserver.HTTPOptions{}))
	b.Cleanup(server.Close)
	return repo, server.URL
}

func benchSource(b *testing.B, url, dir string) *Source {
	s := must2(New(Options{URL: url, Dir: dir, Timeout: 10 * time.Minute, AllowPlaintextSecrets: true}))
	b.Cleanup(s.close)
	s.Begin(Beginning{})
	return s
}

func benchSync(b *testing.B, s *Source, claims int) *model.Desired {
	must.Do(b, s.Sync(b.Context()))
	d := s.Desired()
	if len(d.Claims) != claims || len(d.Problems) > 0 {
		b.Fatalf("%d claims, want %d; problems %v", len(d.Claims), claims, d.Problems)
	}
	return d
}

// BenchmarkSourceStart measures how long it takes from nothing to 10,000 manifests in
// force, beside git clone --depth 1 and decoding with sigs.k8s.io/yaml, not strictly. A ratio of 3 is
// what it may take.
func BenchmarkSourceStart(b *testing.B) {
	const n = 10_000
	_, url := benchRepository(b, n)
	var ours, theirs time.Duration
	for b.Loop() {
		began := time.Now()
		benchSync(b, benchSource(b, url, filepath.Join(b.TempDir(), "git")), n)
		ours += time.Since(began)

		began = time.Now()
		dir := b.TempDir()
		git(b, nil, dir, "clone", "--quiet", "--depth", "1", url, "clone")
		for i := range n {
			var c struct {
				Metadata model.Meta            `json:"metadata"`
				Spec     model.ServerClaimSpec `json:"spec"`
			}
			if err := yaml.Unmarshal(must2(os.ReadFile(filepath.Join(dir, "clone", benchClaimPath(i)))), &c); err != nil {
				b.Fatal(err)
			}
		}
		theirs += time.Since(began)
	}
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
	b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "git+sigs-ms")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSourceChange measures one changed file of 50,000 from the push to in force,
// beside git fetch and git diff, and what is held in memory meanwhile.
func BenchmarkSourceChange(b *testing.B) {
	const n = 50_000
	repo, url := benchRepository(b, n)
	s := benchSource(b, url, filepath.Join(b.TempDir(), "git"))
	benchSync(b, s, n)
	clone := filepath.Join(b.TempDir(), "clone")
	git(b, nil, filepath.Dir(clone), "clone", "--quiet", "--depth", "1", url, "clone")
	var ours, theirs time.Duration
	round := 0
	for b.Loop() {
		round++
		must2(repo.Commit(map[string]string{benchClaimPath(round): benchClaim(round, round)}, "one"))
		began := time.Now()
		benchSync(b, s, n)
		ours += time.Since(began)

		began = time.Now()
		git(b, nil, clone, "fetch", "--quiet", "--depth", "1", "origin", "+main:refs/heads/next")
		git(b, nil, clone, "diff", "--name-only", "main", "next")
		theirs += time.Since(began)
		git(b, nil, clone, "update-ref", "refs/heads/main", "next")
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
	b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "git-ms")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "heap-MiB")
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(s)
}
