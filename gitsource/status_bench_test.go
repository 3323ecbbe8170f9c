package gitsource

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

const benchFiles = 10_000

func benchPath(i int) string { return fmt.Sprintf("servers/rack-%03d/server-%05d.yaml", i/100, i) }

// benchDoc is about 375 bytes, as in the measurements of the design.
func benchDoc(i, round int) string {
	return fmt.Sprintf("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata:\n  name: server-%05d\nstatus:\n  round: %d\n  "+
		"power: \"On\"\n  serial: %x\n  note: %x\n",
		i, round, uint64(i)*2654435761*uint64(round+1), bytes.Repeat([]byte{byte(i), byte(i >> 8), byte(round)}, 40))
}

// BenchmarkStatusCommit measures a status commit of k files in 10,000, with git
// beside it in the same run: fast-import for making the commit, push for sending
// it. A ratio below 1 is faster than git.
func BenchmarkStatusCommit(b *testing.B) {
	for _, k := range []int{1, 100, benchFiles} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) { benchCommit(b, k) })
	}
}

func benchCommit(b *testing.B, k int) {
	dir := b.TempDir()
	theirs, target := must.Get(gitserver.New(dir, "theirs"))(b), must.Get(gitserver.New(dir, "target"))(b)
	targetServer := must.Get(target.ServeHTTP(gitserver.HTTPOptions{}))(b)
	defer targetServer.Close()

	branch := must.Get(NewStatusBranch(StatusOptions{URL: serveAlone(b, dir), Dir: filepath.Join(dir, "scratch")}))(b)
	defer branch.Close()
	docs := make(map[string]*model.Document, benchFiles)
	for i := range benchFiles {
		docs[benchPath(i)] = &model.Document{Text: benchDoc(i, 0)}
	}
	r := &model.Report{Subject: "all", Documents: docs}
	must.Get(branch.Publish(b.Context(), r))(b)
	must.Get(theirs.CommitTo("status", texts(docs), "all"))(b)
	gitPush(b, theirs, targetServer.URL)

	var build, publish, fastImport, push, own time.Duration
	round := 0
	for b.Loop() {
		round++
		changed := make(map[string]string, k)
		for i := range k {
			n := (i*7 + round) % benchFiles
			if k == benchFiles {
				n = i
			}
			changed[benchPath(n)] = benchDoc(n, round)
		}
		for path, text := range changed {
			docs[path] = &model.Document{Text: text}
		}
		r.Subject = fmt.Sprint("round ", round)

		began := time.Now()
		branch.tree.update(docs)
		pack := newPackWriter()
		if err := branch.tree.pack(pack, true); err != nil {
			b.Fatal(err)
		}
		size := len(pack.bytes())
		build += time.Since(began)
		if size == 0 {
			b.Fatal("empty pack")
		}

		stream := importStream(theirs, changed)
		began = time.Now()
		git(b, stream, theirs.Dir, "fast-import", "--quiet", "--date-format=raw")
		fastImport += time.Since(began)
		began = time.Now()
		gitPush(b, theirs, targetServer.URL)
		push += time.Since(began)

		before := cpuTime(b)
		began = time.Now()
		if p := must.Get(branch.Publish(b.Context(), r))(b); !p.New {
			b.Fatalf("published %+v", p)
		}
		publish += time.Since(began)
		own += cpuTime(b) - before
	}
	n := float64(b.N)
	b.ReportMetric(build.Seconds()*1000/n, "build-ms")
	b.ReportMetric(build.Seconds()/fastImport.Seconds(), "build/fast-import")
	b.ReportMetric(publish.Seconds()*1000/n, "publish-ms")
	b.ReportMetric(own.Seconds()*1000/n, "publish-cpu-ms")
	b.ReportMetric(publish.Seconds()/push.Seconds(), "publish/git-push")
	b.ReportMetric(publish.Seconds()/(fastImport+push).Seconds(), "publish/(fast-import+push)")
	b.ReportMetric(fastImport.Seconds()*1000/n, "fast-import-ms")
	b.ReportMetric(push.Seconds()*1000/n, "git-push-ms")
}

// serveAlone serves a new repository by smart HTTP in a process of its own, whose CPU time is not
// that of this one, and returns its URL.
func serveAlone(b *testing.B, dir string) (url string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveIn+"="+dir)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(b)
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	must.Get(fmt.Fscanln(out, &url))(b)
	return url
}

// serveIn is the folder in which this program, as a process of its own, is to serve a repository
// until its input ends.
const serveIn = "INGOT_TEST_SERVE_IN"

func TestMain(m *testing.M) {
	dir := os.Getenv(serveIn)
	if dir == "" {
		os.Exit(m.Run())
	}
	server := must2(must2(gitserver.New(dir, "ours")).ServeHTTP(gitserver.HTTPOptions{}))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
}

// cpuTime is the processor time that this process took so far, without its children.
func cpuTime(b *testing.B) time.Duration {
	var used unix.Rusage
	must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func texts(docs map[string]*model.Document) map[string]string {
	out := make(map[string]string, len(docs))
	for path, d := range docs {
		out[path] = d.Text
	}
	return out
}

func importStream(r *gitserver.Repo, files map[string]string) io.Reader {
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/status\ncommitter Ingot <ingot@localhost> 1700000000 +0000\ndata 5\nround\nfrom %s\n",
		r.Head("status"))
	for path, content := range files {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	return &in
}

func gitPush(b *testing.B, r *gitserver.Repo, url string) {
	git(b, nil, r.Dir, "push", "--quiet", url, "status")
}

func git(b testing.TB, stdin io.Reader, dir string, args ...string) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
