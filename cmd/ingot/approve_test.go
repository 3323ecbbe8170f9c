package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

const heldRevision = `observedRevision: main@sha1:COMMIT
decided: {}
holds:
- subject: 2 steps held by the guard
  message: 2 steps exceed the limit of 1
  approve: "Ingot-Approve: aaaaaaaaaaaaaaaaaaaa"
  revert: git revert SHORT
  since: "2026-11-21T07:00:00Z"
  effects:
  - {server: s1, text: server s1 is wiped}
  - {server: s2, text: server s2 is powered off}
`

// absentToo adds objects that are absent without a commit.
const absentToo = `- subject: 3 objects absent without a commit
  message: 3 objects are absent
  approve: "Ingot-Approve: bbbbbbbb"
  effects:
  - {server: s3, text: ServerClaim default/gone is removed, approve: "Ingot-Approve: bbbb1"}
  - {text: BMC b1 is removed, approve: "Ingot-Approve: bbbb2"}
  leftOut: 1
`

// approveWorld is a repository with something to approve, and a clone of it.
type approveWorld struct {
	t      *testing.T
	repo   *gitserver.Repo
	commit string // of main, which Ingot has seen
	dir    string // of the clone
}

func newApproveWorld(t *testing.T, revision string) *approveWorld {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	t.Setenv("GIT_TERMINAL_PROMPT", "0")
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	w := &approveWorld{t: t, repo: repo, dir: filepath.Join(t.TempDir(), "clone")}
	w.commit = must.Get(repo.Commit(map[string]string{"README.md": "fleet\n"}, "begin"))(t)
	w.status(revision)
	w.run("clone", "--quiet", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", repo.Dir, w.dir)
	return w
}

func (w *approveWorld) status(revision string) {
	w.t.Helper()
	must.Get(w.repo.CommitTo("status", map[string]string{
		"fleet.yaml":      strings.NewReplacer("COMMIT", w.commit, "SHORT", w.commit[:12]).Replace(revision),
		"servers/s3.yaml": "kind: Server\nmetadata: {name: s3}\nstatus: {summary: {state: Reserved}}\n",
	}, "held"))(w.t)
}

func (w *approveWorld) git(args ...string) string {
	return w.run(append([]string{"-C", w.dir}, args...)...)
}

func (w *approveWorld) run(args ...string) string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "git", args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// approve runs the command, with a person who types answer if it is not empty.
func (w *approveWorld) approve(answer string, args ...string) (out string, code int) {
	w.t.Helper()
	var b bytes.Buffer
	code = execute(w.t.Context(), append([]string{"approve", "--repository", w.dir}, args...),
		&console{in: strings.NewReader(answer), out: &b, err: &b, person: answer != ""})
	return b.String(), code
}

const heldShown = `: 2 steps exceed the limit of 1.
  server s1 is wiped
  server s2 is powered off
  Token: aaaaaaaaaaaaaaaaaaaa
  Refuse it with: git revert SHORT
`

const heldMessage = `approve 2 steps held by the guard

- server s1 is wiped
- server s2 is powered off

Ingot-Approve: aaaaaaaaaaaaaaaaaaaa
`

func TestWhatIsHeldIsShownAndApprovedByACommitOfTheUsersOwn(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	out, code := w.approve("yes\n", "--push")
	if code != exitFine || !strings.HasPrefix(out, "Waiting for approval for ") || !strings.Contains(out, strings.ReplaceAll(heldShown, "SHORT", w.commit[:12])) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if diff := cmp.Diff(heldMessage, w.run("-C", w.repo.Dir, "log", "-1", "--format=%B", "main")+"\n"); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.run("-C", w.repo.Dir, "log", "-1", "--format=%an %P", "main"); got != "Ada "+w.commit {
		t.Errorf("author and parent: got %s", got)
	}
	if changed := w.git("diff", "--stat", "HEAD~", "HEAD"); changed != "" {
		t.Errorf("the commit changes something:\n%s", changed)
	}
}

func TestAnApprovalIsNotWrittenWhere(t *testing.T) {
	const absent = heldRevision + absentToo
	for name, tc := range map[string]struct {
		revision string // heldRevision if empty
		prepare  func(w *approveWorld)
		answer   string
		args     []string
		want     string
	}{
		"nobody is there to be asked": {want: "no terminal to ask on: approve with --yes"},
		"the answer is no":            {answer: "y\n", want: "not approved: no commit was made"},
		"another branch is checked out": {
			args: []string{"--yes", "--branch", "next"}, want: "the branch main is checked out, not next: git switch next",
		},
		"the token is none that is held": {
			args: []string{"--yes", "--token", "aaaaaaaaaaaaaaaaaaab"},
			want: "nothing that is held has the token aaaaaaaaaaaaaaaaaaab: a list that changes",
		},
		"several lists wait": {
			revision: absent, args: []string{"--yes"}, want: "2 lists wait, and each is approved by itself: name one with --token",
		},
		"the remote is asked for another": {
			args: []string{"--yes", "--status", "statsu"},
			want: "no branch statsu, neither of its own nor of origin: git fetch origin +refs/heads/statsu:",
		},
		"no branch is checked out": {
			prepare: func(w *approveWorld) { w.git("checkout", "--quiet", "--detach") }, args: []string{"--yes"},
			want: "no branch is checked out (HEAD is detached): git switch main",
		},
		"git does not know its user": {
			prepare: func(w *approveWorld) {
				w.git("config", "--unset", "user.name")
				w.git("config", "--unset", "user.email")
				w.git("config", "user.useConfigOnly", "true")
			},
			args: []string{"--yes"}, want: "git does not know who you are: git config user.name NAME",
		},
		"something is staged": {
			prepare: func(w *approveWorld) {
				must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "README.md"), []byte("another\n"), 0o600))
				w.git("add", "README.md")
			},
			args: []string{"--yes"}, want: "something is staged",
		},
		"the status branch here is older than the remote's": {
			prepare: func(w *approveWorld) { w.status(absent) }, args: []string{"--yes"},
			want: "origin has another one by now: git fetch origin +refs/heads/status:refs/remotes/origin/status",
		},
		"the branch here lacks what Ingot has seen": {
			prepare: func(w *approveWorld) {
				var err error
				if w.commit, err = w.repo.Commit(map[string]string{"more.md": "x"}, "more"); err != nil {
					w.t.Fatal(err)
				}
				w.status(heldRevision)
				w.git("fetch", "--quiet", "origin", "status")
			},
			args: []string{"--yes"}, want: "the branch main here lacks the revision that Ingot has seen",
		},
		"a push would include something else": {
			prepare: func(w *approveWorld) { w.git("commit", "--quiet", "--allow-empty", "-m", "mine") },
			args:    []string{"--yes", "--push"}, want: "a push would include 1 more commits of branch main that origin does not have",
		},
		"a hook refuses it": {
			prepare: func(w *approveWorld) { w.hook("pre-commit", "echo 'not today' >&2; exit 1") },
			args:    []string{"--yes"}, want: "not today\ningot: no commit was made: git commit: exit status 1",
		},
		"the status branch is somebody else's": {
			prepare: func(w *approveWorld) { w.git("branch", "other") }, args: []string{"--yes", "--status", "other"},
			want: "heads/other: it has no fleet.yaml: is it the status branch of Ingot?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.revision == "" {
				tc.revision = heldRevision
			}
			w := newApproveWorld(t, tc.revision)
			if tc.prepare != nil {
				tc.prepare(w)
			}
			before := w.git("rev-parse", "HEAD")
			out, code := w.approve(tc.answer, tc.args...)
			if code != exitFailed || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, exitFailed, tc.want, out)
			}
			if after := w.git("rev-parse", "HEAD"); after != before {
				t.Errorf("a commit was made: %s", w.git("log", "-1"))
			}
		})
	}
}

func (w *approveWorld) hook(name, script string) {
	w.t.Helper()
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, ".git", "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

func TestAHookThatSpoilsTheApprovalIsSaid(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	w.hook("commit-msg", `printf '\n\nSeen-By: nobody\n' >> "$1"`)
	out, code := w.approve("", "--yes")
	want := `approves nothing: a hook or a setting of git put something after the line "Ingot-Approve: aaaaaaaaaaaaaaaaaaaa"`
	if code != exitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q\n%s", code, want, out)
	}
}

func TestAListThatChangesWhileItIsReadIsNotApproved(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	a, g := approveCommand{Status: "status", Remote: "origin"}, &clone{c: &console{}, dir: w.dir, remote: "origin"}
	before := must.Get(g.branch(t.Context(), "status"))(t)
	if err := a.unchanged(t.Context(), g, before, heldMessage); err != nil {
		t.Error(err)
	}
	for revision, want := range map[string]string{
		heldRevision + "fence: 1\n":                                                      "", // the same list still waits
		strings.Replace(heldRevision, "server s2 is", "server s4 is", 1):                 "what is held has changed",
		strings.Replace(heldRevision, "aaaaaaaaaaaaaaaaaaaa", "cccccccccccccccccccc", 1): "what is held has changed",
	} {
		w.status(revision)
		w.git("fetch", "--quiet", "origin", "status")
		err := a.unchanged(t.Context(), g, before, heldMessage)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheNewerOfACloneAndItsRemoteIsRead(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	w.git("branch", "status", "origin/status") // and is left behind
	w.status(heldRevision + absentToo)
	w.git("fetch", "--quiet", "origin", "status")
	if out, _ := w.approve("", "--dry-run", "--token", "bbbbbbbb"); !strings.Contains(out, "Ingot-Approve: bbbbbbbb") {
		t.Error(out)
	}
}

func TestADryRunPrintsTheMessageAndMakesNoCommit(t *testing.T) {
	w := newApproveWorld(t, heldRevision+absentToo)
	for token, want := range map[string]string{
		"aaaaaaaaaaaaaaaaaaaa": heldMessage,
		"bbbbbbbb": "approve 3 objects absent without a commit\n\n" +
			"- ServerClaim default/gone is removed\n- BMC b1 is removed\n- and 1 more\n\nIngot-Approve: bbbbbbbb\n",
		"bbbb2": "approve one of 3 objects absent without a commit\n\n- BMC b1 is removed\n\nIngot-Approve: bbbb2\n",
	} {
		out, code := w.approve("", "--dry-run", "--token", token)
		if diff := cmp.Diff(want, out); diff != "" || code != exitFine {
			t.Errorf("exit code %d, -want +got:\n%s", code, diff)
		}
	}
	if got := w.git("rev-parse", "HEAD"); got != w.commit {
		t.Error("a commit was made")
	}
}

func TestNothingThatIsHeldIsSaidSo(t *testing.T) {
	w := newApproveWorld(t, "observedRevision: main@sha1:COMMIT\ndecided: {}\n")
	if out, code := w.approve("", "--yes"); code != exitFine || !strings.HasPrefix(out, "Nothing waits for an approval: ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, _ := w.approve("", "--repository", t.TempDir()); !strings.Contains(out, "is no clone of a repository") {
		t.Error(out)
	}
}
