package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func newStatus(t *testing.T, url string, auth Auth) *StatusBranch {
	t.Helper()
	b := must.Get(NewStatusBranch(StatusOptions{URL: url, Auth: auth, Dir: t.TempDir(), Clock: newClock().Now, Timeout: 30 * time.Second}))(t)
	t.Cleanup(b.Close)
	return b
}

func text(s string) *model.Document { return &model.Document{Text: s} }

func report(fence uint64, files map[string]string) *model.Report {
	r := &model.Report{
		Revision: "main@sha1:abc", Fence: fence, Subject: "something happened", Body: []string{"s1: a → b", "s2: c"},
		Mark: model.Mark{Line: "l", Deployment: "d", Process: "p", Sequence: 5, Push: "u"}, Continues: 3, Documents: make(map[string]*model.Document),
	}
	for path, content := range files {
		r.Documents[path] = text(content)
	}
	return r
}

// holds checks that the branch holds exactly files, in so many commits, and that
// git finds nothing wrong.
func holds(t *testing.T, r *servedRepo, files map[string]string, commits int) {
	t.Helper()
	got := ok[map[string]string](t)(r.ReadBranch("status"))
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
	if log := ok[[]gitserver.Commit](t)(r.ReadLog("status")); len(log) != commits {
		t.Errorf("%d commits, want %d", len(log), commits)
	}
	if out, err := r.Git("fsck", "--strict", "--no-dangling"); err != nil {
		t.Errorf("git fsck: %v %s", err, out)
	}
}

var fleet = map[string]string{
	"README.md": "# fleet\n", "servers/s1.yaml": "a: 1\n", "servers/s2.yaml": "a: 2\n", "servers.yaml": "x: 1\n",
	"serverclaims/default/web.yaml": "b: 1\n",
}

func with(files map[string]string, path, content string) map[string]string {
	out := maps.Clone(files)
	if content == "" {
		delete(out, path)
	} else {
		out[path] = content
	}
	return out
}

func TestS04PublishWhatChanged(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	publish := func(files map[string]string) Published {
		t.Helper()
		return ok[Published](t)(b.Publish(t.Context(), report(7, files)))
	}
	if diff := cmp.Diff(Snapshot{}, ok[Snapshot](t)(b.Read(t.Context()))); diff != "" {
		t.Errorf("read before the first commit (-want +got):\n%s", diff)
	}
	p := publish(fleet)
	holds(t, repo, fleet, 1)
	if !p.New || p.Files != len(fleet) || p.Commit != repo.Head("status") {
		t.Errorf("published %+v", p)
	}
	log := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))
	want := gitserver.Commit{Hash: p.Commit, Author: "Ingot", Email: "ingot@localhost",
		Message: "something happened\n\ns1: a → b\ns2: c\n[skip ci]\n\nRevision: main@sha1:abc\nFence: 7\n" +
			"Line: l\nDeployment: d\nProcess: p\nSequence: 5\nPush: u\nContinues: 3\nTree: " + strings.TrimSpace(ok[string](t)(repo.Git("rev-parse", "status^{tree}")))}
	if diff := cmp.Diff(want, log[0], cmp.Transformer("orphan", func(p []string) int { return len(p) })); diff != "" {
		t.Errorf("commit (-want +got):\n%s", diff)
	}

	if p := publish(fleet); p.New { // S04, with new pointers
		t.Errorf("S04: a commit without a change: %+v", p)
	}
	holds(t, repo, fleet, 1)

	next := with(with(fleet, "servers/s1.yaml", "a: 3\n"), "serverclaims/default/web.yaml", "")
	if p := publish(next); p.Files != 2 {
		t.Errorf("published %+v, want 2 files", p)
	}
	holds(t, repo, next, 2)

	next = with(with(next, "bmcs/b.yaml", "c: 1\n"), "servers/s2.yaml", "")
	publish(next)
	holds(t, repo, next, 3)

	read := make(map[string]string)
	for path, content := range ok[Snapshot](t)(b.Read(t.Context())).Files {
		read[path] = string(content)
	}
	if diff := cmp.Diff(next, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	again := newStatus(t, repo.URL(), Auth{}) // a restart
	if p := ok[Published](t)(again.Publish(t.Context(), report(7, next))); p.New || p.Foreign != nil {
		t.Errorf("a restart made a commit: %+v", p)
	}
	publishAgain := with(next, "bmcs/b.yaml", "c: 2\n")
	if p := ok[Published](t)(again.Publish(t.Context(), report(7, publishAgain))); !p.New || p.Bytes > 2000 {
		t.Errorf("published %+v, want little", p)
	}
	holds(t, repo, publishAgain, 4)
}

func TestPublishObjects(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	doc := &model.Document{Object: map[string]any{"power": "On", "count": 1}}
	r := report(1, nil)
	r.Documents["servers/s1.yaml"] = doc
	ok[Published](t)(b.Publish(t.Context(), r))
	holds(t, repo, map[string]string{"servers/s1.yaml": "count: 1\npower: \"On\"\n"}, 1)
	doc.Object = map[string]any{"power": "Off"} // the same pointer is not looked at
	if p := ok[Published](t)(b.Publish(t.Context(), r)); p.New {
		t.Errorf("published %+v", p)
	}
}

func TestPublishToALargeFolder(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	files := make(map[string]string)
	for i := range 2000 {
		files[fmt.Sprintf("servers/s%04d.yaml", i)] = fmt.Sprintf("n: %d\n", i)
	}
	r := report(1, files)
	publish := func() Published { t.Helper(); return ok[Published](t)(b.Publish(t.Context(), r)) }
	publish()
	for i, change := range []func(){
		func() { r.Documents["servers/s1000.yaml"] = text("changed\n") },
		func() { delete(r.Documents, "servers/s0000.yaml"); delete(r.Documents, "servers/s1999.yaml") },
		func() { r.Documents["servers/a.yaml"] = text("a\n"); r.Documents["servers/zzz/x.yaml"] = text("z\n") },
		func() { delete(r.Documents, "servers/zzz/x.yaml"); r.Documents["servers/zzz"] = text("a file now\n") },
	} {
		change()
		if p := publish(); p.Bytes > 2000 {
			t.Errorf("change %d sent %d bytes: the folder's tree was sent whole", i, p.Bytes)
		}
		want := make(map[string]string)
		for path, d := range r.Documents {
			want[path] = d.Text
		}
		holds(t, repo, want, i+2)
	}
}

func TestS05ForeignCommitIsOverwrittenAndReportedOnce(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	ok[Published](t)(b.Publish(t.Context(), report(1, fleet)))
	hash := ok[string](t)(repo.CommitTo("status", map[string]string{"servers/s1.yaml": "mine\n", "mine.txt": "x"}, "I know better"))
	next := with(fleet, "README.md", "new\n")
	p := ok[Published](t)(b.Publish(t.Context(), report(1, next)))
	if diff := cmp.Diff(&Foreign{Author: "Test Author <author@example.com>", Commit: hash}, p.Foreign); diff != "" {
		t.Errorf("foreign (-want +got):\n%s", diff)
	}
	holds(t, repo, next, 3) // on top of the foreign commit, which stays in the history
	message := ok[[]gitserver.Commit](t)(repo.ReadLog("status"))[0].Message
	want := "something happened\n\noverwritten: " + hash + " of Test Author <author at example.com>\ns1: a → b\n"
	if !strings.HasPrefix(message, want) {
		t.Errorf("message %q, want it to begin %q", message, want)
	}
	if p := ok[Published](t)(b.Publish(t.Context(), report(1, fleet))); p.Foreign != nil {
		t.Errorf("reported twice: %+v", p.Foreign)
	}
	if log := ok[[]gitserver.Commit](t)(repo.ReadLog("status")); strings.Contains(log[0].Message, "overwritten") {
		t.Errorf("told twice: %q", log[0].Message)
	}
}

func TestUnchangedReportStillMendsTheBranch(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	now := newClock()
	b.opts.Clock = now.Now
	r := report(1, fleet)
	ok[Published](t)(b.Publish(t.Context(), r))
	must.Do(t, repo.DeleteBranch("status"))
	ok[Published](t)(b.Publish(t.Context(), r))
	if repo.Head("status") != "" {
		t.Error("the server was asked although nothing changed")
	}
	now.now = now.now.Add(recheckAfter)
	ok[Published](t)(b.Publish(t.Context(), r))
	holds(t, repo, fleet, 1)
}

func TestS06DeletedBranchIsMadeAgain(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	ok[Published](t)(b.Publish(t.Context(), report(1, fleet)))
	must.Do(t, repo.DeleteBranch("status"))
	if out, err := repo.Git("gc", "--quiet", "--prune=now"); err != nil {
		t.Fatal(err, out)
	}
	next := with(fleet, "README.md", "new\n")
	ok[Published](t)(b.Publish(t.Context(), report(1, next)))
	holds(t, repo, next, 1)
}

func TestS01S02ConcurrentWriters(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{})
	var raced atomic.Bool
	b := newStatus(t, server.URL, Auth{})
	ok[Published](t)(b.Publish(t.Context(), report(1, fleet)))
	// Somebody commits between our look at the branch and our push.
	racing := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "git-receive-pack") && r.Method == http.MethodPost && !raced.Swap(true) {
				if _, err := repo.CommitTo("status", map[string]string{"x": "y"}, "race"); err != nil {
					t.Error(err)
				}
			}
			h.ServeHTTP(w, r)
		})
	}})
	b = newStatus(t, racing.URL, Auth{})
	next := with(fleet, "README.md", "new\n")
	p := ok[Published](t)(b.Publish(t.Context(), report(1, next)))
	if !raced.Load() || p.Foreign == nil {
		t.Errorf("raced %t, published %+v", raced.Load(), p)
	}
	holds(t, repo, next, 3)

	var wg sync.WaitGroup
	for i := range 3 {
		w := newStatus(t, server.URL, Auth{})
		wg.Go(func() {
			if _, err := w.Publish(t.Context(), report(1, with(fleet, "README.md", fmt.Sprint("writer ", i)))); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if log := ok[[]gitserver.Commit](t)(repo.ReadLog("status")); len(log) != 6 {
		t.Errorf("%d commits, want 6", len(log))
	}
}

func TestS03S07RefusedPush(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	must.Do(t, repo.Hook("pre-receive", "echo 'secret scanner: no, thank you' >&2; exit 1"))
	server := serveHTTP(t, repo, gitserver.HTTPOptions{})
	for name, url := range map[string]string{"http": server.URL, "file": repo.URL()} {
		t.Run(name, func(t *testing.T) {
			b := newStatus(t, url, Auth{})
			_, err := b.Publish(t.Context(), report(1, fleet))
			if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "secret scanner") ||
				!strings.Contains(err.Error(), "hook declined") {
				t.Errorf("error %v, want ErrRejected with the text of the hook", err)
			}
		})
	}
	must.Do(t, repo.Hook("pre-receive", "echo 'GH006: Protected branch update failed for refs/heads/status.' >&2; exit 1"))
	b := newStatus(t, server.URL, Auth{})
	const advice = "; exempt the account of git.auth from the protection of branch status, see docs/forges.md"
	if _, err := b.Publish(t.Context(), report(1, fleet)); err == nil || !strings.HasSuffix(err.Error(), advice) {
		t.Errorf("error %v, want it to end with %q", err, advice)
	}
	must.Do(t, repo.Hook("pre-receive", "exit 0"))
	ok[Published](t)(b.Publish(t.Context(), report(1, fleet)))
	holds(t, repo, fleet, 1)
}

// S07: one tenant's text that a scanner refuses does not keep all records from being published.
func TestRefusedTextsAreLeftOut(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	must.Do(t, repo.Hook("pre-receive", "while read old new ref; do ! git grep -q hunter2 $new -- || exit 1; done; git log --format=%B $new | grep -q hunter2 && exit 1; exit 0"))
	type object = map[string]any
	r := report(1, fleet)
	r.Subject = "hunter2"
	r.Documents[model.ReportReadme], r.Documents["racks/hunter2.svg"] = text("hunter2"), text("hunter2")
	r.Documents[model.ReportFleet] = &model.Document{Object: object{
		"problems": []object{{"file": "a.yaml", "message": "hunter2"}}, "holds": []object{{"approve": "Ingot-Approve: T", "message": "hunter2"}},
		"decided": object{"sequence": 7},
	}}
	r.Documents["servers/s1.yaml"] = &model.Document{Object: object{
		"metadata": object{"name": "s1", "labels": object{"rack": "hunter2"}},
		"status":   object{"waiting": []object{{"reason": "Failing", "message": "hunter2"}}, "summary": object{"state": "Error", "rack": "hunter2 U4"}},
	}}
	if p := ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), r)); !p.Bare {
		t.Errorf("published %+v, want a bare report", p)
	}
	bare := with(with(fleet, model.ReportReadme, bareReadme.Text), model.ReportFleet,
		"decided:\n  sequence: 7\nholds:\n- approve: \"Ingot-Approve: T\"\nproblems:\n- file: a.yaml\n")
	holds(t, repo, with(bare, "servers/s1.yaml", "metadata:\n  name: s1\nstatus:\n  summary:\n    state: Error\n  waiting:\n  - reason: Failing\n"), 1)
}

// S07: that a push is blocked is no lock, which would be waited for.
func TestABlockedPushIsNotRepeated(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	must.Do(t, repo.Hook("pre-receive", "echo 'push blocked: this holds a secret' >&2; exit 1"))
	var posts atomic.Int32
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") {
				posts.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	}})
	_, err := newStatus(t, server.URL, Auth{}).Publish(t.Context(), report(1, fleet))
	if !Refused(err) || !strings.Contains(err.Error(), "this holds a secret") {
		t.Errorf("error %v, want a refusal with the text of the hook", err)
	}
	if n := posts.Load(); n != 2 {
		t.Errorf("%d pushes, want one with and one without texts", n)
	}
	for text, want := range map[string]bool{
		"command error on refs/heads/status: push blocked by a scanner":      false,
		"command error on refs/heads/status: protected branch hook declined": false,
		"command error on refs/heads/status: failed to update ref":           true,
		"cannot lock ref 'refs/heads/status'":                                true,
		"unable to create refs/heads/status.lock: File exists":               true,
		"the ref is locked": true,
	} {
		if got := locked(errors.New(text)); got != want {
			t.Errorf("%s: locked %v, want %v", text, got, want)
		}
	}
}

func TestS03PushWithoutPermission(t *testing.T) { // and G10
	repo := newRepo(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Username: "a", Password: "b"})
	_, err := newStatus(t, server.URL, Auth{}).Publish(t.Context(), report(1, fleet))
	if kindOf(err) != failureAuth {
		t.Errorf("error %v, want one of credentials", err)
	}
}

// S03, S07: what a hook says is bounded, and one report is one push, and another without texts.
func TestS03S07TheTextOfAHookIsBounded(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	hook := `echo x >> ../pushes; i=0; ` +
		`while [ $i -lt 3000 ]; do echo "the file servers/s1.yaml is larger than this server allows" >&2; i=$((i+1)); done; exit 1`
	must.Do(t, repo.Hook("pre-receive", strings.ReplaceAll(hook, "../pushes", repo.Dir+"/pushes")))
	now := newClock()
	b := newStatus(t, serveHTTP(t, repo, gitserver.HTTPOptions{}).URL, Auth{})
	b.opts.Clock = now.Now
	for range 3 {
		_, err := b.Publish(t.Context(), report(1, fleet))
		if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "larger than this server allows") || len(err.Error()) > 2*maxMessage {
			t.Errorf("error of %d bytes: %.300v", len(err.Error()), err)
		}
		now.now = now.now.Add(time.Minute)
	}
	pushes, err := os.ReadFile(filepath.Join(repo.Dir, "pushes"))
	if n := bytes.Count(pushes, []byte("x")); err != nil || n != 4 {
		t.Errorf("3 reports within recheckAfter cost %d pushes, want one each and one without texts: %v", n, err)
	}
}

// S10: what Ingot pushes is no news of the manifests.
func TestS10OurOwnPushIsNoNewRevision(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "begin"))
	s := newSource(t, testOptions(t, repo.URL()))
	before := mustSync(t, s)
	ok[Published](t)(newStatus(t, repo.URL(), Auth{}).Publish(t.Context(), report(1, fleet)))
	if after := mustSync(t, s); after != before || after.Revision != before.Revision {
		t.Errorf("revision %s became %s", before.Revision, after.Revision)
	}
}

// S13: the branch is read one commit deep, and pushed to servers that check what they get
// and take no shallow history.
func TestS13PushFromOneCommitOfTheHistory(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	for _, setting := range [][2]string{
		{"receive.shallowUpdate", "false"}, {"transfer.fsckObjects", "true"}, {"receive.denyNonFastForwards", "true"},
	} {
		ok[string](t)(repo.Git("config", setting[0], setting[1]))
	}
	server := serveHTTP(t, repo, gitserver.HTTPOptions{})
	for i := range 5 {
		b := newStatus(t, server.URL, Auth{}) // each knows the newest commit alone
		next := with(fleet, "README.md", fmt.Sprint(i))
		if p := ok[Published](t)(b.Publish(t.Context(), report(1, next))); !p.New || p.Foreign != nil {
			t.Errorf("published %+v", p)
		}
		holds(t, repo, next, i+1)
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	var lost atomic.Bool
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") && !lost.Swap(true) {
				h.ServeHTTP(discard{http.Header{}}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	}})
	b, r := newStatus(t, server.URL, Auth{}), report(1, fleet)
	asked := watched(b)
	if _, err := b.Publish(t.Context(), r); err == nil {
		t.Fatal("no error")
	}
	p := ok[Published](t)(b.Publish(t.Context(), r))
	if p.New || p.Foreign != nil || p.Mark != r.Mark || len(*asked) != 1 || (*asked)[0].Mark != r.Mark {
		t.Errorf("published %+v, asked %v, want what is there to be recognised", p, *asked)
	}
	holds(t, repo, fleet, 1)
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestPublishOverSSHAndTLS(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	server := must.Get(repo.ServeSSH())(t)
	t.Cleanup(server.Close)
	secure := serveHTTP(t, repo, gitserver.HTTPOptions{TLS: true, Username: "ingot", Password: "pw"})
	b := newStatus(t, server.URL, Auth{
		SSHKeyFile: writeFile(t, server.ClientKey), KnownHostsFile: writeFile(t, server.KnownHosts(server.Ed25519)),
	})
	ok[Published](t)(b.Publish(t.Context(), report(1, fleet)))
	holds(t, repo, fleet, 1)
	next := with(fleet, "README.md", "new\n")
	b = newStatus(t, secure.URL, Auth{
		UsernameFile: writeFile(t, []byte("ingot")), PasswordFile: writeFile(t, []byte("pw")), CAFile: writeFile(t, secure.CA),
	})
	ok[Published](t)(b.Publish(t.Context(), report(1, next)))
	holds(t, repo, next, 2)
}

func TestSilentServerEndsThePush(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "ssh"} {
		b := newStatus(t, scheme+"://"+silent(t)+"/x.git", sshKeys(t, writeFile(t, nil)))
		b.remote.timeout = 200 * time.Millisecond
		if _, err := b.Publish(t.Context(), report(1, fleet)); kindOf(err) != failureNetwork {
			t.Errorf("%s: %v", scheme, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Publish(ctx, report(1, fleet)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"README.md": true, "servers/s-1_x.yaml": true, "a/b/c/d.yaml": true,
		"": false, "/x": false, "x/": false, "a//b": false, "../x": false, "a/../b": false, ".git/config": false, "a/.b": false,
		"a b": false, "a\\b": false, "ä": false, "a\nb": false, "a..b": false, strings.Repeat("x", 256): false,
		strings.Repeat("a/", 10) + "b": false,
	}
	for path, valid := range tests {
		if err := validPath(path); (err == nil) != valid {
			t.Errorf("%q: %v, want valid: %t", path, err, valid)
		}
	}
}

func TestADocumentThatCannotBeWrittenIsSkipped(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	b := newStatus(t, repo.URL(), Auth{})
	r := report(1, with(fleet, "../x", "y"))
	r.Documents["README.md/x"] = text("in a file")
	delete(r.Documents, "README.md")
	r.Documents["README.md"] = text("# fleet\n")
	r.Documents["new.yaml"] = &model.Document{Object: math.NaN()}
	r.Documents["none.yaml"] = nil
	p := ok[Published](t)(b.Publish(t.Context(), r))
	if len(p.Skipped) != 4 || p.Skipped["../x"] == nil || p.Skipped["new.yaml"] == nil || p.Skipped["none.yaml"] == nil {
		t.Errorf("skipped %v", p.Skipped)
	}
	if got := ok[map[string]string](t)(repo.ReadBranch("status")); got["servers/s1.yaml"] != "a: 1\n" ||
		got["new.yaml"]+got["none.yaml"] != "" {
		t.Errorf("branch holds %v", got)
	}
	r.Documents["servers/s1.yaml"] = &model.Document{Object: math.NaN()}
	r.Documents["servers/s2.yaml"] = text("a: 3\n")
	ok[Published](t)(b.Publish(t.Context(), r))
	if got := ok[map[string]string](t)(repo.ReadBranch("status")); got["servers/s1.yaml"] != "a: 1\n" ||
		got["servers/s2.yaml"] != "a: 3\n" {
		t.Errorf("branch holds %v", got)
	}
}

func TestALongCommitMessageIsCut(t *testing.T) {
	t.Parallel()
	r := report(7, nil)
	r.Body, r.Mark = nil, model.Mark{}
	for i := range maxBody + 3 {
		r.Body = append(r.Body, fmt.Sprint(i, strings.Repeat("x", 10*maxMessage)))
	}
	message := commitMessage(r, plumbing.ZeroHash)
	if !strings.HasSuffix(message, "…\nand 3 more\n[skip ci]\n\nRevision: main@sha1:abc\nFence: 7\n") ||
		len(message) > maxBody*(maxMessage+20) {
		t.Errorf("message of %d bytes ends %q", len(message), message[len(message)-80:])
	}
}
