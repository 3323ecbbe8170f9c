package gitsource

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// signedWatch is a watch whose commits are signed on demand.
type signedWatch struct {
	*watch
	keys  string // the folder
	alice gitserver.SigningKey
	eve   gitserver.SigningKey // may not sign
}

func newSignedWatch(t *testing.T, change func(*Options)) *signedWatch {
	t.Helper()
	dir := t.TempDir()
	w := &signedWatch{keys: filepath.Join(dir, "keys")}
	w.alice = ok[gitserver.SigningKey](t)(gitserver.NewSSHKey(dir, "alice", "ed25519"))
	w.eve = ok[gitserver.SigningKey](t)(gitserver.NewSSHKey(dir, "eve", "ed25519"))
	w.watch = newWatch(t, func(o *Options) {
		o.Verify = Verify{Mode: VerifyHead, Keys: w.keys}
		o.Clock = (&clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}).Now
		if change != nil {
			change(o)
		}
	})
	w.allow(w.alice)
	return w
}

// allow makes keys the only ones that may sign.
func (w *signedWatch) allow(keys ...gitserver.SigningKey) {
	w.Helper()
	if err := os.RemoveAll(w.keys); err != nil {
		w.Fatal(err)
	}
	if err := os.Mkdir(w.keys, 0o700); err != nil {
		w.Fatal(err)
	}
	for _, k := range keys {
		w.write(filepath.Base(k.File())+k.Ext, string(k.Public))
	}
}

func (w *signedWatch) write(name, content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.keys, name), []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *signedWatch) signed(k gitserver.SigningKey, message string, images map[string]string) string {
	w.Helper()
	w.unsigned(message, images)
	return ok[string](w.T)(w.repo.Sign("main", k))
}

// unsigned commits the claims, each with its image, and nothing else.
func (w *signedWatch) unsigned(message string, images map[string]string) string {
	w.Helper()
	files := make(map[string]string)
	for name, image := range images {
		files[name+".yaml"] = claimYAML(name, image)
	}
	return ok[string](w.T)(w.repo.Replace(files, message))
}

func (w *signedWatch) expect(what string, want map[string]string, reason string, message ...string) {
	w.Helper()
	w.look()
	var got map[string]string
	if w.d != nil {
		got = claims(w.d)
	}
	st := w.s.State()
	if !maps.Equal(got, want) || st.Reason != reason {
		w.Fatalf("%s: in force %v, %s: %s\nwant %v, %s", what, got, st.Reason, st.Message, want, reason)
	}
	for _, text := range message {
		if !strings.Contains(st.Message, text) {
			w.Errorf("%s: message %q lacks %q", what, st.Message, text)
		}
	}
	if w.d != nil && w.d.Source != st {
		w.Errorf("%s: desired says %+v, want %+v", what, w.d.Source, st)
	}
}

type images = map[string]string

// G17, and law 1: what is not verified changes nothing.
func TestOnlyWhatIsSignedComesIntoForce(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, nil)
	head := w.unsigned("first", images{"web": "a"})
	w.expect("unsigned", nil, model.SourceNotVerified, "commit "+head+" is not signed", "allowed are alice", "nothing is in force yet")
	head = ok[string](t)(w.repo.Sign("main", w.alice))
	w.expect("signed", images{"web": "a"}, "")
	if !strings.HasPrefix(w.d.VerifiedBy, "alice (SSH key SHA256:") {
		t.Errorf("verified by %q", w.d.VerifiedBy)
	}
	first := "main@sha1:" + head + " stays in force"
	w.unsigned("second", images{"web": "b"})
	w.expect("unsigned again", images{"web": "a"}, model.SourceNotVerified, "is not signed", first)
	w.expect("looked at again", images{"web": "a"}, model.SourceNotVerified, first)
	w.signed(w.eve, "third", images{"web": "c"})
	w.expect("by another key", images{"web": "a"}, model.SourceNotVerified, "none of the allowed keys", "SSH key SHA256:", first)
	w.allow(w.alice, w.eve)
	w.expect("by a key that came", images{"web": "c"}, "")
	w.signed(w.alice, "fourth\n\nIngot-Approve: x", images{"web": "d"})
	w.unsigned("fifth\n\nIngot-Approve: y", images{"web": "e"})
	w.expect("an approval that is not signed", images{"web": "c"}, model.SourceNotVerified)
	if len(w.d.Approvals) > 0 {
		t.Errorf("approved: %v", w.d.Approvals)
	}
	w.signed(w.alice, "sixth", images{"web": "f"})
	w.expect("signed on top", images{"web": "f"}, "")
	if diff := cmp.Diff([]string{"x", "y"}, w.d.Approvals); diff != "" {
		t.Errorf("a signature vouches for what is below it: %s", diff)
	}
	must.Do(t, w.repo.SetBranch("side", w.repo.Head("main")))
	w.signed(w.alice, "seventh", images{"web": "g"})
	ok[string](t)(w.repo.CommitTo("side", map[string]string{"db.yaml": claimYAML("db", "a")}, "on the side"))
	ok[string](t)(w.repo.Merge("side", map[string]string{"db.yaml": claimYAML("db", "a")}, "merged by the forge"))
	w.expect("an unsigned merge of what is signed", images{"web": "f"}, model.SourceNotVerified, "is not signed")
}

func TestWhatIsInForceStaysWithoutItsKey(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, nil)
	w.signed(w.alice, "first", images{"web": "a"})
	w.expect("signed", images{"web": "a"}, "")
	for name, c := range map[string]struct {
		keys func()
		want string
	}{
		"a key that is gone":     {keys: func() { w.allow(w.eve) }, want: "none of the allowed keys"},
		"a broken file":          {keys: func() { w.write("team.pub", "hello") }, want: "team.pub: line 1"},
		"an empty folder":        {keys: func() { w.allow() }, want: "holds no key"},
		"a folder that is gone":  {keys: func() { _ = os.RemoveAll(w.keys) }, want: "no signature can be verified"},
		"a key that has expired": {keys: func() { w.allow(); w.write("allowed_signers", `a valid-before="2025Z" `) }, want: "allowed_signers"},
	} {
		t.Run(name, func(t *testing.T) {
			defer w.allow(w.alice)
			w.T = t
			c.keys()
			w.expect("without its key", images{"web": "a"}, model.SourceNotVerified, c.want, "stays in force")
			restart(w.watch)
			w.expect("after a restart", images{"web": "a"}, model.SourceNotVerified, c.want, "stays in force")
			if !strings.HasPrefix(w.d.VerifiedBy, "alice") {
				t.Errorf("verified by %q", w.d.VerifiedBy)
			}
			w.allow(w.alice)
			w.expect("with it", images{"web": "a"}, "")
		})
	}
}

func TestNothingUnverifiedBegins(t *testing.T) {
	t.Parallel()
	lose := func(w *signedWatch) {
		w.s.close()
		if err := os.RemoveAll(w.opts.Dir); err != nil {
			w.Fatal(err)
		}
		w.s = begun(w.T, w.opts, records(w.d))
		w.d = nil
	}
	t.Run("a lost folder", func(t *testing.T) {
		w := newSignedWatch(t, nil)
		w.signed(w.alice, "first", images{"web": "a", "db": "a"})
		w.expect("signed", images{"web": "a", "db": "a"}, "")
		w.unsigned("second", images{"web": "b"})
		lose(w)
		w.expect("what was applied is signed", images{"web": "a", "db": "a"}, model.SourceNotVerified, "is not signed", "stays in force")
		w.allow(w.eve)
		lose(w)
		w.expect("its key is gone too", nil, model.SourceNotVerified, "nothing is in force yet")
		w.signed(w.eve, "third", images{"web": "c"})
		w.expect("what is signed on top vouches for it", images{"web": "c"}, "")
		if diff := cmp.Diff([]string{"ServerClaim default/db"}, see(w.d).Removed); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
	})
	t.Run("records of an unsigned revision", func(t *testing.T) {
		w := newSignedWatch(t, nil)
		w.unsigned("first", images{"web": "a"})
		open := w.opts
		open.Verify = Verify{}
		w.d = mustSync(t, newSource(t, open))
		w.s = begun(t, w.opts, records(w.d))
		w.d = nil
		w.expect("records do not vouch", nil, model.SourceNotVerified, "is not signed")
		w.signed(w.alice, "second", images{"web": "b"})
		w.expect("signed on top", images{"web": "b"}, "")
	})
	t.Run("records of a revision that is gone", func(t *testing.T) {
		w := newSignedWatch(t, nil)
		w.signed(w.alice, "first", images{"web": "a"})
		w.look()
		applied := w.d.Revision
		gone := records(w.d)
		ok[string](t)(w.repo.ForcePush(map[string]string{"db.yaml": claimYAML("db", "a")}, "anew"))
		ok[string](t)(w.repo.Sign("main", w.alice))
		ok[string](t)(w.repo.Git("gc", "--quiet", "--prune=now"))
		w.s.close()
		must.Do(t, os.RemoveAll(filepath.Join(w.opts.Dir, "objects.git")))
		w.s = begun(t, w.opts, gone)
		_ = w.s.Sync(t.Context())
		if st := w.s.State(); w.s.Desired() != nil || !strings.Contains(st.Message, "does not descend from "+string(applied)) {
			t.Errorf("remembered as verified: %+v", st)
		}
		w.s.close()
		must.Do(t, os.RemoveAll(w.opts.Dir))
		w.s = begun(t, w.opts, gone)
		w.d = nil
		w.expect("signed, and not known to be newer", nil, model.SourceNotVerified, "does not descend from "+string(applied))
		ok[string](t)(w.repo.Commit(nil, "replace\n\nIngot-Approve: "+string(applied)))
		ok[string](t)(w.repo.Sign("main", w.alice))
		w.look()
		if diff := cmp.Diff(images{"db": "a"}, claims(w.d)); diff != "" {
			t.Errorf("named (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ServerClaim default/web: AppliedUnknown"}, see(w.d).Absent); diff != "" {
			t.Errorf("absent of %v (-want +got):\n%s", gone.Bound, diff)
		}
	})
}

// G18: who may push but not sign can push what was signed before. Set back to h1 and forward
// to h2, a claim would be removed that h3 has again.
func TestWhatWasSignedBeforeCannotBeReplayed(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, nil)
	h1 := w.signed(w.alice, "with\n\nIngot-Approve: main@sha1:"+strings.Repeat("a", 40), images{"web": "a", "db": "a"})
	h2 := w.signed(w.alice, "without", images{"db": "a"})
	side := w.signed(w.alice, "a branch that was never merged", images{"db": "b"})
	must.Do(t, w.repo.SetBranch("main", h2))
	h3 := w.signed(w.alice, "with again", images{"web": "a", "db": "a"})
	want := images{"web": "a", "db": "a"}
	w.expect("first", want, "")
	for _, h := range []string{h1, h2, side} {
		must.Do(t, w.repo.SetBranch("main", h))
		w.expect("set to "+h, want, model.SourceNotVerified, "does not descend from main@sha1:"+h3, "Ingot-Approve: main@sha1:"+h3)
		restart(w.watch)
		w.expect("and restarted", want, model.SourceNotVerified, "does not descend")
	}
	// The operators may go back, if they say from where.
	must.Do(t, w.repo.SetBranch("main", h2))
	w.unsigned("back\n\nIngot-Approve: main@sha1:"+h3, images{"db": "a"})
	w.expect("not signed", want, model.SourceNotVerified, "is not signed")
	ok[string](t)(w.repo.Sign("main", w.alice))
	w.expect("signed: what it lacks is listed, and not removed", want, model.SourceHistoryRewritten)
	if len(w.d.Removed) > 0 {
		t.Errorf("removed: %v", w.d.Removed)
	}
	must.Do(t, w.repo.SetBranch("main", h3))
	w.expect("the former one cannot come back", want, model.SourceNotVerified, "does not descend")
}

func TestAnExpiredKeySignsNothingNew(t *testing.T) {
	t.Parallel()
	now := newClock()
	w := newSignedWatch(t, func(o *Options) { o.Clock = now.Now })
	w.allow()
	w.write("allowed_signers", `alice valid-before="20261122Z" `+string(w.alice.Public))
	w.signed(w.alice, "first", images{"web": "a"})
	w.expect("in time", images{"web": "a"}, "")
	now.now = now.now.Add(24 * time.Hour)
	w.expect("it stays", images{"web": "a"}, model.SourceNotVerified, "key expired on 2026-11-22 00:00 UTC")
	w.signed(w.alice, "second", images{"web": "b"})
	w.expect("with a date of the signer's choice", images{"web": "a"}, model.SourceNotVerified, "key expired")
}

func TestSignedTags(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, func(o *Options) {
		o.Ref = Ref{Semver: ">=1.0.0"}
		o.Verify.Mode = VerifyTag
	})
	tag := func(args ...string) {
		w.Helper()
		ok[string](w.T)(w.repo.Git(append([]string{"-c", "user.name=x", "-c", "user.email=x"}, args...)...))
	}
	w.unsigned("one", images{"web": "a"})
	tag("tag", "v1.0.0", "main")
	w.expect("a lightweight tag", nil, model.SourceNotVerified, "tag v1.0.0 is not annotated")
	tag("tag", "-f", "-a", "-m", "x", "v1.0.0", "main")
	w.expect("an annotated tag", nil, model.SourceNotVerified, "tag v1.0.0 is not signed")
	must.Do(t, w.repo.SignTag("v1.0.0", "main", w.eve))
	w.expect("by another", nil, model.SourceNotVerified, "none of the allowed keys")
	must.Do(t, w.repo.SignTag("v1.0.0", "main", w.alice))
	w.expect("signed", images{"web": "a"}, "")
	if r := string(w.d.Revision); r != "v1.0.0@sha1:"+w.repo.Head("main") || w.d.Applied().Ref != "v1.0.0" || w.d.Applied().Branch != "" {
		t.Errorf("revision %s, applied %+v", r, w.d.Applied())
	}
	restart(w.watch)
	w.expect("after a restart", images{"web": "a"}, "")
	w.unsigned("two", images{"web": "b"})
	tag("update-ref", "refs/tags/v1.1.0", "refs/tags/v1.0.0")
	w.expect("under another name", images{"web": "a"}, model.SourceNotVerified, "tag v1.1.0 is a tag object of another name")
	tag("tag", "-f", "-a", "-m", "x", "v1.1.0", "main")
	w.expect("the next is not signed", images{"web": "a"}, model.SourceNotVerified, "tag v1.1.0 is not signed", "v1.0.0@sha1:")
	must.Do(t, w.repo.SignTag("v1.1.0", "main", w.alice))
	w.expect("signed", images{"web": "b"}, "")
	tag("tag", "-d", "v1.1.0")
	w.expect("a tag that is deleted is a rollback", images{"web": "b"}, model.SourceNotVerified, "does not descend from v1.1.0@sha1:")
	w.opts.Verify.Mode = VerifyBoth
	tag("tag", "-d", "v1.0.0")
	w.unsigned("three", images{"web": "c"})
	must.Do(t, w.repo.SignTag("v1.2.0", "main", w.alice))
	restart(w.watch)
	w.expect("both: the commit is not", images{"web": "b"}, model.SourceNotVerified, "commit "+w.repo.Head("main")+" is not signed")
	ok[string](t)(w.repo.Sign("main", w.alice))
	must.Do(t, w.repo.SignTag("v1.2.0", "main", w.alice))
	w.expect("both are", images{"web": "c"}, "")
}

// The operator chooses the tag in the configuration, so it may be older.
func TestConfiguredSignedTagMayBeOlder(t *testing.T) {
	t.Parallel()
	w := newSignedWatch(t, nil)
	old := w.signed(w.alice, "one", images{"web": "a"})
	now := w.signed(w.alice, "two", images{"web": "a", "db": "a"})
	for tag, at := range map[string]string{"old": old, "new": now} {
		must.Do(t, w.repo.SignTag(tag, at, w.alice))
	}
	w.opts.Ref, w.opts.Verify.Mode = Ref{Tag: "new"}, VerifyTag
	w.s.close()
	w.s = newSource(t, w.opts)
	w.expect("the newer", images{"web": "a", "db": "a"}, "")
	w.opts.Ref = Ref{Tag: "old"}
	restart(w.watch)
	w.expect("the older, which removes nothing", images{"web": "a", "db": "a"}, model.SourceHistoryRewritten)
	if got := w.d.Revision.Commit(); got != old {
		t.Errorf("in force is %s, want %s", got, old)
	}
	restart(w.watch)
	w.expect("and after a restart", images{"web": "a", "db": "a"}, model.SourceHistoryRewritten)
	must.Do(t, w.repo.SignTag("old", w.signed(w.alice, "three", images{"web": "b"}), w.alice))
	w.look()
	must.Do(t, w.repo.SignTag("old", old, w.alice))
	w.expect("a tag that moves back does not", images{"web": "b"}, model.SourceNotVerified, "does not descend")
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verify Verify
		ref    Ref
		want   string
	}{
		"a mode that is not known": {verify: Verify{Mode: "all"}, want: `"all" is not known`},
		"no keys":                  {verify: Verify{Mode: VerifyHead}, want: "needs a folder"},
		"tags of a branch":         {verify: Verify{Mode: VerifyTag, Keys: "k"}, want: "main is followed"},
		"both of a branch":         {verify: Verify{Mode: VerifyBoth, Keys: "k"}, ref: Ref{Branch: "a"}, want: "a is followed"},
	} {
		_, err := New(Options{URL: "/x", Dir: t.TempDir(), Ref: c.ref, Verify: c.verify})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
