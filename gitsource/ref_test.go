package gitsource

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func TestWhatARefStandsFor(t *testing.T) {
	t.Parallel()
	hash := func(digit string) plumbing.Hash { return plumbing.NewHash(strings.Repeat(digit, 40)) }
	adv := packp.NewAdvRefs()
	for i, tag := range []string{"v1.0.0", "v1.2.0", "1.2.0", "v1.10.0", "v2.0.0-rc.1", "v3", "nightly", "v1.11.0+build"} {
		adv.References["refs/tags/"+tag] = hash(fmt.Sprint(i + 1))
	}
	adv.References["refs/heads/main"], adv.References["refs/heads/production"] = hash("a"), hash("b")
	adv.Peeled["refs/tags/v1.0.0"] = hash("c")
	for name, c := range map[string]struct {
		ref  Ref
		want target
		fail string
	}{
		"a branch":                        {ref: Ref{Branch: "main"}, want: target{name: "main", commit: hash("a")}},
		"a branch that is not there":      {ref: Ref{Branch: "producton"}, fail: `branch "producton" does not exist, did you mean production?`},
		"a tag":                           {ref: Ref{Tag: "nightly"}, want: target{name: "nightly", commit: hash("7")}},
		"an annotated tag is peeled":      {ref: Ref{Tag: "v1.0.0"}, want: target{name: "v1.0.0", commit: hash("c"), tag: hash("1")}},
		"a tag that is not there":         {ref: Ref{Tag: "v1.0.1"}, fail: `tag "v1.0.1" does not exist, did you mean`},
		"nothing like it":                 {ref: Ref{Tag: "release"}, fail: `the repository has 1.2.0, nightly, v1.0.0, v1.10.0, v1.11.0+build and 3`},
		"a branch is no tag":              {ref: Ref{Tag: "main"}, fail: `tag "main" does not exist`},
		"the newest of a range":           {ref: Ref{Semver: "~1.10"}, want: target{name: "v1.10.0", commit: hash("4")}},
		"numbers are no texts":            {ref: Ref{Semver: ">=1.0.0 <2.0.0"}, want: target{name: "v1.11.0+build", commit: hash("8")}},
		"one version twice":               {ref: Ref{Semver: "1.2.x"}, want: target{name: "1.2.0", commit: hash("3")}},
		"none before a release":           {ref: Ref{Semver: ">=2"}, fail: "no tag is a version in the range >=2"},
		"but where it is asked for":       {ref: Ref{Semver: ">=2.0.0-0"}, want: target{name: "v2.0.0-rc.1", commit: hash("5")}},
		"v3 is no whole version":          {ref: Ref{Semver: ">=3"}, fail: "no tag is a version in the range >=3: the repository has 1.2.0,"},
		"a name that begins as another":   {ref: Ref{Branch: "mai"}, fail: "did you mean main?"},
		"a name that is nothing's at all": {ref: Ref{Branch: "x/y/z"}, fail: `branch "x/y/z" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.ref.find(adv)
			if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("got %+v, %v\nwant %+v, %s", got, err, c.want, c.fail)
			}
		})
	}
}

func TestARefIsOneThing(t *testing.T) {
	t.Parallel()
	for want, ref := range map[string]Ref{
		"exactly one":            {},
		"leave the others out":   {Branch: "main", Tag: "v1"},
		`tag "a..b"`:             {Tag: "a..b"},
		`"newest" is no range`:   {Semver: "newest"},
		`branch "-x" is not a v`: {Branch: "-x"},
	} {
		if err := ref.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", ref, err, want)
		}
	}
}

// tagged is a watch of a repository with three commits: v1.0.0 has two claims, v1.1.0 one
// less, and main a further one.
func tagged(t *testing.T, ref Ref) (*watch, []string) {
	t.Helper()
	w := newWatch(t, func(o *Options) { o.Ref = ref })
	commits := []string{
		ok[string](t)(w.repo.Replace(map[string]string{"web.yaml": claimYAML("web", "a"), "db.yaml": claimYAML("db", "a")}, "one")),
		ok[string](t)(w.repo.Replace(map[string]string{"web.yaml": claimYAML("web", "b")}, "two")),
		ok[string](t)(w.repo.Replace(map[string]string{"web.yaml": claimYAML("web", "c")}, "three")),
	}
	w.git("tag", "v1.0.0", commits[0])
	w.git("tag", "-a", "-m", "x", "v1.1.0", commits[1])
	return w, commits
}

func (w *watch) git(args ...string) {
	w.Helper()
	ok[string](w.T)(w.repo.Git(append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...))
}

func TestTagsAreFollowed(t *testing.T) {
	t.Parallel()
	w, commits := tagged(t, Ref{Tag: "v1.0.0"})
	see := func(what, revision string, want map[string]string, reason string) {
		t.Helper()
		w.look()
		if got := claims(w.d); string(w.d.Revision) != revision || !maps.Equal(got, want) || w.d.Source.Reason != reason {
			t.Fatalf("%s: %s with %v, %+v\nwant %s with %v, %s", what, w.d.Revision, got, w.d.Source, revision, want, reason)
		}
	}
	both := map[string]string{"web": "a", "db": "a"}
	see("a tag", "v1.0.0@sha1:"+commits[0], both, "")
	restart(w)
	see("after a restart", "v1.0.0@sha1:"+commits[0], both, "")
	w.opts.Ref = Ref{Semver: ">=1.0.0"}
	restart(w)
	see("the next version takes away what its commit did", "v1.1.0@sha1:"+commits[1], map[string]string{"web": "b"}, "")
	restart(w)
	see("after a restart", "v1.1.0@sha1:"+commits[1], map[string]string{"web": "b"}, "")
	w.git("tag", "-d", "v1.1.0")
	see("an older version changes nothing", "v1.1.0@sha1:"+commits[1], map[string]string{"web": "b"}, model.SourceOlder)
	w.git("tag", "-f", "v1.1.0", commits[2])
	w.look()
	if got := w.d.Applied(); got.Ref != "v1.1.0" || got.Branch != "" || got.Commit != commits[2] {
		t.Errorf("a tag that moved: %+v", got)
	}
	w.git("tag", "-f", "v1.1.0", commits[2]+"^{tree}")
	if err := w.s.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "v1.1.0@sha1:") {
		t.Errorf("a tag of no commit: %v", err)
	}
	w.git("tag", "-f", "-a", "-m", "x", "v1.2.0", commits[2]+"^{tree}")
	if err := w.s.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "is a tree, not a commit") {
		t.Errorf("an annotated tag of no commit: %v", err)
	}
	w.git("tag", "-f", "-a", "-m", "x", "v1.2.0", commits[2])
	w.git("tag", "-f", "-a", "-m", "x", "v1.3.0", "v1.2.0")
	w.look()
	if got := w.d.Applied(); got.Ref != "v1.3.0" || got.Commit != commits[2] {
		t.Errorf("a tag of a tag: %+v", got)
	}
}

// A tag may lie on a branch that nobody fetches, see G03.
func TestATagIsFollowedOverHTTPAndSSH(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*testing.T, *servedRepo) (string, Auth){
		"HTTP": func(t *testing.T, r *servedRepo) (string, Auth) {
			return serveHTTP(t, r, gitserver.HTTPOptions{}).URL, Auth{}
		},
		"SSH": func(t *testing.T, r *servedRepo) (string, Auth) {
			s := ok[*gitserver.SSHServer](t)(r.ServeSSH())
			t.Cleanup(s.Close)
			return s.URL, Auth{SSHKeyFile: writeFile(t, s.ClientKey), KnownHostsFile: writeFile(t, s.KnownHosts(s.Ed25519))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, commits := tagged(t, Ref{Tag: "v1.1.0"})
			must.Do(t, w.repo.SetBranch("main", commits[0]))
			w.opts.URL, w.opts.Auth = serve(t, w.repo)
			w.s = newSource(t, w.opts)
			w.look()
			if got := string(w.d.Revision); got != "v1.1.0@sha1:"+commits[1] {
				t.Errorf("revision %s", got)
			}
		})
	}
}
